"""What texts have in common, and growing one without copying it."""

from __future__ import annotations

from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from detok.core.decoding.texts import append, common_prefix


@given(st.lists(st.text("ab", max_size=6), min_size=1, max_size=5))
def test_common_prefix_is_what_all_begin_with(texts: list[str]) -> None:
    """Of one text and of several, in any order; and from an iterator."""
    columns = takewhile(lambda column: len(set(column)) == 1, zip(*texts, strict=False))
    wanted = "".join(column[0] for column in columns)
    assert common_prefix(texts) == common_prefix(iter(texts[::-1])) == wanted


@given(st.lists(st.text(max_size=5), max_size=40))
def test_pieces_stay_few(texts: list[str]) -> None:
    """Growing text piece by piece keeps it, in pieces of falling length."""
    pieces: tuple[str, ...] = ()
    for text in texts:
        pieces = append(pieces, text)
        assert sorted(map(len, pieces), reverse=True) == list(map(len, pieces))
        assert len(pieces) == len(set(map(len, pieces)))
    assert "".join(pieces) == "".join(texts)


def test_character_by_character_there_are_log_n_pieces() -> None:
    """As many as the length has bits that are set."""
    pieces: tuple[str, ...] = ()
    for count in range(1, 300):
        pieces = append(pieces, "a")
        assert len(pieces) == count.bit_count()
    assert append(pieces, "") is pieces
