"""An engine whose batches a test gives by hand, and that remembers what it was told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from detok.engines.base import EngineOutput, EngineRequest

__all__ = ["ManualEngine", "row"]


def row(request_id: str, *token_ids: int, finish_reason: str | None = None, **more: object) -> EngineOutput:
    """What one step gave one request."""
    return EngineOutput(request_id=request_id, token_ids=token_ids, finish_reason=finish_reason, **more)  # type: ignore[arg-type]


class ManualEngine:
    """It gives what `give` was called with, and breaks when it is told to."""

    def __init__(self) -> None:
        self.submitted: list[EngineRequest] = []
        self.aborted: list[str] = []
        self.closed = 0
        self.refuses: BaseException | None = None
        self.hangs: asyncio.Event | None = None
        """While it is set to an event, `submit` and `abort` wait for it."""
        self._batches: asyncio.Queue[list[EngineOutput] | BaseException | None] = asyncio.Queue()
        self._arrived = asyncio.Event()

    async def submit(self, request: EngineRequest) -> None:
        self.submitted.append(request)
        self._arrived.set()
        if self.hangs is not None:
            await self.hangs.wait()
        if self.refuses is not None:
            raise self.refuses

    async def outputs(self) -> AsyncIterator[list[EngineOutput]]:
        while (batch := await self._batches.get()) is not None:
            if isinstance(batch, BaseException):
                raise batch
            yield batch

    async def abort(self, request_ids: Sequence[str]) -> None:
        self.aborted += request_ids
        if self.hangs is not None:
            await self.hangs.wait()
        if self.refuses is not None:
            raise self.refuses

    async def close(self) -> None:
        self.closed += 1

    def give(self, *batch: EngineOutput) -> None:
        """Give one batch."""
        self._batches.put_nowait([*batch])

    def break_down(self, error: BaseException | None) -> None:
        """Raise from `outputs`; None: let it end."""
        self._batches.put_nowait(error)

    async def arrived(self, count: int) -> list[str]:
        """Wait until so many requests have come, and return their ids."""
        while len(self.submitted) < count:
            self._arrived.clear()
            await self._arrived.wait()
        return [request.request_id for request in self.submitted]
