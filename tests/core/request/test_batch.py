"""A batch gives each request what a `RequestDecoder` of its own would give, and a row that cannot be hurts nobody else."""

from __future__ import annotations

import copy
import json
import pickle
import tracemalloc
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.core.request.output import OutputCollector
from detok.core.request.places import MAX_MOVES, Places
from detok.data import sample
from detok.inspection.strategies import by_strategy
from tests.support.handmade import BYTE_LEVEL, FALLBACK, FUSE, byte_tokens, make, sequence
from tests.support.laws import SUBJECTS, cuts, id_lists, split, subject

COLLIDING = ("a", "b", "aa", "ab", "ba", "aab", "Ċ", "ĊĊ", "ðŁ", "¦", "ľ", "ðŁ¦ľ", "aðŁ", "ľb", "Ġ", "Ġa")
EMBEDDED = detok.load(detok.EMBEDDED)

stops = st.lists(st.text("ab\n🦜 \ufffd", min_size=1, max_size=4), max_size=3)


@pytest.fixture(scope="module")
def colliding() -> detok.Tokenizer:
    """A byte-level tokenizer over a small alphabet, so that stops collide."""
    return detok.load(make(BYTE_LEVEL, COLLIDING))


@st.composite
def options(draw: st.DrawFn, token_ids: Sequence[int]) -> detok.RequestOptions:
    """Options of all kinds, more often than not those with which a row may be a usual one."""
    most = draw(st.none() | st.integers(3, 9))
    fields: dict[str, Any] = {
        "stop": draw(stops),
        "include_stop_str_in_output": draw(st.booleans()),
        "stop_token_ids": draw(st.lists(st.sampled_from(token_ids), max_size=1)),
        "min_tokens": draw(st.integers(0, 3)),
        "max_tokens": most,
    }
    if draw(st.integers(0, 3)) == 0:
        fields["output"] = draw(st.sampled_from(["delta", "cumulative", "final"]))
        fields["stream_interval"] = draw(st.integers(1, 3))
        fields["segments"] = draw(st.booleans())
    return detok.RequestOptions(**fields)


def assert_like_requests(
    tokenizer: detok.Decoder, batch: detok.BatchDecoder, asked: Sequence[tuple[list[int], Any, Any]]
) -> None:
    """Feed all requests side by side, each in its own steps, to a batch and to decoders of their own."""
    alone = [tokenizer.request(options=wanted) for _, wanted, _ in asked]
    for number, (_, wanted, _) in enumerate(asked):
        batch.open(number, (), wanted)
    steps = [[*split(ids, where), ()] for ids, _, where in asked]
    for turn in range(max(map(len, steps))):
        rows, numbers = [], []
        for number, mine in enumerate(steps):
            if turn < len(mine) and not alone[number].finished:
                # The last step is the engine's end.
                numbers.append(number)
                rows.append(detok.Row(number, mine[turn], None, "length" if turn == len(mine) - 1 else None))
        expected = [
            alone[number].feed(steps[number][turn], None, row.finish_reason) for number, row in zip(numbers, rows, strict=True)
        ]
        assert batch.step(rows) == expected
        for number in numbers:
            assert (number in batch) is not alone[number].finished
            if number in batch and turn % 2:
                assert batch.request(number).held == alone[number].held
                assert batch.request(number).snapshot() == alone[number].snapshot()
    assert len(batch) == 0


@given(data=st.data())
def test_batch_is_many_requests(colliding: detok.Tokenizer, data: st.DataObject) -> None:
    """Output by output, whatever the options, the steps and what was remembered before."""
    batch = detok.BatchDecoder(colliding)
    asked = []
    for _ in range(data.draw(st.integers(1, 4))):
        ids = data.draw(st.lists(st.sampled_from(colliding.ids), max_size=14))
        # Cut everywhere as often as anywhere: a row of one token is the usual one.
        where = data.draw(cuts | st.just([*range(len(ids))]))
        asked.append((ids, data.draw(options(colliding.ids)), where))
    for _ in range(3):
        assert_like_requests(colliding, batch, asked)


