"""
Rules over joined text that no table can hold: they say less early, and the pipeline notes it.

Held is as little as each allows: what a regular expression could still match, what the byte alphabet could still change,
or, where a rule may look at all of it, the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .rules import byte_level_bytes
from .texts import append

__all__ = ["ByteLevelText", "ReplaceMatches", "WholeText", "matched_characters"]

Pieces = tuple[str, ...]


class WholeText:
    """A rule that may look at the whole text before it says a word: held to the end, then applied once. The state: the text."""

    def __init__(self, apply: Callable[[str], str]) -> None:
        self.start: Pieces = ()
        self.usual = self.start
        self._apply = apply

    def feed(self, held: Pieces, text: str) -> tuple[str, Pieces]:
        """Take text; nothing comes out yet."""
        return "", append(held, text)

    def finish(self, held: Pieces) -> str:
        """Apply the rule to the whole text."""
        return self._apply("".join(held))

    def expect(self, held: Pieces, pending: bytes) -> str:
        """Nothing is certain before the end."""
        return ""

    def settles(self, text: str) -> bool:
        """All of the text counts, always."""
        return False


class ReplaceMatches:
    """
    A regular expression whose matches consist of known characters only: no match goes over any other character.

    So the text up to the last other character is complete, and what follows it is held. The state: what is held.
    """

    def __init__(self, apply: Callable[[str], str], characters: str) -> None:
        self.start: Pieces = ()
        self.usual = self.start
        self._apply = apply
        self._tail = re.compile(f"[{characters}]*\\Z")

    def feed(self, held: Pieces, text: str) -> tuple[str, Pieces]:
        """Take text and return what no match can reach any more."""
        tail = self._begin_of_tail(text)
        if not tail:
            return "", append(held, text)
        return self._apply("".join(held) + text[:tail]), append((), text[tail:])

    def finish(self, held: Pieces) -> str:
        """Return the rest."""
        return self._apply("".join(held))

    def expect(self, held: Pieces, pending: bytes) -> str:
        """Nothing more is known than after the character."""
        return ""

    def settles(self, text: str) -> bool:
        """Whether ``text`` has a character that no match can have."""
        return self._begin_of_tail(text) > 0

    def _begin_of_tail(self, text: str) -> int:
        # Backwards by hand: a search for the tail would begin anew at every character of a long run.
        at = len(text)
        while at and self._tail.match(text, at - 1, at):
            at -= 1
        return at


class ByteLevelText:
    """
    The byte alphabet over a text that is one token: its bytes if all characters are in the alphabet, else itself.

    Until a character outside the alphabet comes, only what both readings begin with is certain: visible ASCII. The state: what is
    held, or None once the text is known to be itself.
    """

    def __init__(self) -> None:
        self.start: Pieces | None = ()
        self.usual = self.start

    def feed(self, held: Pieces | None, text: str) -> tuple[str, Pieces | None]:
        """Take text and return what both readings agree on."""
        if held is None:
            return text, None
        if not _in_alphabet(text):
            return "".join(held) + text, None
        certain = 0 if held else len(text) - len(text.lstrip(_VISIBLE_ASCII))
        return text[:certain], append(held, text[certain:])

    def finish(self, held: Pieces | None) -> str:
        """Return the rest: bytes after all."""
        return "" if held is None else byte_level_bytes("".join(held)).decode(errors="replace")

    def expect(self, held: Pieces | None, pending: bytes) -> str:
        """Nothing more is known than after the character."""
        return ""

    def settles(self, text: str) -> bool:
        """One character far back decides, always."""
        return False


_VISIBLE_ASCII = "".join(map(chr, range(0x21, 0x7F)))


def _in_alphabet(text: str) -> bool:
    return all(byte_level_bytes(character) != character.encode() or character in _VISIBLE_ASCII for character in text)


def matched_characters(pattern: str) -> str | None:
    """
    Return, as the inside of a character class of `re`, the characters that matches of a regular expression can consist of.

    None if that is not plain to see. Only what means the same in every dialect is read: literals, simple classes, ``\\s``, groups
    without flags, alternatives and quantifiers. Anchors, boundaries and look-around see beyond a match, so they are not.

    >>> matched_characters(" {2,}")
    '\\\\ '
    >>> matched_characters("(?<=a)b") is None
    True
    """
    characters: list[str] = []
    at = 0
    while at < len(pattern):
        match = _ATOM.match(pattern, at)
        if match is None:
            return None
        if match["literal"]:
            characters.append(re.escape(match["literal"]))
        elif match["escaped"]:
            characters.append(_ESCAPES.get(match["escaped"], re.escape(match["escaped"])))
        elif match["class"]:
            characters.append(match["class"])
        at = match.end()
    return "".join(characters) or None


_ESCAPES = {"s": r"\s", "n": r"\n", "t": r"\t", "r": r"\r"}
_ATOM = re.compile(
    r"""
    (?P<quantifier> [*+?] [?+]? | \{ \d+ (,\d*)? \} [?+]? )
  | (?P<structure> \( (\?:)? (?!\?) | \) | \| )
  | \\ (?P<escaped> [snrt] | [^\w\s] )
  | \[ (?P<class> (?! \^ ) (?: \\ [snrt] | \\ [^\w\s] | [^\\\[\]&] )+ ) \]
  | (?P<literal> [^\\\[\](){}|*+?.^$] )
    """,
    re.VERBOSE,
)
