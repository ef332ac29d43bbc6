"""Clients of detokenizer workers: the sockets around `Dispatch`, for threads and for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, SupportsIndex

from ..core.request.options import RequestOptions
from ..errors import MissingExtra, WorkerUnavailable
from .dispatch import Dispatch
from .kept import Outputs, Pace, Ticket

try:
    import zmq
    import zmq.asyncio
except ImportError as error:
    raise MissingExtra("pyzmq", extra="worker", purpose="a detokenizer worker") from error

__all__ = ["AsyncDetokenizerClient", "DetokenizerClient"]

DEFAULT_TIMEOUT = 30.0

# A worker that was started again is there within a second or two, and is looked for this often.
RECONNECT_MS = 20


class _Client:
    """
    What both have: requests, and no socket.

    Args:
        endpoints: Where the workers are, such as ``"ipc:///run/detok"`` or ``"tcp://host:5757"``; several share the requests.
        timeout: After so many seconds in which a worker says nothing `WorkerUnavailable` is raised.
        pace: When to ask for snapshots, to send again, and so on.
        fingerprint: ``tokenizer.fingerprint`` of the tokenizer that the workers have to have; None for any.
    """

    def __init__(
        self,
        endpoints: str | Sequence[str],
        *,
        timeout: float = DEFAULT_TIMEOUT,
        pace: Pace | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self.endpoints = (endpoints,) if isinstance(endpoints, str) else tuple(endpoints)
        self._timeout = timeout
        pace = Pace() if pace is None else pace
        self._dispatch = Dispatch(self.endpoints, pace=pace, fingerprint=fingerprint, now=time.monotonic())

    def open(
        self,
        request_id: Hashable,
        prompt_ids: Iterable[SupportsIndex] = (),
        options: RequestOptions | None = None,
        **fields: Any,
    ) -> None:
        """
        Begin a request. It goes to a worker with its first row.

        Args:
            request_id: What its rows and outputs are known by.
            prompt_ids, options, fields: As ``tokenizer.request`` takes them.

        Raises:
            DuplicateRequest: There is one of this id.
            OptionError, TokenTypeError: As ``tokenizer.request``.
        """
        self._dispatch.open(request_id, prompt_ids, RequestOptions.of(fields) if options is None else options)

    def abort(self, request_id: Hashable) -> None:
        """
        Forget a request: nobody wants its output any more. A row with ``finish_reason="abort"`` gives what is held first.

        Raises:
            UnknownRequest: None of this id is open.
        """
        self._dispatch.abort(request_id)

    def __contains__(self, request_id: Hashable) -> bool:
        return request_id in self._dispatch

    def __len__(self) -> int:
        return len(self._dispatch)

    @property
    def sessions(self) -> int:
        """How many sessions were begun with workers: one for each, and one more whenever one was lost."""
        return sum(link.sessions for link in self._dispatch.links)

    @property
    def pids(self) -> list[int | None]:
        """The processes of the workers, as far as they have said so."""
        return [None if link.welcome is None else link.welcome.pid for link in self._dispatch.links]

    @property
    def kept_rows(self) -> int:
        """How many rows are kept, so that nothing is lost if a worker is; bounded by snapshots."""
        return sum(len(stream.kept) for link in self._dispatch.links for stream in link.streams.values())

    def _check(self, now: float) -> None:
        self._dispatch.check()
        for link in self._dispatch.links:
            if link.is_silent(now, self._timeout):
                raise WorkerUnavailable(link.endpoint, seconds=self._timeout)

    def _connect(self, context: Any) -> list[Any]:
        sockets = []
        for endpoint in self.endpoints:
            socket = context.socket(zmq.DEALER)
            # Nothing is queued for a worker that is not there: it would come to the next one as garbage of the past.
            for option, value in ((zmq.LINGER, 0), (zmq.IMMEDIATE, 1), (zmq.SNDHWM, 0), (zmq.RCVHWM, 0)):
                socket.setsockopt(option, value)
            socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MS)
            socket.connect(endpoint)
            sockets.append(socket)
        return sockets


class DetokenizerClient(_Client):
    """
    A client for programs without asyncio. It belongs to one thread at a time.

    `step` sends a whole step of the engine and waits for what it gives. To have several steps under way, `send` each and
    `wait` for its ticket later. A program that has nothing to send for long calls `poll` now and then.

    Arguments as those of `_Client`.
    """

    def __init__(self, endpoints: str | Sequence[str], **settings: Any) -> None:
        super().__init__(endpoints, **settings)
        self._context = zmq.Context()
        self._sockets = self._connect(self._context)
        self._poller = zmq.Poller()
        self._pump(0)

    def step(self, rows: Iterable[tuple[Any, ...]]) -> Outputs:
        """
        Take a step; return a pair of request id and output for each row, in order, and for each request that ended without one.

        A row that cannot be fails alone: its output has the `error`, and its request has ended.

        Args:
            rows: Each a `Row`, or a tuple of its five fields: request id, token ids, finish reason, logprobs, stop reason.

        Raises:
            WorkerUnavailable: As `wait`, but nobody has the ticket; use `send` and `wait` to go on after it.
            WireError, WorkerError: A worker speaks another version, or has another tokenizer.
        """
        return self.wait(self.send(rows))

    def send(self, rows: Iterable[tuple[Any, ...]]) -> Ticket:
        """Send a step, and return its ticket. Arguments as `step`."""
        ticket = self._dispatch.step(rows, time.monotonic())
        self._pump(0)
        return ticket

    def wait(self, ticket: Ticket) -> Outputs:
        """
        Wait until all outputs of a step are there, and return them.

        Raises:
            WorkerUnavailable: A worker said nothing for too long. Nothing is lost: the ticket can be waited for again.
            WireError, WorkerError: As `step`.
        """
        while not ticket.done:
            now = time.monotonic()
            self._check(now)
            self._pump(max(0.0, min(self._dispatch.wake_at - now, self._timeout)))
        return ticket.outputs

    def poll(self) -> None:
        """Take what has come, and let the workers know that this client lives."""
        self._pump(0)

    def close(self) -> None:
        """End the sessions, and let go of the sockets. A second call does nothing."""
        if not self._context.closed:
            for link in self._dispatch.links:
                link.outbox.clear()
                link.bye()
            self._send()
            for socket in self._sockets:
                socket.close(linger=GOODBYE_MS)
            self._context.term()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _pump(self, seconds: float) -> None:
        """Send what is to be sent, and take what comes, at most after so many seconds."""
        self._send()
        for link, socket in zip(self._dispatch.links, self._sockets, strict=True):
            self._poller.register(socket, zmq.POLLIN | zmq.POLLOUT if link.outbox else zmq.POLLIN)
        ready = self._poller.poll(round(seconds * 1000))
        now = time.monotonic()
        for socket, _ in ready:
            index = self._sockets.index(socket)
            with suppress(zmq.Again):
                while True:
                    self._dispatch.receive(index, socket.recv(zmq.NOBLOCK), now)
        self._dispatch.tick(now)
        self._send()

    def _send(self) -> None:
        for link, socket in zip(self._dispatch.links, self._sockets, strict=True):
            with suppress(zmq.Again):
                while link.outbox:
                    socket.send(link.outbox[0], zmq.NOBLOCK)
                    link.outbox.popleft()


# So long a goodbye may take on its way out.
GOODBYE_MS = 100


class AsyncDetokenizerClient(_Client):
    """
    A client for asyncio: ``async with AsyncDetokenizerClient(endpoint) as client``. It belongs to one event loop.

    Several tasks may have steps under way at once; they are taken in the order of the calls. Arguments as those of `_Client`.
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
