"""The rows of the page say what the trace says, and what a request makes of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.inspection import trace
from detok.server.page.asked import MAX_TOKENS, TraceAsked
from detok.server.page.steps import MAX_HELD, steps
from tests.support.handmade import FUSE, make, sequence

EMBEDDED = detok.load(detok.EMBEDDED)
BYTES = detok.load(make(sequence({"type": "ByteFallback"}, FUSE), ("<0xE2>", "<0x82>", "<0xAC>", "EN", "D!", "x")))


def rows_of(tokenizer: detok.Tokenizer, **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = steps(tokenizer, TraceAsked(**options))["rows"]
    return rows


@given(st.lists(st.integers(-2, EMBEDDED.vocab_size + 2), max_size=40), st.booleans())
def test_steps_without_stops_are_the_trace(ids: list[int], skips: bool) -> None:
    """Each row has what the trace has, and nothing is dropped."""
    rows = rows_of(EMBEDDED, ids=ids, skip_special_tokens=skips)
    for row, traced in zip(rows, trace(EMBEDDED, ids, skip_special_tokens=skips), strict=True):
        for field in ("position", "piece", "special", "held_because", "text", "naive", "fault"):
            assert row[field] == getattr(traced, field), field
        assert row["id"] == traced.token_id
        assert bytes.fromhex(row["bytes"]) == traced.bytes
        assert not row["dropped"]
        assert not row["past_end"]


@given(st.lists(st.sampled_from(range(len(BYTES.ids))), max_size=30), st.sampled_from(["END", "€", "D!x", "NEVER"]))
def test_steps_with_a_stop_are_the_request(ids: list[int], stop: str) -> None:
    """The text is that of a request that gets all ids at once; the rest of the ids is dropped."""
    answer = steps(BYTES, TraceAsked(ids=ids, stop=[stop]))
    whole = BYTES.request(stop=[stop], ignore_eos=True).feed(ids, finish_reason="length")
    assert answer["text"] == whole.text
    assert answer["stop_reason"] == whole.stop_reason
    assert [row["id"] for row in answer["rows"][:-1] if not row["dropped"]] == whole.token_ids


def test_steps_name_what_may_become_a_stop() -> None:
    """The candidate is what is held before what the stream itself holds."""
    rows = rows_of(BYTES, ids=[5, 3, 0], stop=["EN€"])
    assert [row["candidate"] for row in rows] == ["", "EN", "EN", ""]
    assert rows[1]["held"] == "EN"
    assert rows[2]["held"] == {"bytes": b"EN".hex() + "e2"}
    assert rows[2]["held_because"].endswith("after what may become a stop")


def test_steps_mark_what_is_sent_of_a_stop_without_knowing_it() -> None:
    """A decoder that knows no stops has sent the stop; what stands behind it is dropped."""
    rows = rows_of(BYTES, ids=[5, 3, 4, 5], stop=["END"])
    assert [row["past_end"] for row in rows[:-1]] == [False, True, True, True]
    assert [row["dropped"] for row in rows] == [False, False, False, True, False]


def test_steps_with_the_stop_included_mark_only_what_is_behind_it() -> None:
    """Then the stop is part of the text, and nothing of it is held."""
    answer = steps(BYTES, TraceAsked(ids=[5, 3, 4, 5], stop=["END"], include_stop_str_in_output=True))
    assert answer["text"] == "xEND"
    assert [row["past_end"] for row in answer["rows"][:-1]] == [False, False, True, True]
    assert not any(row["held_because"] for row in answer["rows"])


def test_steps_of_a_long_open_run_send_only_its_beginning() -> None:
    """The answer does not grow with the square of a run."""
    rows = rows_of(BYTES, ids=[0, 1, 2] * 100)
    assert rows[-2]["held_size"] == 300
    assert len(rows[-2]["held"]["bytes"]) == 2 * MAX_HELD


def test_steps_compare_another_strategy() -> None:
    """The other strategy's text and its deviations stand in the rows."""
    answer = steps(EMBEDDED, TraceAsked(text="é é", strategy="window"))
    assert answer["compared"] == answer["right"] == "é é"
    assert all(row["compared"] is not None for row in answer["rows"])


def test_steps_say_whether_the_library_agrees() -> None:
    """Eager bytes are not the library's text where the bytes are no character; exact ones are."""
    assert steps(BYTES, TraceAsked(ids=[0, 1, 5]))["as_library"] is True
    assert steps(BYTES, TraceAsked(ids=[0, 1, 2, 0, 5], byte_fallback="eager"))["as_library"] is False


def test_steps_of_too_many_tokens_are_refused() -> None:
    """The limit counts tokens: a text may have more of them than one can see."""
    assert len(rows_of(EMBEDDED, text=" x" * MAX_TOKENS)) == MAX_TOKENS + 1
    with pytest.raises(detok.OptionError, match="text='2,049 tokens'"):
        steps(EMBEDDED, TraceAsked(text=" x" * (MAX_TOKENS + 1)))
