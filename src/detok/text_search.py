"""
Stop strings: one automaton for all stops of a request, whose state lives from step to step.

The state is a *candidate*: the longest end of the text so far that is a proper beginning of a stop. A stop can need no more of
the text than this, so only this is held, and no text is searched twice. With the stops "ENDS" and "NDA" as an example:

    token    candidate    held     comes out    why
    "x"      ""           ""       "x"
    "EN"     "EN"         "EN"     ""           "EN" begins "ENDS"; its end "N" begins "NDA", but is shorter
    "D"      "END"        "END"    ""
    "!"      ""           ""       "END!"       nothing that "END!" ends with begins a stop
    or "A"                         "E"          "NDA" completes: the text ends before it

>>> strings = StopStrings(("ENDS", "NDA"))
>>> candidate, match = strings.scan(strings.idle, "xEND")
>>> candidate.text, match
('END', None)
>>> strings.scan(candidate, "A")[1]
StopMatch(end=1, length=3, reason='NDA')

A text gives the same result as its characters fed one at a time (law 6). The stop that completes first wins; of two that complete
at one character, the first in the list.

This is the automaton of Aho and Corasick (1975), built lazily. Their trie is here the sorted list of stops, and a candidate is a
range of its rows: those that begin with the candidate. A candidate is built when a text first reaches it. Moves are then
remembered by token text, since the texts of tokens are few and recur. So a usual step costs the same for one stop and for 10,000.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import NamedTuple

# Maximum moves and candidates that are remembered for one set of stops: about 2 MB. Then all are forgotten and found anew.
MAX_MOVES = 1 << 14
# The same for a set of at least `MANY_STOPS` stops, about 10 MB: it has more candidates, each with the tokens that follow it.
MANY_STOPS = 100
MAX_MOVES_OF_MANY = 1 << 16
# Characters of a move's text that count as one move more, so that the limits above bound memory.
WEIGHT = 32
# Maximum characters of a text whose move is remembered. Longer texts hardly ever recur.
MAX_REMEMBERED = 32
# Maximum sets of stops, and patterns, whose automaton is kept for later requests.
MAX_SETS = 32


UNKNOWN = -1
"""In `Candidate.completes`: not worked out yet."""


class StopMatch(NamedTuple):
    """A stop that completed."""

    end: int
    """Number of characters of the fed text up to the end of the stop."""

    length: int
    """Number of characters of the stop. It is more than ``end`` if the stop began in an earlier text."""

    reason: str
    """The stop as the request gave it."""


class Candidate:
    """The beginning of one or several stops that the text ends with: their first ``length`` characters."""

    __slots__ = ("chars", "children", "completes", "fallback", "first", "last", "length", "moves", "parent", "stop")

    def __init__(self, stop: str, length: int, first: int, last: int, parent: Candidate | None) -> None:
        self.stop = stop
        """The first of these stops in sorted order."""
        self.length = length
        self.first = first
        self.last = last
        """The rows of these stops in the sorted list of all: from ``first`` to before ``last``."""
        self.parent = self if parent is None else parent
        """The candidate without the last character; for the empty one, itself."""
        self.fallback: Candidate | None = self if parent is None else None
        """The longest shorter candidate that this one ends with (Aho and Corasick's failure link). None: not worked out yet."""
        self.completes: int | None = None if parent is None else UNKNOWN
        """The rank, in the request's list, of the first stop that this candidate ends with; None if it ends with no stop."""
        self.moves: dict[str, tuple[str, Candidate]] = {}
        """By a text in which no stop completes: the text that comes out, and the next candidate."""
        self.chars: dict[str, tuple[Candidate, int | None]] = {}
        """By one character: the next candidate, and the rank of the stop that completes, or None."""
        self.children: dict[str, Candidate] = {}
        """By one character: the candidate that is longer by it."""

    @property
    def text(self) -> str:
        return self.stop[: self.length]

    @property
    def is_proper(self) -> bool:
        """Whether a stop continues after this candidate, so that it is more than a complete stop."""
        return self.last - self.first > (len(self.stop) == self.length)


class StopStrings:
    """
    The automaton of one set of stops. Only its memory changes, so any number of requests and threads may share one.

    Args:
        stops: One or more strings, none of them empty.
        holds: Whether candidates are held. False if a stop is part of the output: then its text comes out in any case.
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
        """Number of moves that were worked out. Tests bound the work by it."""

    def scan(self, at: Candidate, text: str, *, counts: bool = True) -> tuple[Candidate, StopMatch | None]:
        """
        Take more text; return the candidate after it and None, or else the first stop that completes in it.

        Args:
            at: The candidate after the text before.
            text: The text, of any length.
            counts: Whether stops that complete in it count. False for the first `min_tokens` tokens: then there is no match.
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
        # A text in which a stop completed without counting is not remembered: in another request it counts.
        if not passed and len(text) <= MAX_REMEMBERED:
            whole = at.text + text
            out = whole[: len(whole) - node.length] if self.holds else text
            self._spend(1 + len(out) // WEIGHT)
            at.moves[text] = out, node
        return node, None

    def move(self, at: Candidate, text: str) -> tuple[str, Candidate] | None:
        """Return the text that comes out and the next candidate. None: a stop completes, or ``text`` is too long to remember."""
        if text not in at.moves:
            self.scan(at, text)
        return at.moves.get(text)

    def candidate(self, text: str) -> Candidate:
        """Return the candidate with this text, for a snapshot."""
        return self.scan(self.idle, text, counts=False)[0]

    def _step(self, node: Candidate, char: str) -> tuple[Candidate, int | None]:
        step = node.chars.get(char)
        if step is None:
            self.questions += 1
            after = self._longest(node, char)
            rank = self._completed(after)
            # A complete stop that no other stop continues is no candidate: go on with its longest end that is one.
            while not after.is_proper and after is not self.idle:
                after = self._fallback(after)
            self._spend(1)
            step = node.chars[char] = after, rank
        return step

    def _longest(self, node: Candidate, char: str) -> Candidate:
        """Return the longest beginning of a stop, perhaps a whole one, that the text ends with after one more character."""
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
        """Return `Candidate.fallback`. That of a longer candidate follows from that of its parent, so the shortest come first."""
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
        """Return `Candidate.completes`: the least rank of the stops that the candidate or one of its fallbacks is."""
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
        """Count something that is about to be remembered. If the budget is used up, forget everything first."""
        if self._left <= 0:
            # A request keeps its candidate, which stays correct: only its moves are forgotten.
            for node in self._known:
                node.moves.clear()
                node.chars.clear()
                node.children.clear()
            self._known = [self.idle]
            self._left = self._limit
        self._left -= count


@lru_cache(maxsize=MAX_SETS)
def stop_strings(stops: tuple[str, ...], holds: bool = True) -> StopStrings:
    """Return the automaton of a set of stops, the same one each time while it is kept."""
    return StopStrings(stops, holds=holds)
