"""Workers with real sockets: in a thread of this process, or in processes under a supervisor."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import detok
from detok.frontend.worker.service import Limits, Service
from detok.frontend.worker.worker import Worker

__all__ = ["endpoint", "processes", "threaded"]


@contextmanager
def endpoint() -> Iterator[str]:
    """A place to listen that nobody else has; short, since the path of a socket may not be long."""
    with TemporaryDirectory(prefix="detok") as directory:
        yield f"ipc://{directory}/w"


@contextmanager
def threaded(tokenizer: detok.Tokenizer, place: str, limits: Limits | None = None) -> Iterator[Service]:
    """A worker in a thread; at the end it hands back what it has, and the thread ends."""
    service = Service(tokenizer, limits, first_token=id(object()), pid=1)
    worker = Worker(service, place, drain=0.0)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield service
    finally:
        worker.stop()
        thread.join()
        worker.close()


@contextmanager
def processes(place: str, *options: str, tokenizer: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """``detok worker`` in processes of its own, ready; at the end they are told to end, and have to."""
    command = [sys.executable, "-m", "detok", "worker", "--endpoint", place, *options]
    if tokenizer is not None:
        command.append(str(tokenizer))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert "listens at" in line, line + process.stdout.read()
        yield process
    finally:
        process.terminate()
        rest, _ = process.communicate(timeout=60)
        assert process.returncode == 0, rest
