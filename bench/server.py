"""
What a streamed token costs a server's process in time of the processor, beside servers that write one chunk again and again.

Server and client are processes of their own. Streams run in step, one token each a tick, as an engine gives them; the client
counts events, so that nothing is made cheap by joining it. Also: time to first byte, and memory of open streams.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from .harness import Row, Section, Spread, main

__all__ = ["measure"]

STREAMS, TOKENS = 64, 128
TICK = 1 / 200
"""Seconds. Each server is busy for some of it, and then waits."""

BARE, UVICORN, DETOK = "bare asyncio", "uvicorn", "detok serve"
AT_ONCE = "detok serve, an engine that takes no time"

EVENT = (
    b'data: {"id":"cmpl-00000000000000000000000000000000","object":"text_completion","created":1700000000,"model":"replay",'
    b'"choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null,"stop_reason":null}]}\n\n'
)
CHUNK = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"data: [DONE]\n\n"

Ready = Callable[[int], None]


def measure(rounds: int) -> Iterator[Section]:
    """Yield all sections of this file."""
    yield tokens(rounds)
    yield first_byte(rounds)
    yield memory()


# Servers. Each runs until its process is killed.


async def bare(ready: Ready) -> None:
    """A server of asyncio alone: a protocol, and one loop that writes to all transports."""
    open_ones: dict[Any, int] = {}
    ticking = asyncio.Event()

    class Stream(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport: Any = transport

        def data_received(self, data: bytes) -> None:
            if data.endswith(b"}"):
                self.transport.write(HEAD)
                open_ones[self.transport] = 0
                ticking.set()

    server = await asyncio.get_running_loop().create_server(Stream, "127.0.0.1", 0)
    ready(server.sockets[0].getsockname()[1])
    due = 0.0
    while True:
        await ticking.wait()
        for transport, sent in list(open_ones.items()):
            if sent < TOKENS:
                transport.write(CHUNK)
                open_ones[transport] += 1
            else:
                transport.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(END), END))
                del open_ones[transport]
        if not open_ones:
            ticking.clear()
        due = max(due + TICK, time.monotonic())
        await asyncio.sleep(due - time.monotonic())


async def constant(ready: Ready) -> None:
    """Uvicorn with an application that sends the same chunk at each tick."""
    import uvicorn

    waiting: list[asyncio.Future[None]] = []
    someone = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for _ in range(TOKENS):
            tick = asyncio.get_running_loop().create_future()
            waiting.append(tick)
            someone.set()
            await tick
            await send({"type": "http.response.body", "body": EVENT, "more_body": True})
        await send({"type": "http.response.body", "body": END, "more_body": False})

    async def tick() -> None:
        due = 0.0
        while True:
            await someone.wait()
            someone.clear()
            due = max(due + TICK, time.monotonic())
            await asyncio.sleep(due - time.monotonic())
            for future in waiting:
                future.set_result(None)
            waiting.clear()

    ticker = asyncio.create_task(tick())
    await _uvicorn(uvicorn.Config(app, port=0, access_log=False, log_config=None, ws="none", backlog=4096), ready)
    ticker.cancel()


async def detok_serve(ready: Ready, encoder: Any = "auto", rate: float | None = 1 / TICK) -> None:
    """The server, with an engine that replays a text; without a rate it answers at once."""
    from detok.server.app import open_server
    from detok.server.config import ModelConfig, ServerConfig
    from detok.server.serving import uvicorn_config

    options = {"rate": rate, "max_batch": 1 << 16}
    model = ModelConfig(engine="replay", engine_options=options, encoder=encoder)
    config = ServerConfig(models={"replay": model}, port=0, page=False)
    await _uvicorn(uvicorn_config(open_server(config)), ready)


async def _uvicorn(config: Any, ready: Ready) -> None:
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            ready(self.servers[0].sockets[0].getsockname()[1])

    await Server(config).serve()


SERVERS: dict[str, Callable[[Ready], Any]] = {BARE: bare, UVICORN: constant, DETOK: detok_serve}
FIRST: dict[str, Callable[[Ready], Any]] = {BARE: bare, UVICORN: constant, AT_ONCE: partial(detok_serve, rate=None)}
BY_ENCODER: dict[str, Callable[[Ready], Any]] = {
    f"{DETOK}, encoder={one}": partial(detok_serve, encoder=one) for one in ("tokenizers", "auto")
}


def _serve(name: str, pipe: Connection) -> None:
    """In a process: serve, and tell the processor's time and the memory when asked."""

    def answer() -> None:
        with contextlib.suppress(EOFError):
            while True:
                pipe.recv()
                pipe.send((time.process_time(), _resident()))

    def ready(port: int) -> None:
        pipe.send(port)
        gc.collect()
        gc.freeze()
        threading.Thread(target=answer, daemon=True).start()

    import uvloop

    # All of them on the same loop.
    servers: dict[str, Any] = {**SERVERS, **BY_ENCODER, **FIRST}
    uvloop.run(servers[name](ready))


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


