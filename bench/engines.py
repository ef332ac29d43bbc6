"""
What an engine behind HTTP costs the process that reads it, beside a protocol that only counts the events.

The engine is a fake in a process of its own that writes as vLLM 0.32 does: an event for each token and stream, in two chunks and
two writes, with a head of its own before the first. Both contestants read the same streams in this process, on uvloop. Tokens are
measured with many long streams, requests with many short ones that begin at once, on connections that the engine kept and on new
ones. Meanwhile a heartbeat in the loop says how long the processor was kept from it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from detok.engines.base import EngineRequest
from detok.engines.http import HttpEngine
from detok.engines.vllm import Vllm

from .harness import Row, Section, Spread, main

__all__ = ["FakeVllm", "measure"]

STREAMS, TOKENS = 64, 256
BURSTS = (64, 512)
SHORT = 2
"""Tokens of a stream whose request is what is measured."""

TICK = 1 / 200
"""Seconds between two tokens of a stream."""

BEAT = 0.001
"""Seconds between two beats of the heart."""

COUNTING, ENGINE = "a protocol that counts", "HttpEngine"

HEAD = (
    b"HTTP/1.1 200 OK\r\ndate: Mon, 30 Nov 2026 00:00:00 GMT\r\nserver: uvicorn\r\n"
    b"content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
)
EVENT = (
    b'data: {"request_id":"generate-tokens-%d","usage":null,"choices":[{"index":0,"logprobs":null,"finish_reason":%b,'
    b'"stop_reason":null,"token_ids":[%d]}],"prompt_logprobs":null,"kv_transfer_params":null}'
)
LAST = b"c\r\ndata: [DONE]\r\n2\r\n\n\n\r\n0\r\n\r\n"


def measure(rounds: int) -> Iterator[Section]:
    """Yield all sections of this file."""
    with FakeVllm() as fake:
        yield tokens(fake.port, rounds)
        yield requests(fake.port, rounds)


def chunk(data: bytes) -> bytes:
    """Return a chunk of HTTP."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class FakeVllm:
    """The fake engine, in a process of its own, for as long as the context is open."""

    def __enter__(self) -> FakeVllm:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self.port: int = ours.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection) -> None:
    import uvloop

    uvloop.run(_fake(pipe))


async def _fake(pipe: Connection) -> None:
    """Answer requests with as many tokens as they ask for, one a tick, all streams in step."""
    left: dict[Any, int] = {}
    someone = asyncio.Event()

    class Stream(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport: Any = transport
            self.data = b""

        def data_received(self, data: bytes) -> None:
            self.data += data
            head, _, body = self.data.partition(b"\r\n\r\n")
            length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), None)
            if length is None or len(body) < int(length.partition(b":")[2]):
                return
            self.data = b""
            self.transport.write(HEAD)
            left[self.transport] = json.loads(body)["sampling_params"]["max_tokens"]
            someone.set()

        def connection_lost(self, exc: Exception | None) -> None:
            left.pop(self.transport, None)

    server = await asyncio.get_running_loop().create_server(Stream, "127.0.0.1", 0, backlog=4096)
    pipe.send(server.sockets[0].getsockname()[1])
    due = 0.0
    while True:
        await someone.wait()
        for number, transport in enumerate([*left]):
            left[transport] -= 1
            transport.write(chunk(EVENT % (number, b"null" if left[transport] else b'"length"', number + 1000)))
            transport.write(chunk(b"\n\n"))
            if not left[transport]:
                del left[transport]
                transport.write(LAST)
        if not left:
            someone.clear()
        due = max(due + TICK, time.monotonic())
        await asyncio.sleep(due - time.monotonic())


# The contestants. Each reads so many streams of so many tokens, and returns how many tokens came.

Reads = Callable[[int, int], Awaitable[int]]


class Counting(asyncio.Protocol):
    """Sends a request whenever it is told to, on the same connection, and counts events."""

    events = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport: Any = transport

    def ask(self, body: bytes, done: Callable[[], None]) -> None:
        """Send a request."""
        self._done, self._tail = done, b""
        head = f"POST /inference/v1/generate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)

    def data_received(self, data: bytes) -> None:
        """Count."""
        self.events += data.count(b"data: {")
        self._tail = (self._tail + data)[-5:]
        if self._tail == b"0\r\n\r\n":
            self._done()


