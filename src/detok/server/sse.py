"""
Server-sent events: a stream of chunks, each sent once, with a comment where there was nothing to say for long.

A chunk is written in the same turn of the event loop in which its output was made: no task is woken for it. Only where the client
is slow, so that the server's `send` waits, does a task wait with it; what comes meanwhile is coalesced.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from ..core.request.output import RequestOutput
from ..frontend.pending import Pending
from .answers import Shape, Source
from .connection import ClientGone
from .errors import failure_of, refusal_of

__all__ = ["EventStream"]

COMMENT = b": waiting for the engine\n\n"


class _Choice:
    """Takes the outputs of one choice."""

    __slots__ = ("_chunk", "_index", "_stream", "pending")

    def __init__(self, stream: EventStream, index: int, chunk: Callable[[int, RequestOutput], bytes]) -> None:
        self._stream = stream
        self._index = index
        self._chunk = chunk
        self.pending = Pending()

    def put(self, output: RequestOutput) -> bool:
        """Send an output at once if that is possible, else keep it."""
        stream = self._stream
        if not stream.flows or output.finish_reason is not None:
            was_waiting = self.pending.put(output)
            stream.changed()
            return was_waiting
        try:
            stream.write(self._chunk(self._index, output))
        except Exception as error:
            stream.fail(error)
        return False

    @property
    def failure(self) -> BaseException | None:
        """What the request failed with, if that is already here."""
        if not self.pending:
            return None
        output = self.pending.take()
        self.pending.put(output)
        return failure_of(output)

    def __len__(self) -> int:
        return len(self.pending)


class EventStream:
    """
    An answer that is a stream, as an ASGI application.

    What fails before the first output is raised, so that it can still be answered with a status; what fails later becomes an
    event. Where the engine is silent for longer than a heartbeat, headers and a comment go out: proxies give up on a connection
    without bytes.

    Args:
        source: Its requests are begun with the stream and dropped with it.
        shape: Writes the events.
        heartbeat: Seconds of silence; 0 for no comments.
        headers: Beside those of every stream.
    """

    status_code = 200

    def __init__(self, source: Source, shape: Shape, *, heartbeat: float, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self._source = source
        self._shape = shape
        self._heartbeat = heartbeat
        self._headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-cache, no-transform"),
            # Says to nginx, and to those who copied it, that nothing is to be collected.
            (b"x-accel-buffering", b"no"),
            *headers,
        ]
        self.error: BaseException | None = None
        """What broke the stream off, once it has begun."""
        self.flows = False
        """Whether something can be written now: the answer has begun, and no `send` waits for the client."""
        self._choices = [_Choice(self, index, shape.chunk) for index in range(source.count)]
        self._open = source.count
        self._silent = True
        self._waiting: asyncio.Task[None] | None = None

    def add_headers(self, headers: Mapping[str, str]) -> None:
        """Give more headers, before it is called; those that are there stay."""
        there = {name for name, _ in self._headers}
        self._headers += [(name.encode(), value.encode()) for name, value in headers.items() if name.encode() not in there]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        self._send = send
        self._begun: asyncio.Future[BaseException | None] = loop.create_future()
        self._ended: asyncio.Future[BaseException | None] = loop.create_future()
        self._timer = loop.call_later(self._heartbeat, self._tick) if self._heartbeat else None
        # An engine may take its time to say that it has a request, and the heart has to beat meanwhile.
        beginning = asyncio.create_task(self._begin())
        try:
            await self._start()
            self.error = await self._ended
            if isinstance(self.error, ClientGone):
                raise self.error
            self.flows = False
            if self._waiting is not None:
                await asyncio.wait([self._waiting])
            last = self._shape.last() if self.error is None else self._shape.failed(refusal_of(self.error))
            await self._sends({"type": "http.response.body", "body": last, "more_body": False})
        finally:
            self.flows = False
            if self._timer is not None:
                self._timer.cancel()
            if self._waiting is not None:
                self._waiting.cancel()
            self._source.drop()
            if not beginning.done():
                # Dropped is also what it still began, even if this task is cancelled while it waits.
                beginning.add_done_callback(lambda _: self._source.drop())
                beginning.cancel()
                await asyncio.wait([beginning])

    async def _begin(self) -> None:
        try:
            await self._source.begin(self._choices)
        except Exception as error:
            self.fail(error)

    async def _start(self) -> None:
        """Send the headers once the first output is there and is no failure."""
        failure = await self._begun
        for choice in self._choices:
            failure = failure or choice.failure
        if failure is not None:
            raise failure
        await self._sends({"type": "http.response.start", "status": 200, "headers": self._headers})
        self.flows = True
        self.changed()

    async def _sends(self, message: Message) -> None:
        try:
            await self._send(message)
        except OSError:
            # How servers of newer versions of ASGI say so.
            raise ClientGone from None

    def changed(self) -> None:
        """Send what waits, if that is possible now."""
        if self.flows:
            try:
                self._flush()
            except Exception as error:
                self.fail(error)
        elif not self._begun.done():
            self._begun.set_result(None)

    def _flush(self) -> None:
        outputs = [(index, choice.pending.take()) for index, choice in enumerate(self._choices) if choice]
        self.write(b"".join([self._shape.chunk(index, output) for index, output in outputs]))
        for _, output in outputs:
            if output.finish_reason is not None:
                self._open -= 1
                if (failure := failure_of(output)) is not None:
                    self.fail(failure)
        if not self._open and self.flows and not self._ended.done():
            self._ended.set_result(None)

    def fail(self, error: BaseException) -> None:
        """Break off."""
        for future in (self._begun, self._ended):
            if not future.done():
                future.set_result(error)

    def write(self, body: bytes) -> None:
        """Send some events, if there are any; if the client is slow, nothing flows until they are gone."""
        if not body:
            return
        self._silent = False
        sending = self._send({"type": "http.response.body", "body": body, "more_body": True}).__await__()
        try:
            # As a task would begin, but now.
            waits_for = sending.send(None)
        except StopIteration:
            return
        except OSError:
            self.fail(ClientGone())
            return
        self.flows = False
        self._waiting = asyncio.ensure_future(_resumed(sending, waits_for))
        self._waiting.add_done_callback(self._sent)

    def _sent(self, waited: asyncio.Future[None]) -> None:
        self._waiting = None
        if waited.cancelled():
            return
        if (error := waited.exception()) is not None:
            self.fail(ClientGone() if isinstance(error, OSError) else error)
            return
        self.flows = not self._ended.done()
        self.changed()

    def _tick(self) -> None:
        """Once in each heartbeat: was anything said since the last one?"""
        if not self._begun.done():
            self._begun.set_result(None)
        elif self._silent and self.flows:
            self.write(COMMENT)
        self._silent = True
        self._timer = asyncio.get_running_loop().call_later(self._heartbeat, self._tick)


@types.coroutine
def _resumed(steps: Generator[Any, Any, None], waits_for: Any) -> Generator[Any, Any, None]:
    """Go on, in a task, with what was begun without one."""
    try:
        yield waits_for
        yield from steps
    finally:
        steps.close()
