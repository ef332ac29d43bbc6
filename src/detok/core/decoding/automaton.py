"""
Moves that are remembered: what makes the pipeline fast without making it complicated.

The pipeline is a function from (state, id) to (text, state). An automaton asks it once for each pair that occurs and remembers
the answer, as a lazy DFA does. A `Node` is one state; a move leads from a node by an id to a text and the next node. Byte-level
English and one emoji as an example, with ``{}`` for the bytes that are held:

    node    id              text        next node    remembered in
    {}      785 "The"       "The"       {}           `Node.texts` of the idle node: one entry of one list
    {}      26525 F0 9F 98  ""          {F0 9F 98}   `Node.moves` of the idle node
    {F0 9F 98}  226 84      "😄"        {}           `Node.moves` of that node

Nearly all steps lead from the idle node, where nothing is held, back to it. The memory of all other moves has a fixed budget and
begins again when that is used up.

Each entry is a fact about immutable rules, so any number of threads may share an automaton without a lock: at worst two of them
ask the same question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import length_hint
from typing import Any, Protocol, SupportsIndex

from ...ids import as_id, as_sequence
from ..options import DecodeOptions
from .joiners import Held
from .pipeline import Pipeline, State

# Maximum id, exclusive, with an entry in a list: one huge id in a sparse vocabulary costs 8 MB for the list at most.
MAX_LISTED_ID = 1 << 20
# Maximum nodes and moves that are remembered beside the idle node's list: about 25 MB if a hostile stream fills them.
MAX_NODES = 1 << 13
MAX_MOVES = 1 << 17
# Maximum characters and bytes that a remembered state holds; a larger one will hardly be met again.
MAX_REMEMBERED = 48
# Maximum last ids of prompts of which it is remembered where they lead: about 1 MB.
MAX_PROMPT_ENDS = 1 << 13

IdleTexts = list[str | None]
"""By id: the text of an id that leads from the idle node back to it; None for any other id, and for one that nobody met."""

NodeMoves = dict[int, tuple[str, "Node"]]

NO_MOVES: NodeMoves = {}
"""Of nodes that remember nothing; it stays empty."""


class Decoding(Protocol):
    """What turns ids into text, over states that are plain values: a `Pipeline`, or a window where no rules are known."""

    options: DecodeOptions

    def feed(self, state: Any, token_id: int, /) -> tuple[str, Any]:
        """Take one id and return the text that comes out, and the next state."""

    def finish(self, state: Any, /) -> str:
        """Return the rest of the text."""

    def held(self, state: Any, /) -> Held:
        """Return what is held, and why, for display."""

    def after_prompt(self, prompt_ids: Sequence[SupportsIndex], /) -> Any:
        """Return the state after a prompt, which may be empty."""


class Node:
    """One state of the pipeline, and where ids lead from it."""

    __slots__ = ("machine", "moves", "state", "texts")

    def __init__(self, machine: StreamMachine, state: Any, texts: IdleTexts, moves: NodeMoves) -> None:
        self.machine = machine
        self.state = state
        self.texts = texts
        """For the idle node: the text of each id that leads back to it. For all others: a list without texts."""
        self.moves = moves
        """By id: the text that comes out, and the next node. `NO_MOVES` where nothing is remembered."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held here."""
        return self is self.machine.idle


class StreamMachine:
    """
    What streams move on. This one remembers no moves and asks each time, for states that hardly ever come again.

    Args:
        pipeline: What answers.
        fingerprint: Gives the fingerprint of the decoder that it is of; asked for when a snapshot is taken.
        blank: A list without texts, which nodes share that have none.
    """

    exact = False
    """Whether the text is proven equal to the one-shot decode."""

    idle: Node | None = None
    """The node at which nothing is held, if there is one."""

    def __init__(self, pipeline: Decoding, fingerprint: Callable[[], str], blank: IdleTexts | None = None) -> None:
        self.pipeline = pipeline
        self.fingerprint = fingerprint
        self._blank: IdleTexts = [] if blank is None else blank
        self.finished = Node(self, None, self._blank, NO_MOVES)
        """Where a stream stands after `finish`; nothing leads on from it."""

    def advance(self, node: Node, token_id: int) -> tuple[str, Node]:
        """
        Return the text that is certain after ``token_id``, and the next node.

        Raises:
            UnknownTokenId: The id has no piece, and the options ask to be told.
        """
        text, state = self.pipeline.feed(node.state, token_id)
        return text, self.node(state)

    def after_prompt(self, prompt_ids: Iterable[SupportsIndex]) -> Node:
        """Return the node after a prompt; the start if there is none."""
        return self.node(self.pipeline.after_prompt(as_sequence(prompt_ids, where="prompt_ids")))

    def node(self, state: Any) -> Node:
        """Return the node of a state."""
        return Node(self, state, self._blank, NO_MOVES)


