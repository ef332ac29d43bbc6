"""`TextStream` in the small: what it accepts, refuses, shows and keeps."""

from __future__ import annotations

import copy
import json
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import detok
from tests.support.handmade import (
    BPE,
    BYTE_LEVEL,
    FALLBACK,
    FUSE,
    UNDERSCORE,
    WORDPIECE,
    byte_level_tokens,
    byte_tokens,
    make,
    sequence,
    strip,
)

TOKENS = ["<unk>", "<s>", *byte_tokens(b"\xe3\x81\x82\xff\xf0A"), "▁Hi", "▁", "."]
UNK, BOS, E3, X81, X82, XFF, XF0, A, HI, SPACE, DOT = range(len(TOKENS))


@pytest.fixture
def tokenizer() -> detok.Tokenizer:
    """A byte-fallback tokenizer of eleven tokens."""
    decoder = sequence(UNDERSCORE, FALLBACK, FUSE, strip(1, 0))
    return detok.load(make(decoder, TOKENS, special=["<s>"], holes=[]))


@pytest.mark.parametrize("integer", [np.int64, np.int32, np.uint16, np.uint8, int])
def test_numpy_integers_are_ids(tokenizer: detok.Tokenizer, integer: Any) -> None:
    """An id may be an integer of any kind, alone, in a list, an array, or a prompt."""
    ids = [HI, E3, X81, X82, HI]
    stream = tokenizer.stream(prompt_ids=np.array([BOS, HI], dtype=np.int64))
    other = stream.copy()
    assert [stream.step(integer(token_id)) for token_id in ids] == [" Hi", "", "", "", "あ Hi"]
    assert [other.extend([integer(token_id)]) for token_id in ids] == [" Hi", "", "", "", "あ Hi"]
    assert tokenizer.decode([integer(token_id) for token_id in ids]) == "Hiあ Hi"
    assert tokenizer.decode(np.array(ids)) == "Hiあ Hi"
    assert tokenizer.decode(iter(ids)) == tokenizer.decode(tuple(ids)) == "Hiあ Hi"
    assert tokenizer.decode(range(HI, DOT)) == "Hi "


@pytest.mark.parametrize("value", [True, False, np.True_, 1.0, 0.0, np.float64(8), "8", b"8", None, Decimal(8), [8], 8 + 0j])
def test_what_is_no_integer_is_refused(tokenizer: detok.Tokenizer, value: Any) -> None:
    """Everything else is a TypeError that names the place, equal to an id or not; the stream goes on as if it had not come."""
    stream = tokenizer.stream()
    assert stream.extend([HI, UNK, BOS]) == "Hi<unk>"
    before = stream.snapshot()
    with pytest.raises(detok.TokenTypeError, match=r"^token_id is the \w+ .*a token id is an integer"):
        stream.step(value)
    with pytest.raises(detok.TokenTypeError, match=r"token_ids\[2\]"):
        stream.extend([HI, HI, value])
    with pytest.raises(detok.TokenTypeError, match=r"token_ids\[0\]"):
        stream.extend([value])
    with pytest.raises(TypeError, match=r"prompt_ids\[1\]"):
        tokenizer.stream(prompt_ids=[HI, value])
    assert stream.snapshot() == before
    assert stream.step(HI) == " Hi"


@pytest.mark.parametrize("value", ["12", b"12", 12, None, {"a": 1}])
def test_what_is_no_list_is_refused(tokenizer: detok.Tokenizer, value: Any) -> None:
    """Neither a string of digits nor a number nor a dict is a list of ids."""
    with pytest.raises(detok.TokenTypeError, match=r"^token_ids is the \w+ .*; a list of token ids is expected"):
        tokenizer.decode(value)


def test_negative_and_huge_ids_vanish(tokenizer: detok.Tokenizer) -> None:
    """No id counts from the end of the table, however often its positive twin was seen."""
    stream = tokenizer.stream()
    stream.extend([HI] * 3)
    ids = (-1, -2, -len(TOKENS), 1 << 31, 1 << 32, 1 << 63, 1 << 200)
    assert [stream.step(token_id) for token_id in ids] == [""] * 7
    assert [stream.extend([token_id]) for token_id in ids] == [""] * 7
    assert stream.step(HI) == " Hi"


def test_unknown_ids_are_treated_as_asked(tokenizer: detok.Tokenizer) -> None:
    """Skipped, replaced by U+FFFD, or refused with the place."""
    ids = [HI, 99, HI]
    assert tokenizer.decode(ids) == "Hi Hi"
    assert tokenizer.decode(ids, unknown_ids="replace") == "Hi\ufffd Hi"
    with pytest.raises(detok.UnknownTokenId, match="no id 99 at position 1"):
        tokenizer.decode(ids, unknown_ids="error")
    with pytest.raises(LookupError):
        tokenizer.stream(prompt_ids=[HI, 99], unknown_ids="error")


