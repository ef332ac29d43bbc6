"""What the loaders share."""

from __future__ import annotations

import pytest

import detok
from detok.tokenizers.reading import ByteVocabulary, byte_piece, library, utf8, with_version


def test_version_of_a_library_that_is_not_there() -> None:
    """Is said, not raised: it names a judge that nobody may ask."""
    assert with_version("no-such-library") == "no-such-library, which is not installed"
    assert with_version("pytest").startswith("pytest ")


def test_library_that_is_not_there_names_the_extra() -> None:
    """By the name of its package."""
    with pytest.raises(detok.MissingExtra, match=r"x needs the library 'no_such'; install it with: pip install 'detok\[odd\]'"):
        library("no_such.module", extra="odd", purpose="x")


@pytest.mark.parametrize("data", [b"", b"a", "é".encode(), b"\xff", b"a\xe3\x81"])
def test_byte_piece_shows_what_is_no_utf8(data: bytes) -> None:
    """Its text is for display, its bytes are exact."""
    piece = byte_piece(data)
    assert piece.data == data
    assert piece.text == data.decode(errors="backslashreplace")


def test_added_token_goes_before_the_token_with_its_bytes() -> None:
    """It may be one of the tokens, and is then special all the same."""
    special = detok.Piece("<s>", special=True, added=True, data=b"<s>")
    vocabulary = ByteVocabulary({1: b"<s>", 2: b"a"}, {1: special, 5: special})
    assert [vocabulary.piece(token_id) for token_id in (0, 1, 2, 5)] == [None, special, byte_piece(b"a"), special]
    assert list(vocabulary.ids()) == [1, 2, 5]
    assert list(vocabulary.added_ids()) == [1, 5]


def test_text_is_a_str_that_utf8_can_spell() -> None:
    """Anything else is refused as an option."""
    assert utf8("é") == "é".encode()
    for text in ("\ud800", b"a", 5):
        with pytest.raises(detok.OptionError, match="lone surrogates"):
            utf8(text)
