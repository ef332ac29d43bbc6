"""One request: what ends it and how, what its outputs say, what it refuses."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import detok
from detok.prompts.facts import PromptFacts
from tests.support.handmade import BYTE_LEVEL, FALLBACK, FUSE, make

WORDS = [
    "<eos>",
    "<tool>",
    "the",
    " end",
    " is",
    " near",
    "ENDE",
    "<0xF0>",
    "<0x9F>",
    "<0xA6>",
    "<0x9C>",
    "<0x0A>",
    "<0x41>",
    "x",
]


@pytest.fixture
def words() -> detok.Tokenizer:
    """Words, byte tokens, and two special tokens, of which the one with id 0 ends an answer."""
    tokenizer = detok.load(make({"type": "Sequence", "decoders": [FALLBACK, FUSE]}, WORDS, special=["<eos>", "<tool>"]))
    tokenizer.prompt_facts = PromptFacts(eos_token_ids=(0,))
    return tokenizer


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize(("stop_id", "text"), [(0, "<eos>"), (1, "<tool>"), (3, " end")])
def test_stop_token_is_left_out_or_in_by_the_same_flag(words: detok.Tokenizer, stop_id: int, text: str, skip: bool) -> None:
    """Special or not, skipped or not: the flag for stop strings decides about its text, and the id is always kept."""
    for include in (False, True):
        request = words.request(
            stop_token_ids=[stop_id], include_stop_str_in_output=include, skip_special_tokens=skip, ignore_eos=True
        )
        output = request.feed([2, stop_id, 4])
        assert output.text == "the" + (text if include else "")
        assert (output.token_ids, output.dropped_token_ids, output.tokens_kept) == ([2, stop_id], [4], 2)
        assert (output.finish_reason, output.stop_reason, output.text_end) == ("stop", stop_id, len(output.text))


def test_end_of_sequence_has_no_reason(words: detok.Tokenizer) -> None:
    """A plain end of sequence is a stop without a stop_reason; asked for by id, it has one; ignored, it is a token."""
    assert words.request().feed([2, 0]).as_dict() == {
        "text": "the", "token_ids": [2, 0], "finish_reason": "stop", "stop_reason": None, "text_end": 3, "tokens_kept": 2,
    }  # fmt: skip
    assert words.request(stop_token_ids=[0]).feed([2, 0]).stop_reason == 0
    assert words.request(stop_token_ids=[0], ignore_eos=True).feed([2, 0]).stop_reason == 0
    assert words.request(ignore_eos=True).feed([2, 0, 3]).text == "the end"
    assert words.request(eos_token_ids=[3]).feed([2, 0, 3]).tokens_kept == 3
    assert words.request(skip_special_tokens=False).feed([2, 0]).text == "the"


def test_engine_may_say_what_stopped_it(words: detok.Tokenizer) -> None:
    """With "stop", a last id that is special, or named as the reason, is not text; any other is."""
    free: dict[str, Any] = {"ignore_eos": True, "skip_special_tokens": False}
    assert words.request(**free).feed([2, 1], finish_reason="stop").text == "the"
    assert words.request(**free).feed([2, 3], finish_reason="stop").text == "the end"
    named = words.request(**free, stop_token_ids=[7]).feed([2, 3], finish_reason="stop", stop_reason=3)
    assert (named.text, named.stop_reason) == ("the", 3)
    assert words.request(**free).feed([2, 3], finish_reason="stop", stop_reason=" end").text == "the end"
    assert words.request(**free).feed([2, 1], finish_reason="length").text == "the<tool>"


def test_held_bytes_come_out_before_a_stop_token(words: detok.Tokenizer) -> None:
    """A byte run that is open when a stop token comes is decided by it."""
    assert words.request().feed([7, 8, 9, 10, 0]).text == "🦜"
    assert words.request().feed([7, 8, 0]).text == "\ufffd\ufffd"


def test_stop_in_a_byte_run_cuts_ids_that_came_before(words: detok.Tokenizer) -> None:
    """The line end is certain only with the x; it belongs to its own token, and what stands behind that is dropped."""
    request = words.request(stop="\n")
    assert [request.feed([token_id]).token_ids for token_id in (2, 11, 12)] == [[2], [11], [12]]
    output = request.feed([13, 2])
    assert (output.text, output.stop_reason, output.tokens_kept) == ("", "\n", 2)
    assert (output.token_ids, output.dropped_token_ids, output.retracted_tokens) == ([], [13, 2], 1)
    for kind in ("cumulative", "final"):
        request = words.request(stop="\n", output=kind)
        outputs = [request.feed([token_id]) for token_id in (2, 11, 12, 13, 2)[:4]]
        assert (outputs[-1].text, outputs[-1].token_ids) == ("the", [2, 11])


def test_end_that_completes_a_stop_counts_as_the_stop(words: detok.Tokenizer) -> None:
    """A length end decides an open byte run, and the stop in it is found."""
    request = words.request(stop="\n")
    assert request.feed([2, 11]).text == "the"
    output = request.finish("length")
    assert (output.text, output.finish_reason, output.stop_reason, output.tokens_kept) == ("", "stop", "\n", 2)


@pytest.mark.parametrize("reason", ["stop", "length", "abort", "error"])
def test_every_end_gives_out_what_is_held(words: detok.Tokenizer, reason: Any) -> None:
    """A candidate, an open run: the text is that of the unstreamed request; a second end is an empty, false output."""
    request = words.request(stop=["ENDER", "\ufffdx"])
    texts = [request.feed([token_id]).text for token_id in (2, 6, 7, 8)]
    assert (texts, request.held, request.held_because) == (["the", "", "", ""], b"ENDE\xf0\x9f", request.held_because)
    assert "after what may become a stop" in request.held_because
    output = request.finish(reason)
    assert (output.text, output.finish_reason, output.stop_reason) == ("ENDE\ufffd\ufffd", reason, None)
    assert (request.held, request.finished, request.finish_reason) == ("", True, reason)
    again = request.finish("stop")
    assert not again
    assert again == detok.RequestOutput()
    assert (
        words.request(output="final", stop=["ENDER", "\ufffdx"]).feed([2, 6, 7, 8], finish_reason=reason).text
        == "theENDE\ufffd\ufffd"
    )


def test_finish_reason_arrives_without_ids(words: detok.Tokenizer) -> None:
    """An end may come alone, even as the first thing."""
    for kind in ("delta", "cumulative", "final"):
        output = words.request(output=kind).feed([], finish_reason="length")
        assert output
        assert (output.text, output.token_ids, output.finish_reason, output.tokens_kept) == ("", [], "length", 0)


def test_max_tokens_ends_with_length(words: detok.Tokenizer) -> None:
    """The last token that may be is in, a stop in it comes first, the rest is dropped."""
    output = words.request(max_tokens=2).feed([2, 3, 4])
    assert (output.text, output.finish_reason, output.dropped_token_ids) == ("the end", "length", [4])
    assert words.request(max_tokens=2, stop="end").feed([2, 3, 4]).finish_reason == "stop"
    request = words.request(max_tokens=3)
    assert [request.feed([2]).finish_reason for _ in range(3)] == [None, None, "length"]


def test_min_tokens_holds_for_every_kind_of_stop(words: detok.Tokenizer) -> None:
    """Stop strings, ids and end of sequence alike do not count at or before that token, nor later."""
    request = words.request(stop="the", stop_token_ids=[3], min_tokens=3, skip_special_tokens=False)
    assert request.feed([2, 3, 0]).text == "the end<eos>"
    assert request.feed([4, 3]).tokens_kept == 5


def test_after_stop_keep_keeps_ids_and_logprobs(words: detok.Tokenizer) -> None:
    """The text is cut all the same; the tokens behind it stay, with nothing of the text."""
    output = words.request(stop="end", after_stop="keep").feed([2, 3, 4, 5], [-1.0, -2.0, -3.0, -4.0])
    assert (output.text, output.token_ids, output.tokens_kept, output.dropped_token_ids) == ("the ", [2, 3, 4, 5], 4, ())
    assert output.logprobs is not None
    assert [(entry.token, entry.logprob) for entry in output.logprobs] == [("the", -1.0), (" ", -2.0), ("", -3.0), ("", -4.0)]


def test_finished_request_refuses_or_ignores_more(words: detok.Tokenizer) -> None:
    """As asked: an error that says what to do, or an empty output."""
    request = words.request(stop="end")
    request.feed([3])
    with pytest.raises(detok.RequestFinished, match=r"has ended \(stop\)"):
        request.feed([2])
    assert not request.feed([], finish_reason="abort")
    request = words.request(stop="end", after_finish="ignore")
    request.feed([3])
    assert not request.feed([2])
    assert not request.feed([2], finish_reason="length")


def test_stream_interval_gives_the_first_token_at_once(words: detok.Tokenizer) -> None:
    """The first token, then every third, the rest at the end, for both kinds that come more than once."""
    for kind, wanted in (
        ("delta", [[2], None, None, [3, 4, 5], None, None, [2, 3, 4], [5]]),
        ("cumulative", [[2], None, None, [2, 3, 4, 5], None, None, [2, 3, 4, 5, 2, 3, 4], [2, 3, 4, 5, 2, 3, 4, 5]]),
        ("final", [None] * 7 + [[2, 3, 4, 5, 2, 3, 4, 5]]),
    ):
        request = words.request(output=kind, stream_interval=3)
        ids = [2, 3, 4, 5] * 2
        outputs = [request.feed([token_id], finish_reason="length" if n == 7 else None) for n, token_id in enumerate(ids)]
        assert [output.token_ids if output else None for output in outputs] == wanted
        texts = "".join(output.text for output in outputs) if kind == "delta" else outputs[-1].text
        assert texts == "the end is near" * 2


def test_first_output_is_due_although_its_text_is_held(words: detok.Tokenizer) -> None:
    """A first token that is part of a character gives an output without text: time to first token is not a matter of text."""
    output = words.request(stream_interval=5).feed([7])
    assert (bool(output), output.text, output.token_ids) == (True, "", [7])


def test_outputs_coalesce_to_what_they_say_in_a_row(words: detok.Tokenizer) -> None:
    """Two outputs, a false one among them, and the end: one output with all of it."""
    request = words.request(stop="near", segments=True)
    outputs = [request.feed([token_id], [-1.0]) for token_id in (2, 1, 4, 5)]
    whole = detok.RequestOutput()
    for output in outputs:
        whole = whole.coalesce(detok.RequestOutput()).coalesce(output)
    once = words.request(stop="near", segments=True).feed([2, 1, 4, 5], [-1.0] * 4)
    assert whole == once
    assert whole.segments == [detok.Text("the"), detok.Special(1, "<tool>"), detok.Text(" is ")]
    assert whole.stop_reason == "near"
    assert "stop_reason='near'" in repr(whole)


def test_ids_pass_through_without_text(words: detok.Tokenizer) -> None:
    """With detokenize=False there is no text, but ids, ends, limits and logprobs; and no unbounded memory of tokens."""
    request = words.request(detokenize=False, max_tokens=40)
    for _ in range(39):
        assert request.feed([7], [-1.0]).text == ""
    output = request.feed([0], [-0.5])
    assert (output.finish_reason, output.token_ids, output.text) == ("stop", [0], "")
    assert output.logprobs == [detok.TokenLogprob(0, -0.5, "", b"<eos>", 0, 0)]
    assert words.request(detokenize=False).feed([2], finish_reason="length").text == ""


@pytest.mark.parametrize("ids", [np.array([2, 3]), (2, 3), iter([2, 3]), [np.int64(2), np.int32(3)], range(2, 4)])
def test_ids_may_come_in_any_container(words: detok.Tokenizer, ids: Any) -> None:
    """Lists, tuples, arrays, iterators; what is given on are plain ints."""
    output = words.request().feed(ids)
    assert output.text == "the end"
    assert [type(token_id) for token_id in output.token_ids] == [int, int]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop": [""]}, r"stop\[0\]='' is invalid; an empty stop"),
        ({"stop": ["a", 5]}, r"stop\[1\]=5 is invalid; it is a string"),
        ({"stop": b"a"}, "stop=b'a' is invalid; it is a string or a list of strings"),
        ({"stop": 5}, "stop=5 is invalid"),
        ({"stop_regex": [None]}, r"stop_regex\[0\]=None is invalid"),
        ({"min_tokens": 5, "max_tokens": 4}, "min_tokens=5 is invalid; max_tokens is 4"),
        ({"min_tokens": -1}, "min_tokens=-1 is invalid; it is an integer of at least 0"),
        ({"min_tokens": True}, "min_tokens=True is invalid"),
        ({"max_tokens": 0}, "max_tokens=0 is invalid"),
        ({"stream_interval": 0}, "stream_interval=0 is invalid"),
        ({"stream_interval": 1.5}, "stream_interval=1.5 is invalid"),
        ({"output": "deltas"}, "output='deltas' is invalid; it is one of 'delta', 'cumulative', 'final'"),
        ({"after_stop": "drop"}, "after_stop='drop' is invalid"),
        ({"after_finish": 1}, "after_finish=1 is invalid"),
        ({"ignore_eos": 1}, "ignore_eos=1 is invalid; it is one of True, False"),
        ({"segments": "yes"}, "segments='yes' is invalid"),
        ({"channels": "thinking"}, "channels='thinking' is invalid; it is one of 'think', 'hermes'"),
        ({"detokenize": False, "stop": "a"}, r"stop=\('a',\) is invalid; with detokenize=False there is no text"),
        ({"detokenize": False, "segments": True}, "segments=True is invalid; with detokenize=False"),
        ({"stop_regex_timeout": 0}, "stop_regex_timeout=0 is invalid"),
        ({"stop_regex_timeout": float("nan")}, "stop_regex_timeout=nan is invalid"),
        ({"stops": ["a"]}, r"stops=\['a'\] is invalid; a request has no such option; did you mean 'stop'\?"),
        ({"xyzzy": 1}, "xyzzy=1 is invalid; a request has no such option; there are skip_special_tokens"),
        ({"skip_special_tokens": None}, "skip_special_tokens=None is invalid"),
        ({"strategy": "window"}, r"strategy='window' is invalid; .*detok\.inspection\.strategies"),
    ],
)
def test_impossible_options_are_named(words: detok.Tokenizer, options: dict[str, Any], message: str) -> None:
    """Each error names the field and its value."""
    with pytest.raises(detok.OptionError, match=f"^{message}"):
        words.request(**options)


def test_ids_among_options_are_checked(words: detok.Tokenizer) -> None:
    """Stop ids are ids like any other; numpy's are taken."""
    with pytest.raises(detok.TokenTypeError, match=r"stop_token_ids\[1\] is the str"):
        words.request(stop_token_ids=[1, "2"])
    with pytest.raises(detok.TokenTypeError, match="eos_token_ids is the str"):
        words.request(eos_token_ids="0")
    assert words.request(stop_token_ids=np.array([3])).feed([2, 3]).stop_reason == 3
    with pytest.raises(detok.OptionError, match="stop='a' is invalid; give options, or each by name"):
        words.request(options=detok.RequestOptions(), stop="a")


