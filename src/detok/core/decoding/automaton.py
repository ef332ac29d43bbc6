"""
Moves that are remembered: what makes the pipeline fast without making it complicated.

The pipeline is a function from (state, id) to (text, state). An automaton asks it once for each pair that occurs and remembers
the answer, as a lazy DFA does. Nearly all steps lead from the state in which nothing is held back to the same state: for these
the answer is one entry of one list. The memory between other states has a fixed budget and begins again when it is used up.

Each entry is a fact about immutable rules, so that any number of threads may share an automaton without a lock: at worst two of
them ask the same question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, SupportsIndex

from ...ids import as_id, as_sequence
from ..options import DecodeOptions
from .joiners import Held
from .pipeline import Pipeline, State

__all__ = ["Automaton", "Machine", "Node", "Steps"]

# Ids at or above this are not remembered in lists, so that one huge id in a sparse vocabulary costs 16 MB at most.
MAX_LISTED_ID = 1 << 20
# Between other states: at most this many nodes and moves, about 25 MB if a hostile stream fills them.
MAX_NODES = 1 << 13
MAX_MOVES = 1 << 17
# A state that holds more characters than this will hardly be met again.
MAX_REMEMBERED = 48

Table = list[str | None]

NO_MOVES: dict[int, tuple[str, Node]] = {}
"""Of nodes that remember nothing; it stays empty."""


class Steps(Protocol):
    """What turns ids into text, over states that are plain values: a `Pipeline`, or a window that stands in for one."""

    options: DecodeOptions

    def feed(self, state: Any, token_id: int, /) -> tuple[str, Any]:
        """Take one id and return the text that comes out now, and the next state."""
        ...

    def finish(self, state: Any, /) -> str:
        """Return the rest of the text."""
        ...

    def held(self, state: Any, /) -> Held:
        """Return what is held, and why, for display."""
        ...


class Machine(Protocol):
    """What a stream moves on: an `Automaton`, or a machine without a memory."""

    exact: bool
    """Whether the text is proven equal to the one-shot decode."""

    fingerprint: Callable[[], str]
    finished: Node

    @property
    def pipeline(self) -> Steps:
        """What answers."""
        ...

    @property
    def settled(self) -> Node | None:
        """Where nothing is held, if there is such a node."""
        ...

    def advance(self, node: Node, token_id: int, /) -> tuple[str, Node]:
        """Return the text that comes out after ``token_id``, and the next node."""
        ...

    def behind(self, prompt_ids: Iterable[SupportsIndex], /) -> Node:
        """Return the node behind a prompt."""
        ...

    def node(self, state: Any, /) -> Node:
        """Return the node of a state."""
        ...


class Node:
    """One state of the pipeline, and where ids lead from it."""

    __slots__ = ("automaton", "moves", "state", "whole")

    def __init__(self, automaton: Machine, state: Any, whole: Table, *, remembers: bool) -> None:
        self.automaton = automaton
        self.state = state
        self.whole = whole
        """For the settled node: the text of each id that leads back to it. For all others: a list without entries."""
        self.moves: dict[int, tuple[str, Node]] = {} if remembers else NO_MOVES


class Automaton:
    """
    The remembered moves of one pipeline.

    Args:
        pipeline: What answers.
        fingerprint: Gives the fingerprint of the decoder that the pipeline is of; asked for when a snapshot is taken.
    """

    exact = True

    def __init__(self, pipeline: Pipeline, fingerprint: Callable[[], str]) -> None:
        self.pipeline = pipeline
        self.fingerprint = fingerprint
        self._blank: Table = []
        self._nodes: dict[State, Node] = {}
        self._moves_left = MAX_MOVES
        self.questions = 0
        """How often the pipeline was asked: a count of work, which tests look at."""
        self.settled = Node(self, pipeline.settled, [], remembers=True)
        self._nodes[pipeline.settled] = self.settled
        self.start = self.node(pipeline.start)
        self.finished = Node(self, pipeline.start, [], remembers=False)
        """Where a stream is after `finish`; nothing leads on from it."""

    def advance(self, node: Node, token_id: int) -> tuple[str, Node]:
        """
        Return the text that is certain after ``token_id``, and the next node.

        Raises:
            UnknownTokenId: The id has no piece, and the options ask to be told.
        """
        move = node.moves.get(token_id)
        if move is not None:
            return move
        if 1 < token_id < len(node.whole):
            whole = node.whole[token_id]
            if whole is not None:
                return whole, node
        self.questions += 1
        text, state = self.pipeline.feed(node.state, token_id)
        after = node if state == node.state else self.node(state)
        if self.pipeline.vocabulary.piece(token_id) is not None:
            self._remember(node, token_id, text, after)
        return text, after

    def behind(self, prompt_ids: Iterable[SupportsIndex]) -> Node:
        """
        Return the node behind a prompt; at the beginning if there is none.

        Read backwards to an id after which the state is the same whatever came before, and forwards again from there; in ordinary
        prompts that is the last id or the one before it.
        """
        ids = as_sequence(prompt_ids, where="prompt_ids")
        if not len(ids):
            return self.start
        pipeline = self.pipeline
        seen: list[int] = []
        first = len(ids)
        while first and not (seen and pipeline.settles(seen)):
            first -= 1
            token_id = as_id(ids[first], where="prompt_ids", position=first)
            if pipeline.says(token_id):
                # Four are enough to settle whatever more would: no character is longer.
                seen = [token_id, *seen[:3]]
        # One more that the decoder sees, so that none after which all is settled is taken for the first of all.
        while first and not pipeline.says(as_id(ids[first - 1], where="prompt_ids", position=first - 1)):
            first -= 1
        first = max(0, first - 1)
        node = self.start
        for position in range(first, len(ids)):
            _, node = self.advance(node, as_id(ids[position], where="prompt_ids", position=position))
        return self.node(pipeline.border(node.state))

    def node(self, state: State) -> Node:
        """Return the node of a state, made if it is not there."""
        if _weight(state) > MAX_REMEMBERED:
            return Node(self, state, self._blank, remembers=False)
        node = self._nodes.get(state)
        if node is not None:
            return node
        if len(self._nodes) >= MAX_NODES:
            self._forget()
        return self._nodes.setdefault(state, Node(self, state, self._blank, remembers=True))

    def _remember(self, node: Node, token_id: int, text: str, after: Node) -> None:
        if 1 < token_id < MAX_LISTED_ID:
            # So that a look at an id that is remembered elsewhere finds None, and is not out of range.
            _grow(self._blank, token_id)
        # Ids 0 and 1 are kept out of the lists: False and True are equal to them, and have to reach the type check.
        if node is after is self.settled and 1 < token_id < MAX_LISTED_ID:
            _grow(node.whole, token_id)
            node.whole[token_id] = text
        elif node.moves is not NO_MOVES and after.moves is not NO_MOVES:
            if self._moves_left <= 0:
                self._forget()
            self._moves_left -= 1
            node.moves[token_id] = text, after

    def _forget(self) -> None:
        """Begin again with an empty memory; streams keep the nodes that they stand on."""
        for node in list(self._nodes.values()):
            node.moves.clear()
        # These two are entered again and again, so they have to stay among those that are emptied.
        self._nodes = {node.state: node for node in (self.settled, self.start)}
        self._moves_left = MAX_MOVES


def _grow(table: Table, token_id: int) -> None:
    """Make room for an id; by doubling, so that this is O(1) amortised."""
    missing = token_id + 1 - len(table)
    if missing > 0:
        table.extend([None] * max(missing, len(table)))


def _weight(value: object) -> int:
    """How many characters and bytes a state holds."""
    if isinstance(value, tuple):
        return sum(map(_weight, value))
    return len(value) if isinstance(value, (str, bytes)) else 0
