"""A client: its request's body, and whether it is still there."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from .errors import Refused

__all__ = ["ClientGone", "read_body", "while_connected"]

T = TypeVar("T")


class ClientGone(Exception):
    """The client went away before its answer was whole. Nobody reads what is left."""


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


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """
    Do some work as long as the client is there. When it goes the work is cancelled, and what it has open is closed.

    The work has a task of its own, so that each of its steps goes through no more coroutines than its own: a stream has many.

    Raises:
        ClientGone: It went.
    """
    task = asyncio.create_task(work)
    watching = asyncio.create_task(_cancel_when_gone(receive, task))
    try:
        return await task
    except asyncio.CancelledError:
        this = asyncio.current_task()
        if watching.done() and not (this is not None and this.cancelling()):
            raise ClientGone from None
        raise
    finally:
        watching.cancel()


async def _cancel_when_gone(receive: Receive, task: asyncio.Task[Any]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    task.cancel()
