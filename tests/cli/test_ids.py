"""Ids are read as they come, and what is none is named with its place."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detok.cli.ids import MAX_DIGITS, IdReader, InputError, Step, in_steps, read_ids

LINES = [
    "1 2 3",
    "  4,5 ,, 6\t",
    "",
    "[7, 8]",
    ' {"text": "x", "token_ids": [9, 10]}',
    '{"ids":[]}',
    "-1 +2 18446744073709551616\r",
    "[]",
    "x 1",
    "[1, true]",
    "[1",
]


def all_of(chunks: Iterable[bytes]) -> tuple[list[object], str]:
    """What is read, and the error."""
    found: list[object] = []
    try:
        found.extend(read_ids(chunks, "test"))
    except InputError as error:
        return found, str(error)
    return found, ""


@given(st.lists(st.sampled_from(LINES)), st.sampled_from(["", "\n"]), st.data())
def test_reading_in_any_pieces_gives_the_same(lines: list[str], end: str, data: st.DataObject) -> None:
    """Where the input is cut, inside of a number or a character too, changes neither ids nor errors."""
    whole = ("\n".join(lines) + end).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)))))
    pieces = [whole[begin:to] for begin, to in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert all_of(pieces) == all_of([whole])
    assert all_of(bytes([byte]) for byte in whole) == all_of([whole])


def test_reading_takes_text_and_json_lines() -> None:
    """Integers one by one; a line of JSON is one item."""
    found, error = all_of(["\n".join(LINES[:8]).encode()])
    assert found == [1, 2, 3, 4, 5, 6, Step([7, 8]), Step([9, 10]), Step([]), -1, 2, 1 << 64, Step([])]
    assert not error


def test_id_is_complete_at_its_separator() -> None:
    """A number may go on until something else follows it."""
    reader = IdReader("test")
    assert list(reader.feed(b"12")) == []
    assert list(reader.feed(b"3 4")) == [123]
    assert list(reader.feed(b",")) == [4]
    assert list(reader.feed(b"5")) == []
    assert list(reader.finish()) == [5]


def test_json_line_is_complete_at_its_end() -> None:
    """Half an array says nothing yet."""
    reader = IdReader("test")
    assert list(reader.feed(b"[1, 2]")) == []
    assert list(reader.feed(b"\n[3")) == [Step([1, 2])]
    assert list(reader.feed(b"]")) == []
    assert list(reader.finish()) == [Step([3])]


@pytest.mark.parametrize(
    ("text", "line", "column", "found"),
    [
        ("x", 1, 1, "'x' is no token id"),
        ("1 2\n 3 4.5", 2, 4, "'4.5' is no token id"),
        ("1 2\n3 é4 5", 2, 3, "'é4' is no token id"),
        ("1_000", 1, 1, "'1_000' is no token id"),
        ("٣", 1, 1, "'٣' is no token id"),
        ("\n\n[1, 2.0]", 3, 5, "'2.0' is no token id"),
        ('[1, "2,3", 4]', 1, 5, "'\"2,3\"' is no token id"),
        ("[[1]]", 1, 2, "'[1]' is no token id"),
        ("[true]", 1, 2, "'true' is no token id"),
        ('{"ids": [5], "token_ids" : [1, null]}', 1, 32, "'null' is no token id"),
        ('{"a": {"ids": [1]}, "ids": [1, "b"]}', 1, 32, "'\"b\"' is no token id"),
        ('{"a": 1}', 1, 1, 'no array "token_ids" or "ids"'),
        ('{"ids": 7}', 1, 1, 'no array "token_ids" or "ids"'),
        ("[1 2]", 1, 4, "no JSON"),
        ("[1,\n2]", 1, 4, "no JSON"),
        ("[" * 100_000, 1, 1, "no JSON"),
        ("1 " + "9" * (MAX_DIGITS + 1), 1, 3, "is no token id"),
        ("[" + "9" * 5000 + "]", 1, 1, "no JSON"),
        ("1 \udcff 2", 1, 3, "is no token id"),
    ],
)
def test_what_is_no_id_is_named_with_its_place(text: str, line: int, column: int, found: str) -> None:
    """The error has line and column, both from 1, and what stands there."""
    with pytest.raises(InputError, match="test, line") as caught:
        list(read_ids([text.encode("utf-8", "surrogateescape")], "test"))
    assert (caught.value.line, caught.value.column) == (line, column)
    assert found in str(caught.value)
    assert len(str(caught.value)) < 250


def test_number_without_an_end_is_refused() -> None:
    """A stream of digits is not kept for ever."""
    reader = IdReader("test")
    for _ in range(MAX_DIGITS // 1000):
        assert list(reader.feed(b"9" * 1000)) == []
    with pytest.raises(InputError, match="line 1, column 1: '9999"):
        list(reader.feed(b"9" * 1000))


def test_json_line_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is a line of JSON, and the error says what to do."""
    monkeypatch.setattr("detok.cli.ids.MAX_JSON_LINE", 100)
    reader = IdReader("test")
    assert list(reader.feed(b"[" + b"1," * 49)) == []
    with pytest.raises(InputError, match="spread the ids over more lines"):
        list(reader.feed(b"1," * 10))


