"""Aborts on their way to an engine."""

from __future__ import annotations

import asyncio

from ..engines.base import Engine
from .metrics import FrontendMetrics

__all__ = ["Aborts"]

# An engine that does not take an abort in this time is told no more of it.
ABORT_SECONDS = 5.0


class Aborts:
    """
    Tells an engine which requests nobody wants any more, from a task of its own: nobody else waits for that.

    Args:
        engine: Which one.
        metrics: Where they are counted.
    """

    def __init__(self, engine: Engine, metrics: FrontendMetrics) -> None:
        self._engine = engine
        self._metrics = metrics
        self._waiting: list[str] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, request_id: str) -> None:
        """Abort a request; those that come while the engine takes others go together."""
        self._metrics.aborts.add()
        self._waiting.append(request_id)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._send())

    async def _send(self) -> None:
        while self._waiting:
            ids, self._waiting = self._waiting, []
            try:
                async with asyncio.timeout(ABORT_SECONDS):
                    await self._engine.abort(ids)
            except (Exception, asyncio.CancelledError):
                # The second is what an engine raises that waits for a task of its own, and somebody cancelled that.
                self._metrics.failed_aborts.add(len(ids))

    async def sent(self) -> None:
        """Wait until the engine has been told of all. Whoever is cancelled meanwhile cancels only the waiting."""
        if self._task is not None:
            await asyncio.wait([self._task])
