"""The queue: bounded, the oldest first, and only equals together."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.prompts.waiting import Request, Waiting


class Answer:
    """As much of a future as a queue looks at."""

    def __init__(self) -> None:
        self.gone = False

    def done(self) -> bool:
        return self.gone


def request(size: int = 1, *, adds: bool = True) -> Request:
    """One that waits."""
    future: asyncio.Future[list[int]] = Answer()  # type: ignore[assignment]  # see there
    return Request(text="x" * size, size=size, add_special_tokens=adds, arrived=0.0, future=future)


def waiting(*requests: Request, max_size: int = 100, max_batch_size: int = 100, max_batch_bytes: int = 100) -> Waiting:
    """A queue with some in it."""
    queue = Waiting(max_size=max_size, max_batch_size=max_batch_size, max_batch_bytes=max_batch_bytes)
    for each in requests:
        queue.add(each)
    return queue


def test_queue_is_bounded() -> None:
    """One more than may wait is refused, with the numbers; who leaves makes room."""
    first, second, third = request(), request(), request()
    queue = waiting(first, second, max_size=2)
    with pytest.raises(detok.EncoderBusy) as caught:
        queue.add(third)
    assert (caught.value.waiting, caught.value.limit, len(queue)) == (2, 2, 2)
    queue.remove([first, first])
    queue.add(third)
    assert queue.clear() == [second, third]
    assert not queue


def test_batch_has_equal_options_oldest_first() -> None:
    """Those with other options keep their place."""
    one, other, two, another = request(), request(adds=False), request(), request(adds=False)
    queue = waiting(one, other, two, another)
    assert queue.batch() == [one, two]
    queue.remove([one, two])
    assert queue.batch() == [other, another]


def test_batch_of_nobody_is_empty() -> None:
    """Nothing waits."""
    assert waiting().batch() == []


def test_batch_is_bounded_in_requests_and_bytes() -> None:
    """At the limit and one over; a text that is too long for company goes alone."""
    requests = [request(5) for _ in range(4)]
    assert waiting(*requests, max_batch_size=2).batch() == requests[:2]
    assert waiting(*requests, max_batch_bytes=15).batch() == requests[:3]
    assert waiting(*requests, max_batch_bytes=14).batch() == requests[:2]
    assert waiting(*requests, max_batch_bytes=4).batch() == requests[:1]


def test_batch_leaves_out_who_has_gone() -> None:
    """They are not encoded, and take no place in the queue."""
    requests = [request() for _ in range(4)]
    queue = waiting(*requests)
    for place in (0, 2):
        requests[place].future.gone = True  # type: ignore[attr-defined]  # an Answer
    assert queue.batch() == [requests[1], requests[3]]
    assert len(queue) == 2


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=30), st.integers(1, 5), st.integers(1, 20))
def test_batches_take_everybody_in_order(sizes: list[tuple[int, bool]], most: int, most_bytes: int) -> None:
    """Whatever waits goes once, within the limits, and among those with equal options in the order of arrival."""
    requests = [request(size, adds=adds) for size, adds in sizes]
    queue = waiting(*requests, max_batch_size=most, max_batch_bytes=most_bytes)
    gone: list[Request] = []
    while queue:
        oldest = next(each for each in requests if each not in gone)
        batch = queue.batch()
        assert batch[0] is oldest
        assert len(batch) <= most
        assert len(batch) == 1 or sum(each.size for each in batch) <= most_bytes
        assert len({each.add_special_tokens for each in batch}) == 1
        queue.remove(batch)
        gone += batch
    for adds in (True, False):
        assert [each for each in gone if each.add_special_tokens == adds] == [
            each for each in requests if each.add_special_tokens == adds
        ]
    assert len(gone) == len(requests)
