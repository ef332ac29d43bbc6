"""`HttpEngine`: any engine behind HTTP, whatever it speaks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any

import aiohttp

from ..errors import DuplicateRequest, EngineError
from .base import EngineOutput, EngineRequest
from .client import FAILURES, Client, check_json, lost_words, never_sent
from .dialect import Body, Call, Dialect
from .events import Answer
from .outbox import Outbox
from .words import refusal_words

__all__ = ["HttpEngine"]

# What follows the last ids (usage, the end mark) comes with them; whoever does not send it loses the connection.
LAST_WORDS_S = 1.0

# An abort is heard by closing the connection; the post is for what stands between and holds it open.
ABORT_TIMEOUT_S = 5.0

# What is read of an error's body: enough for any message, and no more of an endless one.
MAX_ERROR_BYTES = 64 << 10

# And how long it is waited for: one that comes drop by drop holds up whoever asked.
ERROR_BODY_S = 5.0

logger = logging.getLogger("detok.engines")


class HttpEngine:
    """
    An engine behind HTTP. It belongs to one event loop.

    Args:
        dialect: What it speaks.
        url: Where it is, as in "http://127.0.0.1:8000"; a path stands before the dialect's own.
        api_key: Sent as a bearer token.
        connect_timeout: Seconds for one try to connect.
        silence_timeout: Seconds in which the engine has to send something, be it a comment. A queue may take that long.

    Raises:
        OptionError: The URL is none.
    """

    def __init__(
        self,
        dialect: Dialect,
        url: str,
        *,
        api_key: str | None = None,
        connect_timeout: float = 5.0,
        silence_timeout: float = 600.0,
    ) -> None:
        self._client = Client(url, api_key=api_key, connect_timeout=connect_timeout, silence_timeout=silence_timeout)
        self.name = f"{dialect.name} at {self._client.url}"
        self._dialect = dialect
        self._silence_timeout = silence_timeout
        self._outbox = Outbox()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        """Those of `_running`, of requests that ended and whose last words are still read, and of aborts."""
        self._closed = False

    async def submit(self, request: EngineRequest) -> None:
        """Begin a request. See `Engine.submit`."""
        if self._closed:
            raise EngineError("the engine is closed", engine=self.name)
        if request.request_id in self._running:
            raise DuplicateRequest(request.request_id)
        call = self._dialect.begin(request)
        check_json(request.sampling)
        taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = self._start(self._run(request.request_id, call, taken))
        task.add_done_callback(lambda task: _settle(taken, task))
        self._running[request.request_id] = task
        try:
            await taken
        except asyncio.CancelledError:
            await self.abort([request.request_id])
            raise

    def outputs(self) -> AsyncIterator[list[EngineOutput]]:
        """Give batches. See `Engine.outputs`."""
        return self._outbox.batches()

    async def abort(self, request_ids: Sequence[str]) -> None:
        """Stop requests: close their connections, and tell the engine. See `Engine.abort`."""
        found = {name: self._running.pop(name) for name in dict.fromkeys(request_ids) if name in self._running}
        self._outbox.forget(frozenset(request_ids))
        for task in found.values():
            task.cancel()
        if found:
            self._tell([*found])
            await asyncio.wait(found.values())

    async def close(self) -> None:
        """Abort all requests, wait until the engine heard it, and close the connections. See `Engine.close`."""
        self._closed = True
        await self.abort([*self._running])
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._outbox.close()
        await self._client.close()

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(self, request_id: str, call: Call, taken: asyncio.Future[None]) -> None:
        """Carry a request through: its outputs go to the outbox; an error before it is taken, to ``taken``."""
        try:
            for body in call.bodies():
                if await self._exchange(request_id, call, body, taken):
                    return
            raise EngineError(_NO_FINISH, engine=self.name)
        except EngineError as error:
            self._fail(request_id, error, taken, heard=error.status is None)
        except FAILURES as cause:
            lost = EngineError(lost_words(cause, self._silence_timeout), engine=self.name)
            lost.__cause__ = cause
            self._fail(request_id, lost, taken, heard=not never_sent(cause))
        except Exception as cause:
            logger.exception("reading the answer of %s to %s failed", self.name, request_id)
            failed = EngineError("reading the engine's answer failed; detok's log says why", engine=self.name)
            failed.__cause__ = cause
            self._fail(request_id, failed, taken, heard=True)

    async def _exchange(self, request_id: str, call: Call, body: Body, taken: asyncio.Future[None]) -> bool:
        """Send a body and read the answer; return whether the request has ended."""
        ended = False
        try:
            async with self._client.post(self._dialect.path, body) as response, asyncio.timeout(None) as limit:
                await self._check(response)
                _settle(taken)
                answer = self._dialect.answer()
                async for chunk in response.content.iter_any():
                    if ended:
                        continue
                    if ended := self._take(request_id, call, answer, chunk):
                        limit.reschedule(asyncio.get_running_loop().time() + LAST_WORDS_S)
                    elif self._outbox.is_full:
                        await self._outbox.room()
                return ended or self._take(request_id, call, answer, None)
        except FAILURES:
            if not ended:
                raise
        return ended

    def _take(self, request_id: str, call: Call, answer: Answer, chunk: bytes | None) -> bool:
        """Take bytes of an answer, or its end; return whether the request has ended with them."""
        try:
            for data in answer.finish() if chunk is None else answer.feed(chunk):
                if data == b"[DONE]":
                    raise EngineError(_NO_FINISH, engine=self.name)
                output = call.read(data)
                if output.finish_reason is not None:
                    del self._running[request_id]
                    self._outbox.add(output)
                    return True
                if output.token_ids:
                    self._outbox.add(output)
        except (ValueError, RecursionError) as error:
            message = f"the engine sent what {self._dialect.name} does not send: {error}"
            raise EngineError(message, engine=self.name) from error
        return False

    def _fail(self, request_id: str, error: EngineError, taken: asyncio.Future[None], *, heard: bool) -> None:
        """End a request with an error. If the engine heard of the request, it may still be at it, and is told to stop."""
        if self._running.get(request_id) is not asyncio.current_task():
            return  # aborted meanwhile
        del self._running[request_id]
        if not taken.done():
            taken.set_exception(error)
        else:
            self._outbox.add(
                EngineOutput(request_id=request_id, finish_reason="error", error=error.message, error_status=error.status)
            )
        if heard:
            self._tell([request_id])

    def _tell(self, request_ids: Sequence[str]) -> None:
        for path, body in self._dialect.aborts(request_ids):
            self._start(self._post(path, body))

    async def _post(self, path: str, body: Body) -> None:
        # An engine that does not hear this has heard that the connection was closed.
        with contextlib.suppress(*FAILURES):
            async with asyncio.timeout(ABORT_TIMEOUT_S), self._client.post(path, body) as response:
                await response.read()

    async def _check(self, response: aiohttp.ClientResponse) -> None:
        """Raise what the engine says if this is not the answer that was asked for."""
        media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if response.status == 200 and media_type == self._dialect.media_type:
            return
        body = b""
        with contextlib.suppress(*FAILURES):
            async with asyncio.timeout(ERROR_BODY_S):
                async for chunk in response.content.iter_any():
                    body += chunk
                    if len(body) > MAX_ERROR_BYTES:
                        break
        status = response.status if response.status >= 400 else None
        words = refusal_words(status, f"{response.status} {response.reason}", media_type, body)
        raise EngineError(**words, engine=self.name, status=status)


_NO_FINISH = "the engine ended its answer without a finish_reason"


def _settle(taken: asyncio.Future[None], task: asyncio.Task[None] | None = None) -> None:
    """Let go whoever submitted a request: it was taken, or its task is over, by an abort mostly."""
    if taken.done():
        return
    error = None if task is None or task.cancelled() else task.exception()
    if error is None:
        taken.set_result(None)
    else:
        taken.set_exception(error)
