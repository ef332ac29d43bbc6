"""What attackers found: each fault once, as a kind."""

from __future__ import annotations

import enum
import json
import sys
import threading
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

import detok
from detok import Logprob
from detok.core.request.places import Places
from detok.core.request.spans import MAX_WAITING
from detok.inspection.strategies import STRATEGIES, Strategy, by_strategy
from detok.text_search import StopStrings
from detok.turns.harmony import MAX_HEADER
from tests.support.handmade import BYTE_LEVEL, FALLBACK, FUSE, make, sequence

LETTERS = detok.load(
    make({"type": "Fuse"}, ["x", "y", "foo", "bar", "foobar", "a" * 80, "a" * 80 + "b", "\r", "\n", "\r\n", "a", "b"])
)
RUNS = detok.load(
    make(
        {"type": "Sequence", "decoders": [FALLBACK, FUSE]}, ["x", "<0x41>", "<0x42>", "<0xE3>", "y", "<0xEF>", "<0xBF>", "<0xBD>"]
    )
)
HALVES = detok.load(make(BYTE_LEVEL, ["x", "ã", "<s>"], special=["<s>"]))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_logprobs_behind_the_end_are_kept_in_their_place(strategy: Strategy) -> None:
    """With after_stop="keep", alternatives behind the end are still what they would have added there."""
    tokenizer = detok.load(make({"type": "WordPiece", "prefix": "##", "cleanup": False}, ["one", "two", "##s"]))
    request = by_strategy(tokenizer, strategy).request(max_tokens=1, after_stop="keep")
    output = request.feed([0, 1, 2], [Logprob(-1.0, top=[(1, -1.0), (2, -2.0)])] * 3)
    assert output.finish_reason == "length"
    assert [[top.token for top in entry.top] for entry in output.logprobs or ()][1:] == [[" two", "s"], [" two", "s"]]


def test_timeout_leaves_logprobs_as_they_were() -> None:
    """A refused step is refused with its entries."""
    tokenizer = detok.load(make({"type": "Fuse"}, ["x", "a" * 40 + "!", "y"]))
    request = tokenizer.request(stop_regex=r"(?:a|a)+b$", stop_regex_timeout=0.001)
    entries = [*(request.feed([0], [-1.0]).logprobs or ())]
    before = request.snapshot()
    with pytest.raises(detok.StopRegexTimeout):
        request.feed([1], [-2.0])
    assert request.snapshot() == before
    entries += request.feed([2], [-3.0]).logprobs or ()
    entries += request.finish("length").logprobs or ()
    assert [(entry.token_id, entry.token, entry.logprob) for entry in entries] == [(0, "x", -1.0), (2, "y", -3.0)]


@pytest.mark.parametrize(
    ("pattern", "ids", "others", "reason"),
    [
        ("(?<=a{70})b", [10] * 80 + [11], [6], None),
        ("(?<!c.{80})b", [10] * 80 + [11], [6], "(?<!c.{80})b"),
        (r"\R(?<=\r)", [7, 8], [9], r"\R(?<=\r)"),
        ("(?<=^x{64})foo", [0] * 70 + [2], None, None),
        ("(?>foo|foobar)b?", [2, 3], [4], "(?>foo|foobar)b?"),
    ],
)
def test_pattern_that_looks_around_sees_the_same_in_any_cut(
    pattern: str, ids: Sequence[int], others: Sequence[int] | None, reason: str | None
) -> None:
    """Lookbehind sees as far in one long token as over many, a line end is taken character by character, and so on."""
    for one in (ids, others):
        if one is not None:
            output = LETTERS.request(stop_regex=pattern).feed(one, finish_reason="length")
            assert output.stop_reason == reason, one


@pytest.mark.parametrize("pattern", [r"foo\Kbar", r"\Gfoo", r"a\\\Gfoo"])
def test_pattern_that_moves_its_beginning_is_refused(pattern: str) -> None:
    """It would be another stop in each cut."""
    with pytest.raises(detok.OptionError, match="say where a match begins"):
        LETTERS.request(stop_regex=pattern)
    LETTERS.request(stop_regex=r"a\\Gb")


def test_ids_that_a_stop_takes_back_are_taken_back_in_coalesced_outputs() -> None:
    """A stop in an open byte run: what a slow consumer gets is what one step would have given."""
    request, whole = RUNS.request(stop="A"), detok.RequestOutput()
    for token_id in (1, 2, 2, 0):
        whole = whole.coalesce(request.feed([token_id]))
    once = RUNS.request(stop="A").feed([1, 2, 2, 0])
    assert (whole.token_ids, whole.tokens_kept, whole.text) == (once.token_ids, once.tokens_kept, once.text) == ([1], 1, "")
    interval = RUNS.request(stop="A", stream_interval=3)
    outputs = [interval.feed([token_id]) for token_id in (1, 2, 2, 0)]
    ids = [token_id for output in outputs for token_id in output.token_ids]
    assert ids[: len(ids) - outputs[-1].retracted_tokens] == [1]