@pytest.mark.parametrize(
    ("ids", "more", "error", "message"),
    [
        ([3, 2], {"logprobs": [-1.0]}, detok.OptionError, "there are 1 for 2 token ids"),
        ([3], {"logprobs": ["x"]}, detok.OptionError, r"logprobs\[0\]='x' is invalid"),
        ([3], {"logprobs": [detok.Logprob(-1.0, 1, [(1,)])]}, detok.OptionError, r"logprobs\[0\].top\[0\]=\(1,\)"),  # type: ignore[list-item]
        ([3], {"logprobs": [detok.Logprob(-1.0, 1, [("1", 2.0)])]}, detok.TokenTypeError, r"logprobs\[0\].top\[0\] is the str"),  # type: ignore[list-item]
        ([3], {"logprobs": [detok.Logprob("?")]}, detok.OptionError, r"logprobs\[0\].logprob='\?'"),  # type: ignore[arg-type]
        ([3], {"finish_reason": "eos"}, detok.OptionError, "finish_reason='eos' is invalid"),
        ([3, "2"], {}, detok.TokenTypeError, r"token_ids\[1\] is the str '2'"),
        ([True], {}, detok.TokenTypeError, r"token_ids\[0\] is the bool"),
        ("32", {}, detok.TokenTypeError, "a list of token ids is expected"),
        (3, {}, detok.TokenTypeError, "a list of token ids is expected"),
    ],
)
def test_bad_step_is_refused_before_anything_changes(
    words: detok.Tokenizer, ids: Any, more: dict[str, Any], error: type[Exception], message: str
) -> None:
    """The error names the field, and the request goes on as if nothing had been."""
    request = words.request(stop="endx")
    before = request.snapshot()
    with pytest.raises(error, match=message):
        request.feed(ids, **more)
    assert request.snapshot() == before
    assert request.feed([3]).text == " "


