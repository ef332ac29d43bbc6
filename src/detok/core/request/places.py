"""
Places: they remember the output of each usual token, so that it costs a request one look-up.

A `Place` is a node of the stream, a candidate of the search for stop strings, and the ids that end the request. These three
decide the effect of a token, the same for all requests. So the place remembers the finished output object, and where the token
leads. With the stop "END" as an example:

    place                   token     output        next place
    idle, nothing found     "The"     "The"         idle, nothing found
    idle, nothing found     " E"      " "           idle, "E" may become a stop
    idle, "E"               "nd"      "End"         idle, nothing found
    idle, "E"               "ND"      not usual: a stop completes, so `RequestDecoder` takes the long way

A *move* is such a row. It is made of a move of the `Node` and a move of the `Candidate`, so no stop completes in it. Ids that end
the request have no move.

A move has a *cost*, one number for a token and the characters that come out: `TOKEN` and their number. So one subtraction counts
both, and one comparison finds the end of what may be looked up.
"""

from __future__ import annotations

from ...text_search import Candidate
from ..decoding.automaton import NO_MOVES, Node
from .output import NOT_DUE, SharedOutput
from .stop_search import StopSearch

# Maximum places and moves that are remembered together: about 40 MB if all are used. Then all are forgotten and found anew.
MAX_REMEMBERED = 1 << 17

# The cost of a token, without its characters. It is more than the characters of all moves that a request may look up in a row.
TOKEN = 1 << 18

# Maximum moves that a request looks up in a row, before the rest of its state catches up, so that its memory is bounded (law 8).
MAX_MOVES = 512

# Maximum characters that come out at a move. Those of a longer text would count as a token.
MAX_TEXT = TOKEN // MAX_MOVES - 1


class Place:
    """A node of the stream and a candidate of the search, in requests that the same ids end and that give outputs alike."""

    __slots__ = ("candidate", "ends", "gives_at_once", "is_idle", "moves", "node")

    def __init__(self, node: Node | None, candidate: Candidate | None, ends: frozenset[int], *, gives_at_once: bool) -> None:
        self.node = node
        self.candidate = candidate
        self.ends = ends
        self.gives_at_once = gives_at_once
        """Whether each step has an output, with what is new (option `output` is "delta", `stream_interval` is 1)."""
        self.is_idle = node is not None and node.is_idle
        self.moves: dict[int, Move] = {}
        """The moves from here, by token id."""


Move = tuple[SharedOutput, Place, int, bool, SharedOutput, str]
"""
The effect of a token at a place. A plain tuple, as it is looked up for each token:

0. the output that is given: the new one, or `NOT_DUE` if outputs are gathered;
1. the next place;
2. the cost;
3. whether the request notes the move: its output is gathered, or its span may be undecided, and a stop may complete later;
4. the new output;
5. the text that the token made certain, of which the search for stops may hold some.
"""

NOWHERE = Place(None, None, frozenset(), gives_at_once=True)
"""The place of a request whose tokens all take the long way. It has no moves."""


class Places:
    """
    All places of a decoder. Two requests share places if they agree in the decoding options, the stop strings, the ids that end
    them, and in whether each step has an output.

    Args:
        limit: Maximum places and moves that are remembered together.
    """

    def __init__(self, limit: int = MAX_REMEMBERED) -> None:
        self._limit = self._left = limit
        self._places: dict[tuple[Node, Candidate | None, frozenset[int], bool], Place] = {}

    def at(self, node: Node, candidate: Candidate | None, ends: frozenset[int], *, gives_at_once: bool) -> Place:
        """Return the place of these four, a new one if there is none; `NOWHERE` if the node remembers nothing."""
        # Such a node is a new object each time, so nobody would find its place again.
        if node.moves is NO_MOVES:
            return NOWHERE
        key = (node, candidate, ends, gives_at_once)
        place = self._places.get(key)
        if place is None:
            self._spend()
            place = self._places[key] = Place(node, candidate, ends, gives_at_once=gives_at_once)
        return place

    def learn(self, place: Place, token_id: int, search: StopSearch | None) -> Move | None:
        """
        Work out the move of a token at a place, remember it and return it; None if the token is not usual there.

        Args:
            place: The place.
            token_id: An id that is not yet among its moves.
            search: The search of the request for stops.
        """
        if place.node is None or token_id in place.ends:
            return None
        found = _remembered(place.node, token_id)
        if found is None:
            return None
        text, after = found
        candidate, out = place.candidate, text
        if candidate is not None and search is not None and search.strings is not None and text:
            known = search.strings.move(candidate, text)
            if known is None:
                return None
            out, candidate = known
        if len(out) > MAX_TEXT:
            return None
        there = self.at(after, candidate, place.ends, gives_at_once=place.gives_at_once)
        self._spend()
        output = SharedOutput(out, token_id)
        given = output if place.gives_at_once else NOT_DUE
        has_undecided = candidate is not None and not (place.is_idle and there.is_idle)
        is_noted = has_undecided or not place.gives_at_once
        move = (given, there, TOKEN + len(out), is_noted, output, text)
        place.moves[token_id] = move
        return move

    def _spend(self) -> None:
        """Count something that is about to be remembered. If the budget is used up, forget everything first."""
        if self._left <= 0:
            # A request keeps its place, which stays correct: only its moves are forgotten. The list is there for other threads,
            # which may add places meanwhile.
            for place in list(self._places.values()):
                place.moves.clear()
            self._places.clear()
            self._left = self._limit
        self._left -= 1

    def __len__(self) -> int:
        return len(self._places) + sum(len(place.moves) for place in self._places.values())


def _remembered(node: Node, token_id: int) -> tuple[str, Node] | None:
    """Return the text of a token and the next node, if the machine remembers them; it is asked first, if it does not yet."""
    move = _listed(node, token_id) or node.moves.get(token_id)
    if move is None:
        node.machine.advance(node, token_id)
        move = _listed(node, token_id) or node.moves.get(token_id)
    return move


def _listed(node: Node, token_id: int) -> tuple[str, Node] | None:
    text = node.texts[token_id] if 0 <= token_id < len(node.texts) else None
    return None if text is None else (text, node)
