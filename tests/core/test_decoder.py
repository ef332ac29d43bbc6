"""`Decoder` itself: what it shares between streams and requests, what it forgets, and what it takes along."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import detok
from detok.core import decoder as module
from detok.core.decoding.rules import ByteFallback, ByteLevel, Fuse, Metaspace, Rule
from detok.core.options import DecodeOptions
from detok.core.request.options import RequestOptions
from detok.core.vocabulary import Piece
from tests.support.pieces import Pieces, SizedPieces

PIECES = Pieces("a", "Ġb", "ðŁ", "Ĵ¦", Piece("<s>", special=True, added=True), ".")


def decoder(**options: Any) -> detok.Decoder:
    """A byte-level decoder with nothing remembered."""
    return detok.Decoder(PIECES, [ByteLevel()], **options)


def test_streams_of_equal_options_share_a_machine() -> None:
    """However the same choice is written, clean-up included; another choice has another."""
    one = decoder()
    machines = [one.stream()._node.machine, one.stream(clean_up_tokenization_spaces=False)._node.machine]
    assert machines[0] is machines[1] is one.machine(DecodeOptions())
    assert one.stream(skip_special_tokens=False)._node.machine is not machines[0]
    cleans = decoder(cleans_up=True)
    # Whichever of the two is asked for first.
    assert cleans.machine(DecodeOptions(clean_up_tokenization_spaces=True)) is cleans.machine(DecodeOptions())
    assert cleans.decode([0, 1, 5]) == "a b."


@pytest.mark.parametrize("value", [1, 0, [], {}, "True"])
def test_remembered_choice_is_by_the_very_value(value: Any) -> None:
    """1 is equal to True, and lists have no hash: all are refused however often the right one was asked for."""
    one = decoder()
    for _ in range(2):
        one.stream(skip_special_tokens=True)
        one.stream(skip_special_tokens=False)
        with pytest.raises(detok.OptionError, match="skip_special_tokens"):
            one.stream(skip_special_tokens=value)


def test_unknown_keyword_of_a_stream_is_refused() -> None:
    """With what to do instead."""
    with pytest.raises(detok.OptionError, match="did you mean 'byte_fallback'"):
        decoder().stream(byte_falback="eager")  # type: ignore[arg-type]  # the point


@pytest.mark.parametrize(
    "kind",
    [
        SizedPieces,
        Pieces,
    ],
)
def test_warm_table_asks_no_more(kind: type[Pieces]) -> None:
    """All ids that lead from the idle node back to it are known, whether the vocabulary has a length or not."""
    one = detok.Decoder(kind("", "", *PIECES.pieces), [ByteLevel()])
    one.warm()
    assert one.automaton(DecodeOptions()).home.texts == [None, None, "a", " b", None, None, None, "."]


def test_warm_leaves_a_machine_without_a_table_alone() -> None:
    """One that has no automaton is as it was."""

    class Unremembering(detok.Decoder):
        def machine(self, options: DecodeOptions) -> Any:
            return object()

    Unremembering(PIECES, [ByteLevel()]).warm()


def test_request_takes_options_or_keywords() -> None:
    """Not both, and only options."""
    one = decoder()
    options = RequestOptions(stop="b")
    for request in (one.request(options=options), one.request(stop="b"), one.request(stop=["b"]), one.request(stop=("b",))):
        assert request.feed([0, 1]).text == "a "
        assert request._compiled is one.compile(options)
    with pytest.raises(detok.OptionError, match="stop='b' is invalid; give options, or each by name, not both"):
        one.request(options=options, stop="b")
    with pytest.raises(detok.OptionError, match=r"they are detok\.RequestOptions"):
        one.request(options={"stop": "b"})  # type: ignore[arg-type]  # the point


@pytest.mark.parametrize(
    ("fields", "is_kept"),
    [
        ({}, True),
        ({"stop": "x" * module.MAX_LENGTH}, True),
        ({"stop": "x" * (module.MAX_LENGTH + 1)}, False),
        ({"stop": [str(number) for number in range(module.MAX_VALUES)]}, True),
        ({"stop": [str(number) for number in range(module.MAX_VALUES + 1)]}, False),
        ({"stop": ["x" * (module.MAX_LENGTH + 1)]}, False),
        ({"stop_token_ids": [1]}, False),
        ({"stop": {"a": 1}.keys()}, False),
        ({"min_tokens": 1, "stop_regex_timeout": 0.5, "max_tokens": None, "output": "final"}, True),
    ],
)
def test_plain_keywords_are_remembered(fields: dict[str, Any], is_kept: bool) -> None:
    """At each limit they are, one over it they are checked again; the request is the same."""
    one = decoder()
    first, second = one.request(**fields), one.request(**fields)
    assert first._compiled is second._compiled
    assert len(one._compiled_by_fields) == is_kept


def test_remembered_keywords_are_told_apart_by_type() -> None:
    """1 is equal to True, and is no such option."""
    one = decoder()
    one.request(ignore_eos=True)
    with pytest.raises(detok.OptionError, match="ignore_eos=1"):
        one.request(ignore_eos=1)


def test_number_of_remembered_options_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limit both memories begin again; what is open goes on."""
    monkeypatch.setattr(module, "MAX_OPTIONS", 3)
    one = decoder()
    requests = [one.request(stop=f"stop {number}") for number in range(10)]
    assert len(one._compiled) <= 3
    assert len(one._compiled_by_fields) <= 3
    assert [request.feed([0, 1]).text for request in requests] == ["a b"] * 10