def test_replaced_unknown_id_ends_an_incomplete_character() -> None:
    """In a byte-level text the replacement is text like any other, in the byte alphabet."""
    tokenizer = detok.load(make(BYTE_LEVEL, byte_level_tokens(b"\xe3", b"\x81\x82")))
    assert tokenizer.decode([0, 9, 1], unknown_ids="replace") == "\ufffd" * 4
    assert tokenizer.decode([0, 9, 1], unknown_ids="skip") == "あ"


def test_held_shows_what_and_why(tokenizer: detok.Tokenizer) -> None:
    """Bytes while a character or run is open, text else; the eager mode gives characters as they are complete."""
    exact, eager = tokenizer.stream(), tokenizer.stream(byte_fallback="eager")
    assert [
        (exact.step(token_id), exact.held, exact.held_because, eager.step(token_id), eager.held)
        for token_id in (E3, X81, X82, A, HI)
    ] == [
        ("", b"\xe3", "open byte run", "", b"\xe3"),
        ("", b"\xe3\x81", "open byte run", "", b"\xe3\x81"),
        ("", b"\xe3\x81\x82", "open byte run", "あ", ""),
        ("", b"\xe3\x81\x82A", "open byte run", "A", ""),
        ("あA Hi", "", "", " Hi", ""),
    ]


def test_decided_byte_run_holds_nothing(tokenizer: detok.Tokenizer) -> None:
    """Exact mode too gives its U+FFFD at once when the run can no longer become valid."""
    stream = tokenizer.stream()
    assert [stream.step(token_id) for token_id in (A, E3, XFF, A, X81, HI)] == ["", "", "\ufffd" * 3, "\ufffd", "\ufffd", " Hi"]
    assert [stream.step(token_id) for token_id in (XF0, A)] == ["", "\ufffd" * 2]


def test_held_shows_what_rules_hold() -> None:
    """A clean-up pattern, and a token that may be the last."""
    cleaned = detok.load(make(WORDPIECE, ["a", "##b", "."])).stream(clean_up_tokenization_spaces=True)
    cleaned.step(0)
    assert (cleaned.held, cleaned.held_because) == ("", "")
    last = detok.load(make(BPE, ["a</w>", "b"])).stream()
    assert last.step(0) == "a"
    assert (last.held, last.held_because) == (" ", "may be the last token")
    assert last.step(1) == " b"


def test_streams_are_copied_in_every_way(tokenizer: detok.Tokenizer) -> None:
    """A copy goes its own way from where the stream stood."""
    stream = tokenizer.stream()
    stream.extend([HI, E3, X81])
    for twin in (stream.copy(), copy.copy(stream), tokenizer.restore(stream.snapshot())):
        assert twin.extend([X82, DOT]) == "あ."
    assert stream.held == b"\xe3\x81"


def test_tokenizer_is_pickled_and_a_stream_is_not() -> None:
    """A tokenizer goes to another process whole; a stream says that its snapshot is to be sent."""
    tokenizer = detok.load(detok.EMBEDDED)
    stream = tokenizer.stream()
    stream.extend(tokenizer.encode("Zo"))
    twin = pickle.loads(pickle.dumps(tokenizer))
    assert twin.restore(stream.snapshot()).extend(twin.encode("ë")) == "ë"
    assert copy.deepcopy(stream).held == stream.held
    with pytest.raises(TypeError, match=r"send stream\.snapshot\(\)"):
        pickle.dumps(stream)


def test_snapshot_is_small_plain_data(tokenizer: detok.Tokenizer) -> None:
    """It survives JSON and pickle, and takes a few hundred bytes."""
    stream = tokenizer.stream(skip_special_tokens=False, unknown_ids="replace")
    stream.extend([HI, E3, X81])
    snapshot = stream.snapshot()
    assert len(json.dumps(snapshot)) < 600
    for kept in (json.loads(json.dumps(snapshot)), pickle.loads(pickle.dumps(snapshot))):
        assert tokenizer.restore(kept).extend([X82, BOS, 99]) == "あ<s>\ufffd"


def test_snapshot_of_a_finished_stream_stays_finished(tokenizer: detok.Tokenizer) -> None:
    """Finishing is a state like any other."""
    stream = tokenizer.stream()
    stream.finish()
    with pytest.raises(detok.StreamFinished):
        tokenizer.restore(stream.snapshot()).step(HI)


