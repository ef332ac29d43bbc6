"""Requests against an oracle that reads one character at a time: every kind of tokenizer, any stops, any split into steps."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from tests.support.handmade import BYTE_LEVEL, make
from tests.support.laws import SUBJECTS, cuts, id_lists, judge, split, subject
from tests.support.oracle import Expected, expected

COLLIDING = ("a", "b", "aa", "ab", "ba", "aab", "Ċ", "ĊĊ", "ðŁ", "¦", "ľ", "ðŁ¦ľ", "aðŁ", "ľb", "Ġ", "Ġa")
"""Pieces of a small alphabet, so that stops collide: letters, line ends, and an emoji in parts with letters at them."""


def outcome(outputs: Sequence[detok.RequestOutput]) -> Expected:
    """What the outputs of a request, of the kind "delta", come to."""
    last = next(output for output in outputs if output.finished)
    ids = [token_id for output in outputs for token_id in output.token_ids]
    assert last.tokens_kept is not None
    entries = [entry for output in outputs for entry in output.logprobs or ()]
    assert [entry.token_id for entry in entries] == ids[: last.tokens_kept]
    text = "".join(output.text for output in outputs)
    assert last.text_end == len(text)
    assert last.finish_reason is not None
    tiles = [entry.token for entry in entries]
    places = [sum(map(len, tiles[:count])) for count in range(len(tiles))]
    assert [entry.text_offset for entry in entries] == places
    assert [text[:place].encode("utf-8", "replace") for place in places] == [
        text.encode("utf-8", "replace")[: entry.byte_offset] for entry in entries
    ]
    return Expected(text, ids[: last.tokens_kept], last.finish_reason, last.stop_reason, tiles)


def run(request: detok.RequestDecoder, steps: Sequence[Sequence[int]], *, logprobs: bool) -> list[detok.RequestOutput]:
    """Feed all steps until the request ends, and end it with "length" if it does not."""
    outputs = []
    for step in steps:
        outputs.append(request.feed(step, [-1.0] * len(step) if logprobs else None))
        if outputs[-1].finished:
            return outputs
    return [*outputs, request.finish("length")]


@pytest.fixture(scope="module")
def colliding() -> detok.Tokenizer:
    """A byte-level tokenizer over `COLLIDING`."""
    return detok.load(make(BYTE_LEVEL, COLLIDING))


texts = st.text("ab\n🦜 \ufffd", min_size=1, max_size=4)
stops = st.lists(texts, max_size=4)


@given(data=st.data())
def test_stops_are_those_of_one_character_at_a_time(colliding: detok.Tokenizer, data: st.DataObject) -> None:
    """Law 6 and 7: text, stop, ids kept and their tiles are the oracle's, for any stops, split and limits."""
    ids = data.draw(st.lists(st.sampled_from(colliding.ids), max_size=16))
    stop, include = data.draw(stops), data.draw(st.booleans())
    least, most = data.draw(st.integers(0, 4)), data.draw(st.none() | st.integers(4, 9))
    ends = data.draw(st.lists(st.sampled_from(colliding.ids), max_size=1)) if not include else []
    wanted = expected(
        colliding.decode, ids, stop=stop, ends=ends, explicit=ends, include=include, min_tokens=least, max_tokens=most
    )
    options = detok.RequestOptions(
        stop=stop, stop_token_ids=ends, include_stop_str_in_output=include, min_tokens=least, max_tokens=most
    )
    got = outcome(run(colliding.request(options=options), split(ids, data.draw(cuts)), logprobs=True))
    assert got == wanted
    # Without logprobs a step goes other, shorter ways. Twice, as the first time fills what the second one finds.
    for steps in ([[token_id] for token_id in ids], [[token_id] for token_id in ids], split(ids, data.draw(cuts))):
        outputs = run(colliding.request(options=options), steps, logprobs=False)
        text = "".join(output.text for output in outputs)
        last = outputs[-1]
        given = [token_id for output in outputs for token_id in output.token_ids]
        assert (text, last.finish_reason, last.stop_reason) == (wanted.text, wanted.finish_reason, wanted.stop_reason)
        assert given[: last.tokens_kept] == wanted.token_ids


