"""What counts as a token id: any integer, from Python or numpy; never a bool, a float or a string."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import SupportsIndex

from .errors import TokenTypeError

__all__ = ["as_id", "as_ids", "as_sequence"]


def as_id(value: SupportsIndex, *, where: str = "token_id", position: int | None = None) -> int:
    """Return ``value`` as an int, or raise a `TokenTypeError` that names its place."""
    if type(value) is int:
        return value
    if isinstance(value, bool):
        raise TokenTypeError(value, where=where, position=position)
    try:
        return index(value)
    except (TypeError, ValueError, RuntimeError):  # numpy and torch raise all of these for what holds no single integer
        raise TokenTypeError(value, where=where, position=position) from None


def as_ids(values: Iterable[SupportsIndex], *, where: str = "token_ids") -> list[int]:
    """Return all of ``values`` as ints. Nothing is returned if one of them is none."""
    if type(values) is list and len(values) == 1 and type(values[0]) is int:
        return [values[0]]  # nearly every step of nearly every engine
    sequence = as_sequence(values, where=where)
    if hasattr(sequence, "tolist") and isinstance(listed := sequence.tolist(), list) and set(map(type, listed)) <= {int}:
        # numpy makes Python's integers of its own faster than anybody else.
        return listed
    if set(map(type, sequence)) <= {int}:
        return list(sequence)  # type: ignore[arg-type]  # the line above looked at every one
    return [as_id(value, where=where, position=position) for position, value in enumerate(sequence)]


def as_sequence(values: Iterable[SupportsIndex], *, where: str = "token_ids") -> Sequence[SupportsIndex]:
    """Return ``values`` as something with a length and an order. A string is refused: its characters are no ids."""
    if isinstance(values, (list, tuple)):
        return values
    if isinstance(values, (str, bytes, bytearray, dict)):
        raise TokenTypeError(values, where=where, wants_list=True)
    try:
        if hasattr(values, "__len__") and hasattr(values, "__getitem__"):
            len(values)  # type: ignore[arg-type]  # a numpy array without dimensions has the method, but no length
            return values  # type: ignore[return-value]  # a numpy array, a range: read where it is, not copied
        return list(values)
    except TypeError:
        raise TokenTypeError(values, where=where, wants_list=True) from None
