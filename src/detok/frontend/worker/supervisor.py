"""The process above the workers: it starts them, and starts them again."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from ...core.decoder import Decoder
from ...errors import WorkerError
from .backoff import Backoff
from .process import cpu_seconds, resident_bytes, set_title
from .service import Limits, Service
from .worker import Worker, stop_at_signals

__all__ = ["Supervisor"]


@dataclass(slots=True)
class _Child:
    """A place for a worker, and who is there."""

    index: int
    endpoint: str
    backoff: Backoff
    process: Any = None
    pipe: Connection | None = None
    started: float = 0.0
    beat: float = 0.0
    starts_at: float | None = None
    restarts: int = 0
    problem: str = ""


class Supervisor:
    """
    Runs workers until SIGTERM or SIGINT comes; then lets them hand back what they have, and ends.

    Workers are forked, so a new one has the tokenizer at once, and they share its memory; what one learns since is its
    own.

    Args:
        decoder: What decodes.
        endpoints: One for each worker.
        limits: Of each worker.
        drain: So many seconds a worker has for its end.
        hang: A worker that does not say for so many seconds that it goes on is killed.
        most_backoff: The longest wait before a worker that keeps dying is started again.
        name: Of the tokenizer, for the titles of the processes.
        notify: Is told in a line what happens.
    """

    def __init__(
        self,
        decoder: Decoder,
        endpoints: Sequence[str],
        limits: Limits | None = None,
        *,
        drain: float = 5.0,
        hang: float = 60.0,
        most_backoff: float = 5.0,
        name: str = "",
        notify: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._decoder, self._limits, self._drain, self._hang = decoder, limits, drain, hang
        self._name, self._notify = name, notify
        self._children = [_Child(index, endpoint, Backoff(most=most_backoff)) for index, endpoint in enumerate(endpoints)]
        # A forked worker is there in milliseconds; where there is no fork, the tokenizer is pickled to it.
        methods = multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
        self._ending = False
        self._failure: WorkerError | None = None
        self._signals, self._signal = multiprocessing.Pipe(duplex=False)

    def run(self) -> None:
        """
        Run until a signal to end comes, and all workers have ended.

        Raises:
            WorkerError: A worker could not begin to listen where it should.
        """
        # Made once, for all workers; and what is here now is never garbage, so their collectors need not touch and copy it.
        # Before anybody can ask: both would hold up an event loop.
        self._decoder.warm()
        _ = self._decoder.fingerprint
        gc.collect()
        gc.freeze()
        before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            for child in self._children:
                self._start(child)
            while any(child.process is not None or child.starts_at is not None for child in self._children):
                self._turn()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            for child in self._children:
                if child.process is not None:
                    child.process.kill()
        if self._failure is not None:
            raise self._failure

    def _on_signal(self, number: int, frame: object) -> None:
        self._signal.send_bytes(b".")

    def _turn(self) -> None:
        """Wait for something to happen, and act on it."""
        now = time.monotonic()
        for child in self._children:
            if child.starts_at is not None and now >= child.starts_at:
                self._start(child)
        alive = {child.process.sentinel: child for child in self._children if child.process is not None}
        pipes = {child.pipe: child for child in self._children if child.pipe is not None}
        due = [child.starts_at for child in self._children if child.starts_at is not None]
        happened = wait([self._signals, *alive, *pipes], timeout=max(0.0, min([1.0, *(at - now for at in due)])))
        if self._signals in happened:
            self._signals.recv_bytes()
            self._end()
        for pipe, child in pipes.items():
            if pipe in happened:
                self._hear(child)
        for sentinel, child in alive.items():
            if sentinel in happened:
                self._bury(child)
            elif time.monotonic() - child.beat > self._hang:
                self._notify(f"worker {child.index} (pid {child.process.pid}) said nothing for {self._hang:g} s and is killed")
                child.process.kill()

    def _start(self, child: _Child) -> None:
        child.pipe, theirs = multiprocessing.Pipe()
        ours = [one.pipe for one in self._children if one.pipe is not None]
        arguments = (self._decoder, child.endpoint, self._limits, self._drain, child.restarts, self._title(child), theirs)
        inherited = [*ours, self._signals, self._signal] if self._context.get_start_method() == "fork" else []
        child.process = self._context.Process(target=_work, args=(*arguments, inherited), name=f"detok worker {child.index}")
        child.process.start()
        theirs.close()
        child.started = child.beat = time.monotonic()
        child.starts_at = None

    def _title(self, child: _Child) -> str:
        return " ".join(filter(None, (f"detok worker {child.index}:", self._name, child.endpoint)))

    def _hear(self, child: _Child) -> None:
        assert child.pipe is not None
        with suppress(EOFError, OSError):
            said = child.pipe.recv_bytes()
            if said == _READY:
                self._notify(f"worker {child.index} listens at {child.endpoint} (pid {child.process.pid})")
            elif said != _BEAT:
                child.problem = said.decode()
            child.beat = time.monotonic()
            return
        child.pipe.close()
        child.pipe = None

    def _bury(self, child: _Child) -> None:
        """A worker has ended: start it again, unless all is to end."""
        child.process.join()
        while child.pipe is not None and child.pipe.poll():
            self._hear(child)
        code, pid = child.process.exitcode, child.process.pid
        child.process.close()
        child.process = None
        if child.pipe is not None:
            child.pipe.close()
            child.pipe = None
        if child.problem and not child.restarts and not self._ending:
            # From the very beginning, so that waiting will not help.
            self._failure = WorkerError(child.endpoint, problem=child.problem)
            self._end()
        if self._ending:
            if self._failure is None:
                self._notify(f"worker {child.index} (pid {pid}) has ended")
            return
        child.problem = ""
        delay = child.backoff.delay(time.monotonic() - child.started)
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        self._notify(f"worker {child.index} (pid {pid}) {how}; it is started again in {delay:g} s")
        child.restarts += 1
        child.starts_at = time.monotonic() + delay

    def _end(self) -> None:
        self._ending = True
        for child in self._children:
            child.starts_at = None
            if child.process is not None:
                child.process.terminate()


_READY, _BEAT = b"ready", b"beat"


def _work(
    decoder: Decoder,
    endpoint: str,
    limits: Limits | None,
    drain: float,
    restarts: int,
    title: str,
    pipe: Connection,
    inherited: Sequence[Connection],
) -> None:
    """What a worker's process does."""
    # A fork has the supervisor's ends of the pipes too; kept open here, they would hide its death from the others.
    for other in inherited:
        other.close()
    set_title(title)
    service = Service(decoder, limits, first_token=int.from_bytes(os.urandom(6)), pid=os.getpid(), restarts=restarts)
    service.metrics.about_process(cpu_seconds, resident_bytes)

    def say(what: bytes) -> None:
        with suppress(OSError):
            pipe.send_bytes(what)

    try:
        worker = Worker(service, endpoint, drain=drain)
    except WorkerError as error:
        say(error.problem.encode())
        sys.exit(1)
    stop_at_signals(worker)
    say(_READY)
    try:
        worker.run(lambda: say(_BEAT), parent=pipe)
    finally:
        worker.close()
