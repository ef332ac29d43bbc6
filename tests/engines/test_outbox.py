"""Outputs wait for one consumer, and no more of them than there is room for."""

from __future__ import annotations

import asyncio

from detok.engines.base import EngineOutput
from detok.engines.outbox import Outbox


def output(name: str, token_id: int) -> EngineOutput:
    """An output."""
    return EngineOutput(request_id=name, token_ids=[token_id])


def test_consumer_takes_all_that_waits_at_once() -> None:
    """What comes while it is busy is its next batch."""

    async def main() -> None:
        outbox = Outbox()
        batches = outbox.batches()
        outbox.add(output("a", 1))
        assert await anext(batches) == [output("a", 1)]
        later = asyncio.ensure_future(anext(batches))
        await asyncio.sleep(0)
        assert not later.done()
        outbox.add(output("a", 2))
        outbox.add(output("b", 3))
        assert await later == [output("a", 2), output("b", 3)]

    asyncio.run(main())


def test_room_is_made_by_taking_or_forgetting() -> None:
    """Who brings more than there is room for waits."""

    async def main() -> None:
        outbox = Outbox(max_waiting=2)
        outbox.add(output("a", 1))
        await outbox.room()
        outbox.add(output("b", 2))
        full = asyncio.ensure_future(outbox.room())
        await asyncio.sleep(0)
        assert not full.done()
        outbox.forget({"a"})
        await full
        outbox.add(output("b", 3))
        full = asyncio.ensure_future(outbox.room())
        await asyncio.sleep(0)
        assert not full.done()
        assert await anext(outbox.batches()) == [output("b", 2), output("b", 3)]
        await full

    asyncio.run(main())


def test_forgotten_outputs_wake_nobody_with_nothing() -> None:
    """A batch is never empty."""

    async def main() -> None:
        outbox = Outbox()
        outbox.add(output("a", 1))
        outbox.forget({"a"})
        batch = asyncio.ensure_future(anext(outbox.batches()))
        await asyncio.sleep(0)
        outbox.add(output("b", 2))
        assert await batch == [output("b", 2)]

    asyncio.run(main())


def test_closed_outbox_gives_what_waits_and_ends() -> None:
    """Also to one who waits already."""

    async def main() -> None:
        outbox = Outbox()
        consumer = asyncio.ensure_future(_all(outbox))
        await asyncio.sleep(0)
        outbox.add(output("a", 1))
        outbox.close()
        assert await consumer == [[output("a", 1)]]
        assert await _all(outbox) == []

    asyncio.run(main())


async def _all(outbox: Outbox) -> list[list[EngineOutput]]:
    return [batch async for batch in outbox.batches()]