@pytest.mark.parametrize("change", ["other tokenizer", "version", "state", "options", "no dict", "empty", "missing state"])
def test_wrong_snapshot_is_refused(tokenizer: detok.Tokenizer, change: str) -> None:
    """Each with its own reason; never a stream that goes on wrongly."""
    snapshot: Any = tokenizer.stream().snapshot()
    match change:
        case "other tokenizer":
            snapshot, reason = detok.load(make(None, ["a", "b"])).stream().snapshot(), "was made with the tokenizer"
        case "version":
            snapshot["detok"], reason = 99, "has version 99"
        case "state":
            snapshot["state"], reason = [1, 2, 3], "checksum"
        case "options":
            snapshot["options"]["skip_special_tokens"], reason = False, "checksum"
        case "no dict":
            snapshot, reason = "snapshot", "no snapshot"
        case "empty":
            snapshot, reason = {}, "no snapshot"
        case _:
            del snapshot["state"]
            reason = "checksum"
    with pytest.raises(detok.SnapshotError, match=reason):
        tokenizer.restore(snapshot)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("unknown_ids", "drop"),
        ("byte_fallback", "fast"),
        ("skip_special_tokens", 1),
        ("skip_special_tokens", "yes"),
        ("clean_up_tokenization_spaces", 0),
        ("spaces_between_special_tokens", "no"),
    ],
)
def test_impossible_option_names_field_and_value(tokenizer: detok.Tokenizer, option: str, value: Any) -> None:
    """The error names both and what is accepted."""
    with pytest.raises(detok.OptionError, match=f"{option}={value!r} is invalid; it is one of "):
        tokenizer.stream(**{option: value})


def test_added_tokens_stand_without_space_if_asked() -> None:
    """vLLM's rule: an added token right after another is written as it is; a word between them ends the pair."""
    tokens = ["[SEP]", "[CLS]", "word", "##s", "new"]
    tokenizer = detok.load(make(WORDPIECE, tokens, special=["[SEP]", "[CLS]"], added=["new"]))
    ids = [1, 0, 0, 2, 0, 4, 3, 4]
    spaced = "[CLS] [SEP] [SEP] word [SEP] news new"
    assert tokenizer.decode(ids, skip_special_tokens=False) == spaced
    assert tokenizer.decode(ids, skip_special_tokens=False, spaces_between_special_tokens=True) == spaced
    joined = tokenizer.decode(ids, skip_special_tokens=False, spaces_between_special_tokens=False)
    assert joined == "[CLS][SEP][SEP] word [SEP]news new"
    assert tokenizer.decode(ids, spaces_between_special_tokens=False) == tokenizer.decode(ids) == "word news new"
    stream = tokenizer.stream(prompt_ids=[2, 0], skip_special_tokens=False, spaces_between_special_tokens=False)
    assert stream.step(0) == "[SEP]"


def test_special_tokens_do_not_break_a_byte_run(tokenizer: detok.Tokenizer) -> None:
    """A skipped one is not there for the decoder; one that is kept ends the run."""
    ids = [E3, X81, BOS, X82]
    assert tokenizer.decode(ids) == tokenizer.library.decode(ids, skip_special_tokens=True) == "あ"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "\ufffd\ufffd<s>\ufffd"


def test_token_bytes_of_an_unknown_id_raise(tokenizer: detok.Tokenizer) -> None:
    """There is nothing to say about an id that is not there."""
    assert [tokenizer.token_bytes(token_id) for token_id in (E3, HI, BOS)] == [b"\xe3", b" Hi", b"<s>"]
    assert [tokenizer.token_text(token_id) for token_id in (E3, HI)] == ["\ufffd", " Hi"]
    for unknown in (99, -1, 1 << 70):
        with pytest.raises(detok.UnknownTokenId):
            tokenizer.token_bytes(unknown)
    with pytest.raises(detok.TokenTypeError):
        tokenizer.token_text(1.0)  # type: ignore[arg-type]  # this is what is tested


def test_finished_stream_takes_no_more(tokenizer: detok.Tokenizer) -> None:
    """By no way, not even no ids at all; a second end gives nothing."""
    stream = tokenizer.stream()
    assert stream.extend([HI, E3]) + stream.finish() == "Hi\ufffd"
    assert (stream.finish(), stream.held, stream.finished) == ("", "", True)
    for ids in ([], [HI], [HI, HI], (HI,)):
        with pytest.raises(detok.StreamFinished):
            stream.extend(ids)
    with pytest.raises(detok.StreamFinished):
        stream.step(HI)
