"""
Rules over joined text.

A rule over characters (`CharRule`) says what it does with one character, and at the end; it is written to be read, and
`rewriter.Rewriter` composes several into one table that gives text out as early as possible. What no table can hold is a
`TextStage` of its own: white space at both ends (`WhiteEnds`), and any function that may look at the whole text (`WholeText`).

>>> stage = WhiteEnds()
>>> first, state = stage.feed(stage.start, "  two  ")
>>> second, state = stage.feed(state, "words  ")
>>> first, second, stage.finish(state)
('two', '  words', '')
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

from ..utf8 import may_begin
from .texts import append

State = TypeVar("State")
CharState = Hashable
Pieces = tuple[str, ...]
"""A text in pieces, grown by `texts.append`."""


class TextStage(Protocol[State]):
    """A rule over joined text. Its states are plain values."""

    start: State
    idle: State
    """The state that most characters leave as it is."""

    def feed(self, state: State, text: str, /) -> tuple[str, State]:
        """Take text and return what is certain now, and the next state."""

    def finish(self, state: State, /) -> str:
        """Return what comes out at the end of the text."""

    def expect(self, state: State, pending: bytes, /) -> str:
        """Return what is certain to come out first if the next character begins with the bytes ``pending``, or is U+FFFD."""

    def resets(self, text: str, /) -> bool:
        """Whether the state after ``text`` is the same whatever stood before it."""


class CharRule(Protocol):
    """
    A rule over the characters of a joined text: a finite-state transducer whose states are plain values.

    On a character outside its ``alphabet`` it gives out what it holds, then that character, and always comes to the same state;
    the rewriter relies on it.
    """

    @property
    def alphabet(self) -> frozenset[str]:
        """The characters that this rule looks at; all others are alike to it."""

    @property
    def writes(self) -> frozenset[str]:
        """The characters that this rule may give without having got them."""

    @property
    def start(self) -> CharState:
        """The state before the first character."""

    def feed(self, state: CharState, character: str) -> tuple[str, CharState]:
        """Take one character and return what comes out, and the next state."""

    def finish(self, state: CharState) -> str:
        """Return what comes out at the end of the text."""


class Substitute:
    """
    Replace every occurrence of a string, leftmost first, not overlapping, as ``str.replace`` does.

    The state counts how many characters of the pattern, which is not empty, stand at the end of the text (Knuth, Morris and
    Pratt).
    """

    def __init__(self, pattern: str, content: str) -> None:
        self.pattern, self.content = pattern, content
        self.alphabet = frozenset(pattern)
        self.writes = frozenset(content)
        self.start: CharState = 0
        self._borders = _borders(pattern)

    def feed(self, state: CharState, character: str) -> tuple[str, CharState]:
        assert isinstance(state, int)
        released = 0
        while self.pattern[state] != character:
            if state == 0:
                return self.pattern[:released] + character, 0
            border = self._borders[state]
            released += state - border
            state = border
        if state + 1 == len(self.pattern):
            return self.pattern[:released] + self.content, 0
        return self.pattern[:released], state + 1

    def finish(self, state: CharState) -> str:
        assert isinstance(state, int)
        return self.pattern[:state]


def _borders(pattern: str) -> list[int]:
    """For each length of a prefix, the length of the longest proper border of it."""
    borders = [0] * (len(pattern) + 1)
    border = 0
    for length in range(2, len(pattern) + 1):
        while border and pattern[border] != pattern[length - 1]:
            border = borders[border]
        if pattern[border] == pattern[length - 1]:
            border += 1
        borders[length] = border
    return borders


class StripText:
    """
    Remove up to ``left`` leading and up to ``right`` trailing occurrences of one character.

    The state counts: up to ``left`` the characters that were removed, beyond it those that may prove to be trailing.
    """

    def __init__(self, character: str, left: int, right: int) -> None:
        self.character, self.left, self.right = character, left, right
        self.alphabet = self.writes = frozenset(character)
        self.start: CharState = 0

    def feed(self, state: CharState, character: str) -> tuple[str, CharState]:
        assert isinstance(state, int)
        if character != self.character:
            return self.character * max(0, state - self.left) + character, self.left
        if state < self.left + self.right:
            return "", state + 1
        return character, state

    def finish(self, state: CharState) -> str:
        return ""


class WholeText:
    """A rule that may look at the whole text: all of it is held, and the rule is applied at the end. The state: the text."""

    def __init__(self, apply: Callable[[str], str]) -> None:
        self.start: Pieces = ()
        self.idle: Pieces = ()
        self._apply = apply

    def feed(self, held: Pieces, text: str) -> tuple[str, Pieces]:
        return "", append(held, text)

    def finish(self, held: Pieces) -> str:
        return self._apply("".join(held))

    def expect(self, held: Pieces, pending: bytes) -> str:
        return ""  # nothing is certain before the end

    def resets(self, text: str) -> bool:
        return False  # all of the text counts, always


class WhiteEnds:
    """
    White space at both ends vanishes, as ``str.strip`` does it.

    The state: None before the first other character, then the white space that may prove to be the end.
    """

    def __init__(self) -> None:
        self.start: Pieces | None = None
        self.idle: Pieces | None = ()

    def feed(self, held: Pieces | None, text: str) -> tuple[str, Pieces | None]:
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
        return ""

    def expect(self, held: Pieces | None, pending: bytes) -> str:
        """Return the white space that is held, if the character to come cannot be white space."""
        could_be_white = any(may_begin(pending, character) for character in _WHITE_SPACE)
        return "" if held is None or could_be_white else "".join(held)

    def resets(self, text: str) -> bool:
        return bool(text.strip())  # it has a character that stays


# White space of more than one byte in UTF-8: no other white space is incomplete at any time.
_WHITE_SPACE = "\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
