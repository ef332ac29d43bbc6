"""Requests that wait for a thread: who may wait, and who goes next together with whom."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import EncoderBusy

__all__ = ["Request", "Waiting"]


@dataclass(eq=False, slots=True, kw_only=True)
class Request:
    """One text to encode."""

    text: str
    size: int
    """Bytes of UTF-8."""

    add_special_tokens: bool
    arrived: float
    future: asyncio.Future[list[int]]
    """Done before there are ids if the one who asked has gone."""


class Waiting:
    """
    A queue with a bound, of which batches are taken.

    Args:
        max_size: So many requests may wait.
        max_batch_size: So many go together.
        max_batch_bytes: But not more bytes, unless one alone has more.
    """

    def __init__(self, *, max_size: int, max_batch_size: int, max_batch_bytes: int) -> None:
        self._max_size, self._max_batch_size, self._max_batch_bytes = max_size, max_batch_size, max_batch_bytes
        # A dict, since any request may leave it, and the oldest goes first.
        self._requests: dict[Request, None] = {}

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, request: Request) -> None:
        """
        Put a request behind the others.

        Raises:
            EncoderBusy: There are too many.
        """
        if len(self._requests) >= self._max_size:
            raise EncoderBusy(waiting=len(self._requests), limit=self._max_size)
        self._requests[request] = None

    def remove(self, requests: Iterable[Request]) -> None:
        """Take requests out; those that are not there do no harm."""
        for request in requests:
            self._requests.pop(request, None)

    def clear(self) -> list[Request]:
        """Take all of them out."""
        requests = list(self._requests)
        self._requests.clear()
        return requests

    def batch(self) -> list[Request]:
        """Return the request that has waited longest, and of those behind it that have its options as many as may go with it."""
        self.remove([request for request in self._requests if request.future.done()])
        batch: list[Request] = []
        size = 0
        for request in self._requests:
            if batch and request.add_special_tokens != batch[0].add_special_tokens:
                continue
            size += request.size
            if batch and size > self._max_batch_bytes:
                break
            batch.append(request)
            if self.is_full(batch):
                break
        return batch

    def is_full(self, batch: list[Request]) -> bool:
        """Whether a batch has as many requests as it may have."""
        return len(batch) == self._max_batch_size
