"""What the core asks of a vocabulary: the piece of an id."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class Piece(NamedTuple):
    """One entry of a vocabulary, as ``Piece("Ġthe")`` or ``Piece("<s>", special=True, added=True)``."""

    text: str
    """The surface string, as the tokenizer's own `id_to_token` gives it, before any decoder rule."""

    special: bool = False
    """Left out when `skip_special_tokens` is on."""

    added: bool = False
    """From the added vocabulary, special or not."""

    data: bytes | None = None
    """In a vocabulary of bytes: the bytes of the piece; ``text`` is then for display only."""


class Vocabulary(Protocol):
    """
    A table from ids to pieces, possibly with holes. It never changes once a tokenizer has been made of it.

    One that has ``__len__``, the number of its ids, lets a decoder make its table in one go.
    """

    def piece(self, token_id: int) -> Piece | None:
        """Return the piece of an id; None for a hole and for any integer outside the table, negative and huge ones too."""

    def ids(self) -> Iterable[int]:
        """Return all ids that have a piece, ascending."""

    def added_ids(self) -> Iterable[int]:
        """Return the ids of the added vocabulary, special or not, ascending."""
