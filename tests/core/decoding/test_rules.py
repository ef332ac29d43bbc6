"""Each kind of decoder as a value; the library's own decoders are the judges."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from tokenizers import decoders

from detok.core.decoding import rules
from detok.core.decoding.rewriter import Rewriter
from detok.core.decoding.rules import byte_level_bytes, byte_level_spelling, byte_of
from tests.core.decoding.test_rewriter import rewrite

TEXTS = ["".join(text) for length in range(4) for text in product(("a", " ", "▁", "#", "<", "."), repeat=length)]

SAME: dict[str, tuple[rules.OneToken | rules.FirstDiffers, Any]] = {
    "Strip": (rules.Strip(" ", 1, 2), decoders.Strip(" ", 1, 2)),
    "Replace": (rules.Replace("a ", "."), decoders.Replace("a ", ".")),
    "Metaspace": (rules.Metaspace("▁", keep_first=False), decoders.Metaspace("▁", prepend_scheme="always")),
    "Metaspace never": (rules.Metaspace("▁", keep_first=True), decoders.Metaspace("▁", prepend_scheme="never")),
    "WordPiece": (rules.WordPiece("#", cleanup=True), decoders.WordPiece("#", cleanup=True)),
    "WordPiece without clean-up": (rules.WordPiece("#", cleanup=False), decoders.WordPiece("#", cleanup=False)),
}


@pytest.mark.parametrize("name", SAME)
def test_rule_is_the_decoder_of_the_library(name: str) -> None:
    """For the first token and for one after it. The library's Strip panics on tokens that are shorter than it reaches."""
    rule, judge = SAME[name]
    for text in TEXTS:
        if name == "Strip" and len(text) < 3:
            continue
        if isinstance(rule, rules.OneToken):
            assert rule.each(text) == judge.decode([text])
        else:
            assert rule.first(text) == judge.decode([text])
            assert judge.decode(["a", text]) == "a" + rule.rest(text)


@pytest.mark.parametrize("cleanup", [True, False])
def test_ctc_and_bpe_are_those_of_the_library(cleanup: bool) -> None:
    """One token alone, and the last of several."""
    ctc, bpe = rules.CTC("#", "▁", cleanup=cleanup), rules.BPEDecoder("▁")
    for text in TEXTS:
        assert ctc.each(text) == decoders.CTC("#", "▁", cleanup=cleanup).decode([text])
        assert bpe.last(text) == decoders.BPEDecoder("▁").decode([text])
        assert bpe.inner(text) + "a" == decoders.BPEDecoder("▁").decode([text, "a"])


@pytest.mark.parametrize(
    "rule",
    [
        rules.Strip(" ", 1, 2),
        rules.Replace("a ", "."),
        rules.WordPiece("#", cleanup=True),
        rules.WordPiece("#", cleanup=False),
        rules.JoinWithSpaces(),
        rules.CTC("#", "▁", cleanup=True),
        rules.CTC("#", "▁", cleanup=False),
        rules.Fuse(),
    ],
    ids=repr,
)
def test_rule_over_characters_is_the_rule_over_one_token(rule: rules.Rule) -> None:
    """What a decoder is over joined text, as a table."""
    found = rule.over_text()
    assert not callable(found)
    table = Rewriter(found) if found else None  # type: ignore[arg-type]  # rules over characters
    for text in TEXTS:
        single = rule.each(text) if isinstance(rule, rules.OneToken | rules.CTC) else text
        single = rule.first(text) if isinstance(rule, rules.FirstDiffers) else single
        assert (rewrite(table, list(text)) if table else text) == single


def test_function_over_the_whole_text_is_the_rule_over_one_token() -> None:
    """Where no table says the same."""
    for rule in (rules.OneToken, rules.FirstDiffers):
        assert rule.over_text.__doc__
    regex = rules.Replace("a", "x", regex=lambda text: text.upper(), is_regex=True)
    for text, wanted in [
        (regex.over_text(), "A"),
        (rules.Replace("", "-").over_text(), "-a-"),
        (rules.Metaspace("a", keep_first=False).over_text(), ""),
        (rules.BPEDecoder("a").over_text(), ""),
        (rules.CTC("", "|", cleanup=False).over_text(), "a"),
        (rules.Denormalizer("digest", apply=lambda text: text * 2).over_text(), "aa"),
        (rules.ByteLevel().over_text(), "a"),
        (rules.ByteFallback().over_text(), "a"),
    ]:
        assert callable(text)
        assert text("a") == wanted
    assert regex.each("") == ""


def test_joined_byte_token_is_one_only_if_it_is_all_there_is() -> None:
    """ByteFallback after Fuse: a valid byte, an invalid one, anything else."""
    whole = rules.ByteFallback().over_text()
    assert callable(whole)
    for text in ("<0x41>", "<0xE3>", "<0x80>", "<0x7f>", "<0x41>x", "", "<0x+1>"):
        assert whole(text) == decoders.ByteFallback().decode([text] if text else [])


def test_rule_without_its_functions_says_so() -> None:
    """A new kind of decoder has them."""
    for call in (rules.OneToken().each, rules.FirstDiffers().first, rules.FirstDiffers().rest):
        with pytest.raises(NotImplementedError):
            call("a")


@pytest.mark.parametrize("rule", [rules.RawBytes(), rules.SentencePiece(add_dummy_prefix=True, remove_extra_whitespaces=True)])
def test_format_of_its_own_has_no_joined_text(rule: rules.Rule) -> None:
    """Nothing stands before it."""
    with pytest.raises(AssertionError, match="joined text has no pieces"):
        rule.over_text()


def test_ends_are_stripped_as_python_does() -> None:
    """Of one token."""
    assert rules.StripEnds().each(" \ta b\u3000") == "a b"


@pytest.mark.parametrize(
    ("token", "byte"),
    [("<0x00>", 0), ("<0xFF>", 255), ("<0xfF>", 255), ("<0x+A>", 10), ("<0x100>", None), ("<0xG0>", None), ("<0x-1>", None),
     ("<0x0>", None), ("0x00", None), ("<0x00> ", None), ("<0x００>", None), ("", None)],
)  # fmt: skip
def test_byte_token_has_six_characters(token: str, byte: int | None) -> None:
    """And the library agrees on which are bytes."""
    assert byte_of(token) == byte
    if byte is not None:
        assert decoders.ByteFallback().decode([token]) == bytes([byte]).decode(errors="replace")
    elif token:
        assert decoders.ByteFallback().decode([token]) == token


def test_byte_alphabet_is_that_of_the_library() -> None:
    """All bytes there and back; a token with any other character is its own UTF-8."""
    for code in range(0x110):
        text = chr(code)
        assert byte_level_bytes(byte_level_spelling(text)) == text.encode()
        assert decoders.ByteLevel().decode([byte_level_spelling(text)]) == text
    assert byte_level_bytes("Ġ☃") == "Ġ☃".encode()
    assert decoders.ByteLevel().decode(["Ġ☃"]) == "Ġ☃"
    assert byte_level_bytes("") == b""
