"""A vocabulary written down in a test, for a `Decoder` without a file."""

from __future__ import annotations

from collections.abc import Iterable

from detok.core.vocabulary import Piece


class Pieces:
    """
    Pieces by place.

    Args:
        pieces: A piece; a text or bytes for an ordinary one; None for a hole.
    """

    def __init__(self, *pieces: Piece | str | bytes | None) -> None:
        self.pieces = [
            Piece(piece) if isinstance(piece, str) else Piece("", data=piece) if isinstance(piece, bytes) else piece
            for piece in pieces
        ]

    def piece(self, token_id: int) -> Piece | None:
        """The piece in a place."""
        return self.pieces[token_id] if 0 <= token_id < len(self.pieces) else None

    def ids(self) -> Iterable[int]:
        """The places that are no holes."""
        return [token_id for token_id, piece in enumerate(self.pieces) if piece is not None]

    def added_ids(self) -> Iterable[int]:
        """The places of added pieces."""
        return [token_id for token_id, piece in enumerate(self.pieces) if piece is not None and piece.added]


class SizedPieces(Pieces):
    """The same with a length, as the vocabularies of ``tokenizers`` have one."""

    def __len__(self) -> int:
        return len(self.pieces)
