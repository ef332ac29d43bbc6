"""
Rules over joined text as one table that gives out each character at the earliest possible moment.

`Rewriter` composes character rules (clean-up is ten of them in a row) and walks all states that they can reach together.
For each it finds the longest text that every continuation, the end included, would give: that much is given out on entering
the state. In the words of automata theory the transducer is made *onward* (Mohri, "Finite-State Transducers in Language and
Speech Processing", 1997), and this is what proves law 3 for text rules, instead of hoping for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..utf8 import may_begin
from .text_rules import CharRule, CharState
from .texts import common_prefix

# A table of more moves than this would cost more to build than early text is worth; the caller holds the text instead.
MAX_MOVES = 20_000

# Nor may it take more looks at moves than this to make it early and small, nor its moves more characters of text.
MAX_WORK = 150_000
MAX_TEXT = 2_000_000


class TooManyStates(Exception):
    """The rules together reach more states than a table should have."""


class Rewriter:
    """
    Composed character rules. A state is the number of a row; row 0 is the start.

    Args:
        rules: In the order in which they are applied.

    Raises:
        TooManyStates: The table would have more than `MAX_MOVES` moves.
    """

    def __init__(self, rules: Sequence[CharRule]) -> None:
        first, *others = rules
        composed = _compile([first])
        for rule in others:
            # One rule at a time: the table so far is small again before the next rule multiplies it.
            composed = _compile([composed, rule])
        self.start: int = 0
        self.alphabet = composed.alphabet
        self.ends = composed.ends
        self._moves = composed.moves
        # Every row goes to the same one on a character that no rule looks at: from there the past no longer matters.
        (self.idle,) = {row for _, row in composed.others}
        self._around = [tuple(out.split(composed.other)) for out, _ in composed.others]
        self._skips = self._around[self.idle] == ("", "")
        special = re.escape("".join(sorted(self.alphabet)))
        self._next_special = re.compile(f"[{special}]").search if special else _nowhere

    def feed(self, row: int, text: str) -> tuple[str, int]:
        """Take text and return what is certain now, and the next row. Time is linear in ``text``."""
        out: list[str] = []
        at, end = 0, len(text)
        while at < end:
            if row == self.idle and self._skips:
                special = self._next_special(text, at)
                stop = end if special is None else special.start()
                out.append(text[at:stop])
                at = stop
                if at == end:
                    break
            character = text[at]
            move = self._moves[row].get(character)
            if move is None:
                before, after = self._around[row]
                out.append(f"{before}{character}{after}")
                row = self.idle
            else:
                out.append(move[0])
                row = move[1]
            at += 1
        return "".join(out), row

    def expect(self, row: int, pending: bytes) -> str:
        """
        Return what is certain to come out first if the next character begins with the bytes ``pending``, or is U+FFFD.

        An incomplete character already excludes most others: after a space, the byte E3 cannot become a full stop.
        """
        outcomes = [self._around[row][0]]
        outcomes += [out for symbol, (out, _) in self._moves[row].items() if may_begin(pending, symbol)]
        return common_prefix(outcomes)

    def finish(self, row: int) -> str:
        """Return what comes out at the end of the text."""
        return self.ends[row]

    def resets(self, text: str) -> bool:
        """Whether the row after ``text`` is the same whatever stood before it: it has a character that no rule looks at."""
        return not self.alphabet.issuperset(text)


Moves = list[dict[str, tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class _Table:
    """A composed rule, onward and as small as it can be: a rule over characters itself. Row 0 is the start."""

    alphabet: frozenset[str]
    writes: frozenset[str]
    other: str
    """A character that no rule looks at or writes; it stands for all that no rule looks at."""

    moves: Moves
    others: list[tuple[str, int]]
    ends: list[str]
    start: CharState = 0

    def feed(self, state: CharState, character: str) -> tuple[str, CharState]:
        assert isinstance(state, int)
        move = self.moves[state].get(character)
        if move is not None:
            return move
        out, after = self.others[state]
        return out.replace(self.other, character), after

    def finish(self, state: CharState) -> str:
        assert isinstance(state, int)
        return self.ends[state]


def _compile(rules: Sequence[CharRule]) -> _Table:
    alphabet = frozenset[str]().union(*(rule.alphabet for rule in rules))
    writes = frozenset[str]().union(*(rule.writes for rule in rules))
    other = next(chr(code) for code in range(0x10FFFF, 0, -1) if chr(code) not in alphabet | writes)
    rows, ends = _explore(rules, [*sorted(alphabet), other])
    moves, ends = _merge(*_hasten(rows, ends))
    return _Table(alphabet, writes, other, moves, [found.pop(other) for found in moves], ends)


def _explore(rules: Sequence[CharRule], symbols: Sequence[str]) -> tuple[Moves, list[str]]:
    """All rows that can be reached from the start, in the order in which they are found, and what each gives at the end."""
    start = tuple(rule.start for rule in rules)
    numbers: dict[tuple[CharState, ...], int] = {start: 0}
    queue = [start]
    rows: Moves = []
    size = 0
    for states in queue:
        if len(queue) * len(symbols) > MAX_MOVES or size > MAX_TEXT:
            raise TooManyStates
        row: dict[str, tuple[str, int]] = {}
        for symbol in symbols:
            out, after = _feed(rules, states, symbol)
            if after not in numbers:
                numbers[after] = len(queue)
                queue.append(after)
            row[symbol] = out, numbers[after]
            size += len(out)
        rows.append(row)
    return rows, [_finish(rules, states) for states in queue]


def _feed(rules: Sequence[CharRule], states: Sequence[CharState], text: str) -> tuple[str, tuple[CharState, ...]]:
    """Run characters through all rules in a row."""
    after: list[CharState] = []
    for rule, state in zip(rules, states, strict=True):
        out = ""
        for character in text:
            part, state = rule.feed(state, character)
            out += part
        after.append(state)
        text = out
    return text, tuple(after)


def _finish(rules: Sequence[CharRule], states: Sequence[CharState]) -> str:
    """End all rules in a row: what one gives at its end is still fed to the next."""
    text = ""
    for rule, state in zip(rules, states, strict=True):
        out, (state,) = _feed([rule], [state], text)
        text = out + rule.finish(state)
    return text


def _hasten(rows: Moves, ends: Sequence[str]) -> tuple[Moves, list[str]]:
    """
    Give everything out as early as it is certain.

    For each row, what is certain is the longest text that every way on from it begins with: the greatest fixed point, found by
    beginning with what the end alone would give and cutting until every move agrees. The start gives nothing, since a stream
    says nothing before its first id.

    Raises:
        TooManyStates: It takes more than `MAX_WORK`.
    """
    early = list(ends)
    early[0] = ""
    work = 0
    changed = True
    while changed:
        changed = False
        # Backwards, since rows that are found later mostly lie further on, and what is certain comes from there.
        for row in range(len(rows) - 1, -1, -1):
            certain = early[row]
            if not certain:
                continue
            work += len(rows[row])
            for out, to in rows[row].values():
                if not out.startswith(certain):
                    certain = common_prefix([certain, out + early[to]])
            if certain != early[row]:
                early[row], changed = certain, True
        if work > MAX_WORK:
            raise TooManyStates
    moves = [
        {symbol: ((out + early[to])[len(early[row]) :], to) for symbol, (out, to) in found.items()}
        for row, found in enumerate(rows)
    ]
    return moves, [end[len(early[row]) :] for row, end in enumerate(ends)]


def _merge(rows: Moves, ends: Sequence[str]) -> tuple[Moves, list[str]]:
    """Merge the rows that no continuation can tell apart (Moore's algorithm); the start stays row 0."""
    kinds = [0] * len(rows)
    count = 1
    for _ in range(1 + MAX_WORK // (1 + sum(map(len, rows)))):
        seen: dict[object, int] = {}
        kinds = [
            seen.setdefault((kinds[row], ends[row], *((out, kinds[to]) for out, to in found.values())), len(seen))
            for row, found in enumerate(rows)
        ]
        if len(seen) == count:
            break
        count = len(seen)
    else:
        return rows, list(ends)  # large, and right all the same
    firsts = [kinds.index(kind) for kind in range(count)]
    moves = [{symbol: (out, kinds[to]) for symbol, (out, to) in rows[row].items()} for row in firsts]
    return moves, [ends[row] for row in firsts]


def _nowhere(text: str, at: int) -> None:
    return None
