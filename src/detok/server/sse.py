"""Server-sent events: a stream of chunks, each sent once, with a comment where there was nothing to say for long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from starlette.types import Receive, Scope, Send

from ..core.request.output import RequestOutput
from .errors import failure_of, refusal_of
from .texts import json_bytes

__all__ = ["DONE", "EventStream", "event"]

DONE = b"data: [DONE]\n\n"
COMMENT = b": waiting for the engine\n\n"

Outputs = AsyncGenerator[Sequence[tuple[int, RequestOutput]], None]


def event(value: object) -> bytes:
    """
    Return an event with this JSON value.

    >>> event({"a": "\\n"})
    b'data: {"a":"\\\\n"}\\n\\n'
    """
    return b"data: " + json_bytes(value) + b"\n\n"


class EventStream:
    """
    An answer that is a stream, as an ASGI application.

    What fails before the first output is raised, so that it can still be answered with a status; what fails later becomes an
    event. Where the engine is silent for longer than a heartbeat, headers and a comment go out: proxies give up on a connection
    without bytes.

    Args:
        outputs: Of all choices; what is given at once is sent at once. Closed in any case.
        chunk: Makes events of an output of the choice with this number. Of one that failed, they are those of what came before.
        last: Makes the events behind all outputs.
        heartbeat: Seconds of silence.
        headers: Beside those of every stream.
    """

    def __init__(
        self,
        outputs: Outputs,
        *,
        chunk: Callable[[int, RequestOutput], bytes],
        last: Callable[[], bytes],
        heartbeat: float,
        headers: Sequence[tuple[bytes, bytes]] = (),
        failed: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self._outputs = outputs
        self._chunk = chunk
        self._last = last
        self._heartbeat = heartbeat
        self._headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-cache, no-transform"),
            # Says to nginx, and to those who copied it, that nothing is to be collected.
            (b"x-accel-buffering", b"no"),
            *headers,
        ]
        self._failed = failed
        self._started = False
        self._silent = True
        self._beating: asyncio.Task[None] | None = None

    status_code = 200

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._send = send
        self._timer = asyncio.get_running_loop().call_later(self._heartbeat, self._tick)
        try:
            await self._run(send)
        finally:
            self._timer.cancel()
            if self._beating is not None:
                self._beating.cancel()
            await self._outputs.aclose()

    async def _run(self, send: Send) -> None:
        chunk = self._chunk
        try:
            async for outputs in self._outputs:
                if not self._started:
                    await self._start(outputs)
                if self._beating is not None:
                    await self._beating
                body = b"".join([chunk(index, output) for index, output in outputs])
                if body:
                    self._silent = False
                    await send({"type": "http.response.body", "body": body, "more_body": True})
                for _, output in outputs:
                    if output.finish_reason is not None and (failure := failure_of(output)) is not None:
                        raise failure
            last = self._last()
        except Exception as error:
            if not self._started:
                raise
            self._failed(error)
            last = event(refusal_of(error).as_dict()) + DONE
        await send({"type": "http.response.body", "body": last, "more_body": False})

    async def _start(self, outputs: Sequence[tuple[int, RequestOutput]] = ()) -> None:
        for _, output in outputs:
            if (failure := failure_of(output)) is not None:
                raise failure
        self._started = True
        await self._send({"type": "http.response.start", "status": 200, "headers": self._headers})

    def _tick(self) -> None:
        """Once in each heartbeat: was anything said since the last one?"""
        if self._silent and (self._beating is None or self._beating.done()):
            self._beating = asyncio.create_task(self._beat())
        self._silent = True
        self._timer = asyncio.get_running_loop().call_later(self._heartbeat, self._tick)

    async def _beat(self) -> None:
        if not self._started:
            await self._start()
        await self._send({"type": "http.response.body", "body": COMMENT, "more_body": True})
