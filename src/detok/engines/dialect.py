"""What the HTTP engines differ in: how a request is written and how an answer is read. Pure: no connection, no clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Protocol

import msgspec

from ..core.request.ends import FinishReason
from .base import EngineOutput, EngineRequest
from .events import Answer

__all__ = ["Body", "Call", "Dialect", "Id", "finish_reason"]

Body = dict[str, Any]
"""A JSON object that is sent."""

Id = Annotated[int, msgspec.Meta(ge=0)]
"""A token id in an answer."""


class Call(Protocol):
    """One request in an engine's words."""

    def bodies(self) -> Iterator[Body]:
        """
        Give what to send, one after the other: the next is asked for when the answer to the last is over, and the request is not.
        """
        ...

    def read(self, data: bytes) -> EngineOutput:
        """
        Return what one event says.

        Raises:
            ValueError: It is not what this engine sends.
        """
        ...


class Dialect(Protocol):
    """What an engine's HTTP side looks like."""

    name: str
    path: str
    """Where a request is posted."""
    media_type: str
    """Of the answer."""

    def begin(self, request: EngineRequest) -> Call:
        """
        Begin a request.

        Raises:
            UsageError: It cannot be.
        """
        ...

    def answer(self) -> Answer:
        """What cuts the body of an answer into events."""
        ...

    def aborts(self, request_ids: Sequence[str]) -> list[tuple[str, Body]]:
        """What to post, and where, so that the engine stops these requests; nothing if it hears only of the connection."""
        ...


def finish_reason(word: str | None, stop_reason: str | int | None = None) -> tuple[FinishReason | None, str | int | None]:
    """
    Return an engine's words for why a request ended as detok's, and what stopped it.

    An engine has reasons of its own to stop ("repetition", say): those are "stop", and the word says what it was.
    """
    match word:
        case None | "stop" | "length" | "abort" | "error":
            return word, stop_reason
        case _:
            return "stop", word if stop_reason is None else stop_reason