class Running:
    """A server in a process of its own."""

    def __init__(self, name: str) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(name, theirs), daemon=True)
        self._process.start()
        self.port: int = self._pipe.recv()

    def asked(self) -> tuple[float, int]:
        """Seconds of the processor, and bytes of memory."""
        self._pipe.send(None)
        return self._pipe.recv()  # type: ignore[no-any-return]

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.join()


# The client.


class Reader(asyncio.Protocol):
    """Sends one request and counts the events of its answer."""

    def __init__(self, body: bytes, done: Callable[[], None]) -> None:
        self._body, self._done = body, done
        self.events = 0
        self.first: float | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._tail = b""
        lines = ["POST /v1/completions HTTP/1.1", "Host: x", "Content-Type: application/json"]
        head = "\r\n".join([*lines, f"Content-Length: {len(self._body)}", "", ""])
        self.began = time.perf_counter()
        self._transport.write(head.encode() + self._body)

    def data_received(self, data: bytes) -> None:
        if self.first is None:
            self.first = time.perf_counter() - self.began
        self.events += data.count(b"data: {")
        self._tail = (self._tail + data)[-5:]
        if self._tail == b"0\r\n\r\n":
            self._transport.close()
            self._done()


async def _read(port: int, streams: int, tokens: int) -> list[Reader]:
    body = json.dumps({"prompt": "a", "max_tokens": tokens, "stream": True}).encode()
    loop = asyncio.get_running_loop()
    left, done = streams, loop.create_future()

    def one_done() -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set_result(None)

    readers = [(await loop.create_connection(lambda: Reader(body, one_done), "127.0.0.1", port))[1] for _ in range(streams)]
    await done
    return readers


def tokens(rounds: int) -> Section:
    """The processor's time of a streamed token."""
    servers = {name: Running(name) for name in SERVERS}
    each: dict[str, list[float]] = {name: [] for name in servers}
    for turn in range(rounds + 1):
        for name, server in servers.items():
            before, _ = server.asked()
            readers = asyncio.run(_read(server.port, STREAMS, TOKENS))
            taken = server.asked()[0] - before
            events = sum(reader.events for reader in readers)
            if events != STREAMS * TOKENS:
                raise RuntimeError(f"{name} sent {events:,} events for {STREAMS * TOKENS:,} tokens")
            # The first time fills what the others find.
            if turn:
                each[name].append(taken / events * 1e6)
    for server in servers.values():
        server.close()
    made = []
    for name, found in each.items():
        ratios = [Spread.of(a / b for a, b in zip(found, each[other], strict=True)) for other in (BARE, UVICORN)]
        spread = Spread.of(found)
        cells = [name, f"{spread.median:.1f}", f"{spread.low:.1f}–{spread.high:.1f}", *(f"{one.median:.2f}x" for one in ratios)]
        made.append(Row(cells, {"server": name, "microseconds": spread.record(), "ratios": [one.record() for one in ratios]}))
    notes = [
        f"{STREAMS} streams of {TOKENS} tokens, one token each a tick of {TICK * 1e3:g} ms; requests and their ends are in it.",
        "The others decode nothing and write the same bytes again and again; all are on uvloop.",
    ]
    return Section("A streamed token", ("", "µs a token", "spread", "of bare", "of uvicorn"), made, notes)


def first_byte(rounds: int) -> Section:
    """From the request to the first byte of the answer, one client alone."""
    made = []
    for name in FIRST:
        server = Running(name)
        firsts = [asyncio.run(_read(server.port, 1, 2))[0].first or 0.0 for _ in range(rounds + 1)][1:]
        server.close()
        made.append(Row([name, f"{median(firsts) * 1e3:.2f}"], {"server": name, "seconds": Spread.of(firsts).record()}))
    return Section("Time to first byte", ("", "ms"), made, ["detok waits for the engine's first token before it sends a byte."])


def memory(streams: int = 1000) -> Section:
    """Of the whole process, with many streams open."""
    made = []
    for name in BY_ENCODER:
        server = Running(name)
        asyncio.run(_read(server.port, 1, 2))
        empty = server.asked()[1]
        full = asyncio.run(_memory_with(server, streams))
        server.close()
        cells = [name, f"{empty / 1e6:.0f} MB", f"{full / 1e6:.0f} MB", f"{(full - empty) / streams / 1e3:.1f} kB"]
        made.append(Row(cells, {"server": name, "streams": streams, "bytes_empty": empty, "bytes_full": full}))
    notes = ["auto takes fastokens where it is installed, which keeps tables of its own."]
    return Section(f"Memory with {streams:,} open streams", ("", "before", "with them", "each"), made, notes)


async def _memory_with(server: Running, streams: int) -> int:
    """Read slowly ending streams, and look when all of them run."""
    reading = asyncio.create_task(_read(server.port, streams, TOKENS * 8))
    await asyncio.sleep(4)
    found = server.asked()[1]
    await reading
    return found


if __name__ == "__main__":
    sys.exit(main([measure], __doc__))
