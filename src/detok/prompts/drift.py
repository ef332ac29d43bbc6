"""
Drift: a text that a model wrote, encoded again, need not be the ids that it wrote.

A model may split a word in another way than the encoder does. Whoever sends the text of a conversation back sends other ids then:
the server's cache of the prefix ends at the first of them, and a trainer learns from ids that nobody sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, SupportsIndex

from ..errors import OptionError, UnknownTokenId
from ..ids import as_ids

__all__ = ["DEFAULT_BLOCK_SIZE", "Drift", "DriftPlace", "RoundTrip", "check_block_size", "drift_of", "roundtrips"]

DEFAULT_BLOCK_SIZE = 16
"""Tokens in a block of a prefix cache, as vLLM has them."""

MAX_PLACES = 100
"""So many places are described; the others are only counted."""

CONTEXT = 24
"""So many characters in front of a place are shown."""


class RoundTrip(Protocol):
    """A tokenizer, as far as drift needs it."""

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]: ...
    def decode(self, ids: Iterable[SupportsIndex], skip_special_tokens: bool = True) -> str: ...
    def token_bytes(self, token_id: SupportsIndex) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftPlace:
    """One stretch of a conversation that is encoded again to other ids."""

    position: int
    """Index of its first id."""

    ids: tuple[int, ...]
    """What stands there."""

    reencoded: tuple[int, ...]
    """What comes instead."""

    text: str
    """What its ids spell."""

    before: str
    """A few characters in front of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What encoding the text of a conversation again makes of its ids."""

    tokens: int
    reencoded_tokens: int
    first: int | None
    """Index of the first id that differs; None if all are the same."""

    count: int
    """In so many places."""

    places: tuple[DriftPlace, ...]
    """The first of them."""

    block_size: int
    lost_tokens: int
    """So many tokens in whole blocks of a prefix cache a client loses that sends text instead of ids."""

    def __bool__(self) -> bool:
        return self.first is not None

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)


def drift_of(
    tokenizer: RoundTrip,
    ids: Iterable[SupportsIndex],
    *,
    block_size: int = DEFAULT_BLOCK_SIZE,
    encode: Callable[[str], list[int]] | None = None,
) -> Drift:
    """
    Compare ids with those of their own text, special tokens and all. Time is linear in their number.

    Args:
        tokenizer: Decodes, and encodes.
        ids: What a model wrote, and was given.
        block_size: Tokens in a block of the prefix cache.
        encode: Encodes a text in which special tokens are spelled, and adds none; by default the tokenizer's own ``encode``.

    Raises:
        TokenTypeError: They are no ids.
        OptionError: There is no such block size.
    """
    check_block_size(block_size)
    kept = as_ids(ids)
    text = tokenizer.decode(kept, skip_special_tokens=False)
    again = tokenizer.encode(text, add_special_tokens=False) if encode is None else encode(text)
    same = 0
    for one, other in zip(kept, again, strict=False):
        if one != other:
            break
        same += 1
    drifts = kept != again
    count = 0
    places: list[DriftPlace] = []
    for begin, end, other_begin, other_end in _stretches(tokenizer, kept, again, same) if drifts else ():
        count += 1
        if count <= MAX_PLACES:
            here = kept[begin:end]
            places.append(
                DriftPlace(
                    position=begin,
                    ids=tuple(here),
                    reencoded=tuple(again[other_begin:other_end]),
                    text=_text(tokenizer, here),
                    before=_text(tokenizer, kept[max(0, begin - CONTEXT) : begin])[-CONTEXT:],
                )
            )
    return Drift(
        tokens=len(kept),
        reencoded_tokens=len(again),
        first=same if drifts else None,
        count=count,
        places=tuple(places),
        block_size=block_size,
        lost_tokens=(len(kept) // block_size - same // block_size) * block_size,
    )


def roundtrips(tokenizer: RoundTrip, ids: Iterable[SupportsIndex], *, encode: Callable[[str], list[int]] | None = None) -> bool:
    """
    Whether the text of some ids, encoded again, is these ids. Arguments as `drift_of`.

    Raises:
        TokenTypeError: They are no ids.
    """
    kept = as_ids(ids)
    text = tokenizer.decode(kept, skip_special_tokens=False)
    return kept == (tokenizer.encode(text, add_special_tokens=False) if encode is None else encode(text))


def check_block_size(block_size: object) -> None:
    """
    Refuse a block that cannot be.

    Raises:
        OptionError: It is no positive integer.
    """
    if type(block_size) is not int or block_size < 1:
        raise OptionError(option="block_size", value=block_size, accepted="it is a number of tokens, 1 or more")


def _stretches(tokenizer: RoundTrip, kept: Sequence[int], again: Sequence[int], same: int) -> Iterator[tuple[int, int, int, int]]:
    """
    Give the borders, in both lists, of what differs between two places at which both have spelled as many bytes.

    Where the text itself differs, because a decode or an encode changed it, there may be no such place before the common end.
    """
    end, other_end = len(kept), len(again)
    while min(end, other_end) > same and kept[end - 1] == again[other_end - 1]:
        end, other_end = end - 1, other_end - 1
    here, there = same, same
    begin, other_begin = here, there
    while here < end or there < other_end:
        start, other_start = here, there
        here, there = _level(tokenizer, kept, again, (here, end), (there, other_end))
        if kept[start:here] == again[other_start:there]:
            if begin < start:
                yield begin, start, other_begin, other_start
            begin, other_begin = here, there
    if begin < end or other_begin < other_end:
        yield begin, end, other_begin, other_end


def _level(
    tokenizer: RoundTrip, kept: Sequence[int], again: Sequence[int], one: tuple[int, int], other: tuple[int, int]
) -> tuple[int, int]:
    """Return the next places at which both lists have spelled as many bytes since these; else their ends."""
    (here, end), (there, other_end) = one, other
    ahead = 0  # bytes by which the first list is ahead of the second
    while here < end or there < other_end:
        if there == other_end or (here < end and ahead <= 0):
            ahead += _size(tokenizer, kept[here])
            here += 1
        else:
            ahead -= _size(tokenizer, again[there])
            there += 1
        if not ahead and there > other[0]:
            break
    return here, there


def _size(tokenizer: RoundTrip, token_id: int) -> int:
    return len(_bytes(tokenizer, token_id))


def _bytes(tokenizer: RoundTrip, token_id: int) -> bytes:
    try:
        return tokenizer.token_bytes(token_id)
    except UnknownTokenId:
        return b""


def _text(tokenizer: RoundTrip, ids: Sequence[int]) -> str:
    return b"".join(_bytes(tokenizer, token_id) for token_id in ids).decode(errors="replace")
