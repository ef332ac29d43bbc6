"""A detokenizer worker in a process of its own: rows a second, messages included, and the memory of many open streams."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any

import detok
from detok.frontend.worker.client import DetokenizerClient
from detok.frontend.worker.kept import Ticket
from detok.frontend.worker.scrape import samples, scrape

from .harness import Row, Section, Spread, main, seconds
from .texts import ids_of, nine_scripts, path_of

__all__ = ["measure", "memory", "throughput"]

VOCABULARY = "llama3"
BATCHES = (16, 64, 256, 1024)
ROWS = 1 << 16
WINDOW = 4
STREAMS = 65_536


def measure(rounds: int) -> Iterator[Section]:
    """Yield all sections of this file."""
    yield throughput(rounds)
    yield memory()


def throughput(rounds: int) -> Section:
    """One worker, one client, steps of one token a stream."""
    rows = []
    with _worker() as place, DetokenizerClient(place) as client:
        ids = ids_of(VOCABULARY, nine_scripts())
        _run(client, _opened(client, 256, ids, 2 * len(ids)))  # so that the tables are filled
        rows = [_batch(client, batch, ids, rounds) for batch in BATCHES]
    notes = [
        f"{VOCABULARY}, nine scripts, one stop string, a row a stream and step, {WINDOW} steps under way, over ipc.",
        "Processor time is that of each process in all, I/O threads included: what a core of its own would have to do.",
    ]
    columns = ("streams", "rows a second", "a row", "worker's processor", "client's processor", "worker alone, rows a second")
    return Section("A worker in a process of its own", columns, rows, notes)


def _batch(client: DetokenizerClient, batch: int, ids: list[int], rounds: int) -> Row:
    place = client.endpoints[0]
    taken, worker, here = [], [], []
    steps = ROWS // batch
    for _ in range(rounds):
        prepared = _opened(client, batch, ids, steps)
        before = _sample(place, "process_cpu_seconds_total")
        own, began = time.process_time(), time.perf_counter()
        _run(client, prepared)
        taken.append((time.perf_counter() - began) / steps / batch)
        here.append((time.process_time() - own) / steps / batch)
        worker.append((_sample(place, "process_cpu_seconds_total") - before) / steps / batch)
    whole, theirs, ours = Spread.of(taken), Spread.of(worker), Spread.of(here)
    cells = (
        f"{batch:,}",
        f"{1 / whole.median:,.0f}",
        seconds(whole.median),
        seconds(theirs.median),
        seconds(ours.median),
        f"{1 / theirs.median:,.0f}",
    )
    record = {"streams": batch, "row": whole.record(), "worker_cpu": theirs.record(), "client_cpu": ours.record()}
    return Row(cells, record)


_names = count()


def _opened(client: DetokenizerClient, batch: int, ids: list[int], steps: int) -> list[list[tuple[Any, ...]]]:
    """Open streams, and return the steps that they will take, the last of which ends them."""
    names = [next(_names) for _ in range(batch)]
    options = detok.RequestOptions(stop="\n\nHuman:", ignore_eos=True)
    for name in names:
        client.open(name, options=options)
    lists = [[token_id] for token_id in ids]
    rows = [[(name, lists[(step + name) % len(ids)], None, None, None) for name in names] for step in range(steps)]
    return [*rows, [(name, [], None, "length", None) for name in names]]


def _run(client: DetokenizerClient, steps: list[list[tuple[Any, ...]]]) -> None:
    """Take steps, some of them under way at once."""
    under_way: deque[Ticket] = deque()
    for rows in steps:
        under_way.append(client.send(rows))
        if len(under_way) >= WINDOW:
            client.wait(under_way.popleft())
    while under_way:
        client.wait(under_way.popleft())


def memory() -> Section:
    """The memory of a worker with many streams, beyond what it has with its tokenizer."""
    return Section(
        f"{STREAMS:,} open streams in one worker",
        ("options", "memory beyond the tokenizer", "a stream"),
        [
            _streams("none", detok.RequestOptions()),
            _streams("a stop string", detok.RequestOptions(stop="\n\nHuman:")),
            _streams("a stop string, restored", detok.RequestOptions(stop="\n\nHuman:"), restored=True),
        ],
        ["After 8 tokens each; with restored ones, every stream was handed back to the client and brought again."],
    )


def _streams(title: str, options: detok.RequestOptions, *, restored: bool = False) -> Row:
    limit = ("--max-states", str(STREAMS))
    with _worker(*limit) as place, DetokenizerClient(place) as client:
        ids = ids_of(VOCABULARY, nine_scripts())
        _run(client, _opened(client, 256, ids, len(ids)))
        before = _sample(place, "process_resident_memory_bytes")
        for name in range(STREAMS):
            client.open(("stream", name), options=options)
        for step in range(8):
            if restored and step == 6:
                _restart(client)
            for first in range(0, STREAMS, 256):
                client.step(
                    [(("stream", name), [ids[(step + name) % len(ids)]], None, None, None) for name in range(first, first + 256)]
                )
        assert _sample(place, "detok_worker_open_requests") == STREAMS
        used = _sample(place, "process_resident_memory_bytes") - before
    cells = (title, f"{used / 1e6:,.1f} MB", f"{used / STREAMS:,.0f} bytes")
    return Row(cells, {"options": title, "bytes": used, "streams": STREAMS})


def _restart(client: DetokenizerClient) -> None:
    """Begin another session, in which the worker has nothing."""
    link = client._dispatch.links[0]
    link._begin(time.monotonic())


@contextmanager
def _worker(*options: str) -> Iterator[str]:
    with TemporaryDirectory(prefix="detok") as directory:
        place = f"ipc://{directory}/w"
        command = [sys.executable, "-m", "detok", "worker", path_of(VOCABULARY), "--endpoint", place, *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            assert "listens" in process.stdout.readline()
            yield place
        finally:
            process.terminate()
            process.communicate()


def _sample(place: str, name: str) -> Any:
    return samples(scrape(place, 10.0))[name]


if __name__ == "__main__":
    sys.exit(main([measure], __doc__))
