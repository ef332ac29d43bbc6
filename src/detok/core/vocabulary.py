"""What the core asks of a vocabulary: the piece that stands behind an id."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Piece", "Vocabulary"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One entry of a vocabulary."""

    text: str
    """The surface string, as the tokenizer's own `id_to_token` gives it, before any decoder rule."""

    special: bool = False
    """Left out when `skip_special_tokens` is on."""

    added: bool = False
    """From the added vocabulary, special or not."""

    data: bytes | None = None
    """For vocabularies of bytes: what the piece is; ``text`` is then for display only."""


class Vocabulary(Protocol):
    """A table from ids to pieces, possibly with holes. It never changes once a tokenizer has been made of it."""

    def piece(self, token_id: int) -> Piece | None:
        """The piece behind ``token_id``; None for a hole and for any integer outside the table, negative and huge ones too."""
        ...

    def ids(self) -> Iterable[int]:
        """All ids that have a piece, ascending."""
        ...

    def added_ids(self) -> Iterable[int]:
        """The ids of the added vocabulary, special or not, ascending."""
        ...
