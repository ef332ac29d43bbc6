"""`Outbox`: outputs of many requests on their way to one consumer, who takes all that wait at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Container

from .base import EngineOutput

__all__ = ["MAX_WAITING", "Outbox"]

# Outputs that wait before those who bring more have to wait too, so that a slow consumer slows down the engines and does not fill
# the memory. That is one for each of 8,000 requests, some MB.
MAX_WAITING = 8192


class Outbox:
    """
    Outputs that wait. It belongs to one event loop.

    >>> async def example():
    ...     outbox = Outbox()
    ...     for token_id in (1, 2):
    ...         outbox.add(EngineOutput(request_id="a", token_ids=[token_id]))
    ...     outbox.close()
    ...     return [[output.token_ids for output in batch] async for batch in outbox.batches()]
    >>> asyncio.run(example())
    [[[1], [2]]]
    """

    def __init__(self, *, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._waiting: list[EngineOutput] = []
        self._closed = False
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def add(self, output: EngineOutput) -> None:
        """Put an output in, however many wait."""
        self._waiting.append(output)
        self._changed.set()
        if len(self._waiting) >= self._max_waiting:
            self._room.clear()

    @property
    def is_full(self) -> bool:
        """Whether whoever brings more has to wait for `room`."""
        return len(self._waiting) >= self._max_waiting

    async def room(self) -> None:
        """Wait until there is room for another output."""
        await self._room.wait()

    def forget(self, request_ids: Container[str]) -> None:
        """Drop what waits for these requests."""
        self._keep([output for output in self._waiting if output.request_id not in request_ids])

    def close(self) -> None:
        """What waits is still given; then `batches` ends."""
        self._closed = True
        self._changed.set()

    async def batches(self) -> AsyncIterator[list[EngineOutput]]:
        """Give what waits, each time all of it, until the outbox is closed and empty."""
        while not self._closed or self._waiting:
            await self._changed.wait()
            batch = self._waiting
            self._keep([])
            if not self._closed:
                self._changed.clear()
            if batch:
                yield batch

    def _keep(self, waiting: list[EngineOutput]) -> None:
        self._waiting = waiting
        if len(waiting) < self._max_waiting:
            self._room.set()
