"""A client: its request's body, and whether it is still there."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from starlette.types import Receive

from .errors import Refused

__all__ = ["ClientGone", "WhileConnected", "read_body"]


class ClientGone(Exception):
    """The client went away before its request was here. Nobody reads an answer."""


async def read_body(receive: Receive, limit: int) -> bytes:
    """
    Return the body of a request.

    Raises:
        Refused: It is longer than the limit; what is over is not kept.
        ClientGone: It ended in the middle.
    """
    chunks, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise Refused(413, f"the body is longer than the {limit:,} bytes that are allowed", headers={"Connection": "close"})
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


class WhileConnected:
    """
    Does what is inside as long as the client is there; cancels it when it goes, and then `gone` is true.

    As with `asyncio.timeout`, a cancellation from outside is passed on.
    """

    gone = False

    def __init__(self, receive: Receive) -> None:
        self._receive = receive

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        self._watching = asyncio.create_task(self._watch())
        return self

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        assert self._task is not None
        self._task.cancel()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        self._watching.cancel()
        assert self._task is not None
        return self.gone and self._task.uncancel() <= 0 and kind is asyncio.CancelledError