@pytest.mark.parametrize("name", SUBJECTS)
@given(data=st.data())
def test_batch_is_many_requests_over_every_kind_of_tokenizer(name: str, data: st.DataObject) -> None:
    """The same, over every decoder, with stops taken from the text itself."""
    tokenizer = subject(name)
    ids, skip = data.draw(id_lists(tokenizer)), data.draw(st.booleans())
    text = tokenizer.decode(ids, skip)
    places = data.draw(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 4)), max_size=2))
    stop = [text[place % len(text) :][:length] for place, length in places if text]
    wanted = detok.RequestOptions(stop=stop, skip_special_tokens=skip, min_tokens=data.draw(st.integers(0, 2)))
    batch = detok.BatchDecoder(tokenizer)
    for where in ([*range(len(ids))], [*range(len(ids))], data.draw(cuts)):
        assert_like_requests(tokenizer, batch, [(ids, wanted, where)])


def usual(text: str, tokenizer: detok.Tokenizer = EMBEDDED) -> list[int]:
    """The ids of a text."""
    return tokenizer.encode(text, add_special_tokens=False)


def test_usual_row_is_one_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was fed once is remembered: the second request of the same options never goes the long way."""
    ids = usual(sample("mixed"))
    batch = detok.BatchDecoder(EMBEDDED)
    asked = detok.RequestOptions(stop=["\n\nQuestion:"])
    for name in "one", "two":
        batch.open(name, (), asked)
    first = [batch.step([detok.Row("one", [token_id])])[0] for token_id in ids]

    def refuse(*_: object) -> None:
        raise AssertionError("the long way")

    monkeypatch.setattr(detok.RequestDecoder, "_take", refuse)
    second = [batch.step([detok.Row("two", [token_id])])[0] for token_id in ids]
    assert second == first
    assert batch.request("two").num_tokens == len(ids)


def test_rows_of_several_ids_are_looked_up_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Speculative steps go from place to place when every id of them is a usual one."""
    ids = usual(sample("mixed"))
    batch = detok.BatchDecoder(EMBEDDED)
    steps = [ids[place : place + 3] for place in range(0, len(ids), 3)]
    for name in "one", "two":
        batch.open(name)
    first = [batch.step([detok.Row("one", step)])[0] for step in steps]
    monkeypatch.setattr(detok.RequestDecoder, "_take", None)
    assert [batch.step([detok.Row("two", step)])[0] for step in steps] == first


def test_shared_output_cannot_be_changed() -> None:
    """It belongs to many: setting a field says so, its list of ids is a copy, and a copy of it is one's own."""
    batch = detok.BatchDecoder(EMBEDDED)
    batch.open("a")
    (token_id,) = usual("x")
    batch.step([("a", [token_id], None, None, None)])
    (output,) = batch.step([("a", [token_id], None, None, None)])
    with pytest.raises(AttributeError, match="copy"):
        output.text = "y"
    with pytest.raises(AttributeError, match="copy"):
        output.finish_reason = "stop"
    output.token_ids.append(1)
    assert output == detok.RequestOutput("x", [token_id])
    assert repr(output) == repr(detok.RequestOutput("x", [token_id]))
    assert output.as_dict() == {"text": "x", "token_ids": [token_id]}
    own = copy.copy(output)
    own.text = "y"
    assert (output.text, pickle.loads(pickle.dumps(output))) == ("x", output)
    assert output.coalesce(output) == detok.RequestOutput("xx", [token_id] * 2)


