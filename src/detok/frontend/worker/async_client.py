"""A client of detokenizer workers for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import zmq
import zmq.asyncio

from .client import GOODBYE_MS, Client
from .kept import Outputs, Ticket

__all__ = ["AsyncDetokenizerClient"]


class AsyncDetokenizerClient(Client):
    """
    A client for asyncio: ``async with AsyncDetokenizerClient(endpoint) as client``. It belongs to one event loop.

    Several tasks may have steps under way at once; they are taken in the order of the calls. Arguments as those of `Client`.
    """

    async def __aenter__(self) -> Self:
        self._context = zmq.asyncio.Context()
        self._sockets = self._connect(self._context)
        self._waiting: dict[Ticket, asyncio.Future[None]] = {}
        self._wakes = [asyncio.Event() for _ in self._sockets]
        self._rewind = asyncio.Event()
        loops = [self._tick(), *map(self._receive, range(len(self._sockets))), *map(self._send, range(len(self._sockets)))]
        self._tasks = [asyncio.create_task(loop) for loop in loops]
        self._wake()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def step(self, rows: Iterable[tuple[Any, ...]]) -> Outputs:
        """Take a step. Arguments, result and errors as `DetokenizerClient.step`."""
        return await self.wait(self.send(rows))

    def send(self, rows: Iterable[tuple[Any, ...]]) -> Ticket:
        """Send a step, and return its ticket."""
        ticket = self._dispatch.step(rows, time.monotonic())
        self._wake()
        return ticket

    async def wait(self, ticket: Ticket) -> Outputs:
        """Wait for the outputs of a step. Errors as `DetokenizerClient.wait`."""
        if not ticket.done:
            future = self._waiting.get(ticket)
            if future is None:
                future = self._waiting[ticket] = asyncio.get_running_loop().create_future()
            await asyncio.shield(future)
        return ticket.outputs

    async def close(self) -> None:
        """End the sessions, and let go of sockets and tasks. A second call does nothing."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if not self._context.closed:
            for link, socket in zip(self._dispatch.links, self._sockets, strict=True):
                link.outbox.clear()
                link.bye()
                plain: Any = zmq.Socket.shadow(socket)
                with suppress(zmq.Again):
                    plain.send(link.outbox.popleft(), zmq.NOBLOCK)
                socket.close(linger=GOODBYE_MS)
            self._context.term()
        self._fail(asyncio.CancelledError())

    def _wake(self) -> None:
        for wake in self._wakes:
            wake.set()
        self._rewind.set()

    async def _send(self, index: int) -> None:
        outbox, socket, wake = self._dispatch.links[index].outbox, self._sockets[index], self._wakes[index]
        while True:
            await wake.wait()
            wake.clear()
            while outbox:
                await socket.send(outbox.popleft())

    async def _receive(self, index: int) -> None:
        socket = self._sockets[index]
        while True:
            frame = await socket.recv()
            for ticket in self._dispatch.receive(index, frame, time.monotonic()):
                future = self._waiting.pop(ticket, None)
                if future is not None and not future.done():
                    future.set_result(None)
            self._wake()

    async def _tick(self) -> None:
        while True:
            now = time.monotonic()
            self._dispatch.tick(now)
            try:
                self._check(now)
            except Exception as error:
                self._fail(error)
            for wake in self._wakes:
                wake.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, min(self._dispatch.wake_at - now, self._timeout))):
                    await self._rewind.wait()
                    self._rewind.clear()

    def _fail(self, error: BaseException) -> None:
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(error) if isinstance(error, Exception) else future.cancel()
                future.exception() if future.done() and not future.cancelled() else None
