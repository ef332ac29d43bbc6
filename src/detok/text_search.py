"""
Stop strings: one automaton over text, whose state lives from step to step.

The state is a *candidate*: the longest end of the text so far that is a proper beginning of a stop. It is all that a stop may
still need, so it is all that is ever held, and nothing is searched twice. Feeding a text is the same as feeding its characters
one at a time (law 6); the stop that completes first wins, and of two that complete at one character the first in the list.

This is the automaton of Aho and Corasick (1975), made lazily: the trie is the sorted list of stops, of which a candidate is a
range of rows, and only what a text really comes to is made. Moves are then remembered by token text, as the texts of tokens are
few and come again. So neither the number of stops nor their length is felt in a usual step.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import NamedTuple

# So many moves and candidates are remembered for one set of stops, about 2 MB; then the memory begins again.
MAX_MOVES = 1 << 14
# Thousands of stops have thousands of candidates, each with the tokens that follow it: about 10 MB.
MANY_STOPS = 100
MAX_MOVES_OF_MANY = 1 << 16
# A move that holds so many characters counts as one more.
WEIGHT = 32
# Texts that are longer hardly come again.
MAX_REMEMBERED = 32
# So many sets of stops are kept for requests to come.
MAX_SETS = 32


UNKNOWN = -1


class StopMatch(NamedTuple):
    """A stop that completed."""

    end: int
    """So many characters of the fed text belong to it or stand before it."""

    length: int
    """In characters; more than ``end`` if it began in an earlier text."""

    reason: str
    """The stop as the request named it."""


class Candidate:
    """What the text may yet become a stop by: the first ``length`` characters of one or several."""

    __slots__ = ("chars", "children", "completes", "fallback", "first", "last", "length", "moves", "parent", "stop")

    def __init__(self, stop: str, length: int, first: int, last: int, parent: Candidate | None) -> None:
        self.stop = stop
        """The first of them in sorted order."""
        self.length = length
        self.first = first
        self.last = last
        """Their rows among all stops, sorted: from the first to before the last."""
        self.parent = self if parent is None else parent
        """The same without its last character."""
        self.fallback: Candidate | None = self if parent is None else None
        """The longest one that this one ends in; None as long as nobody asked."""
        self.completes: int | None = None if parent is None else UNKNOWN
        """The rank, in the request's list, of the first stop that this one ends in."""
        self.moves: dict[str, tuple[str, Candidate]] = {}
        """By a text in which no stop completes: what comes out then, and the candidate behind it."""
        self.chars: dict[str, tuple[Candidate, int | None]] = {}
        """By one character; with the rank of the stop that completes."""
        self.children: dict[str, Candidate] = {}

    @property
    def text(self) -> str:
        return self.stop[: self.length]

    @property
    def is_proper(self) -> bool:
        """Whether there is a stop that goes on from here."""
        return self.last - self.first > (len(self.stop) == self.length)


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
        self._first = re.compile("[" + "".join(sorted({re.escape(stop[0]) for stop in stops})) + "]")
        self.idle = Candidate("", 0, 0, len(self._sorted), None)
        self._known: list[Candidate] = [self.idle]
        self._limit = self._left = MAX_MOVES if len(self._sorted) < MANY_STOPS else MAX_MOVES_OF_MANY
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
            whole = at.text + text
            out = whole[: len(whole) - node.length] if self.holds else text
            self._spend(1 + len(out) // WEIGHT)
            at.moves[text] = out, node
        return node, None

    def move(self, at: Candidate, text: str) -> tuple[str, Candidate] | None:
        """Return what comes out of a text and the candidate after it; None if a stop completes in it, or it is too long."""
        if text not in at.moves:
            self.scan(at, text)
        return at.moves.get(text)

    def candidate(self, text: str) -> Candidate:
        """Return the candidate of which ``text`` is the text: from a snapshot."""
        return self.scan(self.idle, text, counts=False)[0]

    def _step(self, node: Candidate, char: str) -> tuple[Candidate, int | None]:
        step = node.chars.get(char)
        if step is None:
            self.questions += 1
            after = self._longest(node, char)
            rank = self._completed(after)
            while not after.is_proper and after is not self.idle:
                after = self._fallback(after)
            self._spend(1)
            step = node.chars[char] = after, rank
        return step

    def _longest(self, node: Candidate, char: str) -> Candidate:
        """The longest beginning of a stop, a whole one too, in which a candidate and a character end."""
        while True:
            child = self._child(node, char)
            if child is not None:
                return child
            if node is self.idle:
                return node
            node = self._fallback(node)

    def _child(self, node: Candidate, char: str) -> Candidate | None:
        child = node.children.get(char)
        if child is None:
            place = slice(node.length, node.length + 1)
            first = bisect_left(self._sorted, char, node.first, node.last, key=lambda stop: stop[place])
            last = bisect_right(self._sorted, char, first, node.last, key=lambda stop: stop[place])
            if first == last:
                return None
            self._spend(1)
            child = node.children[char] = Candidate(self._sorted[first], node.length + 1, first, last, node)
            self._known.append(child)
        return child

    def _fallback(self, node: Candidate) -> Candidate:
        """The longest beginning of a stop that is a proper end of a candidate; found from its own shortest beginning on."""
        found = node.fallback
        if found is None:
            beginnings = []
            while node.fallback is None:
                beginnings.append(node)
                node = node.parent
            for one in reversed(beginnings):
                found = self._longest(self._fallback(one.parent), one.stop[one.length - 1]) if one.length > 1 else self.idle
                one.fallback = found
        assert found is not None
        return found

    def _completed(self, node: Candidate) -> int | None:
        """The rank of the first stop in the list that a candidate ends in."""
        ends = []
        while node.completes == UNKNOWN:
            ends.append(node)
            node = self._fallback(node)
        best = node.completes
        for one in reversed(ends):
            if len(one.stop) == one.length:
                rank = self._rank[one.stop]
                best = rank if best is None else min(best, rank)
            one.completes = best
        return best

    def _spend(self, count: int) -> None:
        """Count something that is about to be remembered; begin again when there is too much."""
        if self._left <= 0:
            # Requests keep the candidates that they stand on.
            for node in self._known:
                node.moves.clear()
                node.chars.clear()
                node.children.clear()
            self._known = [self.idle]
            self._left = self._limit
        self._left -= count


@lru_cache(maxsize=MAX_SETS)
def stop_strings(stops: tuple[str, ...], holds: bool = True) -> StopStrings:
    """Return the automaton of a set of stops, the same one each time."""
    return StopStrings(stops, holds=holds)
