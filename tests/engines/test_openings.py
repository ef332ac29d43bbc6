"""Of many that want to begin at once, a few a turn of the loop."""

from __future__ import annotations

import asyncio

from detok.engines.openings import Openings


async def turns_of(openings: Openings, count: int, *, cancelled: int | None = None) -> list[int]:
    """Let many through; return in which turn each of them went on."""
    turn = 0
    found: list[int] = []

    async def one() -> None:
        await openings.turn()
        found.append(turn)

    tasks = [asyncio.create_task(one()) for _ in range(count)]
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        turn += 1
        if cancelled is not None and turn == 1:
            tasks[cancelled].cancel()
    return found


def test_burst_is_spread_over_turns() -> None:
    """No turn has more than its share, and none is left out while somebody waits."""

    async def main() -> None:
        found = await turns_of(Openings(a_turn=4), 21)
        shares = [found.count(turn) for turn in sorted({*found})]
        assert shares == [4, 4, 4, 4, 4, 1]

    asyncio.run(main())


def test_one_that_comes_alone_does_not_wait() -> None:
    """Neither at first nor after a burst."""

    async def main() -> None:
        openings = Openings(a_turn=2)
        await turns_of(openings, 9)
        await asyncio.sleep(0.01)
        before = asyncio.create_task(asyncio.sleep(0))
        await openings.turn()
        assert not before.done()
        await before

    asyncio.run(main())


def test_one_that_comes_late_does_not_overtake() -> None:
    """Those that wait go first, even when a turn has room."""

    async def main() -> None:
        openings, order = Openings(a_turn=1), []

        async def one(name: str) -> None:
            await openings.turn()
            order.append(name)

        tasks = [asyncio.create_task(one(name)) for name in "abc"]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(one("d")))
        await asyncio.gather(*tasks)
        assert order == ["a", "b", "c", "d"]

    asyncio.run(main())


def test_one_that_is_cancelled_takes_no_room() -> None:
    """The next one has its place."""

    async def main() -> None:
        found = await turns_of(Openings(a_turn=2), 7, cancelled=3)
        assert len(found) == 6
        assert max(found.count(turn) for turn in found) == 2

    asyncio.run(main())