def test_outputs_share_nothing_that_can_be_changed() -> None:
    """A field that most outputs do not have is the same immutable value in all of them."""
    assert detok.RequestOutput().dropped_token_ids == ()


def test_alternatives_may_come_in_any_iterable_and_number() -> None:
    """An iterator is read once, and numbers of any library become plain ones, which a snapshot can carry."""
    np = pytest.importorskip("numpy")
    request = HALVES.request()
    request.feed([1], [Logprob(np.float32(-1), np.int64(2), zip([0], [np.float64(-1)], strict=True))])  # type: ignore[arg-type]
    snapshot = json.loads(json.dumps(request.snapshot(), allow_nan=False))
    entries = HALVES.restore_request(snapshot).finish().logprobs
    assert entries is not None
    (entry,) = entries
    assert (entry.logprob, entry.rank, entry.top[0].token, entry.top[0].logprob) == (-1.0, 2, "x", -1.0)


def test_snapshot_has_no_number_that_json_or_msgpack_lacks() -> None:
    """Infinite logprobs, and ids of more than 64 bits."""
    request = HALVES.request(output="final")
    request.feed([1, 1 << 70], [float("-inf"), Logprob(float("nan"), top=[(0, float("inf"))])])
    snapshot = json.loads(json.dumps(request.snapshot(), allow_nan=False))
    assert "1180591620717411303424" in json.dumps(snapshot)
    output = HALVES.restore_request(snapshot).finish()
    assert output.token_ids == [1, 1 << 70]
    assert output.logprobs is not None
    assert output.logprobs[0].logprob == float("-inf")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"logprobs": 5}, "logprobs=5 is invalid; give a list"),
        ({"logprobs": [Logprob(-1.0, top=None)]}, r"logprobs\[0\].top=None"),  # type: ignore[arg-type]
        ({"logprobs": [10**400]}, r"logprobs\[0\]=1"),
        ({"logprobs": [Logprob(-1.0, rank="x")]}, r"logprobs\[0\].rank='x'"),  # type: ignore[arg-type]
        ({"stop_reason": 1.5}, "stop_reason=1.5 is invalid; it is a string, a token id or None"),
        ({"stop_reason": True}, "stop_reason=True"),
    ],
)
def test_odd_arguments_are_named(more: dict[str, Any], message: str) -> None:
    """Whatever stands there, the error is one of ours."""
    with pytest.raises(detok.OptionError, match=message):
        HALVES.request().feed([0], finish_reason="stop", **more)
    with pytest.raises(detok.OptionError, match="options=5 is invalid"):
        HALVES.request(options=5)  # type: ignore[arg-type]


def test_stop_string_is_not_completed_by_the_text_of_a_stop_token() -> None:
    """The token stops the request, shown or not; what of its text is shown is no text to search."""
    tokenizer = detok.load(make({"type": "Fuse"}, ["foo", "</s>"], special=["</s>"]))
    for include in (False, True):
        request = tokenizer.request(stop="foo</s>", eos_token_ids=[1], include_stop_str_in_output=include)
        output = request.feed([0, 1])
        assert (output.text, output.stop_reason) == ("foo" + "</s>" * include, None)


