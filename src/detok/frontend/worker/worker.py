"""A detokenizer worker: the socket around `Service`."""

from __future__ import annotations

import signal
import socket as sockets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ...errors import MissingExtra, OptionError, WorkerError
from .service import Service

try:
    import zmq
except ImportError as error:
    raise MissingExtra("pyzmq", extra="worker", purpose="a detokenizer worker") from error

__all__ = ["Worker", "endpoints_of", "stop_at_signals"]

# So many messages are taken before the clock is looked at again.
BURST = 64

BEAT_SECONDS = 1.0
"""So often a worker tells its supervisor that it goes on."""

# What is far longer than a frame may be is not even read: the connection is closed instead.
HARD_LIMIT = 4

# The last replies have so long to leave.
FLUSH_MS = 1000


class Worker:
    """
    Args:
        service: What answers.
        endpoint: Where to listen.
        drain: After a signal to end, so many seconds are left to hand back what clients have here.

    Raises:
        WorkerError: It is not possible to listen there.
    """

    def __init__(self, service: Service, endpoint: str, *, drain: float = 5.0) -> None:
        self._service = service
        self._drain = drain
        self._ends_at = float("inf")
        self._context = zmq.Context()
        self._router = self._context.socket(zmq.ROUTER)
        self._router.setsockopt(zmq.LINGER, 0)
        self._router.setsockopt(zmq.MAXMSGSIZE, HARD_LIMIT * service.limits.max_frame)
        self._waker, self._wake = sockets.socketpair()
        for end in (self._waker, self._wake):
            end.setblocking(False)
        try:
            self._router.bind(endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise WorkerError(endpoint, problem=f"it cannot listen there ({error.strerror})") from None

    def run(self, beat: Callable[[], None] = lambda: None, parent: Any = None) -> None:
        """
        Answer until `stop` is called, and everything is handed back.

        Args:
            beat: Called about once a second.
            parent: A file or socket that becomes readable when whoever started this worker has gone.
        """
        poller = zmq.Poller()
        poller.register(self._router, zmq.POLLIN)
        poller.register(self._waker.fileno(), zmq.POLLIN)
        if parent is not None:
            poller.register(parent, zmq.POLLIN)
        beats_at = 0.0
        while True:
            now = time.monotonic()
            if now >= beats_at:
                beat()
                beats_at = now + BEAT_SECONDS
            if now >= self._ends_at or (self._service.draining and not len(self._service)):
                self._router.setsockopt(zmq.LINGER, FLUSH_MS)
                return
            ready = dict(poller.poll(round(BEAT_SECONDS * 1000)))
            if self._waker.fileno() in ready or (parent is not None and (parent in ready or parent.fileno() in ready)):
                if parent is not None:
                    poller.unregister(parent)
                    parent = None
                self._begin_to_end()
                with suppress(BlockingIOError):
                    self._waker.recv(64)
            with suppress(zmq.Again):
                for _ in range(BURST):
                    self._answer()
            self._service.tick(time.monotonic())

    def stop(self) -> None:
        """Hand back what clients have here, and end. May be called from a signal handler or another thread."""
        with suppress(OSError):
            self._wake.send(b".")

    def close(self) -> None:
        """Let go of the sockets. A second call does nothing."""
        self._router.close()
        self._context.term()
        self._waker.close()
        self._wake.close()

    def _begin_to_end(self) -> None:
        if not self._service.draining:
            self._service.draining = True
            self._ends_at = time.monotonic() + self._drain

    def _answer(self) -> None:
        # A REQ socket puts an empty frame between; whatever stands before the message goes back before the reply.
        *envelope, frame = self._router.recv_multipart(zmq.NOBLOCK)
        began, rows = time.perf_counter(), self._service.metrics.rows.value
        reply = self._service.receive(frame, time.monotonic())
        taken = self._service.metrics.rows.value - rows
        if taken:
            self._service.metrics.took(time.perf_counter() - began, int(taken))
        if reply is not None:
            # A client that does not read its replies loses some, and asks again.
            with suppress(zmq.Again):
                self._router.send_multipart([*envelope, reply], zmq.NOBLOCK)


def stop_at_signals(worker: Worker) -> None:
    """Let SIGTERM end a worker gently. Ctrl-C goes to all processes of a terminal; it is the supervisor's to act on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())


def endpoints_of(endpoint: str, count: int) -> list[str]:
    """
    Return the endpoints of so many workers.

    >>> endpoints_of("ipc:///run/detok", 1)
    ['ipc:///run/detok']
    >>> endpoints_of("ipc:///run/detok", 2)
    ['ipc:///run/detok.0', 'ipc:///run/detok.1']
    >>> endpoints_of("tcp://127.0.0.1:5757", 2)
    ['tcp://127.0.0.1:5757', 'tcp://127.0.0.1:5758']

    Raises:
        OptionError: It is no endpoint for a worker.
    """
    scheme, found, address = endpoint.partition("://")
    if scheme not in ("ipc", "tcp") or not found or not address:
        raise OptionError(option="endpoint", value=endpoint, accepted='it is like "ipc:///run/detok" or "tcp://127.0.0.1:5757"')
    if scheme == "ipc":
        return [endpoint] if count == 1 else [f"{endpoint}.{index}" for index in range(count)]
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) <= 65536 - count:
        raise OptionError(option="endpoint", value=endpoint, accepted="it needs a host and a port, as in tcp://127.0.0.1:5757")
    return [f"tcp://{host}:{int(port) + index}" for index in range(count)]
