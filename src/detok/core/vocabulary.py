"""What core needs from a vocabulary: the piece of each id."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class Piece(NamedTuple):
    """One entry of a vocabulary, as ``Piece("Ġthe")`` or ``Piece("<s>", special=True, added=True)``."""

    text: str
    """The surface string, as the tokenizer's own `id_to_token` gives it, before any decoder rule."""

    special: bool = False
    """Whether `skip_special_tokens` leaves it out."""

    added: bool = False
    """Whether it is from the added vocabulary (``added_tokens`` in a tokenizer.json), special or not."""

    data: bytes | None = None
    """The bytes of the piece in a vocabulary of bytes (tiktoken, RWKV), where ``text`` is for display only; else None."""


class Vocabulary(Protocol):
    """
    A table from ids to pieces, possibly with holes. It never changes once a tokenizer has been made of it.

    It may have ``__len__``, the number of its ids: then a decoder allocates its table once instead of growing it.
    """

    def piece(self, token_id: int) -> Piece | None:
        """Return the piece of an id; None for a hole and for any integer outside the table, negative and huge ones too."""

    def ids(self) -> Iterable[int]:
        """Return all ids that have a piece, ascending."""

    def added_ids(self) -> Iterable[int]:
        """Return the ids of the added vocabulary, special or not, ascending."""
