"""Event loops without a clock, and threads that work when they are told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

__all__ = ["ManualExecutor", "VirtualLoop", "run_virtual", "settle"]

Result = TypeVar("Result")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its time goes on only if somebody changes `now`."""

    now = 0.0

    def time(self) -> float:
        return self.now


class ManualExecutor(Executor):
    """Does its work piece by piece, in the caller's thread."""

    def __init__(self) -> None:
        self.work: list[tuple[Future[Any], Callable[[], Any]]] = []
        self.closed = False

    def submit(self, function: Callable[..., Result], /, *arguments: Any, **options: Any) -> Future[Result]:
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()
        self.work.append((future, lambda: function(*arguments, **options)))
        return future

    def do(self, place: int = 0) -> None:
        """Do one piece of what is there."""
        future, work = self.work.pop(place)
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.closed = True


async def settle() -> None:
    """Let everything happen that needs no time."""
    for _ in range(12):
        await asyncio.sleep(0)


def run_virtual(work: Callable[[VirtualLoop], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine on a loop of its own."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work(loop))
    finally:
        loop.close()
