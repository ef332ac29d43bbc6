"""Hostile texts are made again from their seed, and have in them all that encoders disagree on."""

from __future__ import annotations

from random import Random

import tokenizers

import detok
from detok.inspection.hostile_texts import HostileTexts

EMBEDDED = detok.load(detok.EMBEDDED)


def test_hostile_text_is_made_again_from_its_seed() -> None:
    """Whatever was made before."""
    hostile = HostileTexts(EMBEDDED)
    texts = [hostile.text(Random(number)) for number in range(50)]
    assert texts == [HostileTexts(EMBEDDED).text(Random(number)) for number in range(50)]
    assert len(set(texts)) > 40


def test_hostile_texts_have_every_kind() -> None:
    """Special tokens whole and nearly, all planes of Unicode, runs, and long texts; never half of a surrogate pair."""
    hostile = HostileTexts(EMBEDDED)
    texts = [hostile.text(Random(number)) for number in range(600)]
    together = "".join(texts)
    for token_id in EMBEDDED.special_ids:
        assert EMBEDDED.token_text(token_id) in together
    assert "<|IM_END|>" in together
    assert {0, 1, 3, 16} <= {ord(character) >> 16 for character in together}
    assert "     " in together
    assert max(map(len, texts)) > 1000
    together.encode()


def test_cuttings_of_real_texts_are_among_them() -> None:
    """Of those that were given."""
    hostile = HostileTexts(EMBEDDED, real=["ⴰⴱⴲⴳ" * 30])
    assert any("ⴰⴱⴲⴳ" in hostile.text(Random(number)) for number in range(50))


def test_vocabulary_without_tokens_has_hostile_texts_too() -> None:
    """Those that need none."""
    hostile = HostileTexts(detok.load(tokenizers.Tokenizer(tokenizers.models.BPE())))
    assert "".join(hostile.text(Random(number)) for number in range(20))
