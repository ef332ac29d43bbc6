"""From a failing input to the smallest that still fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

__all__ = ["Steps", "shrink", "shrink_sequence"]

Item = TypeVar("Item")

Steps = tuple[tuple[int, ...], ...]
"""The ids of each step."""


def shrink(steps: Steps, fails: Callable[[Steps], bool], *, keep_first: bool = False) -> Steps:
    """
    Return steps that still fail, with as few ids as taking out runs of them can reach, in as few steps as joining can reach.

    Args:
        steps: What fails.
        fails: Whether other steps fail too.
        keep_first: The first step means something of its own (the prompt), and is joined with nothing.
    """
    while True:
        smaller = _join_steps(_drop_ids(steps, fails), fails, keep_first=keep_first)
        if smaller == steps:
            return steps
        steps = smaller


def _drop_ids(steps: Steps, fails: Callable[[Steps], bool]) -> Steps:
    places = [(step, token_id) for step, ids in enumerate(steps) for token_id in ids]
    return _placed(_drop(places, lambda fewer: fails(_placed(fewer, len(steps)))), len(steps))


def shrink_sequence(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> Sequence[Item]:
    """
    Return items that still fail, with as few as taking out runs of them can reach.

    >>> "".join(shrink_sequence("an input that fails", lambda items: "f" in items and "p" in items))
    'pf'
    """
    while (smaller := _drop(list(items), fails)) != list(items):
        items = smaller
    return items


def _drop(items: list[Item], fails: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """Take out runs of items, long ones first (Zeller's ddmin, complements only)."""
    run = len(items)
    while run:
        begin = 0
        while begin < len(items):
            fewer = items[:begin] + items[begin + run :]
            if fails(fewer):
                items = fewer
            else:
                begin += run
        run //= 2
    return items


def _placed(places: Sequence[tuple[int, int]], count: int) -> Steps:
    steps: list[list[int]] = [[] for _ in range(count)]
    for step, token_id in places:
        steps[step].append(token_id)
    return tuple(map(tuple, steps))


def _join_steps(steps: Steps, fails: Callable[[Steps], bool], *, keep_first: bool) -> Steps:
    """Join neighbouring steps, one pair at a time, as long as one can be joined."""
    for place, (step, after) in enumerate(pairwise(steps)):
        joined = (*steps[:place], step + after, *steps[place + 2 :])
        if (place or not keep_first) and fails(joined):
            return _join_steps(joined, fails, keep_first=keep_first)
    return steps
