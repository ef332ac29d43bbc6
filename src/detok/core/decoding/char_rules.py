"""
Rules over characters, for text that has been joined: what each does with one character, and at the end.

They are written to be read, not to be fast or early: `rewriter.Rewriter` composes them into one table and makes it early.
A rule is a finite-state transducer. Its states are plain values. On a character outside its ``alphabet`` it gives out what it
holds, then that character, and always comes to the same state; the rewriter relies on it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

__all__ = ["CharRule", "StripText", "Substitute"]

State = Hashable


class CharRule(Protocol):
    """One rule over the characters of a joined text."""

    @property
    def alphabet(self) -> frozenset[str]:
        """The characters that this rule looks at; all others are alike to it."""
        ...

    @property
    def writes(self) -> frozenset[str]:
        """The characters that this rule may give without having got them."""
        ...

    @property
    def start(self) -> State:
        """The state before the first character."""
        ...

    def feed(self, state: State, character: str) -> tuple[str, State]:
        """Take one character and return what comes out, and the next state."""
        ...

    def finish(self, state: State) -> str:
        """Return what comes out at the end of the text."""
        ...


class Substitute:
    """
    Replace every occurrence of a string, leftmost first, not overlapping, as ``str.replace`` does.

    The state is how many characters of the pattern stand at the end of the text (Knuth, Morris and Pratt). An empty pattern
    matches before the first character and after each one, but in an empty text only with ``in_nothing``.
    """

    def __init__(self, pattern: str, content: str, *, in_nothing: bool = False) -> None:
        self.pattern, self.content, self.in_nothing = pattern, content, in_nothing
        self.alphabet = frozenset(pattern)
        self.writes = frozenset(content)
        self.start: State = 0 if pattern else -1
        self._borders = _borders(pattern)

    def feed(self, state: State, character: str) -> tuple[str, State]:
        assert isinstance(state, int)
        if not self.pattern:
            before = self.content if state == -1 else ""
            return before + character + self.content, 0
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

    def finish(self, state: State) -> str:
        assert isinstance(state, int)
        if state == -1:
            return self.content if self.in_nothing else ""
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
        self.start: State = 0

    def feed(self, state: State, character: str) -> tuple[str, State]:
        assert isinstance(state, int)
        if character != self.character:
            return self.character * max(0, state - self.left) + character, self.left
        if state < self.left + self.right:
            return "", state + 1
        return character, state

    def finish(self, state: State) -> str:
        return ""
