"""The outputs of several requests as they come, for one reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from ..core.request.output import RequestOutput

__all__ = ["together"]

Outputs = AsyncGenerator[RequestOutput, None]


async def together(requests: Sequence[Outputs]) -> AsyncGenerator[Sequence[tuple[int, RequestOutput]], None]:
    """
    Give outputs with the numbers of their requests; what came in one step of an engine is given at once.

    While the reader is busy no more is read, so that what comes meanwhile is coalesced where it waits. Closing this closes all
    requests, and so does an error of one of them.

    Args:
        requests: What `OutputProcessor.generate` returns.
    """
    if len(requests) == 1:
        async with aclosing(requests[0]) as request:
            async for output in request:
                yield ((0, output),)
        return
    ready: list[tuple[int, RequestOutput]] = []
    changed, reader_waits = asyncio.Event(), asyncio.Event()
    reader_waits.set()

    async def read(index: int, request: Outputs) -> None:
        try:
            async with aclosing(request):
                async for output in request:
                    ready.append((index, output))
                    changed.set()
                    await reader_waits.wait()
        finally:
            changed.set()

    tasks = [asyncio.create_task(read(index, request)) for index, request in enumerate(requests)]
    running = set(tasks)
    try:
        while running or ready:
            await changed.wait()
            changed.clear()
            if ready:
                batch, ready = ready, []
                reader_waits.clear()
                yield batch
                reader_waits.set()
            done = {task for task in running if task.done()}
            running -= done
            for task in done:
                task.result()
            if not running and not ready:
                return
            if ready:
                changed.set()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # One that never began has not closed its request.
        for request in requests:
            await request.aclose()