def test_logprobs_come_with_every_step_or_none(words: detok.Tokenizer) -> None:
    """A request that has had tokens without logprobs has none later, and the other way round."""
    request = words.request()
    request.feed([2])
    with pytest.raises(detok.OptionError, match="earlier steps had none"):
        request.feed([2], [-1.0])
    request = words.request()
    request.feed([], [])
    request.feed([2], [-1.0])
    with pytest.raises(detok.OptionError, match="earlier steps had them"):
        request.feed([2])
    assert request.feed([]).text == ""
    assert request.finish("length").finish_reason == "length"


def test_unknown_id_is_refused_if_asked(words: detok.Tokenizer) -> None:
    """The whole step is refused, wherever it stands in it."""
    request = words.request(unknown_ids="error")
    assert request.feed([2]).text == "the"
    with pytest.raises(detok.UnknownTokenId, match="no id 99 at position 1"):
        request.feed([3, 99])
    assert request.num_tokens == 1
    assert words.request(unknown_ids="replace").feed([99, 2]).text == "\ufffdthe"
    assert words.request().feed([99, -1, 2]).text == "the"


def test_request_is_no_pickle(words: detok.Tokenizer) -> None:
    """Its snapshot is what travels."""
    with pytest.raises(TypeError, match=r"send request.snapshot\(\)"):
        pickle.dumps(words.request())