def test_memory_begins_again_when_it_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many different tokens and options come, what is remembered is bounded, and the text is right."""
    tokenizer = detok.load(detok.EMBEDDED)
    monkeypatch.setattr(tokenizer, "_places", Places(limit=50))
    batch = detok.BatchDecoder(tokenizer)
    ids = usual(sample("mixed"))
    for turn in range(3):
        asked = detok.RequestOptions(stop=[f"stop {turn}"])
        batch.open(turn, (), asked)
        text = "".join(batch.step([detok.Row(turn, [token_id])])[0].text for token_id in ids)
        assert text + batch.close(turn).text == EMBEDDED.decode(ids)
        assert len(tokenizer._places) <= 50


def test_long_silence_with_a_stop_is_bounded() -> None:
    """
    Tokens whose part of the text is open for long are settled on the way, as in a request of its own.

    A byte run that stays valid comes out at its end, all at once; one id a row, and several.
    """
    tokenizer = detok.load(make(sequence(FALLBACK, FUSE), (*byte_tokens("🦜".encode()), "x", "y")))
    parrot = [tokenizer.library.tokens()[token] for token in byte_tokens("🦜".encode())]
    ids = [*parrot * 12, tokenizer.library.tokens()["x"], *parrot * 3, tokenizer.library.tokens()["y"]]
    asked = detok.RequestOptions(stop=["zz"])
    batch = detok.BatchDecoder(tokenizer)
    for where in ([*range(len(ids))], [*range(len(ids))], [*range(0, len(ids), 5)], [*range(len(ids))]):
        assert_like_requests(tokenizer, batch, [(ids, asked, where)])


def test_special_tokens_inside_a_character_are_bounded() -> None:
    """The same move again and again, which leads nowhere: what is kept of it does not grow."""
    first, *rest = usual("🦜")
    # One that ends nothing.
    special = next(one for one in EMBEDDED.special_ids if one not in EMBEDDED.eos_token_ids)
    asked = detok.RequestOptions(stop=["zz"])
    batch = detok.BatchDecoder(EMBEDDED)
    for name in "first", "again":
        batch.open(name, (), asked)
        for token_id in (first, *[special] * 100):
            (output,) = batch.step([detok.Row(name, [token_id])])
            assert output == detok.RequestOutput("", [token_id])
            assert len(batch.request(name)._noted) <= MAX_MOVES
        assert batch.step([detok.Row(name, rest)])[0].text == "🦜"


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint16])
def test_numpy_ids_are_taken_as_they_are(dtype: Any) -> None:
    """A row's array, and a column of a step's ids, give the outputs that lists give."""
    ids = usual("Hello 🦜!")
    batch = detok.BatchDecoder(EMBEDDED)
    batch.open("array")
    batch.open("list")
    for turn in range(0, len(ids), 2):
        step = ids[turn : turn + 2]
        array, listed = batch.step([detok.Row("array", np.array(step, dtype)), detok.Row("list", step)])
        assert array == listed
        assert {type(token_id) for token_id in array.token_ids} == {int}
    column = np.array([[7], [8]], dtype)
    outputs = batch.step(zip(("array", "list"), column, repeat(None), repeat(None), repeat(None)))
    assert [output.token_ids for output in outputs] == [[7], [8]]


@pytest.mark.parametrize("bad", [[True], [1.0], ["1"], "1", None, 5, [None], [5.0, 5], np.array([1.5]), np.array(3)])
def test_bad_ids_end_their_request_alone(bad: Any) -> None:
    """The output of the row has the error and all that was held; the neighbours go on."""
    ids = usual("ab🦜")
    batch = detok.BatchDecoder(EMBEDDED)
    asked = detok.RequestOptions(stop="bc")
    # So that the good ids are remembered: 5 is equal to 5.0, and 1 to True.
    for token_id in (*ids, 1, 5):
        batch.open("first", (), asked)
        batch.step([detok.Row("first", [token_id])] * 2)
        batch.abort("first")
    for name in "abc":
        batch.open(name, (), asked)
        batch.step([detok.Row(name, [token_id]) for token_id in ids[:2]])
    one, two, three = batch.step([detok.Row("a", [ids[2]]), detok.Row("b", bad), detok.Row("c", [ids[2]])])
    assert isinstance(two.error, detok.TokenTypeError)
    assert ("a" + two.text, two.finish_reason, two.tokens_kept) == (EMBEDDED.decode(ids[:2]), "error", 2)
    assert one == three
    assert one.error is None
    assert ["a" in batch, "b" in batch, "c" in batch] == [True, False, True]


def test_row_of_an_unknown_request_says_so() -> None:
    """Never opened, or ended: an error output that names it, and no more."""
    batch = detok.BatchDecoder(EMBEDDED)
    batch.open("a", (), detok.RequestOptions(max_tokens=1))
    first, second, other = batch.step([detok.Row("a", [72]), detok.Row("a", [73]), detok.Row("b", [72])])
    assert first.finish_reason == "length"
    assert [type(output.error) for output in (second, other)] == [detok.UnknownRequest] * 2
    assert str(other.error) == "no request 'b' is open; it was never opened, or it has ended"
    for method in (batch.close, batch.abort, batch.release, batch.request):
        with pytest.raises(detok.UnknownRequest):
            method("a")


@pytest.mark.parametrize("request_id", [[], {}, ["a"], np.array([1]), ("a", [])], ids=repr)
def test_row_of_an_unhashable_id_fails_alone(request_id: Any) -> None:
    """No request can have it, so the row is of an unknown one; what the others give is not lost."""
    batch = detok.BatchDecoder(EMBEDDED)
    batch.open("a")
    ids = usual("xy")
    outputs = batch.step([detok.Row("a", ids[:1]), detok.Row(request_id, ids[:1]), detok.Row("a", ids[1:])])
    assert [output.text for output in outputs] == ["x", "", "y"]
    assert isinstance(outputs[1].error, detok.UnknownRequest)
    assert repr(request_id) in str(outputs[1].error)


def test_second_open_of_an_id_is_refused() -> None:
    """The first one goes on; after its end the id is free."""
    batch = detok.BatchDecoder(EMBEDDED)
    batch.open("a")
    with pytest.raises(detok.DuplicateRequest, match="'a'"):
        batch.open("a")
    with pytest.raises(detok.DuplicateRequest, match="'a'"):
        batch.adopt("a", EMBEDDED.request())
    assert batch.step([detok.Row("a", usual("x"))])[0].text == "x"
    batch.close("a")
    batch.open("a")


def test_open_with_what_cannot_be_leaves_no_trace() -> None:
    """A prompt that is none."""
    batch = detok.BatchDecoder(EMBEDDED)
    with pytest.raises(detok.TokenTypeError):
        batch.open("a", [1.5])  # type: ignore[list-item]  # the point
    assert "a" not in batch


def test_close_gives_what_is_held_and_abort_too() -> None:
    """For every reason of ending, nothing is lost."""
    batch = detok.BatchDecoder(EMBEDDED)
    ids = usual("END")
    for end in (batch.close, batch.abort):
        batch.open("a", (), detok.RequestOptions(stop="ENDING"))
        given = "".join(batch.step([detok.Row("a", [token_id])])[0].text for token_id in ids)
        output = end("a")
        assert (given, output.text, output.finish_reason) == ("", "END", "stop" if end == batch.close else "abort")
        assert "a" not in batch


def test_failing_pattern_ends_its_request_alone() -> None:
    """A search that takes too long is an error of that row, even if the end of it does too."""
    batch = detok.BatchDecoder(EMBEDDED)
    batch.open("slow", (), detok.RequestOptions(stop_regex="(a+)+$b", stop_regex_timeout=1e-9))
    batch.open("fine")
    slow, fine = batch.step([detok.Row("slow", usual("a" * 40)), detok.Row("fine", usual("a"))])
    assert isinstance(slow.error, detok.StopRegexTimeout)
    assert (slow.finish_reason, fine.text, len(batch)) == ("error", "a", 1)


def test_logprobs_and_ends_come_in_rows() -> None:
    """What an engine says beside ids goes where `RequestDecoder.feed` has it."""
    batch = detok.BatchDecoder(EMBEDDED)
    batch.open("a")
    ids = usual("Hi")
    first, last = batch.step([detok.Row("a", ids[:1], [-0.5]), detok.Row("a", ids[1:], [-0.25], "stop", "why")])
    assert [entry.logprob for output in (first, last) for entry in output.logprobs or ()] == [-0.5, -0.25]
    assert (last.finish_reason, last.stop_reason) == ("stop", "why")


def test_released_request_goes_on_elsewhere() -> None:
    """As a snapshot through JSON into another batch, in the middle of a character and of a stop."""
    ids = usual(sample("mixed"))[:200]
    asked = detok.RequestOptions(stop=["never comes"])
    here, there = detok.BatchDecoder(EMBEDDED), detok.BatchDecoder(EMBEDDED)
    here.open("warm", (), asked)
    for token_id in ids:
        here.step([detok.Row("warm", [token_id])])
    here.open("a", (), asked)
    text = ""
    for token_id in ids:
        text += here.step([detok.Row("a", [token_id])])[0].text
        there.adopt("a", EMBEDDED.restore_request(json.loads(json.dumps(here.release("a").snapshot()))))
        here, there = there, here
    assert text + here.close("a").text == EMBEDDED.decode(ids)
    ended = EMBEDDED.request()
    ended.finish()
    with pytest.raises(detok.RequestFinished):
        here.adopt("b", ended)


def test_character_that_the_prompt_began_comes_out() -> None:
    """Law 5 in a batch: the prompt is context."""
    ids = usual("🦜")
    batch = detok.BatchDecoder(EMBEDDED)
    batch.open("a", ids[:1])
    assert batch.step([detok.Row("a", ids[1:])])[0].text == "🦜"


def test_open_request_is_small() -> None:
    """65,536 of them, each in the middle of its text, take less than 100 MB: 1,500 bytes each."""
    count = 2_000
    asked = detok.RequestOptions(stop=["\n\nQuestion:"])
    ids = usual("Hello 🦜!")
    batch = detok.BatchDecoder(EMBEDDED)

    def open_some(numbers: range) -> None:
        for number in numbers:
            batch.open(number, (), asked)
        for token_id in ids:
            batch.step([detok.Row(number, [token_id]) for number in numbers])

    open_some(range(10))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        open_some(range(10, 10 + count))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / count < 1_500


def test_row_whose_request_cannot_even_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever breaks, and breaks again at the end: an error output, and the request is gone."""

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    batch = detok.BatchDecoder(EMBEDDED)
    batch.open("a", (), detok.RequestOptions(segments=True))
    monkeypatch.setattr(detok.RequestDecoder, "feed", broken)
    monkeypatch.setattr(detok.RequestDecoder, "finish", broken)
    (output,) = batch.step([detok.Row("a", [72])])
    assert (output.finish_reason, str(output.error), len(batch)) == ("error", "broken", 0)


