"""
Stop strings: one automaton over text, whose state lives from step to step.

The state is a *candidate*: the longest end of the text so far that is a proper beginning of a stop. It is all that a stop may
still need, so it is all that is ever held, and nothing is searched twice. Feeding a text is the same as feeding its characters
one at a time (law 6); the stop that completes first wins, and of two that complete at one character the first in the list.

This is the automaton of Aho and Corasick (1975), made lazily: a move is found in the sorted list of stops when it first occurs,
by character, and then remembered by token text, as the texts of tokens are few and come again. So neither the number of stops
nor their length is felt in a usual step.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from typing import NamedTuple

__all__ = ["Candidate", "StopMatch", "StopStrings", "stop_strings"]

# So many moves are remembered for one set of stops, about 10 MB; then the memory begins again. Thousands of stops that nearly
# every token begins have some ten thousand candidates, each with the tokens that follow it.
MAX_MOVES = 1 << 16
# Texts that are longer hardly come again.
MAX_REMEMBERED = 32
# So many sets of stops are kept for requests to come.
MAX_SETS = 32


class StopMatch(NamedTuple):
    """A stop that completed."""

    end: int
    """So many characters of the fed text belong to it or stand before it."""

    length: int
    """In characters; more than ``end`` if it began in an earlier text."""

    reason: str
    """The stop as the request named it."""


class Candidate:
    """What of the text may yet become a stop: the first ``length`` characters of one."""

    __slots__ = ("chars", "length", "moves", "stop")

    def __init__(self, stop: str, length: int) -> None:
        self.stop = stop
        self.length = length
        self.moves: dict[str, tuple[str, Candidate]] = {}
        """By a text in which no stop completes: what comes out then, and the candidate behind it."""
        self.chars: dict[str, tuple[Candidate, int | None]] = {}
        """By one character; with the rank of the stop that completes."""

    @property
    def text(self) -> str:
        return self.stop[: self.length]


class StopStrings:
    """
    The automaton of one set of stops. Immutable but for what it remembers, so any number of requests and threads share one.

    Args:
        stops: Not empty, and none of them is.
        holds: Whether a candidate is held back. It need not be if a stop is part of the output.
    """

    def __init__(self, stops: tuple[str, ...], *, holds: bool = True) -> None:
        self.stops = stops
        self.holds = holds
        self._rank: dict[str, int] = {}
        for rank, stop in enumerate(stops):
            self._rank.setdefault(stop, rank)
        self._sorted = sorted(self._rank)
        self._lengths = sorted(set(map(len, stops)))
        self._last = frozenset(stop[-1] for stop in stops)
        self._first = re.compile("[" + "".join(sorted({re.escape(stop[0]) for stop in stops})) + "]")
        self.idle = Candidate("", 0)
        self._candidates: dict[tuple[int, int], Candidate] = {}
        self._moves_left = MAX_MOVES
        self.questions = 0
        """How many moves were not remembered: a count of work, which tests look at."""

    def scan(self, at: Candidate, text: str, *, counts: bool = True) -> tuple[Candidate, StopMatch | None]:
        """
        Take more text; return the candidate behind it, or the first stop that completes in it.

        Args:
            at: Where the text before ended.
            text: Any length.
            counts: Whether stops that complete in it count (`min_tokens`). If not, there is no match.
        """
        known = at.moves.get(text)
        if known is not None:
            return known[1], None
        node, position, passed = at, 0, False
        while position < len(text):
            if node is self.idle:
                found = self._first.search(text, position)
                if found is None:
                    break
                position = found.start()
            node, rank = self._step(node, text[position])
            position += 1
            if rank is not None and counts:
                stop = self.stops[rank]
                return node, StopMatch(position, len(stop), stop)
            passed = passed or rank is not None
        if not passed and len(text) <= MAX_REMEMBERED:
            self._budget()
            whole = at.text + text
            at.moves[text] = whole[: len(whole) - node.length] if self.holds else text, node
        return node, None

    def candidate(self, text: str) -> Candidate:
        """Return the candidate of which ``text`` is the text: from a snapshot."""
        return self.scan(self.idle, text, counts=False)[0]

    def _step(self, node: Candidate, char: str) -> tuple[Candidate, int | None]:
        step = node.chars.get(char)
        if step is None:
            self.questions += 1
            text = node.text + char
            step = self._longest(text), self._completed(text)
            self._budget()
            node.chars[char] = step
        return step

    def _completed(self, text: str) -> int | None:
        """The rank of the first stop in the list that ``text`` ends in."""
        if text[-1] not in self._last:
            return None
        ends = (text[-length:] for length in self._lengths if length <= len(text))
        return min((self._rank[end] for end in ends if end in self._rank), default=None)

    def _longest(self, text: str) -> Candidate:
        """The longest end of ``text`` that is a proper beginning of a stop."""
        for start in range(len(text)):
            end = text[start:]
            # In sorted order, what begins with a text stands right behind it.
            row = bisect_left(self._sorted, end)
            if row < len(self._sorted) and self._sorted[row] == end:
                row += 1
            if row < len(self._sorted) and self._sorted[row].startswith(end):
                return self._candidates.setdefault((row, len(end)), Candidate(self._sorted[row], len(end)))
        return self.idle

    def _budget(self) -> None:
        """Count a move that is about to be remembered; begin again with an empty memory when there are too many."""
        if self._moves_left <= 0:
            for node in [self.idle, *self._candidates.values()]:
                node.moves.clear()
                node.chars.clear()
            self._candidates = {}
            self._moves_left = MAX_MOVES
        self._moves_left -= 1


@lru_cache(maxsize=MAX_SETS)
def stop_strings(stops: tuple[str, ...], holds: bool = True) -> StopStrings:
    """Return the automaton of a set of stops, the same one each time."""
    return StopStrings(stops, holds=holds)
