"""Hostile lists are made again from their seed, and have in them all that can hurt."""

from __future__ import annotations

from random import Random

import pytest

import detok
from detok.inspection import hostile_ids
from detok.inspection.hostile import Hostile
from tests.support.handmade import handmade, make

EMBEDDED = detok.load(detok.EMBEDDED)


@pytest.mark.parametrize("length", [0, 1, 7, 300])
def test_hostile_list_is_made_again_from_its_seed(length: int) -> None:
    """The same state of the generator gives the same list, of the length that was asked for."""
    first, again = (hostile_ids(Random("7/3"), EMBEDDED, length) for _ in range(2))
    assert first == again
    assert len(first) == length


def test_hostile_lists_have_every_kind_of_id() -> None:
    """Among a few hundred lists are specials, parts of characters, and integers that no list may be indexed with."""
    met = {token_id for number in range(300) for token_id in hostile_ids(Random(number), EMBEDDED, 20)}
    assert met & EMBEDDED.special_ids
    assert {-1, 1 << 32, 1 << 64} <= met
    assert EMBEDDED.vocab_size in met
    assert any(b"\x80" <= EMBEDDED.token_bytes(token_id)[:1] < b"\xc0" for token_id in met & {*EMBEDDED.ids})


def test_hostile_kinds_are_those_of_the_vocabulary() -> None:
    """What a vocabulary does not have is not made: no byte runs without bytes, no holes in a dense range."""
    assert "runs of bytes" in Hostile(EMBEDDED).kinds
    assert "runs of bytes" in Hostile(handmade("Mistral")[1]).kinds
    plain = Hostile(detok.load(make(None, ("a", "b"), holes=[1]))).kinds
    assert "holes" in plain
    assert not {"runs of bytes", "specials", "added tokens", "U+FFFD in the vocabulary"} & {*plain}


def test_hostile_list_of_an_empty_vocabulary_is_made_of_strangers() -> None:
    """Even without a single token there are ids that hurt."""
    tokenizer = detok.load(make(None, ("a",), holes=range(5)))
    assert len(hostile_ids(Random(0), tokenizer, 50)) == 50
