"""A fake engine on a real socket: it answers what it was told to, piece by piece, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from detok.engines.base import Engine, EngineOutput, EngineRequest

RECORDINGS = Path(__file__).parent / "recordings"

SSE = "text/event-stream; charset=utf-8"


class Act(Enum):
    """What an engine may do instead of sending bytes."""

    HOLD = "say nothing until the client has gone"
    LOSE = "break the connection off"
    WAIT = "say nothing until `FakeEngine.go` is set"


@dataclass
class Reply:
    """An answer: its pieces are sent one by one, each as a chunk of HTTP, so that the client sees exactly these cuts."""

    pieces: Sequence[bytes | Act] = ()
    status: int = 200
    media_type: str = SSE
    before_head: Act | None = None


@dataclass
class Asked:
    """A request as it came in."""

    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class FakeEngine:
    """Answers each POST with the next of its replies, the last one again and again; a post about aborts it takes note of."""

    replies: list[Reply]
    asked: list[Asked] = field(default_factory=list)
    aborted: list[Any] = field(default_factory=list)
    connections: int = 0
    gone: int = 0
    """Clients that went away while an answer was due."""
    url: str = ""
    go: asyncio.Event = field(default_factory=asyncio.Event)
    held: asyncio.Event = field(default_factory=asyncio.Event)
    """An answer has come to a HOLD or a WAIT."""
    serving: dict[asyncio.Task[Any], asyncio.StreamWriter] = field(default_factory=dict)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until the client closes it."""
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self.serving[task] = writer
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._serve_one(reader, writer):
                    pass
        finally:
            del self.serving[task]
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def stop(self) -> None:
        """Close the connections that are still there."""
        self.go.set()
        tasks = [*self.serving]
        for writer in self.serving.values():
            writer.transport.abort()
        await asyncio.gather(*tasks)

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        asked = await _read(reader)
        if "abort" in asked.path:
            self.aborted.append(asked.body)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return True
        self.asked.append(asked)
        return await self._answer(self.replies[min(len(self.asked), len(self.replies)) - 1], reader, writer)

    async def _answer(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if reply.before_head is not None and not await self._act(reply.before_head, reader, writer):
            return False
        head = f"HTTP/1.1 {reply.status} Said\r\nContent-Type: {reply.media_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head.encode())
        for piece in reply.pieces:
            if isinstance(piece, Act):
                if not await self._act(piece, reader, writer):
                    return False
            elif piece:
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                await writer.drain()
        writer.write(b"0\r\n\r\n")
        return True

    async def _act(self, act: Act, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await writer.drain()
        if act is Act.LOSE:
            writer.close()
            return False
        self.held.set()
        if act is Act.WAIT:
            await self.go.wait()
            return True
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        self.gone += 1
        return False


async def _read(reader: asyncio.StreamReader) -> Asked:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    body = await reader.readexactly(int(headers["content-length"]))
    return Asked(lines[0].split()[1], headers, json.loads(body))


@contextlib.asynccontextmanager
async def fake_engine(*replies: Reply) -> AsyncIterator[FakeEngine]:
    """A fake engine that listens on a free port."""
    fake = FakeEngine(list(replies))
    server = await asyncio.start_server(fake.serve, "127.0.0.1", 0)
    fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield fake
    finally:
        server.close()
        await fake.stop()


def recorded(name: str) -> bytes:
    """A recording."""
    return (RECORDINGS / name).read_bytes()


def request(name: str = "a", prompt: Sequence[int] = (1, 2, 3), **sampling: Any) -> EngineRequest:
    """A request."""
    return EngineRequest(request_id=name, prompt_ids=prompt, sampling=sampling)


async def until_ended(engine: Engine, names: Iterable[str]) -> dict[str, list[EngineOutput]]:
    """Take outputs until each of these requests has ended."""
    outputs: dict[str, list[EngineOutput]] = {name: [] for name in names}
    open_ones = set(outputs)
    async for batch in engine.outputs():
        for output in batch:
            assert output.request_id in open_ones, "an output after the last"
            outputs[output.request_id].append(output)
            if output.finish_reason is not None:
                open_ones.remove(output.request_id)
        if not open_ones:
            break
    return outputs


def ids_of(outputs: Iterable[EngineOutput]) -> list[int]:
    """All ids of a request."""
    return [token_id for output in outputs for token_id in output.token_ids]


async def became(condition: Any) -> None:
    """Wait until a condition holds, for what the other side of a socket sees a moment later."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)
