"""The bytes of the messages, as docs/worker.md has them, and that all there is in an output survives them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok import ChannelDelta, Logprob, RequestOptions, Special, Text, TokenLogprob, TopLogprob, WireError
from detok.core.request.output import RequestOutput
from detok.data import sample
from detok.frontend.worker import wire
from detok.frontend.worker.payload import logprobs_from_wire, logprobs_to_wire, output_from_wire, output_to_wire, row_of

TOKENIZER = detok.load(detok.EMBEDDED)
IDS = TOKENIZER.encode(sample("mixed"), add_special_tokens=False)


def test_step_has_the_shape_of_the_documentation() -> None:
    """Element by element, as a client in another language writes it."""
    written = msgspec.msgpack.encode(
        [2, 2, "client", 1, 99, 4, 3, [7, 8], [5, [6, 9]], {1: [None, "stop", 2]}, [[7, [1, 2], {"stop": ["x"]}]], [3], [8]]
    )
    step = wire.decode_from_client(written)
    assert step == wire.Step(
        wire.VERSION,
        "client",
        1,
        99,
        4,
        3,
        [7, 8],
        [5, [6, 9]],
        {1: wire.Extra(None, "stop", 2)},
        [wire.Open(7, [1, 2], wire.Raw(msgspec.msgpack.encode({"stop": ["x"]})))],
        [3],
        [8],
    )
    assert wire.decode_from_client(wire.encode(step)) == step


def test_reply_has_the_shape_of_the_documentation() -> None:
    """Element by element, as a client in another language reads it; what is new at the end is ignored by it."""
    reply = wire.Reply(
        wire.VERSION, "client", 1, 4, ["a", "b"], {1: wire.Output([9], "stop", 9, [10])}, [wire.Saved(8, 3, b"snap")]
    )
    plain = msgspec.msgpack.decode(wire.encode(reply))
    output = [[9], "stop", 9, [10], None, None, None, None, None, None, False, 0]
    assert plain == [12, 2, "client", 1, 4, ["a", "b"], {1: output}, [[8, 3, b"snap"]], [], [], False]
    assert wire.decode_from_worker(msgspec.msgpack.encode([*plain, "new"])) == reply


def test_short_step_is_a_step() -> None:
    """Elements at the end that say nothing may be left out."""
    step = wire.decode_from_client(msgspec.msgpack.encode([2, 2, "client", 1, 99, 0, -1, [7], [5]]))
    assert isinstance(step, wire.Step)
    assert (step.extras, step.opens, step.closes, step.wants) == ({}, [], [], [])


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_an_error(frame: bytes) -> None:
    """Nothing that comes raises anything but `WireError`, on either side."""
    assert all(error.field for error in _errors(frame))


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 14) | st.text(max_size=3) | st.binary(max_size=3) | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.integers(0, 3) | st.text(max_size=2), inner, max_size=2),
    max_leaves=12,
)


@given(st.lists(plain_values, max_size=13), st.sampled_from([1, 2, 3, 4, 11, 12, 13, 14]))
def test_any_msgpack_is_a_message_or_an_error(elements: list[object], kind: int) -> None:
    """The same for well-formed msgpack that only looks like a message."""
    frame = msgspec.msgpack.encode([kind, wire.VERSION, *elements])
    assert all((error.code, bool(error.field)) == ("malformed", True) for error in _errors(frame))


@pytest.mark.parametrize("kind", [[], {}, {"a": 1}, msgspec.msgpack.Ext(5, b"x"), None, "x", 1.5])
def test_kind_of_any_type_is_malformed(kind: object) -> None:
    """What stands for the kind and is no number is refused by both sides."""
    errors = _errors(msgspec.msgpack.encode([kind, wire.VERSION]))
    assert [(error.code, error.field) for error in errors] == [("malformed", "element 0")] * 2


@pytest.mark.parametrize("frame", [b"\x92\x81\x80\x01\x02", b"\x81\x80\x01", b"\x92\xd6\xff\x00\x00\x00\x00\x02"])
def test_keys_and_times_are_malformed(frame: bytes) -> None:
    """Maps with maps for keys, and times, are nothing that a message begins with."""
    assert [error.code for error in _errors(frame)] == ["malformed"] * 2


def _errors(frame: bytes) -> list[WireError]:
    """What both sides have against a frame."""
    errors = []
    for decode in (wire.decode_from_client, wire.decode_from_worker):
        try:
            decode(frame)
        except WireError as error:
            errors.append(error)
    return errors


OUTPUTS = [
    RequestOutput("text", [1]),
    RequestOutput("", []),
    RequestOutput("several", [1, 2, 3]),
]
_RICH = RequestOutput("rich", [4])
_RICH.finish_reason, _RICH.stop_reason, _RICH.tokens_kept, _RICH.text_end = "stop", "x", 9, 44
_RICH.dropped_token_ids = [5, 6]
_RICH.logprobs = [
    TokenLogprob(4, -0.5, "rich", b"rich\xff", 3, 4, 1, (TopLogprob(5, -1.0, "x", b"x"),)),
    TokenLogprob(9, None, "", b"", 0, 0),
]
_RICH.segments = [Text("ri"), Special(7, "<s>", ""), Text("ch")]
_RICH.channels = [ChannelDelta("reasoning", "ri", 0), ChannelDelta("tool", "ch", 1, "header")]
_RICH.cumulative = True


@pytest.mark.parametrize("output", [*OUTPUTS, _RICH], ids=repr)
@pytest.mark.parametrize("row", [[1], [4], [1, 2, 3]])
def test_output_survives(output: RequestOutput, row: list[int]) -> None:
    """Every field, whether the row's ids are those of the output or not."""
    frame = wire.encode(output_to_wire(output, row))
    beside = msgspec.msgpack.decode(frame, type=wire.Output)
    assert output_from_wire(output.text, row, beside) == output


