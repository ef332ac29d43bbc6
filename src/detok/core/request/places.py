"""
What usual tokens do, remembered: where each leads from a place, and the output that it gives.

A `Place` is where a stream and its search for stop strings stand, together, in a request that certain ids end. What a token does
at a place is a fact, the same for all requests. So the whole answer is kept, output object and all, and a usual token of a
request is one look-up. With the stop "END" as an example:

    place                   token     output        next place
    idle, nothing found     "The"     "The"         idle, nothing found
    idle, nothing found     " E"      " "           idle, "E" may become a stop
    idle, "E"               "nd"      "End"         idle, nothing found
    idle, "E"               "ND"      not usual: a stop completes, so `RequestDecoder` takes the long way

A move is made of the moves that `Node` and `Candidate` remember, so no stop completes in one, and no id that ends the request is
among them.
"""

from __future__ import annotations

from ...text_search import Candidate
from ..decoding.automaton import NO_MOVES, Node
from .output import SharedOutput
from .stop_search import StopSearch

# Maximum places and moves that are remembered together: about 40 MB if all are used; then the memory begins again.
MAX_REMEMBERED = 1 << 17


class Place:
    """Where a stream and its search stand, in a request that ends with certain ids."""

    __slots__ = ("candidate", "ends", "is_idle", "moves", "node")

    def __init__(self, node: Node | None, candidate: Candidate | None, ends: frozenset[int]) -> None:
        self.node = node
        self.candidate = candidate
        self.ends = ends
        self.is_idle = node is not None and node.is_idle
        self.moves: Moves = {}


Moves = dict[int, "Move"]
"""What tokens do at a place, by id."""

Move = tuple[SharedOutput, Moves, Place, str, int]
"""
What a token does at a place: the output, the moves of the next place, that place, the text before the search for stops held some
of it back, and the length of the output's text.
"""

NOWHERE = Place(None, None, frozenset())
"""The place of a request whose tokens all go the long way: it has no moves."""


class Places:
    """
    All places of a decoder. Requests share them as soon as their options agree in how ids become text, in the stop strings, and
    in the ids that end them.

    Args:
        limit: Maximum places and moves that are remembered.
    """

    def __init__(self, limit: int = MAX_REMEMBERED) -> None:
        self._limit = self._left = limit
        self._places: dict[tuple[Node, Candidate | None, frozenset[int]], Place] = {}

    def at(self, node: Node, candidate: Candidate | None, ends: frozenset[int]) -> Place:
        """Return the place, made if it is not there; `NOWHERE` if the node remembers nothing."""
        if node.moves is NO_MOVES:
            return NOWHERE
        place = self._places.get((node, candidate, ends))
        if place is None:
            self._spend()
            place = self._places[node, candidate, ends] = Place(node, candidate, ends)
        return place

    def learn(self, place: Place, token_id: int, search: StopSearch | None) -> Move | None:
        """
        Find out and remember what a token does at a place; None if it is not a usual one.

        Args:
            place: Where.
            token_id: An id that is not among its moves.
            search: The request's.
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
        there = self.at(after, candidate, place.ends)
        if there is NOWHERE:
            return None
        self._spend()
        move = (SharedOutput(out, token_id), there.moves, there, text, len(out))
        place.moves[token_id] = move
        return move

    def _spend(self) -> None:
        """Count something that is about to be remembered; begin again when there is too much."""
        if self._left <= 0:
            # Requests keep the places that they stand on.
            for place in self._places.values():
                place.moves.clear()
            self._places.clear()
            self._left = self._limit
        self._left -= 1

    def __len__(self) -> int:
        return len(self._places) + sum(len(place.moves) for place in self._places.values())


def _remembered(node: Node, token_id: int) -> tuple[str, Node] | None:
    """Return the text of a token and the next node, if the machine remembers them; it is asked once, so that it may."""
    move = _listed(node, token_id) or node.moves.get(token_id)
    if move is None:
        node.machine.advance(node, token_id)
        move = _listed(node, token_id) or node.moves.get(token_id)
    return move


def _listed(node: Node, token_id: int) -> tuple[str, Node] | None:
    text = node.texts[token_id] if 0 <= token_id < len(node.texts) else None
    return None if text is None else (text, node)