def test_snapshots_are_told_apart(words: detok.Tokenizer) -> None:
    """A stream's is no request's, and each error says which call is the right one."""
    with pytest.raises(detok.SnapshotError, match=r"snapshot of a request, not of a stream.*restore_request"):
        words.restore(words.request().snapshot())
    with pytest.raises(detok.SnapshotError, match="snapshot of a stream, not of a request"):
        words.restore_request(words.stream().snapshot())
    damaged = copy.deepcopy(words.request(stop="a").snapshot())
    damaged["options"]["stop"] = ["b"]
    with pytest.raises(detok.SnapshotError, match="checksum"):
        words.restore_request(damaged)


def test_snapshot_of_a_finished_request(words: detok.Tokenizer) -> None:
    """It is finished there too."""
    request = words.request(stop="end")
    request.feed([3])
    restored = words.restore_request(request.snapshot())
    assert (restored.finished, restored.finish_reason) == (True, "stop")
    with pytest.raises(detok.RequestFinished):
        restored.feed([2])


def test_snapshot_stays_small() -> None:
    """Of a "delta" request it does not grow with what came before."""
    tokenizer = detok.load(make(BYTE_LEVEL, ["a", "b", "ðŁ"]))
    request = tokenizer.request(stop="aab")
    sizes = []
    for _ in range(500):
        request.feed([0, 1], [-1.0, -1.0])
        sizes.append(len(repr(request.snapshot())))
    assert max(sizes) - min(sizes) < 30