@pytest.mark.parametrize(
    "options", [RequestOptions(segments=True, skip_special_tokens=False), RequestOptions(output="cumulative", channels="think")]
)
def test_outputs_of_a_request_survive(options: RequestOptions) -> None:
    """What a real request with logprobs gives, step by step."""
    request = TOKENIZER.request(options=options)
    for token_id in IDS[:60]:
        output = request.feed([token_id], [Logprob(-1.0, 2, [(token_id, -1.0), (IDS[0], -3.0)])])
        beside = msgspec.msgpack.decode(wire.encode(output_to_wire(output, [token_id])), type=wire.Output)
        assert output_from_wire(output.text, [token_id], beside) == output


def test_error_survives_by_name_and_words() -> None:
    """An error of the worker is a `RequestFailed` of its name and words, whatever these are made of."""
    output = RequestOutput()
    output.finish_reason, output.error = "error", ValueError("bad \udcff")
    back = output_from_wire("", [], msgspec.msgpack.decode(wire.encode(output_to_wire(output, [])), type=wire.Output))
    assert isinstance(back.error, detok.RequestFailed)
    assert (back.error.kind, back.error.problem) == ("ValueError", "bad \\udcff")


def test_logprobs_survive() -> None:
    """Numbers, none, and those with rank and alternatives; what is none of these is left for the request to refuse."""
    logprobs = [Logprob(-0.5), Logprob(None), Logprob(-1.0, 3, [(7, -1.0), (8, -2.5)])]
    plain = msgspec.msgpack.decode(msgspec.msgpack.encode(logprobs_to_wire(logprobs)))
    assert logprobs_from_wire(plain) == [-0.5, None, Logprob(-1.0, 3, [(7, -1.0), (8, -2.5)])]
    assert logprobs_from_wire(["x", [1], [1, 2, 3]]) == ["x", [1], [1, 2, 3]]


def test_row_of_one_id() -> None:
    """One id may stand without its array."""
    assert row_of(5, None) == ([5], None, None, None)
    assert row_of([5, 6], wire.Extra([-1.0, None], "length", 6)) == ([5, 6], [-1.0, None], "length", 6)
