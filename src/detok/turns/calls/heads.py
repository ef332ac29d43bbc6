"""
Heads of calls as sequences of literals and classes of characters, which tell a call that is not whole from what is none.

A sequence becomes two regular expressions: one for the whole, and one for every beginning of it. `<a>` and a name become
`<a>(name)` and `(?:<(?:a(?:>(?:name)?)?)?)?`. A text that is neither is no head, however it goes on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from .base import MAX_NAME, Call, More

__all__ = ["ARGUMENTS", "CALL_ID", "NAME", "SPACE", "WORD", "Element", "Heads"]


@dataclass(frozen=True, slots=True)
class Element:
    """A part of a sequence that is no literal."""

    pattern: str
    """Every beginning of what it matches, except the empty one, matches too."""
    group: str = ""
    least: int = 1
    """0: it may be missing."""


_NAME_CHARACTERS = r"""[^\s<>"'`(){}\[\],;=|]"""
NAME = Element(f"{_NAME_CHARACTERS}{{1,{MAX_NAME}}}", "name")
"""The name of a function: no white space, quote or bracket is in it."""
CALL_ID = Element(f"{_NAME_CHARACTERS}{{1,{MAX_NAME}}}", "call_id")
WORD = Element(r"[^\s<>]{1,64}", "", 0)
SPACE = Element(r"\s{1,64}", "", 0)
ARGUMENTS = Element("", "arguments", 0)
"""Where the arguments begin."""


@dataclass(frozen=True, slots=True)
class Heads:
    """
    The sequences that a call may begin with.

    Args:
        sequences: Literals and elements. Each has a `NAME`; what is after `ARGUMENTS` is looked at, but belongs to the arguments.
    """

    sequences: tuple[tuple[str | Element, ...], ...]

    def find(self, text: str) -> tuple[re.Match[str], int] | More | None:
        """Return the match of a head at the beginning, and where arguments begin; or whether there may be one."""
        may = False
        for whole, beginning in _patterns(self.sequences):
            if found := whole.match(text):
                return found, found.start("arguments")
            may = may or beginning.fullmatch(text) is not None
        return More() if may else None

    def call(self, text: str) -> Call | More | None:
        """Return the call that begins with a head; what state its arguments begin in is for the grammar to say."""
        found = self.find(text)
        if found is None or isinstance(found, More):
            return found
        match, used = found
        return Call(match["name"], used, None, call_id=match.groupdict().get("call_id") or "")


@lru_cache(maxsize=64)
def _patterns(sequences: Sequence[Sequence[str | Element]]) -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    return [(re.compile(_whole(one)), re.compile(_beginning(one))) for one in sequences]


def _whole(sequence: Sequence[str | Element]) -> str:
    return "".join(re.escape(one) if isinstance(one, str) else _group(one) for one in sequence)


def _group(one: Element) -> str:
    opening = f"(?P<{one.group}>" if one.group else "(?:"
    return f"{opening}{one.pattern})" + ("?" if one.pattern and not one.least else "")


def _beginning(sequence: Sequence[str | Element]) -> str:
    pattern = ""
    for one in reversed(sequence):
        if isinstance(one, str):
            for char in reversed(one):
                pattern = f"(?:{re.escape(char)}{pattern})?"
        elif one.pattern:
            needed = f"(?:{one.pattern}{pattern})?"
            pattern = needed if one.least else f"(?:(?:{one.pattern})?{pattern})"
    return pattern
