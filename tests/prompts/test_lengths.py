"""Prompts that are too long are refused before the work, or cut as asked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.prompts.lengths import DEFAULT_MAX_CHARACTERS, Frame, LengthLimits, Truncation, frame_of
from tests.support.handmade import BYTE_LEVEL, byte_level_tokens, make
from tests.support.vocabularies import load_tokenizer, real_tokenizer


class Framed:
    """Encodes to code points, with special tokens around."""

    def __init__(self, before: int, after: int) -> None:
        self.before, self.after = [-1] * before, [-2] * after

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        ids = list(map(ord, text))
        return [*self.before, *ids, *self.after] if add_special_tokens else ids


@pytest.mark.parametrize("before", range(3))
@pytest.mark.parametrize("after", range(3))
def test_frame_is_what_stands_around_any_text(before: int, after: int) -> None:
    """BOS, EOS, both, several, or none."""
    assert frame_of(Framed(before, after)) == Frame(before, after)


def test_frame_of_real_tokenizers() -> None:
    """Mistral puts BOS in front, BERT [CLS] and [SEP] around; one without a template nothing."""
    assert frame_of(real_tokenizer("mistral-v1")) == Frame(1, 0)
    assert frame_of(real_tokenizer("minilm")) == Frame(1, 1)
    assert frame_of(detok.load(make(BYTE_LEVEL, byte_level_tokens(b"a")))) == Frame(0, 0)


def test_frame_of_what_changes_the_text_is_nothing() -> None:
    """An encoder that does more than to add is not understood, and nothing is kept."""

    class Odd(Framed):
        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            return [7, 8] if add_special_tokens else [9]

    assert frame_of(Odd(0, 0)) == Frame()


@given(st.integers(0, 12), st.integers(1, 14), st.integers(0, 2), st.integers(0, 2), st.sampled_from(["left", "right"]))
def test_cut_keeps_the_frame_and_the_wanted_end(length: int, tokens: int, before: int, after: int, side: Any) -> None:
    """So many ids are left; the special tokens around are the same, and between them is the end that was not cut."""
    frame = Frame(before, after)
    ids = [-1] * before + list(range(length)) + [-2] * after
    if tokens < before + after and len(ids) > tokens:
        with pytest.raises(detok.OptionError, match="special tokens around"):
            Truncation(tokens, side).cut(ids, frame)
        return
    cut = Truncation(tokens, side).cut(list(ids), frame)
    kept = min(length, tokens - before - after)
    body = list(range(length))[length - kept :] if side == "left" else list(range(length))[:kept]
    assert cut == [-1] * before + body + [-2] * after


@pytest.mark.parametrize(
    ("tokens", "side", "named"),
    [(0, "left", "truncate_prompt_tokens"), (True, "left", "truncate"), (5, "top", "truncation_side")],
)
def test_truncation_that_cannot_be_is_named(tokens: Any, side: Any, named: str) -> None:
    """Before anything is encoded."""
    with pytest.raises(detok.OptionError, match=f"^{named}"):
        Truncation(tokens, side)


def test_limits_at_and_one_over() -> None:
    """Characters of the text, tokens of the ids."""
    limits = LengthLimits(max_characters=3, max_tokens=2)
    limits.check_text("abc")
    limits.check_ids([1, 2])
    with pytest.raises(detok.PromptTooLong, match=r"4 characters, and 3 are allowed"):
        limits.check_text("abcd")
    with pytest.raises(detok.PromptTooLong, match=r"3 tokens, and 2 are allowed; .*truncate_prompt_tokens"):
        limits.check_ids([1, 2, 3])


def test_limits_by_default_follow_the_tokens() -> None:
    """No token has more than 256 characters, so that a text that cannot fit is refused by its length alone."""
    assert LengthLimits().max_characters == DEFAULT_MAX_CHARACTERS
    assert LengthLimits(max_tokens=10).max_characters == 2560


@pytest.mark.parametrize("name", ["llama3", "gptoss", "qwen3", "gemma3", "deepseek-v3"])
def test_no_token_is_longer_than_the_limits_say(name: str) -> None:
    """On which the default for characters stands. A token is written with a character for each byte, or fewer."""
    assert max(map(len, load_tokenizer(name).get_vocab())) <= 256


@pytest.mark.parametrize("values", [{"max_characters": 0}, {"max_tokens": -1}, {"max_tokens": 2.0}, {"max_characters": True}])
def test_limits_that_cannot_be_are_named(values: dict[str, Any]) -> None:
    """Each a number, 1 or more."""
    with pytest.raises(detok.OptionError, match=f"^{next(iter(values))}="):
        LengthLimits(**values)


@pytest.mark.parametrize("text", [None, b"x", 5])
def test_limits_refuse_what_is_no_text(text: Any) -> None:
    """Before its length is asked for."""
    with pytest.raises(detok.OptionError, match=r"^text="):
        LengthLimits().check_text(text)