@pytest.mark.parametrize("options", [{"stop": "zz"}, {"segments": True}, {}])
def test_what_changes_nothing_is_not_kept(options: dict[str, Any]) -> None:
    """Behind half a character, special tokens that are skipped take no room, or a bounded one."""
    tokenizer = detok.load(make(BYTE_LEVEL, ["x", "ã", "<s>"], special=["<s>"]))
    for logprobs in (None, [-1.0]):
        request = tokenizer.request(eos_token_ids=(), **options)
        request.feed([1], logprobs)
        sizes = []
        for count in range(1, 6):
            request.feed([2] * (MAX_WAITING // 2), logprobs and logprobs * (MAX_WAITING // 2))
            if count > 2:
                sizes.append(len(repr(request.snapshot())))
        assert sizes[-1] <= sizes[0] * 1.1 + 200
        output = request.feed([0], logprobs)
        assert output.text == "\ufffdx"


def test_header_that_never_ends_is_content() -> None:
    """A model that writes no message delimiter is heard all the same, and what is kept of it is bounded."""
    tokenizer = detok.load(make({"type": "Fuse"}, ["blah "]))
    request = tokenizer.request(channels="harmony")
    text = ""
    for _ in range(1000):
        text += "".join(delta.text for delta in request.feed([0]).channels or ())
    assert text == "blah " * 1000
    assert len(repr(request.snapshot())) < MAX_HEADER * 4
    harmony = detok.TURN_FORMATS["harmony"].as_dict()
    assert tokenizer.request(channels=harmony).feed([0]).channels


def test_long_stop_falls_back_in_its_own_length() -> None:
    """From the depth of a long candidate, one other character asks for as many moves as the candidate is long, not its square."""
    stop = StopStrings(("a" * 4_000 + "b",))
    at, _ = stop.scan(stop.idle, "a" * 4_000)
    assert at.length == 4_000
    at, match = stop.scan(at, "x")
    assert (at.length, match) == (0, None)
    assert stop.questions <= 20_002


def test_run_that_spells_replacement_characters_ties_no_more_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans of an open run that is text at once are looked at again only when enough has come."""
    request = RUNS.request(stop="zz")
    looks = 0
    whole = type(request._spans)._ends

    def counted(self: Any) -> Any:
        nonlocal looks
        looks += 1
        return whole(self)

    monkeypatch.setattr(type(request._spans), "_ends", counted)
    entries: list[Any] = []
    for _ in range(300):
        for token_id in (5, 6, 7):
            entries += request.feed([token_id], [-1.0]).logprobs or ()
    entries += request.finish("length").logprobs or ()
    assert "".join(entry.token for entry in entries) == "\ufffd" * 300
    assert looks < 300


def test_alternatives_of_one_string_and_id_are_all_there() -> None:
    """The shape of completions has a key for each, whatever they are called."""
    top = tuple(detok.TopLogprob(2, -float(rank), "token_id:2", b"") for rank in range(3))
    shape = detok.completion_logprobs([detok.TokenLogprob(0, float("inf"), "x", b"x", 0, 0, 1, top)])
    assert shape["top_logprobs"] == [{"token_id:2": 0.0, "token_id:2#2": -1.0, "token_id:2#3": -2.0}]
    assert shape["token_logprobs"] == [9999.0]


def test_request_that_a_search_timed_out_in_is_unchanged() -> None:
    """It has no logprobs either, if that step was the first with some."""
    tokenizer = detok.load(detok.EMBEDDED)
    request = tokenizer.request(stop_regex=["(a+)+b"], stop_regex_timeout=1e-9)
    ids = tokenizer.encode("a" * 200)
    before = request.snapshot()
    with pytest.raises(detok.StopRegexTimeout):
        request.feed(ids, [-1.0] * len(ids))
    assert request.snapshot() == before
    assert request.feed([]) == detok.RequestOutput()


def test_member_of_an_enum_is_a_plain_value() -> None:
    """Equal options are shared, so a snapshot would otherwise write down what another request gave."""

    class Kind(enum.StrEnum):
        FINAL = "final"

    class Most(enum.IntEnum):
        TOKENS = 7

    tokenizer = detok.load(detok.EMBEDDED)
    tokenizer.request(output=Kind.FINAL, max_tokens=Most.TOKENS)
    request = tokenizer.request(output="final", max_tokens=7)
    assert tokenizer.restore_request(json.loads(json.dumps(request.snapshot()))).feed([57] * 7).text == "Z" * 7
    assert type(detok.RequestOptions.of({"output": Kind.FINAL}).output) is str
    assert type(detok.RequestOptions(max_tokens=Most.TOKENS).max_tokens) is int


def test_stop_reason_without_an_end_counts_nowhere() -> None:
    """On both ways of a token alike."""
    request = detok.load(detok.EMBEDDED).request()
    for _ in range(3):
        assert request.feed([57], stop_reason=1.5).text == "Z"  # type: ignore[arg-type]


def test_shared_output_keeps_its_fields() -> None:
    """No caller takes them from all others."""
    request = detok.load(detok.EMBEDDED).request()
    request.feed([57])
    output = request.feed([57])
    with pytest.raises(AttributeError, match="many requests share this output"):
        del output.text
    assert output.text == "Z"


@pytest.mark.parametrize("tokens", [1023, 1024, 3000])
def test_cut_after_a_long_stream_that_is_never_idle(tokens: int) -> None:
    """The clean-up holds a word; a stop that completes in it is cut at its token, however long the request is."""
    words = ["x", "y", "a</w>", "b</w>", "'", "'</w>", "n", "n</w>"]
    tokenizer = detok.load(make({"type": "BPEDecoder", "suffix": "</w>"}, words))
    request = tokenizer.request(stop=["n"], clean_up_tokenization_spaces=True)
    outputs = [request.feed([token_id]) for token_id in [2] * tokens + [7]]
    end = outputs[-1] if request.finished else request.feed([2])
    assert end.tokens_kept == tokens + 1


def test_state_of_a_stream_that_is_never_idle_is_bounded() -> None:
    """With stops, too: the tokens that are decided go (law 8)."""
    tokenizer = detok.load(make({"type": "BPEDecoder", "suffix": "</w>"}, ["x", "a</w>"]))
    request = tokenizer.request(stop=["Q"])
    sizes = []
    for _ in range(5):
        for _ in range(2000):
            request.feed([1])
        sizes.append(len(json.dumps(request.snapshot())))
    assert max(sizes) < 6000


def test_threads_that_use_up_what_is_remembered() -> None:
    """While one thread forgets all places, others add some."""
    tokenizer = detok.load(detok.EMBEDDED)
    tokenizer._places = Places(limit=6000)
    faults = []

    def work(thread: int) -> None:
        for number in range(150):
            request = tokenizer.request(stop=[f"{thread}-{number}"])
            try:
                for token_id in range(2, 250):
                    request.feed([token_id])
            except Exception as error:
                faults.append(error)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        sys.setswitchinterval(interval)
    assert not faults


class Odd:
    """An integer by `operator.index` whose other methods raise, as those of a tensor with several elements do."""

    def __init__(self, token_id: int, error: type[Exception]) -> None:
        self._token_id = token_id
        self._error = error

    def __index__(self) -> int:
        return self._token_id

    def __hash__(self) -> int:
        return hash(self._token_id)

    def _raise(self, other: object) -> bool:
        raise self._error("planted")

    __eq__ = __ge__ = __gt__ = __lt__ = __le__ = _raise


@pytest.mark.parametrize("error", [RuntimeError, AttributeError, ArithmeticError, OSError])
def test_id_that_raises_anything_when_it_is_compared_is_an_id_all_the_same(error: type[Exception]) -> None:
    """In every way that takes ids, before and after the id was met; the other rows of a step have their outputs."""
    tokenizer = detok.load(detok.EMBEDDED)
    (token_id,) = tokenizer.encode("a", add_special_tokens=False)
    batch = detok.BatchDecoder(tokenizer)
    for name in "one", "two":
        batch.open(name)
    stream, request = tokenizer.stream(), tokenizer.request()
    for _ in range(2):
        odd = Odd(token_id, error)
        assert (stream.step(odd), stream.extend([odd]), stream.extend((odd, odd))) == ("a", "a", "aa")
        assert (request.feed([odd]).text, request.feed((odd,)).text) == ("a", "a")
        outputs = batch.step([detok.Row("one", [token_id]), detok.Row("two", [odd]), detok.Row(Odd(0, error), [token_id])])
        assert [output.text for output in outputs] == ["a", "a", ""]
        assert isinstance(outputs[2].error, detok.UnknownRequest)
        batch.step([detok.Row("one", [token_id])])


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("sNaN")])
def test_what_is_no_id_and_raises_when_it_is_compared_is_refused(value: Any) -> None:
    """With the error of everything that is no integer."""
    stream, request = detok.load(detok.EMBEDDED).stream(), detok.load(detok.EMBEDDED).request()
    for take in (stream.step, lambda one: stream.extend([one]), lambda one: request.feed([one])):
        with pytest.raises(detok.TokenTypeError):
            take(value)


AB = ["x", "y", "<0x41>", "<0x43>", "d</w>"]


@pytest.mark.parametrize("logprobs", [False, True], ids=["usual", "logprobs"])
@pytest.mark.parametrize(("run", "words"), [(600, 512), (1023, 10), (1024, 520), (1100, 100), (1100, 1100)])
def test_stop_after_a_long_run_cuts_the_right_tokens(run: int, words: int, logprobs: bool) -> None:
    """One by one and at once: also where a decoder is never idle, and more than `MAX_UNDECIDED` were undecided before."""
    decoder = sequence(FALLBACK, {"type": "BPEDecoder", "suffix": "</w>"})
    tokenizer = detok.load(make(decoder, AB, special=[], holes=[]))
    ids = [2] * run + [4] * words + [3] * 10 + [4] * 3
    for steps in ([[token_id] for token_id in ids], [ids]):
        request = tokenizer.request(stop="CCC")
        kept = 0
        for step in steps:
            output = request.feed(step, [-1.0] * len(step) if logprobs else None)
            kept += len(output.token_ids) - output.retracted_tokens
            if output.finished:
                break
        assert (output.stop_reason, output.tokens_kept, kept) == ("CCC", run + words + 3, run + words + 3)


def test_state_after_a_long_run_is_bounded() -> None:
    """What was undecided in the run goes when it is decided, although the stream is never idle (law 8)."""
    decoder = sequence(FALLBACK, {"type": "BPEDecoder", "suffix": "</w>"})
    request = detok.load(make(decoder, AB, special=[], holes=[])).request(stop="CCC")
    for token_id in [2] * 1100 + [4] * 3000:
        request.feed([token_id])
    assert len(json.dumps(request.snapshot())) < 6000
