"""
What a request should say, written for reading: one character at a time, from the one-shot decode of every beginning of the ids.

It knows nothing of streams: which token a character belongs to is found by decoding the ids up to each token.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True)
class Expected:
    """The outcome of a request."""

    text: str
    token_ids: list[int]
    finish_reason: str
    stop_reason: str | int | None
    tiles: list[str]
    """For each kept token, its part of the text."""


def owners(decode: Decode, ids: Sequence[int]) -> list[int]:
    """
    For each character of the text, the token (from 1) that it belongs to.

    It is the first after which the text, had it ended there, would have had it, and since which it would always have been that
    long: it may have come, gone, and come again.
    """
    whole = decode(ids)
    beginnings = [decode(ids[: count + 1]) for count in range(len(ids))]
    found = []
    for place in range(len(whole)):
        gone = max((count for count, text in enumerate(beginnings, 1) if len(text) <= place), default=0)
        having = (count for count, text in enumerate(beginnings, 1) if count > gone and text[: place + 1] == whole[: place + 1])
        found.append(next(having))
    return found


def expected(
    decode: Decode,
    ids: Sequence[int],
    *,
    stop: Sequence[str] = (),
    ends: Collection[int] = (),
    explicit: Collection[int] = (),
    include: bool = False,
    min_tokens: int = 0,
    max_tokens: int | None = None,
    finish_reason: str = "length",
) -> Expected:
    """
    Return what a request for these ids comes to. Its terminators are left out of the text, so `include` is for strings alone.

    Args:
        decode: The one-shot decode.
        ends: Ids that end it, `explicit` ones among them.
        explicit: Those of them that are a `stop_reason`.
        finish_reason: Of the engine, behind the last id.
    """
    given = list(ids if max_tokens is None else ids[:max_tokens])
    stop_reason: str | int | None = None
    if max_tokens is not None and len(ids) >= max_tokens:
        finish_reason = "length"
    terminator = next((place for place, token in enumerate(given) if token in ends and place >= min_tokens), None)
    spoken = given
    if terminator is not None:
        spoken, given = given[:terminator], given[: terminator + 1]
        finish_reason, stop_reason = "stop", given[-1] if given[-1] in explicit else None
    text, owner = decode(spoken), owners(decode, spoken)
    end = len(text)
    found = _first_stop(text, owner, stop, min_tokens)
    if found is not None:
        (place, which), finish_reason, stop_reason = found, "stop", found[1]
        given = given[: owner[place - 1]]
        end = place if include else place - len(which)
    tiles = ["".join(text[i] for i in range(end) if owner[i] == count) for count in range(1, len(given) + 1)]
    return Expected(text[:end], given, finish_reason, stop_reason, tiles)


def _first_stop(text: str, owner: Sequence[int], stop: Sequence[str], min_tokens: int) -> tuple[int, str] | None:
    """The first character behind which the text ends in a stop, and that stop."""
    for place in range(1, len(text) + 1):
        if owner[place - 1] > min_tokens:
            for which in stop:
                if text[:place].endswith(which):
                    return place, which
    return None
