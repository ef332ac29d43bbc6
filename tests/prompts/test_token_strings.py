"""Tokens of a prompt: their texts, their bytes, where they stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.prompts.token_strings import Token, places
from detok.tokenizers import Tokenizer
from tests.prompts.support import EMBEDDED, real_tokenizer
from tests.support.vocabularies import real

EXACT = ("llama3", "gemma3", "qwen3", "gptoss", "deepseek-v3", "mistral-v1", "gpt-neox", "cl100k")
"""Vocabularies whose bytes are those of the text, as long as it is in normal form."""


def assert_tiles(tokenizer: Tokenizer, text: str) -> None:
    """The places are in order and leave nothing out; the text of a token is that of its place, if it has whole characters."""
    end = 0
    for token in tokenizer.tokenize(text):
        assert token.start is not None
        assert token.end is not None
        assert token.start <= token.end
        assert token.start in (end, end - 1)  # one character may be in several tokens
        if "\ufffd" not in token.text and "\ufffd" not in text and token.start < token.end:
            assert token.text.lstrip(" ") == text[token.start : token.end].lstrip(" ")
            assert token.bytes.decode() == token.text
        end = token.end
    assert end == len(text)


@pytest.mark.parametrize("name", EXACT)
def test_places_tile_the_text(name: str) -> None:
    """Over every real vocabulary of bytes, whatever is added around the text."""
    for text in ("Hi there", "Zoë  naïve 🦜", " a", "  a\n\n b", "日本 ဗမာ 👩‍🚀", "\t if x:\n\n\n", "x", ""):
        assert_tiles(real_tokenizer(name), text)


@given(st.text(max_size=20))
def test_places_tile_any_text(text: str) -> None:
    """A byte-level vocabulary has every text."""
    assert_tiles(EMBEDDED, text)


def test_markers_of_spaces_are_spaces() -> None:
    """``Ġ`` and ``▁`` are how vocabularies spell it."""
    assert [token.text for token in real_tokenizer("llama3").tokenize("a b")] == ["a", " b"]
    mistral = real_tokenizer("mistral-v1").tokenize("a b")
    assert [(token.text, token.special, token.start, token.end) for token in mistral] == [
        ("<s>", True, 0, 0),
        (" a", False, 0, 1),  # the space is the tokenizer's own, and not in the text
        (" b", False, 1, 3),
    ]


def test_tokens_around_the_text_have_no_place() -> None:
    """In front and behind."""
    tokens = real_tokenizer("minilm").tokenize("Zoë naïve!")
    assert [(token.text, token.start, token.end) for token in (tokens[0], tokens[-1])] == [("[CLS]", 0, 0), ("[SEP]", 10, 10)]
    assert [("Zoë naïve!"[token.start : token.end]) for token in tokens[1:-1]] == ["Zoë", "naïve", "!"]


def test_special_tokens_in_the_text_have_theirs() -> None:
    """They are read, and stand where they are spelled."""
    tokens = EMBEDDED.tokenize("a<|im_end|>b")
    assert [(token.text, token.special, token.start, token.end) for token in tokens] == [
        ("a", False, 0, 1),
        ("<|im_end|>", True, 1, 11),
        ("b", False, 11, 12),
    ]


def test_normalised_text_has_the_library_s_places() -> None:
    """SentencePiece with characters that it does not know."""
    tokenizer = detok.load(real("sentencepiece") / "botchan_en_unigram_1000.model")
    text = "Zoë  日本 don't"
    found = [(token.start, token.end) for token in tokenizer.tokenize(text)]
    assert found[:2] == [(0, 0), (0, 0)]
    assert [text[start:end] for start, end in found[2:]] == ["Z", "o", "ë", "  ", "日本", " don", "'", "t"]


def test_mask_of_a_text_that_is_changed_is_refused_or_by_the_library() -> None:
    """Where nobody knows, there is no mask."""
    template = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %} x{% endfor %}"
    chat = [{"role": "assistant", "content": "Zoë"}]
    _, mask = real_tokenizer("minilm").encode_chat_with_mask(chat, chat_template=template)
    assert mask == [1, 0]
    tokenizer = detok.load(real("minilm"))
    object.__setattr__(tokenizer.prompts.support, "offsets", None)
    with pytest.raises(detok.OptionError, match="where its tokens stand in it is not known"):
        tokenizer.encode_chat_with_mask(chat, chat_template=template)
    assert {token.start for token in tokenizer.tokenize("Zoë")} == {None}


def test_parts_of_a_character_have_all_of_it() -> None:
    """A place is of characters, and bytes are moved outwards to them."""
    parts = [Token(1, b"a\xf0"), Token(2, b"\x9f"), Token(3, b"\xa6\x9c!"), Token(4, b"\xc3"), Token(5, b"\xab")]
    assert places("a🦜!ë", parts) == [(0, 2), (1, 2), (1, 3), (3, 4), (3, 4)]
    assert places("a🦜!e", parts) is None
    assert places("a🦜!ëx", parts) is None