class CountingReader:
    """The floor: what any reader in this language pays."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connections: list[Counting] = []

    async def read(self, streams: int, tokens: int) -> int:
        """Read."""
        loop = asyncio.get_running_loop()
        while len(self._connections) < streams:
            self._connections.append((await loop.create_connection(Counting, "127.0.0.1", self._port))[1])
        left, done = streams, loop.create_future()

        def one_done() -> None:
            nonlocal left
            left -= 1
            if not left:
                done.set_result(None)

        body = json.dumps({"token_ids": [1, 2, 3], "sampling_params": {"max_tokens": tokens}}).encode()
        before = sum(one.events for one in self._connections)
        for one in self._connections[:streams]:
            one.ask(body, one_done)
        await done
        return sum(one.events for one in self._connections) - before

    async def close(self) -> None:
        """Close all connections."""
        for one in self._connections:
            one.transport.close()


class EngineReader:
    """What detok has."""

    def __init__(self, port: int) -> None:
        self._engine = HttpEngine(Vllm(), f"http://127.0.0.1:{port}")
        self._numbers = iter(range(1 << 30))

    async def read(self, streams: int, tokens: int) -> int:
        """Read."""
        names = [f"r{next(self._numbers)}" for _ in range(streams)]
        requests = [EngineRequest(request_id=name, prompt_ids=[1, 2, 3], sampling={"max_tokens": tokens}) for name in names]
        submits = asyncio.gather(*(self._engine.submit(request) for request in requests))
        found, left = 0, streams
        async for batch in self._engine.outputs():
            for output in batch:
                found += len(output.token_ids)
                left -= output.finish_reason is not None
            if not left:
                break
        await submits
        return found

    async def close(self) -> None:
        """Close all connections."""
        await self._engine.close()


READERS: dict[str, Callable[[int], CountingReader | EngineReader]] = {COUNTING: CountingReader, ENGINE: EngineReader}


async def _timed(reader: CountingReader | EngineReader, streams: int, tokens: int) -> tuple[float, float]:
    """Return the processor's seconds that a batch took, and by how much of them the heartbeat was late at worst."""
    late = 0.0

    async def beat() -> None:
        nonlocal late
        while True:
            before = time.thread_time()
            await asyncio.sleep(BEAT)
            late = max(late, time.thread_time() - before)

    heart = asyncio.create_task(beat())
    await asyncio.sleep(0)
    began = time.process_time()
    found = await reader.read(streams, tokens)
    taken = time.process_time() - began
    heart.cancel()
    if found != streams * tokens:
        raise RuntimeError(f"{found:,} tokens came of {streams * tokens:,}")
    return taken, late


def _settled() -> None:
    """Leave what is there to no collection, as `detok serve` does; it would be part of somebody's time."""
    gc.collect()
    gc.freeze()


def _run(coroutine: Any) -> Any:
    import uvloop

    return uvloop.run(coroutine)


def tokens(port: int, rounds: int) -> Section:
    """The processor's time of a token, on long streams."""

    _settled()

    async def all_rounds() -> dict[str, list[float]]:
        readers = {name: make(port) for name, make in READERS.items()}
        taken: dict[str, list[float]] = {name: [] for name in readers}
        for turn in range(rounds + 1):
            for name, reader in readers.items():
                seconds, _ = await _timed(reader, STREAMS, TOKENS)
                # The first time fills what the others find.
                if turn:
                    taken[name].append(seconds / (STREAMS * TOKENS) * 1e6)
        for reader in readers.values():
            await reader.close()
        return taken

    taken = _run(all_rounds())
    made = []
    for name, found in taken.items():
        spread = Spread.of(found)
        ratio = Spread.of(one / floor for one, floor in zip(found, taken[COUNTING], strict=True))
        cells = [name, f"{spread.median:.1f}", f"{spread.low:.1f}–{spread.high:.1f}", f"{ratio.median:.2f}x"]
        made.append(Row(cells, {"reader": name, "microseconds": spread.record(), "ratio": ratio.record()}))
    notes = [
        f"{STREAMS} streams of {TOKENS} tokens, one token each a tick of {TICK * 1e3:g} ms; requests and their ends are in it."
    ]
    return Section("A token read from an engine", ("", "µs a token", "spread", "of counting"), made, notes)


def requests(port: int, rounds: int) -> Section:
    """The processor's time of a request, and how late the heartbeat is meanwhile."""

    _settled()

    async def all_rounds(streams: int, pause: float) -> tuple[list[float], list[float]]:
        reader = EngineReader(port)
        await _timed(reader, streams, SHORT)
        found = []
        for _ in range(rounds):
            # So long that all connections were let go.
            await asyncio.sleep(pause)
            found.append(await _timed(reader, streams, SHORT))
        await reader.close()
        return [taken for taken, _ in found], [late for _, late in found]

    made = []
    for streams in BURSTS:
        for state, pause in (("kept", 0.0), ("new", 2.5)):
            taken, late = _run(all_rounds(streams, pause))
            each, latest = Spread.of(one / streams * 1e6 for one in taken), Spread.of(late)
            cells = [
                f"{streams} at once, {state} connections",
                *(f"{each.median:.0f}", f"{each.low:.0f}–{each.high:.0f}"),
                *(f"{latest.median * 1e3:.1f}", f"{latest.high * 1e3:.1f}"),
            ]
            record = {"streams": streams, "connections": state, "microseconds": each.record(), "late": latest.record()}
            made.append(Row(cells, record))
    notes = [
        f"Streams of {SHORT} tokens; the tokens are in it.",
        f"Late is the processor's time in which a heartbeat of {BEAT * 1e3:g} ms waited.",
    ]
    return Section("A request to an engine", ("", "µs a request", "spread", "ms late", "at most"), made, notes)


if __name__ == "__main__":
    sys.exit(main([measure], __doc__))
