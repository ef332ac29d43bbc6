"""Outputs: what they are and say, how they become one, and what the collector gives when."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detok.core.request.logprobs import TokenLogprob
from detok.core.request.options import RequestOptions
from detok.core.request.output import MAX_WAITING, NOT_DUE, OutputCollector, RequestOutput, SharedOutput, merged
from detok.turns.channels import ChannelDelta
from detok.turns.segments import Special, Text


def output(text: str = "", *token_ids: int, **fields: Any) -> RequestOutput:
    """An output with these fields."""
    made = RequestOutput(text, list(token_ids))
    for name, value in fields.items():
        setattr(made, name, value)
    return made


ENTRY = TokenLogprob(1, -0.5, "a", b"a", 0, 0)


@pytest.mark.parametrize(
    ("one", "is_true"),
    [
        (output(), False),
        (output("a"), True),
        (output("", 1), True),
        (output(finish_reason="stop"), True),
        (output(logprobs=[ENTRY]), True),
        (output(logprobs=[]), False),
        (output(segments=[Text("a")]), True),
        (output(channels=[ChannelDelta("content", "a", 0)]), True),
        (output(retracted_tokens=1), False),
        (NOT_DUE, False),
        (SharedOutput("", 1), True),
    ],
    ids=repr,
)
def test_output_is_true_if_there_is_something_to_pass_on(one: RequestOutput, is_true: bool) -> None:
    """Text, ids, an end, or something beside them."""
    assert bool(one) is is_true


def test_output_is_compared_by_what_it_says() -> None:
    """Field by field; it is no key, as it holds lists."""
    assert output("a", 1) == output("a", 1) == SharedOutput("a", 1)
    for other in (output("b", 1), output("a", 2), output("a", 1, finish_reason="stop"), output("a", 1, cumulative=True)):
        assert output("a", 1) != other
    assert output("a") != "a"
    with pytest.raises(TypeError, match="unhashable"):
        hash(output())
    assert repr(output("a", 1, stop_reason=None, tokens_kept=1)) == "RequestOutput(text='a', token_ids=[1], tokens_kept=1)"


def test_failed_output_has_the_error() -> None:
    """And has ended."""
    error = ValueError("x")
    failed = RequestOutput.failed(error)
    assert (failed.finish_reason, failed.error, failed.finished, failed.text) == ("error", error, True, "")


def test_shared_output_cannot_be_changed_and_its_copy_can() -> None:
    """It belongs to many requests."""
    shared = SharedOutput("a", 1)
    for name in ("text", "token_ids", "finish_reason", "anything"):
        with pytest.raises(AttributeError, match=f"its {name} cannot be set; copy"):
            setattr(shared, name, None)
    shared.token_ids.append(2)
    assert shared.as_dict() == {"text": "a", "token_ids": [1]}
    for twin in (copy.copy(shared), copy.deepcopy(shared), pickle.loads(pickle.dumps(shared))):
        twin.text = "b"
        twin.token_ids.append(2)
        assert type(twin) is RequestOutput
    assert shared == output("a", 1)


def test_coalescing_passes_by_what_says_nothing() -> None:
    """And a later output that stands for all before it."""
    one = output("a", 1)
    assert one.coalesce(output()) is one
    later = output("b", 2)
    assert output().coalesce(later) is later
    whole = output("ab", 1, 2, cumulative=True)
    assert one.coalesce(whole) is whole
    assert whole.coalesce(output("c", 3)) == output("abc", 1, 2, 3, cumulative=True)


@pytest.mark.parametrize(
    ("outputs", "ids", "retracted"),
    [
        ([output("", 1, 2), output("", 3, retracted_tokens=1)], [1, 3], 0),
        ([output("", 1), output("", retracted_tokens=3)], [], 2),
        ([output("", retracted_tokens=2)], [], 2),
        ([output("", 1), output("", 2, retracted_tokens=1), output("", retracted_tokens=1)], [], 0),
        ([output("", 1, retracted_tokens=1), output("", 2, retracted_tokens=1)], [2], 1),
    ],
)
def test_ids_that_are_taken_back_are_taken_from_those_that_came(
    outputs: list[RequestOutput], ids: list[int], retracted: int
) -> None:
    """Those that are not among these stay to be taken back."""
    one = merged(outputs)
    assert (one.token_ids, one.retracted_tokens) == (ids, retracted)


def test_what_stands_beside_is_joined() -> None:
    """Logprobs in a row, neighbouring texts as one, and channels by part; the end is the last one's."""
    first = output("a", 1, logprobs=[ENTRY], segments=[Text("a")], channels=[ChannelDelta("content", "a", 0)])
    last = output("b", 2, segments=[Text("b"), Special(5, "<s>")], channels=[ChannelDelta("content", "b", 0)])
    last.finish_reason, last.stop_reason, last.tokens_kept, last.text_end = "stop", "END", 2, 2
    one = merged([first, output(), last])
    assert one.logprobs == [ENTRY]
    assert one.segments == [Text("ab"), Special(5, "<s>")]
    assert one.channels == [ChannelDelta("content", "ab", 0)]
    assert (one.finish_reason, one.stop_reason, one.tokens_kept, one.text_end) == ("stop", "END", 2, 2)
    assert merged([first]).segments == [Text("a")]


