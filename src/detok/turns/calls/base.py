"""
What a grammar of tool calls gives: pure functions over text, whose whole state is plain data.

A call is read in three stages. Its *head* runs from the opening delimiter to the first character of the arguments; until it is
whole, nothing is given out, and all of it may still be content as written. Then come the *arguments*, which are given out as JSON
while they are read. *After* them come closing delimiters, or the next call.

| text                                             | stage     | result                                |
| ------------------------------------------------ | --------- | ------------------------------------- |
| `<tool_call>{"name": "f", "argum`                | head      | `More`: undecided                     |
| `<tool_call>{"name": "f", "arguments": `         | head      | `Call`: it is one, and its name is f  |
| `{"a": 1}`                                       | arguments | `Piece`: `{"a": 1}`                   |
| `}`                                              | arguments | `Piece` without a state: they ended   |
| `</tool_call>`                                   | after     | `Done`: a delimiter                   |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

__all__ = [
    "MAX_NAME", "Call", "Done", "Grammar", "More", "Piece", "Types", "after_call", "delimiter_at", "first_characters",
    "json_string", "space_end",
]  # fmt: skip

# The longest name of a function. OpenAI allows 64 characters; names with a server in front of them (MCP) are longer.
MAX_NAME = 256

Types = Mapping[str, Sequence[str]]
"""Of one tool: by parameter, the JSON types that its schema allows."""

_SPACE = re.compile(r"\s*")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_ESCAPED = str.maketrans({**{chr(code): f"\\u{code:04x}" for code in range(32)}, **_ESCAPES})


class Call(NamedTuple):
    """The head of a call is whole: from here on it is one, whatever follows."""

    name: str
    used: int
    """Characters of the text that belong to the head."""
    state: Any
    """Where the reading of the arguments begins."""
    text: str = ""
    """Arguments that are known already, as JSON: a model may write them before the name."""
    call_id: str = ""
    """The id that the model wrote, if it wrote one."""
    after: Any = None
    """The memo with which the text after the call is looked at."""


class More(NamedTuple):
    """Undecided: a call so far."""

    memo: Any = None
    """What need not be looked at again."""


class Done(NamedTuple):
    """A closing delimiter after a call."""

    used: int
    """Characters of the text that belong to it, white space before it included."""
    last: bool
    """Whether it closes everything that was opened."""


class Piece(NamedTuple):
    """What some text added to the arguments."""

    state: Any
    """Where reading goes on; None if the arguments have ended."""
    text: str
    """JSON."""
    used: int
    """Characters of the text that were taken. The others come again, with more text after them."""


class Grammar(Protocol):
    """How a model family writes calls."""

    @property
    def opens(self) -> tuple[str, ...]:
        """A candidate for a call begins with one of these."""
        ...

    @property
    def closes(self) -> tuple[str, ...]:
        """Delimiters after a call."""
        ...

    @property
    def last(self) -> tuple[str, ...]:
        """Those of them that close everything that was opened."""
        ...

    @property
    def bare(self) -> tuple[str, ...]:
        """Characters that begin a candidate where a turn or a part of it begins, without a delimiter."""
        ...

    @property
    def marks(self) -> tuple[str, ...]:
        """Other literals inside calls. They too may be special tokens."""
        ...

    def head(self, text: str, memo: Any, *, follows: bool) -> Call | More | Done | None:
        """
        Look for the head of a call.

        Args:
            text: All since the opening delimiter began; or, if it ``follows``, all since the call before it ended.
            memo: What `More` had, for the same text without its end; None at first.
            follows: Whether this is the text after a call.

        Returns:
            None: It is no call. Only if it ``follows`` can it be a `Done`.
        """
        ...

    def arguments(self, state: Any, text: str, types: Types, *, ends: bool) -> Piece:
        """
        Read arguments.

        Args:
            state: Of the `Call`, or of the last `Piece`.
            text: What was not used the last time, and what came since.
            types: Of the tool's parameters, for formats that do not write types.
            ends: Nothing comes after this text: all of it is used.
        """
        ...


def delimiter_at(text: str, place: int, delimiters: Sequence[str]) -> str | None:
    """
    Return the delimiter that begins at this place; "" if one may, when more text comes; None if none does.

    >>> delimiter_at("a</b>c", 1, ["</b>"]), delimiter_at("a</", 1, ["</b>"]), delimiter_at("a</i>", 1, ["</b>"])
    ('</b>', '', None)
    """
    for one in delimiters:
        if text.startswith(one, place):
            return one
    left = len(text) - place
    if any(left < len(one) and one.startswith(text[place:]) for one in delimiters):
        return ""
    return None


def after_call(
    text: str, closes: Sequence[str], last: Sequence[str], next_call: Callable[[str], Call | More | None]
) -> Call | More | Done | None:
    """
    Look at what follows a call: a delimiter that closes it, or the next one, with white space before either.

    Args:
        text: All since the call ended.
        closes: Delimiters.
        last: Those of them that close everything.
        next_call: Finds the head of a call.
    """
    space = space_end(text)
    found = delimiter_at(text, space, closes)
    if found:
        return Done(space + len(found), last=found in last)
    call = next_call(text[space:])
    if isinstance(call, Call):
        return call._replace(used=space + call.used)
    return call or (More() if found == "" else None)


def space_end(text: str, place: int = 0) -> int:
    """
    Return where the white space at this place ends.

    >>> space_end("a  b", 1), space_end("a  b", 0)
    (3, 0)
    """
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


def json_string(text: str) -> str:
    """
    Return text as it stands inside a JSON string; that of pieces is that of the whole.

    >>> json_string('"a"\\n')
    '\\\\"a\\\\"\\\\n'
    """
    return text.translate(_ESCAPED)


@lru_cache(maxsize=64)
def first_characters(delimiters: tuple[str, ...]) -> str:
    """The characters that delimiters begin with."""
    return "".join(sorted({one[0] for one in delimiters}))
