"""
The automaton remembers the answers of the pipeline. This makes streams fast and leaves the pipeline simple.

The pipeline is a function from (state, id) to (text, state). An automaton asks it once for each pair that occurs and remembers
the answer, as a lazy DFA does. A `Node` is one state; a move leads from a node by an id to a text and the next node. "The 😄" in
Qwen's vocabulary as an example, with the held bytes in braces:

    node          id                  text     next node     remembered in
    {}            785    "The"        "The"    {}            `Node.texts` of the idle node: one entry of one list
    {}            26525  20 F0 9F 98  " "      {F0 9F 98}    `Node.moves` of the idle node
    {F0 9F 98}    226    84           "😄"     {}            `Node.moves` of that node

Nearly all steps lead from the idle node, where nothing is held, back to it. All other moves share a fixed budget; when it is used
up, they are forgotten and found anew.

Each entry is a fact about immutable rules. So any number of threads may share an automaton without a lock: at worst two of them
ask the pipeline the same question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import length_hint
from typing import Any, Protocol, SupportsIndex

from ...errors import StreamFinished
from ...ids import as_id, as_sequence
from ..options import DecodeOptions
from ..vocabulary import Vocabulary, ordinary_token
from .joiners import Held
from .pipeline import Pipeline, State

# Maximum id, exclusive, with an entry in a list: so one huge id in a sparse vocabulary costs 8 MB at most (8 bytes an entry).
MAX_LISTED_ID = 1 << 20
# Maximum nodes, and maximum moves outside the idle node's list: about 25 MB together if a hostile stream fills them.
MAX_NODES = 1 << 13
MAX_MOVES = 1 << 17
# Maximum characters and bytes that the state of a remembered node holds. A state that holds more hardly ever comes again.
MAX_REMEMBERED = 48
# Maximum last ids of prompts whose node is remembered: about 1 MB.
MAX_PROMPT_ENDS = 1 << 13

IdleTexts = list[str | None]
"""By id: the text of an id that leads from the idle node back to it. None: the id leads elsewhere, or did not occur yet."""

NodeMoves = dict[int, tuple[str, "Node"]]

NO_MOVES: NodeMoves = {}
"""The moves of nodes that remember nothing. It stays empty; nodes are recognised by it."""


StreamState = Any
"""A state of a pipeline or a window, as a plain value; only the one that made it looks inside."""


class Decoding(Protocol):
    """Turns ids into text, over states that are plain values: a `Pipeline`; or a window, if only a one-shot decode is known."""

    options: DecodeOptions

    def feed(self, state: StreamState, token_id: int, /) -> tuple[str, StreamState]:
        """Take one id; return the text that comes out, and the next state."""

    def finish(self, state: StreamState, /) -> str:
        """Return the rest of the text."""

    def held(self, state: StreamState, /) -> Held:
        """Return the text or bytes that are held, for display, and the reason."""

    def after_prompt(self, prompt_ids: Sequence[SupportsIndex], /) -> StreamState:
        """Return the state at which a stream begins after a prompt, which may be empty."""


class Node:
    """One state of the pipeline, and the moves from it."""

    __slots__ = ("machine", "moves", "state", "texts")

    def __init__(self, machine: StreamMachine, state: StreamState, texts: IdleTexts, moves: NodeMoves) -> None:
        self.machine = machine
        self.state = state
        self.texts = texts
        """For the idle node: the text of each id that leads back to it. For any other node: a list that has None for each id."""
        self.moves = moves
        """By id: the text that comes out, and the next node. `NO_MOVES` for a node that remembers nothing."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held here."""
        return self is self.machine.idle


