"""What core needs from a vocabulary: the piece of each id."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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

    One that has ``__len__``, the number of its ids, lets a decoder make its table in one go. One that has ``ordinary``, see
    `ordinary_token`, makes the first text of a new tokenizer come in half the time.
    """

    def piece(self, token_id: int) -> Piece | None:
        """Return the piece of an id; None for a hole and for any integer outside the table, negative and huge ones too."""

    def ids(self) -> Iterable[int]:
        """Return all ids that have a piece, ascending."""

    def added_ids(self) -> Iterable[int]:
        """Return the ids of the added vocabulary, special or not, ascending."""


def ordinary_token(vocabulary: Vocabulary) -> Callable[[int], str | bytes | None]:
    """
    Return what gives the token of an id, text or bytes, if it is an ordinary one: neither special nor added, and no hole.

    A vocabulary may have a method of its own for that, ``ordinary``, which need not make a `Piece`.
    """
    own: Callable[[int], str | bytes | None] | None = getattr(vocabulary, "ordinary", None)
    if own is not None:
        return own

    def ordinary(token_id: int) -> str | bytes | None:
        piece = vocabulary.piece(token_id)
        if piece is None or piece.special or piece.added:
            return None
        return piece.text if piece.data is None else piece.data

    return ordinary
