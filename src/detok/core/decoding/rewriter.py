"""
Rules over joined text as one table, which gives out each character at the earliest possible step.

`Rewriter` composes character rules (clean-up is ten of them in a row) and walks all states that they can reach together. For
each state it finds the longest text that every continuation begins with, the end included: that text comes out when the state is
entered. The two rules " ." to "." and " ?" to "?" as an example; the rules themselves would hold the space in two places:

    state           reads      gives    then
    idle            " "        ""       space
    space           " "        " "      space     the first space is certain, the second may still go
    space           "."        "."      idle
    space           "x"        " x"     idle
    space           the end    " "

Automata theory calls such a transducer *onward* (Mohri, "Finite-State Transducers in Language and Speech Processing", 1997). That
it is onward proves law 3 for rules over text.

>>> from detok.core.decoding.text_rules import Substitute
>>> table = Rewriter([Substitute(" .", "."), Substitute(" ?", "?")])
>>> first, row = table.feed(table.start, "so  ")
>>> second, row = table.feed(row, "?")
>>> first, second
('so ', '?')
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..utf8 import may_begin
from .text_rules import CharRule, CharState
from .texts import common_prefix

# Maximum moves of a table. A larger one costs more to build than early text is worth; the caller then holds text to the end.
MAX_MOVES = 20_000

# Maximum moves that are looked at while a table is made onward and minimal: a bound on the time to load a tokenizer.
MAX_WORK = 150_000
# Maximum characters in all moves of a table: a bound on its memory.
MAX_TEXT = 2_000_000


class TooManyStates(Exception):
    """The rules together need a table that is larger than the limits here."""


class Rewriter:
    """
    Composed character rules. A state is the number of a row; row 0 is the start.

    Args:
        rules: In the order in which they are applied.

    Raises:
        TooManyStates: The table would exceed `MAX_MOVES`, `MAX_WORK` or `MAX_TEXT`.
    """

    def __init__(self, rules: Sequence[CharRule]) -> None:
        first, *others = rules
        composed = _compile([first])
        for rule in others:
            # One rule at a time, so that the table is made minimal before the next rule multiplies its states.
            composed = _compile([composed, rule])
        self.start: int = 0
        self.alphabet = composed.alphabet
        self.ends = composed.ends
        self._moves = composed.moves
        # On a character that no rule looks at, every row leads to this one: after it, the text before does not count.
        (self.idle,) = {row for _, row in composed.others}
        self._around = [tuple(out.split(composed.other)) for out, _ in composed.others]
        self._skips = self._around[self.idle] == ("", "")
        special = re.escape("".join(sorted(self.alphabet)))
        self._next_special = re.compile(f"[{special}]").search if special else _nowhere

    def feed(self, row: int, text: str) -> tuple[str, int]:
        """Take text; return the text that is certain now, and the next row. Time is linear in ``text``."""
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
        Return the text that comes out first if the next character begins with the bytes ``pending`` or is U+FFFD.

        The first bytes of a character exclude most others: E3 after a space never becomes a full stop.
        """
        outcomes = [self._around[row][0]]
        outcomes += [out for symbol, (out, _) in self._moves[row].items() if may_begin(pending, symbol)]
        return common_prefix(outcomes)

    def finish(self, row: int) -> str:
        """Return the text that comes out at the end."""
        return self.ends[row]

    def resets(self, text: str) -> bool:
        """Whether the row after ``text`` does not depend on the text before it: it has a character that no rule looks at."""
        return not self.alphabet.issuperset(text)


Moves = list[dict[str, tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class _Table:
    """A composed rule, onward and minimal. It is a `CharRule` itself, so it can be composed again. Row 0 is the start."""

    alphabet: frozenset[str]
    writes: frozenset[str]
    other: str
    """A character that no rule looks at or writes. In moves it represents all characters that no rule looks at."""

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
    # From the end of Unicode, where no rule of a real decoder looks, so that the search ends at once.
    other = next(chr(code) for code in range(0x10FFFF, 0, -1) if chr(code) not in alphabet | writes)
    rows, ends = _explore(rules, [*sorted(alphabet), other])
    moves, ends = _merge(*_hasten(rows, ends))
    return _Table(alphabet, writes, other, moves, [found.pop(other) for found in moves], ends)


def _explore(rules: Sequence[CharRule], symbols: Sequence[str]) -> tuple[Moves, list[str]]:
    """Return all rows that the start leads to, in the order in which they are found, and the text that each gives at the end."""
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
    """Run characters through all rules in a row; return the text that comes out, and the next states."""
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
    """End all rules in a row, and return the text that comes out. The last text of one rule is still fed to the next."""
    text = ""
    for rule, state in zip(rules, states, strict=True):
        out, (state,) = _feed([rule], [state], text)
        text = out + rule.finish(state)
    return text


def _hasten(rows: Moves, ends: Sequence[str]) -> tuple[Moves, list[str]]:
    """
    Make the table onward: each text comes out as early as it is certain.

    The certain text of a row is the longest text that every continuation from it begins with. This is a greatest fixed point:
    begin with the text that the end alone would give, and shorten it until every move agrees. The start gives no text, since a
    stream gives none before its first id.

    Raises:
        TooManyStates: It looks at more than `MAX_WORK` moves.
    """
    early = list(ends)
    early[0] = ""
    work = 0
    changed = True
    while changed:
        changed = False
        # Backwards: a row's certain text depends on the rows after it, and those were mostly found later.
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
    """Merge the rows that give equal text for every continuation (Moore's algorithm). The start stays row 0."""
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
        return rows, list(ends)  # larger than it could be, but right
    firsts = [kinds.index(kind) for kind in range(count)]
    moves = [{symbol: (out, kinds[to]) for symbol, (out, to) in rows[row].items()} for row in firsts]
    return moves, [ends[row] for row in firsts]


def _nowhere(text: str, at: int) -> None:
    return None
