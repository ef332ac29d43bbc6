"""Logprobs: strings that tile, exact bytes, alternatives that do not collide, and the two shapes of OpenAI's API."""

from __future__ import annotations

import json
import math

import pytest

import detok
from tests.support.handmade import BYTE_LEVEL, METASPACE, make
from tests.support.vocabularies import real


@pytest.fixture
def byte_level() -> detok.Tokenizer:
    """Letters, an emoji in two parts, and a special token."""
    return detok.load(make(BYTE_LEVEL, ["a", "Ġb", "ðŁ", "¦ľ", "ï¿½", "<s>"], special=["<s>"]))


def entries_of(
    request: detok.RequestDecoder, ids: list[int], top: list[tuple[int, float]] | None = None
) -> list[detok.TokenLogprob]:
    outputs = [request.feed([token_id], [detok.Logprob(-0.5, 1, top or [])]) for token_id in ids]
    outputs.append(request.finish("length"))
    return [entry for output in outputs for entry in output.logprobs or ()]


def test_leading_space_is_as_it_stands_in_the_text() -> None:
    """`▁true` is "true" at the beginning, " true" behind something, and so is an alternative in its place."""
    tokenizer = detok.load(make(METASPACE, ["▁true", "▁false", "▁"]))
    first, second = entries_of(tokenizer.request(), [0, 0], [(0, -0.5), (1, -1.0)])
    assert (first.token, second.token) == ("true", " true")
    assert [other.token for other in first.top] == ["true", "false"]
    assert [other.token for other in second.top] == [" true", " false"]
    assert (second.text_offset, second.byte_offset, second.bytes) == (4, 4, b" true")


def test_partial_character_belongs_to_the_token_that_completes_it(byte_level: detok.Tokenizer) -> None:
    """The first part is "" with its bytes, the second the character; a part that stays one is U+FFFD."""
    entries = entries_of(byte_level.request(), [0, 2, 3, 2, 0])
    assert [entry.token for entry in entries] == ["a", "", "🦜", "\ufffd", "a"]
    assert [entry.bytes for entry in entries] == [b"a", b"\xf0\x9f", b"\xa6\x9c", b"\xf0\x9f", b"a"]
    assert [entry.text_offset for entry in entries] == [0, 1, 1, 2, 3]
    assert [entry.byte_offset for entry in entries] == [0, 1, 1, 5, 8]


def test_entries_wait_for_their_text(byte_level: detok.Tokenizer) -> None:
    """An entry comes with the output in which the last of its text is."""
    request = byte_level.request(stop="ab")
    given = [[entry.token for entry in request.feed([token_id], [-1.0]).logprobs or ()] for token_id in (0, 2, 3, 1)]
    assert given == [[], [], ["a", "", "🦜"], [" b"]]


def test_alternatives_are_whole_characters_in_their_place(byte_level: detok.Tokenizer) -> None:
    """Those that complete no character have "" and their bytes; U+FFFD is only what a token says; specials are as written."""
    top = [(token_id, -1.0 - token_id) for token_id in range(6)] + [(99, -20.0)]
    at_start, behind_half = entries_of(byte_level.request(), [2, 3], top)
    assert [other.token for other in at_start.top] == ["a", " b", "", "", "\ufffd", "<s>", ""]
    assert [other.token for other in behind_half.top] == ["a", " b", "", "🦜", "\ufffd", "<s>", ""]
    assert [other.bytes for other in at_start.top][-3:] == [b"\xef\xbf\xbd", b"<s>", b""]


def test_shape_of_completions_keeps_what_collides(byte_level: detok.Tokenizer) -> None:
    """Two alternatives of one string are both there: the more likely by its string, the other by its id."""
    entries = entries_of(byte_level.request(), [0, 2, 3], [(3, -2.0), (2, -1.0), (0, -math.inf)])
    shape = detok.completion_logprobs(entries, offset=10)
    assert shape == {
        "tokens": ["a", "", "🦜"],
        "token_logprobs": [-0.5] * 3,
        "top_logprobs": [
            {"": -1.0, "token_id:3": -2.0, "a": -9999.0},
            {"": -1.0, "token_id:3": -2.0, "a": -9999.0},
            {"🦜": -2.0, "": -1.0, "a": -9999.0},
        ],
        "text_offset": [10, 11, 11],
    }
    assert detok.completion_logprobs(entries[:1], as_token_ids=True)["tokens"] == ["token_id:0"]
    assert detok.completion_logprobs(entries_of(byte_level.request(), [0]))["top_logprobs"] == [None]
    json.dumps(shape, allow_nan=False)


def test_shape_of_chat_has_bytes_and_lists(byte_level: detok.Tokenizer) -> None:
    """Alternatives are a list, so nothing collides; what is missing or infinite is JSON all the same."""
    request = byte_level.request()
    entries = request.feed([0, 2], [None, detok.Logprob(math.nan, None, [(2, -1.0), (3, -2.0)])]).logprobs or []
    entries += request.finish("length").logprobs or []
    shape = detok.chat_logprobs(entries)
    assert shape["content"][0] == {"token": "a", "logprob": None, "bytes": [97], "top_logprobs": []}
    assert shape["content"][1] == {
        "token": "\ufffd",
        "logprob": -9999.0,
        "bytes": [0xF0, 0x9F],
        "top_logprobs": [
            {"token": "\ufffd", "logprob": -1.0, "bytes": [0xF0, 0x9F]},
            {"token": "", "logprob": -2.0, "bytes": [0xA6, 0x9C]},
        ],
    }
    named = detok.chat_logprobs(entries, as_token_ids=True)["content"][1]
    assert (named["token"], named["top_logprobs"][1]["token"]) == ("token_id:2", "token_id:3")
    json.dumps(shape, allow_nan=False)


def test_tokens_of_the_stop_have_what_of_them_is_in_the_text() -> None:
    """The cut goes through the strings as through the text; bytes stay whole."""
    tokenizer = detok.load(make({"type": "Fuse"}, ["abS", "TO", "Px", "y"]))
    output = tokenizer.request(stop="STOP").feed([0, 1, 2, 3], [-1.0, -2.0, -3.0, -4.0])
    assert output.logprobs is not None
    assert [(entry.token, entry.bytes) for entry in output.logprobs] == [("ab", b"abS"), ("", b"TO"), ("", b"Px")]
    output = tokenizer.request(stop="STOP", include_stop_str_in_output=True).feed([0, 1, 2, 3], [-1.0] * 4)
    assert [entry.token for entry in output.logprobs or ()] == ["abS", "TO", "P"]


def test_bytes_run_of_a_real_vocabulary_tiles() -> None:
    """Byte tokens of Mistral: each character is the last of its bytes, although it is certain only when the run ends."""
    tokenizer = detok.load(real("mistral-v1") / "tokenizer.json")
    ids = tokenizer.encode("a ပုံ b 🦜", add_special_tokens=False)
    entries = entries_of(tokenizer.request(), ids)
    assert "".join(entry.token for entry in entries) == tokenizer.decode(ids)
    assert [entry.token for entry in entries if len(entry.bytes) == 1 and entry.bytes[0] >= 0x80].count("") > 4
    assert "ပ" in [entry.token for entry in entries]
