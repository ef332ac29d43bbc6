"""
Rules over joined text that no table can hold: they say less early, and the pipeline notes it.

Held is as little as each allows: what a regular expression could still match, what the byte alphabet could still change,
or, where a rule may look at all of it, the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..utf8 import REPLACEMENT, may_begin
from .rules import byte_level_bytes, byte_of
from .texts import append

__all__ = ["ByteLevelText", "ByteTokenText", "ReplaceMatches", "WhiteEnds", "WholeText", "matched_characters"]

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
        self._matchable = re.compile(characters).fullmatch

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
        at = len(text)
        while at and self._matchable(text, at - 1, at):
            at -= 1
        return at


class ByteTokenText:
    """
    A whole text of the form ``<0xHH>`` is that byte, and nothing else is (ByteFallback after Fuse: the text is one token).

    The state: the text so far while it may still be that, else None.
    """

    def __init__(self) -> None:
        self.start: str | None = ""
        self.usual: str | None = None

    def feed(self, held: str | None, text: str) -> tuple[str, str | None]:
        """Take text and return it, unless the whole may yet be a byte."""
        if held is None:
            return text, None
        held += text
        complete = held + "<0x00>"[len(held) :]
        may_be_byte = held == "<0x+" or byte_of(complete) is not None
        return ("", held) if may_be_byte else (held, None)

    def finish(self, held: str | None) -> str:
        """Return the rest: a byte after all, or text that only began like one."""
        if held is None:
            return ""
        byte = byte_of(held)
        if byte is None:
            return held
        return chr(byte) if byte < 0x80 else REPLACEMENT

    def expect(self, held: str | None, pending: bytes) -> str:
        """Return what is held: no incomplete character belongs to a byte token."""
        return held or ""

    def settles(self, text: str) -> bool:
        """The beginning of the text decides, always."""
        return False


class WhiteEnds:
    """
    White space at both ends vanishes, as ``str.strip`` has it.

    The state: None before the first other character, then the white space that may prove to be the end.
    """

    def __init__(self) -> None:
        self.start: Pieces | None = None
        self.usual: Pieces | None = ()

    def feed(self, held: Pieces | None, text: str) -> tuple[str, Pieces | None]:
        """Take text and return what is not at the end any more."""
        if held is None:
            text = text.lstrip()
            if not text:
                return "", None
            held = ()
        shown = text.rstrip()
        if not shown:
            return "", append(held, text)
        return "".join(held) + shown, append((), text[len(shown) :])

    def finish(self, held: Pieces | None) -> str:
        """Return the rest: there is none."""
        return ""

    def expect(self, held: Pieces | None, pending: bytes) -> str:
        """Return the white space that is held, if the character to come cannot be white space."""
        could_be_white = any(may_begin(pending, character) for character in _WHITE_SPACE)
        return "" if held is None or could_be_white else "".join(held)

    def settles(self, text: str) -> bool:
        """Whether ``text`` has a character that stays."""
        return bool(text.strip())


# Those that take more than one byte in UTF-8: no other is incomplete at any time.
_WHITE_SPACE = "\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


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
    Return, as a pattern of `re` for one character, the characters that matches of a regular expression can consist of.

    None if that is not plain to see. Only what means the same in every dialect is read: literals, simple classes, ``\\s``, groups
    without flags, alternatives and quantifiers. Anchors, boundaries and look-around see beyond a match, so they are not.

    >>> matched_characters("a{2,}[.b-]")
    'a|[.b-]'
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
            if any(double in match["class"] for double in ("--", "||", "~~")):
                return None  # operations on classes, in some dialects
            characters.append(f"[{match['class']}]")
        at = match.end()
    return "|".join(characters) or None


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