class Automaton(StreamMachine):
    """
    The machine that remembers the moves of a pipeline.

    Args:
        pipeline: What answers.
        fingerprint: As `StreamMachine` takes it.
        blank: A list without texts, of which the automata of one decoder share one; it grows here as `Node.texts` does.
    """

    exact = True
    idle: Node
    pipeline: Pipeline

    def __init__(self, pipeline: Pipeline, fingerprint: Callable[[], str], blank: IdleTexts) -> None:
        super().__init__(pipeline, fingerprint, blank)
        self.questions = 0
        """How often the pipeline was asked: a count of work, which tests look at."""
        # Made at once in the right size: growing lists of 150,000 entries by doubling took half of a new tokenizer's first text.
        size = min(length_hint(pipeline.vocabulary), MAX_LISTED_ID)
        texts: IdleTexts = [None] * size
        if len(blank) < size:
            blank += [None] * (size - len(blank))
        self._nodes: dict[State, Node] = {}
        self._moves_left = MAX_MOVES
        self._after_last_id: dict[int, Node] = {}
        self._seen: set[int] = set()
        self.idle = self._nodes[pipeline.idle] = Node(self, pipeline.idle, texts, {})
        self.start = self.node(pipeline.start)

    def advance(self, node: Node, token_id: int) -> tuple[str, Node]:
        move = node.moves.get(token_id)
        if move is not None:
            return move
        if 1 < token_id < len(node.texts):
            known = node.texts[token_id]
            if known is not None:
                return known, node
        self.questions += 1
        piece = self.pipeline.vocabulary.piece(token_id)
        text = None if piece is None or node is not self.idle else self.pipeline.alone(piece)
        after = node
        if text is None:
            text, state = self.pipeline.feed(node.state, token_id)
            if state != node.state:
                after = self.node(state)
        if piece is not None:
            self._remember(node, token_id, text, after)
        return text, after

    def warm(self) -> None:
        """Fill the list of the idle node, so that no stream meets an id for the first time."""
        vocabulary, alone = self.pipeline.vocabulary, self.pipeline.alone
        for token_id in vocabulary.ids():
            piece = vocabulary.piece(token_id)
            text = None if piece is None else alone(piece)
            if text is not None:
                self._remember(self.idle, token_id, text, self.idle)

    def after_prompt(self, prompt_ids: Iterable[SupportsIndex]) -> Node:
        ids = as_sequence(prompt_ids, where="prompt_ids")
        count = len(ids)
        if count < 2:
            return self.node(self.pipeline.after_prompt(ids)) if count else self.start
        last = as_id(ids[count - 1], where="prompt_ids", position=count - 1)
        before = as_id(ids[count - 2], where="prompt_ids", position=count - 2)
        known = self._after_last_id.get(last)
        if known is not None and before in self._seen:
            return known
        node = self.node(self.pipeline.after_prompt(ids))
        sees = self.pipeline.sees
        if sees(before) and sees(last) and self.pipeline.resets([last]) and node.moves is not NO_MOVES:
            # All other prompts that end in this id, after one that the decoder sees, lead there too.
            if len(self._seen) >= MAX_PROMPT_ENDS:
                self._after_last_id.clear()
                self._seen.clear()
            self._after_last_id[last] = node
            self._seen.add(before)
        return node

    def node(self, state: State) -> Node:
        if _weight(state) > MAX_REMEMBERED:
            return Node(self, state, self._blank, NO_MOVES)
        node = self._nodes.get(state)
        if node is not None:
            return node
        if len(self._nodes) >= MAX_NODES:
            self._forget()
        return self._nodes.setdefault(state, Node(self, state, self._blank, {}))

    def _remember(self, node: Node, token_id: int, text: str, after: Node) -> None:
        # Ids 0 and 1 are kept out of the lists: False and True are equal to them, and have to reach the type check.
        is_listed = 1 < token_id < MAX_LISTED_ID
        if is_listed:
            # So that a look at an id that is remembered elsewhere finds None, and is not out of range.
            _grow(self._blank, token_id)
            _grow(self.idle.texts, token_id)
        if node is after is self.idle and is_listed:
            node.texts[token_id] = text
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
        self._nodes = {node.state: node for node in (self.idle, self.start)}
        self._moves_left = MAX_MOVES
        self._after_last_id.clear()
        self._seen.clear()


def _grow(texts: IdleTexts, token_id: int) -> None:
    """Make room for an id; by doubling, so that this is O(1) amortised."""
    missing = token_id + 1 - len(texts)
    if missing > 0:
        texts.extend([None] * max(missing, len(texts)))


def _weight(value: object) -> int:
    """Return how many characters and bytes a state holds."""
    if isinstance(value, tuple):
        return sum(map(_weight, value))
    return len(value) if isinstance(value, (str, bytes)) else 0