class StreamMachine:
    """
    Moves streams from node to node. This class remembers no moves and asks each time: states of a window hardly ever come again.

    Args:
        pipeline: Answers where an id leads.
        fingerprint: Gives the decoder's fingerprint; called when a snapshot is taken.
        blank: A list that has None for each id. All nodes but the idle one share it.
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
        """The node of a stream after `finish`. No move leads from it."""

    def advance(self, node: Node, token_id: int) -> tuple[str, Node]:
        """
        Return the text that is certain after ``token_id``, and the next node.

        Raises:
            StreamFinished: It is the node after the end.
            UnknownTokenId: The id has no piece (with ``unknown_ids="error"``).
        """
        if node is self.finished:
            raise StreamFinished
        text, state = self.pipeline.feed(node.state, token_id)
        return text, self.node(state)

    def after_prompt(self, prompt_ids: Iterable[SupportsIndex]) -> Node:
        """Return the node at which a stream begins after a prompt; the start if there is no prompt."""
        return self.node(self.pipeline.after_prompt(as_sequence(prompt_ids, where="prompt_ids")))

    def node(self, state: StreamState) -> Node:
        """Return the node of a state."""
        return Node(self, state, self._blank, NO_MOVES)


class Automaton(StreamMachine):
    """
    The machine that remembers the moves of a pipeline.

    Args:
        pipeline: Answers where an id leads, once for each pair of state and id.
        fingerprint: As `StreamMachine` takes it.
        blank: As `StreamMachine` takes it. The automata of one decoder share one list, which grows as `Node.texts` does.
        texts: The list of the idle node, without texts. Both lists have the length of the vocabulary from the beginning (see
            `blank_texts`): growing lists of 150,000 entries by doubling took half the time of a tokenizer's first text.
    """

    exact = True

    def __init__(self, pipeline: Pipeline, fingerprint: Callable[[], str], blank: IdleTexts, texts: IdleTexts) -> None:
        super().__init__(pipeline, fingerprint, blank)
        self.rules = pipeline
        self._ordinary = ordinary_token(pipeline.vocabulary)
        self._alone = pipeline.alone
        self.questions = 0
        """Number of times that the pipeline was asked. Tests bound the work by it."""
        self._nodes: dict[State, Node] = {}
        self._moves_left = MAX_MOVES
        self._after_last_id: dict[int, Node] = {}
        self._seen: set[int] = set()
        # `home` is the same node as `idle`, typed as a node: `idle` is None in machines that have none.
        self.home = self.idle = self._nodes[pipeline.idle] = Node(self, pipeline.idle, texts, {})
        """The idle node: an automaton always has one."""
        self.start = self.node(pipeline.start)

    def advance(self, node: Node, token_id: int) -> tuple[str, Node]:
        move = node.moves.get(token_id)
        if move is not None:
            return move
        if node is self.home and 1 < token_id < len(node.texts):
            text = node.texts[token_id]
            if text is None:
                # The first occurrence of an id. Nearly all are whole characters, and to see that takes no states.
                token = self._ordinary(token_id)
                if token is not None:
                    text = node.texts[token_id] = self._alone(token)
            if text is not None:
                return text, node
        if node is self.finished:
            raise StreamFinished
        self.questions += 1
        text, state = self.rules.feed(node.state, token_id)
        after = node if state == node.state else self.node(state)
        if self.rules.vocabulary.piece(token_id) is not None:
            self._remember(node, token_id, text, after)
        return text, after

    def warm(self) -> None:
        """Fill the list of the idle node, so that no stream meets an id for the first time."""
        texts, ordinary, alone = self.home.texts, self._ordinary, self._alone
        if not texts:  # a vocabulary that does not say how many ids it has
            _grow(texts, max([one for one in self.rules.vocabulary.ids() if one < MAX_LISTED_ID], default=0))
        for token_id in range(2, len(texts)):
            token = ordinary(token_id)
            if token is not None:
                texts[token_id] = alone(token)

    def after_prompt(self, prompt_ids: Iterable[SupportsIndex]) -> Node:
        ids = prompt_ids if type(prompt_ids) is list else as_sequence(prompt_ids, where="prompt_ids")
        count = len(ids)
        if count < 2:
            return self.node(self.rules.after_prompt(ids)) if count else self.start
        last, before = ids[count - 1], ids[count - 2]
        if type(last) is not int or type(before) is not int:
            last = as_id(last, where="prompt_ids", position=count - 1)
            before = as_id(before, where="prompt_ids", position=count - 2)
        known = self._after_last_id.get(last)
        if known is not None and before in self._seen:
            return known
        node = self.node(self.rules.after_prompt(ids))
        sees = self.rules.sees
        if sees(before) and sees(last) and self.rules.resets([last]) and node.moves is not NO_MOVES:
            # Any prompt that ends in this id, after an id that the decoder sees, leads to the same node.
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
        # Ids 0 and 1 stay out of the lists: as indices False and True equal them, and a bool has to reach the type check.
        is_listed = 1 < token_id < MAX_LISTED_ID
        if is_listed:
            # So that an id whose move is remembered elsewhere has None in the lists, and is not out of their range.
            _grow(self._blank, token_id)
            _grow(self.home.texts, token_id)
        if node is after is self.home and is_listed:
            node.texts[token_id] = text
        elif node.moves is not NO_MOVES and after.moves is not NO_MOVES:
            if self._moves_left <= 0:
                self._forget()
            self._moves_left -= 1
            node.moves[token_id] = text, after

    def _forget(self) -> None:
        """Forget all moves outside the idle node's list. Streams keep their nodes."""
        for node in list(self._nodes.values()):
            node.moves.clear()
        # These two stay in use, so they stay in the table: the next call has to clear their moves too.
        self._nodes = {node.state: node for node in (self.home, self.start)}
        self._moves_left = MAX_MOVES
        self._after_last_id.clear()
        self._seen.clear()


def blank_texts(vocabulary: Vocabulary) -> IdleTexts:
    """Return a list without texts, as long as the vocabulary says that it is."""
    return [None] * min(length_hint(vocabulary), MAX_LISTED_ID)


def _grow(texts: IdleTexts, token_id: int) -> None:
    """Make room for an id. The list doubles, so this costs O(1) amortised."""
    missing = token_id + 1 - len(texts)
    if missing > 0:
        texts.extend([None] * max(missing, len(texts)))


def _weight(value: object) -> int:
    """Return the number of characters and bytes that a state holds."""
    if isinstance(value, tuple):
        return sum(map(_weight, value))
    return len(value) if isinstance(value, (str, bytes)) else 0