def test_prompt_is_context_only(words: detok.Tokenizer) -> None:
    """A character that the prompt begins belongs to the output; stops do not reach back into the prompt."""
    request = words.request([2, 7, 8], stop="the end")
    assert request.feed([9, 10, 13]).text.endswith("x")
    assert words.request([2], stop="the end").feed([3, 4]).text == " end is"


def test_hostile_run_costs_no_more_a_token(words: detok.Tokenizer) -> None:
    """Of 20,000 bytes in one run with logprobs, all entries come, and they tile the text."""
    request = words.request(stop="zzz")
    entries, text = [], ""
    for _ in range(2000):
        output = request.feed([12] * 10, [-1.0] * 10)
        entries += output.logprobs or []
        text += output.text
    output = request.finish("length")
    entries += output.logprobs or []
    assert text + output.text == "A" * 20_000 == "".join(entry.token for entry in entries)
    assert len(entries) == 20_000


def test_end_of_sequence_is_that_of_the_tokenizer() -> None:
    """What the tokenizer's files say ends an answer ends it, with no further reason."""
    tokenizer = detok.load(detok.EMBEDDED)
    assert tokenizer.eos_token_ids
    ids = [*tokenizer.encode("Hi", add_special_tokens=False), tokenizer.eos_token_ids[0], 39]
    output = tokenizer.request().feed(ids)
    assert (output.text, output.finish_reason, output.stop_reason, output.tokens_kept) == ("Hi", "stop", None, 3)
    assert tokenizer.request(ignore_eos=True).feed(ids).text == "HiH"
    assert tokenizer.request(eos_token_ids=[]).feed(ids).finish_reason is None


