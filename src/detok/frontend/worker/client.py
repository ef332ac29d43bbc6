"""A client of detokenizer workers: the sockets around `Dispatch`."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, SupportsIndex
from uuid import uuid4

from ...core.request.options import RequestOptions
from ...errors import MissingExtra, WorkerUnavailable
from .dispatch import Dispatch
from .kept import Outputs, Pace, Ticket

try:
    import zmq
except ImportError as error:
    raise MissingExtra("pyzmq", extra="worker", purpose="a detokenizer worker") from error

__all__ = ["Client", "DetokenizerClient"]

DEFAULT_TIMEOUT = 30.0

# So long a goodbye may take on its way out.
GOODBYE_MS = 100

# A worker that was started again is there within a second or two, and is looked for this often.
RECONNECT_MS = 20


class Client:
    """
    What the clients with and without asyncio have in common.

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
        self._dispatch = Dispatch(uuid4().hex, self.endpoints, pace=pace, fingerprint=fingerprint, now=time.monotonic())

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


class DetokenizerClient(Client):
    """
    A client for programs without asyncio. It belongs to one thread at a time.

    `step` sends a whole step of the engine and waits for what it gives. To have several steps under way, `send` each and
    `wait` for its ticket later. A program that has nothing to send for long calls `poll` now and then.

    Arguments as those of `Client`.
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
            OptionError: One of the rows has not five fields; nothing is taken of the step.
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
