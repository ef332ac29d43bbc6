"""Drift: where a text encoded again is not the ids that were sampled, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.data import sample, sample_names
from detok.prompts.drift import MAX_PLACES, drift_of, roundtrips

EMBEDDED = detok.load(detok.EMBEDDED)
SAMPLES = [EMBEDDED.encode(sample(name), add_special_tokens=False) for name in sample_names()]


def spelled(text: str) -> list[int]:
    """A text in tokens of one byte, as no encoder splits it but a model may."""
    table = {EMBEDDED.token_bytes(token_id): token_id for token_id in EMBEDDED.ids if token_id not in EMBEDDED.added_ids}
    return [table[bytes([byte])] for byte in text.encode()]


def encoded(text: str) -> list[int]:
    """Its ids, without special tokens."""
    return EMBEDDED.encode(text, add_special_tokens=False)


def test_what_the_encoder_wrote_does_not_drift() -> None:
    """Nothing differs, nothing is lost."""
    for ids in SAMPLES:
        drift = drift_of(EMBEDDED, ids)
        assert not drift
        assert (drift.first, drift.count, drift.places, drift.lost_tokens) == (None, 0, (), 0)
        assert drift.tokens == drift.reencoded_tokens == len(ids)
        assert roundtrips(EMBEDDED, ids)
        assert EMBEDDED.roundtrips(ids)


def test_word_that_a_model_splits_in_its_own_way_is_found() -> None:
    """The place, both ways to split it, its text, what stands before it; one place for one word."""
    before, after = encoded("He said:"), encoded(" are you?")
    ids = before + spelled(" how") + after
    drift = drift_of(EMBEDDED, ids, block_size=2)
    (place,) = drift.places
    assert drift.first == place.position == len(before)
    assert place.ids == tuple(spelled(" how"))
    assert list(place.reencoded) == encoded(" how")
    assert (place.text, place.before) == (" how", "He said:")
    assert drift.reencoded_tokens == len(before) + len(encoded(" how")) + len(after)
    assert not EMBEDDED.roundtrips(ids)


@pytest.mark.parametrize("block_size", [1, 2, 3, 16, 1000])
def test_lost_tokens_are_those_of_whole_blocks_behind_the_first_difference(block_size: int) -> None:
    """A cache holds whole blocks; those in front of the block with the difference are still good."""
    before = SAMPLES[0][:100]
    ids = before + spelled("hello") + SAMPLES[1][:100]
    drift = drift_of(EMBEDDED, ids, block_size=block_size)
    assert drift.first is not None
    whole_blocks, good_blocks = len(ids) // block_size, drift.first // block_size
    assert drift.lost_tokens == (whole_blocks - good_blocks) * block_size
    assert drift.lost_tokens <= len(ids)


def test_places_apart_are_told_apart() -> None:
    """Two words in one conversation, with a sentence that is the same between them."""
    ids = encoded("One") + spelled(" how") + encoded(" there. Good") + spelled(" are") + encoded(", all.")
    drift = drift_of(EMBEDDED, ids)
    assert [place.text for place in drift.places] == [" how", " are"]
    assert drift.count == 2


def test_many_places_are_counted_and_the_first_described() -> None:
    """The description stays small."""
    ids = (spelled(" hello") + encoded(" there.")) * (MAX_PLACES + 5)
    drift = drift_of(EMBEDDED, ids)
    assert (drift.count, len(drift.places)) == (MAX_PLACES + 5, MAX_PLACES)


def test_special_tokens_and_unknown_ids_are_ids_like_others() -> None:
    """Special tokens come back from their text; an id that the vocabulary does not have leaves no text, and is lost."""
    special = sorted(EMBEDDED.special_ids)
    ids = [*special, *encoded("a b"), *special]
    assert not drift_of(EMBEDDED, ids)
    drift = drift_of(EMBEDDED, [*ids, 10**9, *encoded(" c")])
    (place,) = drift.places
    assert (drift.first, place.ids, place.reencoded) == (len(ids), (10**9,), ())


def test_bytes_that_are_no_text_drift() -> None:
    """Half a character becomes U+FFFD, which is encoded as what it is."""
    half = [token_id for token_id in EMBEDDED.ids if EMBEDDED.token_bytes(token_id) == b"\xf0"]
    drift = drift_of(EMBEDDED, [*encoded("ab"), *half])
    assert drift.first == len(encoded("ab"))
    assert drift.places[0].ids == tuple(half)
    assert list(drift.places[0].reencoded) == encoded("\ufffd")


def test_normaliser_that_changes_the_text_drifts_in_one_place() -> None:
    """Where lengths differ the lists meet again at their common end."""

    class Lower:
        """Encodes letters of lower case, and B as three letters."""

        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            return list(map(ord, text.replace("B", "bbb").lower()))

        def decode(self, ids: Iterable[Any], skip_special_tokens: bool = True) -> str:
            return "".join(map(chr, ids))

        def token_bytes(self, token_id: Any) -> bytes:
            return chr(token_id).encode()

    drift = drift_of(Lower(), list(map(ord, "xxAyyBzz")))
    assert drift.first == 2
    assert [(place.text, "".join(map(chr, place.reencoded))) for place in drift.places] == [("A", "a"), ("B", "bbb")]


@pytest.mark.parametrize("block_size", [0, -1, 1.0, True, None])
def test_block_size_that_cannot_be_is_named(block_size: Any) -> None:
    """Before anything is encoded."""
    with pytest.raises(detok.OptionError, match=r"^block_size="):
        drift_of(EMBEDDED, [1], block_size=block_size)


@pytest.mark.parametrize("ids", [["a"], "abc", [1.5], 7])
def test_what_are_no_ids_is_named(ids: Any) -> None:
    """By both."""
    with pytest.raises(detok.TokenTypeError):
        drift_of(EMBEDDED, ids)
    with pytest.raises(detok.TokenTypeError):
        EMBEDDED.roundtrips(ids)


@given(st.lists(st.sampled_from([*range(300), *sorted(EMBEDDED.added_ids), 3000, 4000, 5000]), max_size=40), st.integers(1, 5))
def test_places_explain_the_whole_difference(ids: Sequence[int], block_size: int) -> None:
    """Whatever a model writes: putting at each place what comes instead gives the ids of the text, and nothing else differs."""
    drift = drift_of(EMBEDDED, ids, block_size=block_size)
    again = EMBEDDED.encode(EMBEDDED.decode(ids, skip_special_tokens=False), add_special_tokens=False)
    mended = list(ids)
    for place in reversed(drift.places):
        assert tuple(mended[place.position : place.position + len(place.ids)]) == place.ids
        mended[place.position : place.position + len(place.ids)] = place.reencoded
    assert mended == again
    assert bool(drift) == (list(ids) != again) == bool(drift.count)
    assert EMBEDDED.roundtrips(ids) == (not drift)
    assert drift.first is None or drift.first == drift.places[0].position
