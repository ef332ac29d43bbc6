"""
Rows that are remembered: where a usual token leads from a place, and the output that it gives.

A place is where a stream and its search for stop strings stand, together. What a token does there is a fact about the options,
the same for all requests that share them; so the whole answer is kept, output object and all, and a row is one look-up. Only
facts are taken over that `Node.moves` and `Candidate.moves` know already: a stop never completes in one of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn
from weakref import WeakSet

from ..automaton import Node
from .output import RequestOutput
from .plan import Plan
from .stops import Candidate

__all__ = ["Memory", "Move", "Place", "Places", "TokenOutput"]

# Places and moves that are remembered together, about 40 MB if all are used; then the memory begins again.
MAX_REMEMBERED = 1 << 17


class TokenOutput(RequestOutput):
    """
    The output of one usual token. Many requests share it, so it cannot be changed; ``copy.copy`` gives one that can.

    Args:
        text: What came out.
        token_id: What it came of.
    """

    __slots__ = ("_text", "_token_id")

    _text: str
    _token_id: int

    def __init__(self, text: str, token_id: int) -> None:
        object.__setattr__(self, "_text", text)
        object.__setattr__(self, "_token_id", token_id)

    @property
    def text(self) -> str:  # type: ignore[override]  # to be read only
        return self._text

    @property
    def token_ids(self) -> list[int]:  # type: ignore[override]  # to be read only
        return [self._token_id]

    def __bool__(self) -> bool:
        return True

    def as_dict(self) -> dict[str, Any]:
        """The fields that this output has."""
        return {"text": self._text, "token_ids": [self._token_id]}

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"many requests share this output, so its {name} cannot be set; copy.copy() gives one of your own")

    def __reduce__(self) -> tuple[Any, ...]:
        return RequestOutput, (self._text, [self._token_id])


class Move(NamedTuple):
    """What a token does at a place."""

    output: TokenOutput
    after: Place
    length: int
    """Of the text that comes out, in characters."""
    undecided: tuple[int, Node, str] | None
    """What `Tiling.steps` has to know of it; None if nobody will ask, as nothing is held before and after."""


class Place:
    """Where a stream and its search stand."""

    __slots__ = ("candidate", "moves", "node", "settled")

    def __init__(self, node: Node, candidate: Candidate | None) -> None:
        self.node = node
        self.candidate = candidate
        self.settled = node is node.automaton.settled
        self.moves: dict[int, Move] = {}


class Memory:
    """The budget of several `Places` together."""

    def __init__(self, limit: int = MAX_REMEMBERED) -> None:
        self._limit = self._left = limit
        self.users: WeakSet[Places] = WeakSet()

    def spend(self) -> None:
        """Count something that is about to be remembered; begin again when there is too much."""
        if self._left <= 0:
            for places in self.users:
                places.forget()
            self._left = self._limit
        self._left -= 1


class Places:
    """
    The places of all requests with the same options.

    Args:
        plan: What they have in common.
        memory: Whose budget counts.
    """

    def __init__(self, plan: Plan, memory: Memory) -> None:
        self.plan = plan
        self._memory = memory
        self._places: dict[tuple[Node, Candidate | None], Place] = {}
        memory.users.add(self)

    def at(self, node: Node, candidate: Candidate | None) -> Place:
        """Return the place, made if it is not there."""
        place = self._places.get((node, candidate))
        if place is None:
            self._memory.spend()
            place = self._places[node, candidate] = Place(node, candidate)
        return place

    def learn(self, place: Place, token_id: int) -> Move | None:
        """Remember what a token does at a place and return it; None if it is no usual one, whole or held."""
        text, after = _remembered(place.node, token_id)
        if text is None or token_id in self.plan.ends:
            return None
        candidate, out = place.candidate, text
        if candidate is not None and text:
            found = candidate.moves.get(text)
            if found is None:
                return None
            out, candidate = found
        there = self.at(after, candidate)
        is_asked = candidate is not None and not (place.settled and there.settled)
        self._memory.spend()
        move = Move(TokenOutput(out, token_id), there, len(out), (token_id, after, text) if is_asked else None)
        place.moves[token_id] = move
        return move

    def forget(self) -> None:
        """Begin again; requests keep the places that they stand on."""
        for place in self._places.values():
            place.moves.clear()
        self._places.clear()


def _remembered(node: Node, token_id: int) -> tuple[str | None, Node]:
    """The text and the next node, as far as the stream's automaton remembers it."""
    if 0 <= token_id < len(node.whole) and (text := node.whole[token_id]) is not None:
        return text, node
    return node.moves.get(token_id, (None, node))