def test_strategy_without_a_memory_is_never_remembered() -> None:
    """A window's states hardly come again; its rows go the long way, and are right."""
    ids = usual("Hello 🦜!")
    windows = by_strategy(EMBEDDED, "window")
    batch = detok.BatchDecoder(windows)
    asked = detok.RequestOptions()
    before = len(EMBEDDED._places)
    for _ in range(2):
        assert_like_requests(windows, batch, [(ids, asked, [*range(len(ids))])])
    assert len(EMBEDDED._places) == before


LETTERS = [849, 66, 67]
"""The ids of "ab", "c" and "d"."""

FAULTS = [
    (name, asked)
    for name, every in {
        "_catch_up": ({}, {"max_tokens": 3}, {"stop": ["zz"]}, {"stream_interval": 2}, {"output": "final"}),
        "_stand": ({}, {"max_tokens": 3}, {"stop": ["zz"]}, {"stream_interval": 2}, {"output": "cumulative"}),
        "gather": ({"stream_interval": 2}, {"stream_interval": 3, "stop": ["zz"]}, {"output": "cumulative"}, {"output": "final"}),
    }.items()
    for asked in every
]


def plant(request: detok.RequestDecoder, name: str, monkeypatch: pytest.MonkeyPatch, *, late: bool) -> list[Exception]:
    """Let a method raise once, for this request alone, before or after its work; return the error, once it was raised."""
    owner = OutputCollector if name == "gather" else detok.RequestDecoder
    target = request._collected if name == "gather" else request
    right, raised = getattr(owner, name), list[Exception]()

    def broken(self: Any, *args: Any) -> Any:
        if self is not target or raised:
            return right(self, *args)
        if late:
            right(self, *args)
        raised.append(TypeError("planted"))
        raise raised[0]

    monkeypatch.setattr(owner, name, broken)
    return raised


