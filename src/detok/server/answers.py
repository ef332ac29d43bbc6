"""An answer: where its outputs come from, how they are written, and the form of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..core.request.output import RequestOutput
from ..frontend.pending import Outlet
from .errors import Refused
from .texts import json_bytes

__all__ = ["DONE", "Shape", "Source", "event"]

DONE = b"data: [DONE]\n\n"
"""The last event."""


class Source(Protocol):
    """Where outputs come from: the requests of an answer's choices."""

    @property
    def count(self) -> int:
        """How many choices there are."""
        ...

    async def begin(self, outlets: Sequence[Outlet]) -> None:
        """Begin the request of each choice. What is wrong with one is raised."""
        ...

    def drop(self) -> None:
        """End what is still open."""
        ...


class Shape(Protocol):
    """How outputs are written: as completions or as chat completions."""

    def chunk(self, index: int, output: RequestOutput) -> bytes:
        """Return the events of the next output of a choice. Of one that failed, they are those of what came before."""
        ...

    def last(self) -> bytes:
        """Return the events behind all."""
        ...

    def failed(self, error: Refused) -> bytes:
        """Return the events behind all, of an answer that broke off."""
        ...

    def answer(self, outputs: Sequence[RequestOutput]) -> dict[str, Any]:
        """Return the whole answer, of one output for each choice."""
        ...

    def usage(self) -> dict[str, Any]:
        """Count tokens, of the choices that have ended."""
        ...


def event(value: object) -> bytes:
    """
    Return an event with this JSON value.

    >>> event({"a": "\\n"})
    b'data: {"a":"\\\\n"}\\n\\n'
    """
    return b"data: " + json_bytes(value) + b"\n\n"