@pytest.mark.parametrize("name", SUBJECTS)
@given(data=st.data())
def test_requests_are_right_over_every_kind_of_tokenizer(name: str, data: st.DataObject) -> None:
    """Laws 6, 7 and 10: stops taken from the text itself, over every decoder; the strings of the kept tokens tile the text."""
    tokenizer = subject(name)
    ids, skip = data.draw(id_lists(tokenizer)), data.draw(st.booleans())

    def decode(some: Sequence[int]) -> str:
        return judge(tokenizer, some, skip_special_tokens=skip)

    text = decode(ids)
    places = data.draw(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 4)), max_size=3))
    stop = [text[place % len(text) :][:length] for place, length in places if text]
    least = data.draw(st.integers(0, 3))
    include = data.draw(st.booleans())
    wanted = expected(decode, ids, stop=stop, include=include, min_tokens=least)
    options = detok.RequestOptions(
        stop=stop, include_stop_str_in_output=include, min_tokens=least, skip_special_tokens=skip, eos_token_ids=[]
    )
    got = outcome(run(tokenizer.request(options=options), split(ids, data.draw(cuts)), logprobs=True))
    assert got == wanted
    outputs = run(tokenizer.request(options=options), split(ids, data.draw(cuts)), logprobs=False)
    assert "".join(output.text for output in outputs) == wanted.text
    assert (outputs[-1].stop_reason, outputs[-1].tokens_kept) == (wanted.stop_reason, len(wanted.token_ids))


@given(data=st.data())
def test_held_is_only_a_live_candidate(colliding: detok.Tokenizer, data: st.DataObject) -> None:
    """Law 3 with stops: of the certain text just the longest end that is a proper beginning of a stop is missing."""
    ids = data.draw(st.lists(st.sampled_from(colliding.ids), max_size=12))
    stop, include = data.draw(stops), data.draw(st.booleans())
    stream = colliding.stream()
    request = colliding.request(stop=stop, include_stop_str_in_output=include)
    certain = given = ""
    for token_id in ids:
        certain += stream.step(token_id)
        output = request.feed([token_id])
        given += output.text
        if output.finished:
            return
        begins = [end for end in range(1, len(certain) + 1) for one in stop if one.startswith(certain[-end:]) and len(one) > end]
        held = 0 if include else max(begins, default=0)
        assert given == certain[: len(certain) - held]


@given(data=st.data())
def test_request_survives_as_json_after_any_step(colliding: detok.Tokenizer, data: st.DataObject) -> None:
    """Law 9: going on after a snapshot is never having stopped, with whatever was asked for."""
    ids = data.draw(st.lists(st.sampled_from(colliding.ids), max_size=12))
    options = detok.RequestOptions(
        stop=data.draw(stops),
        output=data.draw(st.sampled_from(["delta", "cumulative", "final"])),
        stream_interval=data.draw(st.integers(1, 3)),
        segments=data.draw(st.booleans()),
        min_tokens=data.draw(st.integers(0, 3)),
        after_finish="ignore",
    )
    has_logprobs = data.draw(st.booleans())
    one, other = colliding.request(options=options), colliding.request(options=options)
    for token_id in ids:
        logprobs = [detok.Logprob(-0.5, 2, [(0, -0.25), (1, -1.5)])] if has_logprobs else None
        assert one.feed([token_id], logprobs) == other.feed([token_id], logprobs)
        snapshot = json.loads(json.dumps(other.snapshot()))
        other = colliding.restore_request(snapshot)
        assert other.snapshot() == one.snapshot()
        assert (other.held, other.finished, other.num_tokens) == (one.held, one.finished, one.num_tokens)
    assert one.finish("length") == other.finish("length")