@pytest.fixture
def learned() -> detok.Tokenizer:
    """A tokenizer for which the letters are usual tokens with all of these options."""
    tokenizer = detok.load(detok.EMBEDDED)
    assert tokenizer.decode(LETTERS) == "abcd"
    for _, asked in FAULTS:
        for steps in ([LETTERS], [[token_id] for token_id in LETTERS]):
            request = tokenizer.request(options=detok.RequestOptions(**asked))
            for step in steps:
                request.feed(step)
    return tokenizer


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("name", "asked"), FAULTS, ids=str)
def test_fault_in_a_state_change_is_loud(
    learned: detok.Tokenizer, name: str, asked: dict[str, Any], late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    What changes the state stands outside the `try` of the look-up.

    An error in that change once passed for a token that is not usual, so that the token was taken again, and "abcd" came out as
    "ababcd". Now the row has the very error and its request is gone, nothing came out twice, and the others go on.
    """
    batch, alone = detok.BatchDecoder(learned), learned.request(options=detok.RequestOptions(**asked))
    for request_id in "abc":
        batch.open(request_id, (), detok.RequestOptions(**asked))
    raised = plant(batch.request("b"), name, monkeypatch, late=late)
    before: list[detok.RequestOutput] = []
    for turn in range(2 * MAX_MOVES):
        token_id = LETTERS[turn % 3]
        first, second, third = batch.step([detok.Row(request_id, [token_id]) for request_id in "abc"])
        assert first == third == alone.feed([token_id])
        if raised:
            break
        before.append(second)
    (error,) = raised
    assert (second.finish_reason, second.error, second.text, "b" in batch) == ("error", error, "", False)
    taken = before[-1:] if asked.get("output") == "cumulative" else before
    ids = [token_id for output in taken for token_id in output.token_ids]
    assert ids == [LETTERS[place % 3] for place in range(len(ids))]
    assert "".join(output.text for output in taken) == learned.decode(ids)
    (again,) = batch.step([detok.Row("b", [LETTERS[0]])])
    assert isinstance(again.error, detok.UnknownRequest)


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("name", "asked"), FAULTS, ids=str)
def test_fault_in_a_state_change_of_one_request_is_raised(
    learned: detok.Tokenizer, name: str, asked: dict[str, Any], late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same without a batch: the error itself comes out of `feed`, and what came before it came once."""
    request = learned.request(options=detok.RequestOptions(**asked))
    raised = plant(request, name, monkeypatch, late=late)
    before: list[detok.RequestOutput] = []

    def feed_all() -> None:
        before.extend(request.feed([LETTERS[turn % 3]]) for turn in range(2 * MAX_MOVES))

    with pytest.raises(TypeError, match="planted") as caught:
        feed_all()
    assert caught.value is raised[0]
    taken = before[-1:] if asked.get("output") == "cumulative" else before
    ids = [token_id for output in taken for token_id in output.token_ids]
    assert ids == [LETTERS[place % 3] for place in range(len(ids))]
    assert "".join(output.text for output in taken) == learned.decode(ids)


def test_row_that_is_refused_is_an_error_even_if_its_end_fails() -> None:
    """The end searches what an open byte run held, which may take too long: the error is that of the row."""
    tokenizer = detok.load(make(sequence(FALLBACK, FUSE), byte_tokens(b"a")))
    batch = detok.BatchDecoder(tokenizer)
    batch.open("a", (), detok.RequestOptions(stop_regex="(a+)+$b", stop_regex_timeout=1e-9))
    assert batch.step([detok.Row("a", [0] * 40)]) == [detok.RequestOutput("", [0] * 40)]
    refused: tuple[Any, ...] = ("a", [None], None, None, None)
    (output,) = batch.step([refused])
    assert isinstance(output.error, detok.TokenTypeError)
    assert (output.text, output.finish_reason, len(batch)) == ("", "error", 0)


@pytest.mark.parametrize("row", [("a", [39]), ("a", [39], None, None), {"request_id": "a"}, None, 5, "abcdef"], ids=str)
def test_what_is_no_row_fails_alone(row: Any) -> None:
    """Nothing of it is taken, and the rows beside it give what they give; before, it ended the step and their text was lost."""
    batch = detok.BatchDecoder(EMBEDDED)
    batch.open("a")
    batch.open("b")
    (token_id,) = usual("x")
    first, bad, last = batch.step([("a", [token_id], None, None, None), row, ("b", [token_id], None, None, None)])
    assert (first.text, last.text, bad.finish_reason) == ("x", "x", "error")
    assert "five fields: request id, token ids, logprobs, finish reason, stop reason" in str(bad.error)
    assert batch.close("a").tokens_kept == 1


def test_row_in_another_order_says_what_belongs_where() -> None:
    """A finish reason in the place of logprobs is a str, whose characters are no logprobs."""
    batch = detok.BatchDecoder(EMBEDDED)
    batch.open("a")
    (output,) = batch.step([("a", usual("x"), "length", None, None)])  # type: ignore[list-item]  # mypy sees the swap too
    assert "a finish reason is the argument after it" in str(output.error)


def test_none_is_no_stop() -> None:
    """It is the default of vLLM's SamplingParams, which adapters hand on as it is."""
    options = detok.RequestOptions(stop=None, stop_regex=None, stop_token_ids=None)
    assert options == detok.RequestOptions()
    assert EMBEDDED.request(stop=None).feed(usual("x")).text == "x"
