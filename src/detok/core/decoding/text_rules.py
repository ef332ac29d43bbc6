"""
Rules over joined text.

A rule over characters (`CharRule`) takes one character at a time. It is written to be read, not to be fast or early:
`rewriter.Rewriter` composes several into one table that gives out text as early as possible. Two rules need more states than a
table can have, and are a `TextStage` of their own: white space at both ends (`WhiteEnds`), and any function that may look at the
whole text (`WholeText`).

>>> stage = WhiteEnds()
>>> first, state = stage.feed(stage.start, "  two  ")
>>> second, state = stage.feed(state, "words  ")
>>> first, second, stage.finish(state)
('two', '  words', '')
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

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
    """The state after an ordinary character in the middle of a text; most characters do not change it."""

    def feed(self, state: State, text: str, /) -> tuple[str, State]:
        """Take text; return the text that is certain now, and the next state."""

    def finish(self, state: State, /) -> str:
        """Return the text that comes out at the end."""

    def expect(self, state: State, pending: bytes, /) -> str:
        """Return the text that comes out first if the next character begins with the bytes ``pending`` or is U+FFFD."""

    def resets(self, text: str, /) -> bool:
        """Whether the state after ``text`` does not depend on the text before it."""


AnyTextStage = TextStage[Any]


class CharRule(Protocol):
    """
    A rule over the characters of a joined text: a finite-state transducer whose states are plain values.

    On a character outside its ``alphabet`` it must give out all that it holds, then that character, and go to one state, always
    the same. The rewriter relies on this: it treats all such characters as one.
    """

    @property
    def alphabet(self) -> frozenset[str]:
        """The characters that this rule looks at. It treats all others alike."""

    @property
    def writes(self) -> frozenset[str]:
        """The characters that this rule may add to the text."""

    @property
    def start(self) -> CharState:
        """The state before the first character."""

    def feed(self, state: CharState, character: str) -> tuple[str, CharState]:
        """Take one character; return the text that comes out, and the next state."""

    def finish(self, state: CharState) -> str:
        """Return the text that comes out at the end."""


class Substitute:
    """
    Replaces every occurrence of a string, leftmost first, not overlapping, as ``str.replace`` does.

    The pattern is not empty. The state is the number of its characters that the text so far ends with (Knuth, Morris and Pratt):

    >>> rule = Substitute("aab", "X")
    >>> rule.feed(2, "b"), rule.feed(2, "a"), rule.feed(2, "c")
    (('X', 0), ('a', 2), ('aac', 0))
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
    """Return, for each length of a prefix of the pattern, the length of its longest border: a proper prefix that is a suffix."""
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
    Removes up to ``left`` leading and up to ``right`` trailing occurrences of one character.

    The state is a count. Up to ``left`` it counts the leading characters that were removed; what exceeds ``left`` counts the
    characters that are held, since they are removed if the text ends here.
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
    """A function that may look at the whole text: all text is held, and the function applied at the end. The state: the text."""

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
        return False  # the whole text always counts


class WhiteEnds:
    """
    Removes white space at both ends, as ``str.strip`` does.

    The state: None before the first other character; then the white space that is held, as it is removed if the text ends here.
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
        """Return the white space that is held, unless the next character may be white space."""
        could_be_white = any(may_begin(pending, character) for character in _WHITE_SPACE)
        return "" if held is None or could_be_white else "".join(held)

    def resets(self, text: str) -> bool:
        return bool(text.strip())  # white space before a character that stays is out


# White space of more than one byte in UTF-8: the bytes of an incomplete character never begin a white space of one byte.
_WHITE_SPACE = "\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
