"""The strategy "decodestream" is the library's `DecodeStream`, driven as vLLM drives it, but for `finish`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

import pytest
import tokenizers
from tokenizers.decoders import DecodeStream

import detok
from detok.inspection import hostile_ids
from detok.inspection.strategies import by_strategy, open_stream
from tests.support.handmade import METASPACE, WORDPIECE, handmade, make
from tests.support.laws import subject
from tests.support.vocabularies import load_tokenizer


def by_vllm(tokenizer: tokenizers.Tokenizer, prompt: Sequence[int], ids: Sequence[int], *, skips: bool) -> list[str]:
    """What vLLM's fast detokenizer sends, step by step: a stream that lives, is primed and recovers."""
    stream = DecodeStream(ids=[token_id for token_id in prompt if 0 <= token_id < 1 << 32], skip_special_tokens=skips)
    sent = []
    for token_id in ids:
        try:
            text = stream.step(tokenizer, token_id)
        except (OverflowError, TypeError):
            text = None
        except Exception as error:
            if not str(error).startswith("Invalid prefix encountered"):
                raise
            stream = DecodeStream(skip_special_tokens=skips)
            text = stream.step(tokenizer, token_id)
        sent.append(text or "")
    return sent


def assert_same(library: tokenizers.Tokenizer, tokenizer: detok.Tokenizer, lists: int) -> None:
    """Step for step, on hostile lists, behind prompts too."""
    for number in range(lists):
        rng = Random(number)
        ids = hostile_ids(rng, tokenizer, rng.randint(0, 20))
        place, skips = rng.choice((0, rng.randint(0, len(ids)))), rng.random() < 0.5
        stream = open_stream(
            tokenizer,
            "decodestream",
            ids[:place],
            skip_special_tokens=skips,
        )
        expected = by_vllm(library, ids[:place], ids[place:], skips=skips)
        assert list(map(stream.step, ids[place:])) == expected, ids


@pytest.mark.parametrize("name", ["ByteLevel", "ByteFallback", "Metaspace", "WordPiece", "CTC", "BPEDecoder", "no decoder"])
def test_steps_are_those_of_the_library(name: str) -> None:
    """Though a stream is made at each step."""
    library, tokenizer = handmade(name)
    assert_same(library, tokenizer, 150)


@pytest.mark.parametrize("name", ["mistral-v1", "minilm"])
def test_steps_are_those_of_the_library_for_real_vocabularies(name: str) -> None:
    """With their specials and holes."""
    assert_same(load_tokenizer(name), subject(name), 150)


def test_an_invalid_prefix_is_recovered_from() -> None:
    """A byte run that turns out broken changes text that is out; the new stream knows only the last id, the rest is lost."""
    tokenizer = detok.load(make({"type": "ByteFallback"}, ["<0xE3>", "<0x81>", "<0x82>", "<0xFF>", "x"]))
    ids = [0, 1, 2, 3, 4]
    assert tokenizer.decode(ids) == "\ufffd\ufffd\ufffd\ufffdx"
    stream = open_stream(tokenizer, "decodestream")
    assert [*map(stream.step, ids), stream.finish()] == ["", "", "あ", "", "x", ""]
    assert not stream.exact


def test_ids_that_the_library_does_not_take_are_swallowed() -> None:
    """As vLLM swallows its OverflowError and TypeError; in a prompt too."""
    tokenizer = handmade("Metaspace")[1]
    stream = open_stream(
        tokenizer,
        "decodestream",
        [-1, 1 << 40, 1],
    )
    assert [*map(stream.step, [-1, 1 << 40, 1 << 70, 999, 1]), stream.finish()] == ["", "", "", "", " a", ""]


def test_finish_gives_what_is_held() -> None:
    """The one difference: vLLM loses it."""
    tokenizer = detok.load(make({"type": "ByteFallback"}, ["<0xC3>", "<0xA9>", "a"]))
    decoder = by_strategy(tokenizer, "decodestream")
    stream = decoder.stream()
    assert [stream.step(2), stream.step(0)] == ["a", ""]
    assert (stream.held, stream.held_because) == ("\ufffd", "the window ends in U+FFFD")
    assert stream.copy().finish() == "\ufffd"
    restored = decoder.restore(json.loads(json.dumps(stream.snapshot())))
    assert [restored.step(1), restored.held, restored.held_because, restored.finish()] == ["é", "", "", ""]
    assert decoder.restore(restored.snapshot()).finished


def test_unknown_ids_are_treated_as_the_options_say() -> None:
    """They give nothing, U+FFFD behind what is held, or an error, also in a prompt."""
    tokenizer = detok.load(make({"type": "ByteFallback"}, ["<0xC3>", "<0xA9>", "a"]))
    stream = open_stream(tokenizer, "decodestream", unknown_ids="replace")
    assert [stream.step(token_id) for token_id in (2, 0, 9, 9, 2)] == ["a", "", "\ufffd\ufffd", "\ufffd", "a"]
    stream = open_stream(
        tokenizer,
        "decodestream",
        [9],
    )
    assert [stream.step(token_id) for token_id in (0, 9, 1)] == ["", "", "é"]
    with pytest.raises(detok.UnknownTokenId):
        open_stream(tokenizer, "decodestream", unknown_ids="error").step(9)
    with pytest.raises(detok.UnknownTokenId):
        open_stream(tokenizer, "decodestream", [2, 9], unknown_ids="error")


def test_neighbouring_added_tokens_have_no_space_between_them() -> None:
    """What vLLM puts in place of the library's text with `spaces_between_special_tokens=False`."""
    tokenizer = detok.load(make(WORDPIECE, ["a", "<x>", "<y>"], special=["<x>", "<y>"]))
    ids = [0, 1, 2, 1, 0]
    assert by_strategy(tokenizer, "decodestream").decode(ids, False) == "a <x> <y> <x> a"
    assert by_strategy(tokenizer, "decodestream").decode(ids, False, spaces_between_special_tokens=False) == "a <x><y><x> a"


def test_other_errors_of_the_library_come_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in vLLM: only the one that is known is recovered from."""

    class Broken:
        """A stream that fails."""

        def __init__(self, **_: object) -> None:
            pass

        def step(self, *_: object) -> str:
            raise RuntimeError("broken")

    monkeypatch.setattr("tokenizers.decoders.DecodeStream", Broken)
    with pytest.raises(RuntimeError, match="broken"):
        open_stream(detok.load(make(METASPACE, ["a"])), "decodestream").step(0)