def collector(output: Any = "delta", interval: int = 1) -> OutputCollector:
    """A new one."""
    return OutputCollector(RequestOptions(output=output, stream_interval=interval))


def due(into: OutputCollector, steps: list[RequestOutput]) -> list[str]:
    """The text of what is due after each step."""
    return [into.add(step).text for step in steps]


TOKENS = [output(letter, number) for number, letter in enumerate("abcdef")]


@pytest.mark.parametrize(
    ("kind", "interval", "texts"),
    [
        ("delta", 1, ["a", "b", "c", "d", "e", "f"]),
        ("delta", 2, ["a", "", "bc", "", "de", ""]),
        ("delta", 4, ["a", "", "", "", "bcde", ""]),
        ("cumulative", 1, ["a", "ab", "abc", "abcd", "abcde", "abcdef"]),
        ("cumulative", 3, ["a", "", "", "abcd", "", ""]),
        ("final", 1, [""] * 6),
    ],
)
def test_output_is_due_with_the_first_token_and_every_so_many(kind: str, interval: int, texts: list[str]) -> None:
    """And at the end, with all that waits."""
    gathered = collector(kind, interval)
    assert due(gathered, TOKENS) == texts
    last = gathered.add(output("!", finish_reason="stop"))
    assert last.finished
    sent = "".join(texts) if kind == "delta" else ""
    assert sent + last.text == "abcdef!"
    assert last.cumulative == (kind != "delta")


def test_step_without_ids_makes_nothing_due() -> None:
    """Only tokens count."""
    gathered = collector("delta", 2)
    assert not gathered.add(output())
    assert gathered.until_due() == 1
    assert gathered.add(output("a", 1)).text == "a"
    assert gathered.until_due() == 2
    assert not gathered.add(output("b", 2))
    assert gathered.until_due() == 1
    assert collector("final").until_due() == MAX_WAITING


@given(
    st.sampled_from(["delta", "cumulative", "final"]),
    st.integers(1, 4),
    st.lists(st.integers(0, 3), max_size=8),
    st.integers(0, 8),
)
def test_collector_goes_on_from_plain_data(kind: str, interval: int, sizes: list[int], cut: int) -> None:
    """At any place, however many ids each step has; all that was put in comes out once."""
    one = collector(kind, interval)
    deltas, last = "", ""
    for place, size in enumerate(sizes):
        if place == cut:
            twin = collector(kind, interval)
            twin.restore(*one.plain())
            one = twin
        given_out = one.add(output("x" * size, *range(size)))
        deltas, last = deltas + given_out.text, given_out.text or last
    end = one.add(output(finish_reason="length"))
    total = "x" * sum(sizes)
    assert (deltas + end.text if kind == "delta" else end.text) == total
    assert total.startswith(last)


def test_many_outputs_that_wait_are_merged() -> None:
    """At the limit they are apart, with one more they are one; the next merge comes when the text has doubled."""
    gathered = collector("final")
    gathered.gather([SharedOutput("x", 1)] * MAX_WAITING)
    assert len(gathered._waiting) == MAX_WAITING
    gathered.gather([SharedOutput("y", 2)])
    assert len(gathered._waiting) == MAX_WAITING + 1  # the first of these counts as merged
    gathered.gather([SharedOutput("y", 2)])
    merges = 0
    for _ in range(20 * MAX_WAITING):
        gathered.gather([SharedOutput("z", 3)])
        merges += len(gathered._waiting) == 1
    assert merges == 3
    last = gathered.add(output(finish_reason="stop"))
    assert last.text == "x" * MAX_WAITING + "yy" + "z" * (20 * MAX_WAITING)
    assert len(last.token_ids) == len(last.text)


def test_change_of_a_cumulative_output_does_not_come_back() -> None:
    """The output is the caller's own."""
    gathered = collector("cumulative")
    first = gathered.add(output("x", 1))
    first.token_ids.append(9)
    first.text += "EVIL"
    second = gathered.add(output("y", 2))
    assert (second.text, second.token_ids) == ("xy", [1, 2])


@pytest.mark.parametrize("shared", [SharedOutput("a", 1), NOT_DUE], ids=["usual", "not due"])
def test_shared_output_cannot_be_changed_behind_its_back(shared: SharedOutput) -> None:
    """Neither by its dict nor by making it anew."""
    before = copy.copy(shared)
    vars(shared)["text"] = "other"
    vars(shared).update(finish_reason="stop")
    with pytest.raises(AttributeError, match="many requests share this output"):
        shared.__init__("other", 7)  # type: ignore[misc]  # nobody should
    assert shared == before
    assert shared.finish_reason is None