def test_byte_order_mark_is_no_id() -> None:
    """Files of some editors begin with one."""
    assert list(read_ids(["\ufeff1 2".encode()], "test")) == [1, 2]


def test_steps_have_the_size_that_is_asked_for() -> None:
    """The last may be smaller; a line of JSON is a step of its own, after what stands before it."""
    line = Step([4, 5, 6], [-1.0, None, -0.5])
    assert list(in_steps([1, 2, 3, line, Step([]), 7], 2)) == [Step([1, 2]), Step([3]), line, Step([]), Step([7])]
    assert list(in_steps([1, 2], 1)) == [Step([1]), Step([2])]


def test_step_before_an_error_is_given() -> None:
    """What was read is not lost with what was not."""
    steps = in_steps(read_ids([b"1 2 3 x"], "test"), 2)
    assert [next(steps), next(steps)] == [Step([1, 2]), Step([3])]
    with pytest.raises(InputError):
        next(steps)
    with pytest.raises(InputError):
        next(in_steps(read_ids([b"x"], "test"), 2))


def test_steps_of_an_output_can_be_read_again() -> None:
    """What `stream --json` writes is among what is read."""
    line = json.dumps({"ids": [1, 2], "text": "x", "held": {"bytes": "c3"}, "held_because": "incomplete character"})
    assert list(read_ids([line.encode()], "test")) == [Step([1, 2])]


def test_logprobs_are_read_only_when_asked_for() -> None:
    """Numbers or null, one for each id; who does not ask may find anything there."""
    line = '{"logprobs": [-1, null, -0.5], "token_ids": [1, 2, 3]}\n[4]\n{"ids": [5]}'
    found = list(read_ids([line.encode()], "test", with_logprobs=True))
    assert found == [Step([1, 2, 3], [-1.0, None, -0.5]), Step([4]), Step([5])]
    assert next(read_ids([line.encode()], "test")) == Step([1, 2, 3])
    assert list(read_ids([b'{"token_ids": [1], "logprobs": {"tokens": []}}'], "test")) == [Step([1])]


@pytest.mark.parametrize(
    ("logprobs", "problem"),
    [
        ("[-1]", "there are 1 for 2 token ids"),
        ('[-1, "x"]', "logprobs[1] cannot be 'x': it is a number, None"),
        ("[true, 0]", "logprobs[0] cannot be True"),
        (f"[0, 1{'0' * 400}]", "logprobs[1] cannot be 1000"),
        ("{}", '"logprobs" is no array'),
        ("-1", '"logprobs" is no array'),
    ],
)
def test_logprobs_that_cannot_be_are_named_with_their_place(logprobs: str, problem: str) -> None:
    """As for ids: line and column, and what is wrong."""
    line = f'\n{{"token_ids": [1, 2], "logprobs": {logprobs}}}'
    with pytest.raises(InputError) as caught:
        list(read_ids([line.encode()], "test", with_logprobs=True))
    assert (caught.value.line, caught.value.column) == (2, 35)
    assert problem in str(caught.value)
