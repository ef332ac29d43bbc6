"""`Openings`: of many that want to begin at once, a few a turn of the event loop, so that what runs already is not held up."""

from __future__ import annotations

import asyncio
from collections import deque

__all__ = ["OPENINGS_A_TURN", "Openings"]

# A request to an engine takes 0.2 to 0.3 ms of the processor until it is written: a turn of these takes 2 to 3 ms.
OPENINGS_A_TURN = 8


class Openings:
    """
    A gate that lets so many through in each turn of the event loop, in the order in which they came. It belongs to one loop.

    >>> async def example():
    ...     openings, through = Openings(a_turn=2), []
    ...     async def one(number):
    ...         await openings.turn()
    ...         through.append(number)
    ...     tasks = [asyncio.create_task(one(number)) for number in range(5)]
    ...     await asyncio.sleep(0)
    ...     print(through)
    ...     await asyncio.wait(tasks)
    ...     print(through)
    >>> asyncio.run(example())
    [0, 1]
    [0, 1, 2, 3, 4]
    """

    def __init__(self, *, a_turn: int = OPENINGS_A_TURN) -> None:
        self._a_turn = a_turn
        self._left = a_turn
        """How many more may go through in this turn."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._counts = False
        """Whether the next turn is waited for, so that it counts anew."""

    async def turn(self) -> None:
        """Go on now, if this turn has room and nobody waits; else in a later turn."""
        loop = asyncio.get_running_loop()
        if not self._counts:
            self._counts = True
            loop.call_soon(self._next, loop)
        if self._left and not self._waiting:
            self._left -= 1
            return
        future = loop.create_future()
        self._waiting.append(future)
        await future

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a turn."""
        self._left = self._a_turn
        while self._left and self._waiting:
            future = self._waiting.popleft()
            # One that was cancelled goes on, too, and takes no room.
            if not future.done():
                future.set_result(None)
                self._left -= 1
        self._counts = self._left < self._a_turn
        if self._counts:
            loop.call_soon(self._next, loop)