def test_stop_of_any_length_is_no_stop(words: detok.Tokenizer) -> None:
    """A stop is bounded, since what it may hold back is."""
    assert words.request(stop="a" * 4096).feed([2]).text == "the"
    with pytest.raises(detok.OptionError, match=r"stop\[0\]=.* it is longer than 4,096 characters"):
        words.request(stop="a" * 4097)
    with pytest.raises(detok.OptionError, match="lone surrogate"):
        words.request(stop="a\ud800")


@pytest.mark.parametrize("after_stop", ["cut", "keep"])
def test_tokens_after_a_stop_in_a_byte_run_are_cut_or_kept(words: detok.Tokenizer, after_stop: Any) -> None:
    """The run is decided by the x: the text ends before the line end in it, and the A after it stays or goes."""
    request = words.request(stop="\n", after_stop=after_stop)
    outputs = [request.feed([token_id], [-1.0]) for token_id in (2, 11, 12, 13)]
    last = outputs[-1]
    assert ("".join(output.text for output in outputs), last.stop_reason) == ("the", "\n")
    entries = [entry.token_id for output in outputs for entry in output.logprobs or ()]
    if after_stop == "cut":
        assert (entries, last.tokens_kept, last.retracted_tokens) == ([2, 11], 2, 1)
    else:
        assert (entries, last.tokens_kept, last.retracted_tokens) == ([2, 11, 12, 13], 4, 0)
