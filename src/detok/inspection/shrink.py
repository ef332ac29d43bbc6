"""From a failing input to the smallest that still fails."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

__all__ = ["Steps", "shrink"]

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
    """Take out runs of ids, long ones first (Zeller's ddmin, complements only)."""
    places = [(step, token_id) for step, ids in enumerate(steps) for token_id in ids]
    run = len(places)
    while run:
        begin = 0
        while begin < len(places):
            fewer = places[:begin] + places[begin + run :]
            if fails(_placed(fewer, len(steps))):
                places = fewer
            else:
                begin += run
        run //= 2
    return _placed(places, len(steps))


def _placed(places: list[tuple[int, int]], count: int) -> Steps:
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
