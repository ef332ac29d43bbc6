"""Calls that are written in one of two ways after the same delimiter, as by Mistral's older and newer tokenizers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .base import Call, Done, More, Piece, Types
from .headed import HeadedCalls
from .json_calls import EnvelopeAt, JsonCalls

__all__ = ["EitherCalls"]


@dataclass(frozen=True, slots=True)
class EitherCalls:
    """
    The grammar.

    Args:
        objects: One way: objects, of which several may follow one delimiter.
        named: The other way: a name and arguments, with a delimiter before each.
    """

    objects: JsonCalls
    named: HeadedCalls

    @property
    def opens(self) -> tuple[str, ...]:
        """Both begin so."""
        return self.objects.opens

    @property
    def closes(self) -> tuple[str, ...]:
        """As with objects: nothing closes the other."""
        return self.objects.closes

    @property
    def last(self) -> tuple[str, ...]:
        """As with objects."""
        return self.objects.last

    @property
    def bare(self) -> tuple[str, ...]:
        """Nothing."""
        return ()

    @property
    def marks(self) -> tuple[str, ...]:
        """Those of the other way."""
        return self.named.marks

    def head(self, text: str, memo: EnvelopeAt | None, *, follows: bool) -> Call | More | Done | None:
        """See `Grammar`. Only an object may be followed by another without a delimiter."""
        if follows:
            return None if memo is None else self.objects.head(text, memo, follows=True)
        found = self.objects.head(text, memo, follows=False)
        if isinstance(found, Call):
            return found
        other = self.named.head(text, None, follows=False)
        return other if isinstance(other, Call) else found or other

    def arguments(self, state: Any, text: str, types: Types, *, ends: bool) -> Piece:
        """See `Grammar`."""
        return (self.objects if isinstance(state, EnvelopeAt) else self.named).arguments(state, text, types, ends=ends)
