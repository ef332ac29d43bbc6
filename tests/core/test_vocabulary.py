"""What the core asks of a vocabulary is all that a vocabulary needs: a class of three methods makes a decoder."""

from __future__ import annotations

import pytest

import detok
from detok.core.decoding.rules import ByteLevel
from detok.core.vocabulary import Piece, Vocabulary
from tests.support.pieces import Pieces


def test_piece_is_ordinary_by_default() -> None:
    """Text alone."""
    assert Piece("Ġthe") == Piece("Ġthe", special=False, added=False, data=None)
    assert Piece("<s>", special=True, added=True)[1:] == (True, True, None)


def test_vocabulary_with_holes_decodes() -> None:
    """Negative and huge ids, and holes, have no piece."""
    vocabulary: Vocabulary = Pieces("Ġthe", None, Piece("<s>", special=True, added=True), "cat")
    decoder = detok.Decoder(vocabulary, [ByteLevel()])
    assert decoder.decode([0, 1, 2, 3, -1, 1 << 70]) == " thecat"
    assert decoder.decode([0, 2], False) == " the<s>"
    assert decoder.piece(2).special
    for token_id in (1, 4, -1, 1 << 70):
        with pytest.raises(detok.UnknownTokenId, match=f"no id {token_id}$"):
            decoder.piece(token_id)


def test_length_is_only_a_hint() -> None:
    """With it a decoder makes its table in one go; one that is wrong changes nothing."""

    class Sized(Pieces):
        length = 0

        def __len__(self) -> int:
            return self.length

    for length in (0, 2, 50):
        vocabulary = Sized("a", "b", "c", "d")
        vocabulary.length = length
        decoder = detok.Decoder(vocabulary, [ByteLevel()])
        assert decoder.decode([3, 2, 1, 0, 3]) == "dcbad"
