"""What waits for a slow consumer."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.frontend.pending import Pending


def output(number: int, size: int = 1) -> detok.RequestOutput:
    """An output with so many ids."""
    return detok.RequestOutput(f"{number},", [number] * size)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_all_that_waits_comes_as_one_in_order(sizes: list[int]) -> None:
    """However it was joined on the way."""
    pending = Pending()
    joined = [pending.put(output(number, size)) for number, size in enumerate(sizes)]
    assert joined == [False] + [True] * (len(sizes) - 1)
    found = asyncio.run(pending.get())
    assert found.text == "".join(f"{number}," for number in range(len(sizes)))
    assert found.token_ids == [number for number, size in enumerate(sizes) for _ in range(size)]
    assert len(pending) == 0


def test_pieces_are_few_and_little_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """For 4,096 outputs at most thirteen pieces, and each id is copied no more than thirteen times."""
    copied = 0
    coalesce = detok.RequestOutput.coalesce

    def counting(self: detok.RequestOutput, later: detok.RequestOutput) -> detok.RequestOutput:
        nonlocal copied
        both = coalesce(self, later)
        copied += len(both.token_ids)
        return both

    monkeypatch.setattr(detok.RequestOutput, "coalesce", counting)
    pending = Pending()
    most = 0
    for number in range(4096):
        pending.put(output(number))
        most = max(most, len(pending))
    asyncio.run(pending.get())
    assert most <= 13
    assert copied <= 13 * 4096


def test_consumer_that_waits_is_woken() -> None:
    """Also one that came again after it was cancelled."""

    async def main() -> str:
        pending = Pending()
        for _ in range(2):
            waiting = asyncio.create_task(pending.get())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        waiting = asyncio.create_task(pending.get())
        await asyncio.sleep(0)
        pending.put(output(1))
        pending.put(output(2))
        return (await waiting).text

    assert asyncio.run(main()) == "1,2,"