def test_text_of_remembered_stops_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limit all are there; one character more, and the memory begins again with the newest."""
    monkeypatch.setattr(module, "MAX_STOP_TEXT", 10)
    one = decoder()
    for stop in ("x" * 4, "y" * 6):
        one.request(stop=stop)
    assert len(one._compiled) == 2
    one.request(stop="z")
    assert [*one._compiled] == [RequestOptions(stop="z")]
    assert one._stop_text == 0


def test_pickled_decoder_remembers_nothing_and_does_the_same() -> None:
    """What is remembered is remembered again elsewhere."""
    one = decoder(cleans_up=True)
    one.stream().extend([0, 1])
    one.request(stop="b").feed([0])
    one.token_bytes(0)
    twin = pickle.loads(pickle.dumps(one))
    assert (twin._automata, twin._compiled, twin._compiled_by_fields, twin._token_bytes, twin._stop_text) == ({}, {}, {}, {}, 0)
    assert "_usual" not in twin.__dict__
    assert len(twin._places) == 0
    assert twin.fingerprint == one.fingerprint
    assert twin.decode([0, 1, 2, 3, 5]) == one.decode([0, 1, 2, 3, 5])
    assert pickle.dumps(twin.rules) == pickle.dumps(one.rules)


def test_fingerprint_is_of_all_that_decoding_depends_on() -> None:
    """A piece, a rule, clean-up; the same facts give the same one."""
    same = {decoder().fingerprint, detok.Decoder(Pieces(*PIECES.pieces), [ByteLevel()]).fingerprint}
    assert len(same) == 1
    assert len(same.pop()) == 32
    others: list[tuple[Pieces, list[Rule], bool]] = [
        (PIECES, [ByteLevel()], True),
        (PIECES, [ByteFallback(), Fuse()], False),
        (Pieces(*PIECES.pieces[:-1]), [ByteLevel()], False),
        (Pieces(*PIECES.pieces[:-1], Piece(".", special=True)), [ByteLevel()], False),
        (PIECES, [ByteLevel()], False),
    ]
    found = {detok.Decoder(pieces, rules, cleans_up=cleans_up).fingerprint for pieces, rules, cleans_up in others}
    assert len(found) == len(others)


def test_bytes_and_text_of_an_id() -> None:
    """A part of a character as U+FFFD; an id may be any integer, and has to be there."""
    one = decoder()
    assert [one.token_bytes(token_id) for token_id in (1, 2, 4, 1)] == [b" b", b"\xf0\x9f", b"<s>", b" b"]
    assert [one.token_text(token_id) for token_id in (1, 2)] == [" b", "\ufffd"]
    with pytest.raises(detok.TokenTypeError):
        one.token_bytes("1")  # type: ignore[arg-type]  # the point
    with pytest.raises(detok.UnknownTokenId):
        one.token_bytes(6)


def test_decoder_alone_knows_no_end_of_sequence() -> None:
    """That is a tokenizer's to say; a request may be told."""
    one = decoder()
    assert one.eos_token_ids == ()
    assert one.request(eos_token_ids=[4]).feed([0, 4]).finish_reason == "stop"


def test_notes_say_what_is_held_longer() -> None:
    """An ordinary decoder has none."""
    assert decoder().notes == ()
    (note,) = detok.Decoder(PIECES, [ByteFallback(), Metaspace("▁", keep_first=True)]).notes
    assert note.startswith("byte runs are held whole")
