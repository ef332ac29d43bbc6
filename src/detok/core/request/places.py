"""
Rows that are remembered: where a usual token leads from a place, and the output that it gives.

A place is where a stream and its search for stop strings stand, together. What a token does there is a fact, the same for all
requests; so the whole answer is kept, output object and all, and a row is one look-up. It is made of the moves that `Node` and
`Candidate` remember, so a stop never completes in one.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from ..decoding.automaton import NO_MOVES, Node
from .output import RequestOutput
from .stop_search import StopSearch
from .stops import Candidate

__all__ = ["NOT_DUE", "Move", "Place", "Places", "SharedOutput"]

# Places and moves that are remembered together, about 40 MB if all are used; then the memory begins again.
MAX_REMEMBERED = 1 << 17


class SharedOutput(RequestOutput):
    """
    The output of usual tokens. Many requests share it, so it cannot be changed; ``copy.copy`` gives one that can.

    Args:
        text: What came out.
        token_ids: What it came of.
    """

    __slots__ = ("_text", "_token_ids")

    _text: str
    _token_ids: tuple[int, ...]

    def __init__(self, text: str, *token_ids: int) -> None:
        object.__setattr__(self, "_text", text)
        object.__setattr__(self, "_token_ids", token_ids)

    @property
    def text(self) -> str:  # type: ignore[override]  # to be read only
        return self._text

    @property
    def token_ids(self) -> list[int]:  # type: ignore[override]  # to be read only
        return [*self._token_ids]

    def __bool__(self) -> bool:
        return bool(self._token_ids)

    def as_dict(self) -> dict[str, Any]:
        """The fields that this output has."""
        return {"text": self._text, "token_ids": self.token_ids}

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"many requests share this output, so its {name} cannot be set; copy.copy() gives one of your own")

    def __reduce__(self) -> tuple[Any, ...]:
        return RequestOutput, (self._text, self.token_ids)


NOT_DUE = SharedOutput("")
"""What a row gives whose text waits for others (`stream_interval`, "final")."""


class Move(NamedTuple):
    """What a token does at a place."""

    output: SharedOutput
    after: Place
    length: int
    """Of the text that comes out, in characters."""
    undecided: tuple[Node, str] | None
    """What `Tiling.steps` has to know of it; None if nobody will ask, as nothing is held before and after."""


class Place:
    """Where a stream and its search stand, in a request that ends with certain ids."""

    __slots__ = ("candidate", "ends", "moves", "node", "settled")

    def __init__(self, node: Node, candidate: Candidate | None, ends: frozenset[int]) -> None:
        self.node = node
        self.candidate = candidate
        self.ends = ends
        self.settled = node is node.automaton.settled
        self.moves: dict[int, Move] = {}


class Places:
    """
    All places of a batch. Requests share them as soon as their options agree in how ids become text, in the stop strings, and in
    the ids that end them.

    Args:
        limit: So many places and moves are remembered.
    """

    def __init__(self, limit: int = MAX_REMEMBERED) -> None:
        self._limit = self._left = limit
        self._places: dict[tuple[Node, Candidate | None, frozenset[int]], Place] = {}

    def at(self, node: Node, candidate: Candidate | None, ends: frozenset[int]) -> Place:
        """Return the place, made if it is not there."""
        if node.moves is NO_MOVES:
            return Place(node, candidate, ends)
        place = self._places.get((node, candidate, ends))
        if place is None:
            self._spend()
            place = self._places[node, candidate, ends] = Place(node, candidate, ends)
        return place

    def learn(self, place: Place, token_id: int, search: StopSearch | None) -> Move | None:
        """
        Find out and remember what a token does at a place; None if it is no usual one, whole or held, but may end something.

        Args:
            place: Where.
            token_id: An id that is not among its moves.
            search: Of the request's plan.
        """
        if place.node.moves is NO_MOVES or token_id in place.ends:
            return None
        found = _advanced(place.node, token_id)
        if found is None:
            return None
        text, after = found
        candidate, out = place.candidate, text
        if candidate is not None and search is not None and search.strings is not None and text:
            if text not in candidate.moves:
                search.strings.scan(candidate, text)
            known = candidate.moves.get(text)
            if known is None:
                return None
            out, candidate = known
        there = self.at(after, candidate, place.ends)
        is_asked = candidate is not None and not (place.settled and there.settled)
        self._spend()
        move = Move(SharedOutput(out, token_id), there, len(out), (after, text) if is_asked else None)
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


def _advanced(node: Node, token_id: int) -> tuple[str, Node] | None:
    """What the stream does, if that is or can be remembered: the text that comes out, and the next node."""
    for _ in "before", "behind":
        if 0 <= token_id < len(node.whole) and (text := node.whole[token_id]) is not None:
            return text, node
        if (move := node.moves.get(token_id)) is not None:
            return move
        node.automaton.advance(node, token_id)
    return None
