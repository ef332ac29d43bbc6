"""Answers are cut into events the same way, wherever their bytes are cut."""

from __future__ import annotations

import pytest

from detok.engines.events import EventStream, EventTooLong, OneValue
from tests.engines.support import recorded

# Each kind of line end, alone and mixed; comments, other fields, data without a space, an event of two lines, an empty one, a
# character of four bytes; a last event that is not complete.
NASTY = (
    b": hello\n\ndata: 1\n\ndata:2\r\n\r\ndata: 3\r\rid: 7\ndata: a\r\ndata:  b\n\r\ndata\n\ndata:\n\nretry: 5\n\n"
    b"data: \xf0\x9f\xa6\x9c\r\n\r\ndatax: no\n\n\n\n\r\n\r\rdata: 4\n\ndata: lost\n"
)
EVENTS = [b"1", b"2", b"3", b"a\n b", b"", b"\xf0\x9f\xa6\x9c", b"4"]


def events(*pieces: bytes) -> list[bytes]:
    """What a stream gives for bytes in these pieces."""
    stream = EventStream()
    return [event for piece in pieces for event in stream.feed(piece)] + stream.finish()


def pieces_of(data: bytes, size: int) -> list[bytes]:
    """Bytes in pieces of a size."""
    return [data[at : at + size] for at in range(0, len(data), size)]


def test_stream_of_every_kind_of_line() -> None:
    """The whole at once."""
    assert events(NASTY) == EVENTS


def test_stream_cut_anywhere_gives_the_same_events() -> None:
    """Any two cuts, all bytes one by one, empty pieces between."""
    for first in range(len(NASTY) + 1):
        for second in range(first, len(NASTY) + 1):
            assert events(NASTY[:first], NASTY[first:second], NASTY[second:]) == EVENTS
    assert events(*pieces_of(NASTY, 1)) == EVENTS
    assert events(*(piece for byte in pieces_of(NASTY, 1) for piece in (b"", byte))) == EVENTS


@pytest.mark.parametrize("name", ["vllm.sse", "vllm-logprobs.sse", "sglang-cumulative.sse"])
def test_recording_cut_anywhere_gives_the_same_events(name: str) -> None:
    """What an engine sends, in two pieces at every place."""
    data = recorded(name)
    whole = events(data)
    assert whole[-1] == b"[DONE]"
    assert all(events(data[:cut], data[cut:]) == whole for cut in range(len(data)))


def test_event_comes_out_with_the_byte_that_completes_it() -> None:
    """Not one later: a CR ends a line already, whether or not an LF follows."""
    stream = EventStream()
    assert [stream.feed(piece) for piece in (b"data: 1\r", b"\r", b"\n", b"data: 2\n", b"\n")] == [[], [b"1"], [], [], [b"2"]]


def test_event_longer_than_allowed_is_refused() -> None:
    """At the limit it is taken, one byte over it is not, in one piece or in many; comments and what came before do not count."""
    at, over = b"data: 1\ndata: 2345\n\n", b"data: 1\ndata: 23456\n\n"
    limit = len(b"data: 1" + b"data: 2345\n")
    for size in (1, 1000):
        stream = EventStream(max_event_bytes=limit)
        pieces = pieces_of((b": comment\n" + at) * 3, size)
        assert [event for piece in pieces for event in stream.feed(piece)] == [b"1\n2345"] * 3
        with pytest.raises(EventTooLong):
            [stream.feed(piece) for piece in pieces_of(over, size)]


def test_one_value_is_all_bytes_at_the_end() -> None:
    """However they came; and no more than allowed."""
    answer = OneValue(max_bytes=4)
    assert [answer.feed(b"12"), answer.feed(b""), answer.feed(b"34"), answer.finish()] == [[], [], [], [b"1234"]]
    with pytest.raises(EventTooLong):
        answer.feed(b"5")
