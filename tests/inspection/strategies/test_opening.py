"""Strategies are opened by name, with their own settings, over any tokenizer that can have them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.inspection.strategies import COMPARED, STRATEGIES, Strategy, by_strategy, find_printable, open_stream, own_strategy
from tests.support.handmade import BYTE_LEVEL, WORDPIECE, byte_level_tokens, handmade, make
from tests.support.laws import cuts, split
from tests.support.windows import steps

EMBEDDED = detok.load(detok.EMBEDDED)
SPACED = handmade("ByteLevel")[1]
REPLACEMENT = "\ufffd"


class TwoOffsets:
    """vLLM's algorithm, word for word: all ids are kept, and two offsets into them; nothing is remembered."""

    def __init__(self, decode: Callable[[Sequence[int]], str], prompt: Sequence[int], lookback: int = 5) -> None:
        self._decode = decode
        self._ids = list(prompt[-lookback - 2 :])
        self._prefix, self._read = max(0, len(self._ids) - lookback), len(self._ids)

    def step(self, token_id: int) -> str:
        """Take one id."""
        self._ids.append(token_id)
        prefix_text, new_text = self._decode(self._ids[self._prefix : self._read]), self._decode(self._ids[self._prefix :])
        if len(new_text) <= len(prefix_text) or new_text.endswith(REPLACEMENT):
            return ""
        self._prefix, self._read = self._read, len(self._ids)
        return new_text[len(prefix_text) :]

    def finish(self) -> str:
        """What is held, which vLLM drops."""
        prefix_text, new_text = self._decode(self._ids[self._prefix : self._read]), self._decode(self._ids[self._prefix :])
        return new_text[len(prefix_text) :]


class ThreeOffsets:
    """SGLang's algorithm, word for word: the text is kept, and how much of it was sent."""

    def __init__(self, decode: Callable[[Sequence[int]], str], prompt: Sequence[int], lookback: int = 5) -> None:
        self._decode = decode
        self._ids = list(prompt[len(prompt) - lookback if len(prompt) > lookback else 0 :])
        self._surrounding, self._read, self._sent = 0, len(self._ids), 0
        self._text = ""

    def step(self, token_id: int | None) -> str:
        """Take one id, or None at the end."""
        self._ids += [] if token_id is None else [token_id]
        context, window = self._decode(self._ids[self._surrounding : self._read]), self._decode(self._ids[self._surrounding :])
        new_text = window[len(context) :]
        if token_id is not None:
            if len(new_text) > 0 and not new_text.endswith(REPLACEMENT):
                self._text += new_text
                self._surrounding, self._read = self._read, len(self._ids)
                new_text = ""
            else:
                new_text = find_printable(new_text)
        output = self._text + new_text
        sent, self._sent = self._sent, len(output)
        return output[sent:]

    def finish(self) -> str:
        """All that is left."""
        return self.step(None)


NAMES = (
    "ByteLevel",
    "Mistral",
    "ByteFallback of U+FFFD",
    "Metaspace",
    "WordPiece",
    "CTC",
    "BPEDecoder",
    "no decoder",
    "Fuse, Replace",
)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_windows_equal_the_algorithms_as_described(name: str, data: st.DataObject) -> None:
    """Step by step, behind a prompt too, for every list: right where they are right, and wrong where they are wrong."""
    library, tokenizer = handmade(name)
    ids = data.draw(st.lists(st.sampled_from(tokenizer.ids), max_size=20))
    prompt, ids = ids[: (place := data.draw(st.integers(0, len(ids))))], ids[place:]

    def decode(some: Sequence[int]) -> str:
        return str(library.decode(list(some))) if some else ""

    lookback = data.draw(st.sampled_from([5, 5, 0, 1, 3, 9]))
    for stream, reference in (
        (open_stream(tokenizer, "window", prompt, lookback=lookback), TwoOffsets(decode, prompt, lookback)),
        (open_stream(tokenizer, "window+printable", prompt, lookback=lookback), ThreeOffsets(decode, prompt, lookback)),
    ):
        expected = [*map(reference.step, ids), reference.finish()]
        assert steps(stream, ids) == expected


@given(text=st.text(), cuts=cuts)
def test_window_over_valid_text_is_right(text: str, cuts: list[int]) -> None:
    """With `finish` it is the whole text, however it is split into steps."""
    text = text.encode("utf-8", "replace").decode()
    stream = open_stream(EMBEDDED, "window")
    ids = EMBEDDED.encode(text, add_special_tokens=False)
    assert "".join(map(stream.extend, split(ids, cuts))) + stream.finish() == text


@given(text=st.text(st.characters(max_codepoint=0x2FFF, exclude_categories=["Cs"])))
def test_printable_window_over_valid_text_is_right(text: str) -> None:
    """As long as there are no Chinese characters in it."""
    stream = open_stream(EMBEDDED, "window+printable")
    assert "".join(steps(stream, EMBEDDED.encode(text, add_special_tokens=False))) == text


@pytest.mark.parametrize("strategy", COMPARED)
def test_states_are_values(strategy: Strategy) -> None:
    """A copy goes its own way, and a snapshot through JSON goes on exactly."""
    decoder = by_strategy(EMBEDDED, strategy)
    ids = EMBEDDED.encode("two wörds 🦜 漢字", add_special_tokens=False)
    expected = steps(decoder.stream(), ids)
    stream = decoder.stream()
    for token_id, text in zip(ids, expected, strict=False):
        twin = stream.copy()
        assert twin.step(token_id) == text
        stream = decoder.restore(json.loads(json.dumps(stream.snapshot())))
        assert stream.step(token_id) == text
    assert not stream.exact
    stream.finish()
    assert decoder.restore(json.loads(json.dumps(stream.snapshot()))).finished


def test_window_is_wrong_where_text_gets_shorter() -> None:
    """A known failure: clean-up takes away a space that is out, and what comes instead counts as out too."""
    space, dot = (next(i for i in SPACED.ids if SPACED.token_bytes(i) == data) for data in (b" ", b"."))
    ids = [dot, space, dot, dot]
    assert SPACED.decode(ids, clean_up_tokenization_spaces=True) == "..."
    stream = open_stream(SPACED, "window", clean_up_tokenization_spaces=True)
    assert steps(stream, ids) == [".", " ", "", ".", ""]


def test_window_heeds_the_options_of_the_decode() -> None:
    """Clean-up within a window is right; `decode` with a strategy is the text of its stream."""
    tokenizer = detok.load(make(BYTE_LEVEL, byte_level_tokens(b"a", b" .")))
    stream = open_stream(tokenizer, "window", clean_up_tokenization_spaces=True)
    assert steps(stream, [0, 1, 0]) == ["a", ".", "a", ""]
    assert by_strategy(tokenizer, "window").decode([0, 1, 0], clean_up_tokenization_spaces=True) == "a.a"
    assert by_strategy(tokenizer, "window").decode([0, 1, 0]) == "a .a"


@pytest.mark.parametrize("strategy", ["window", "window+printable", "decodestream", "exact", "quick", None])
def test_keyword_strategy_is_refused_with_where_it_went(strategy: Any) -> None:
    """It is no option of a stream or a request any more, whatever its value is."""
    for call in (
        lambda: EMBEDDED.stream(strategy=strategy),
        lambda: EMBEDDED.decode([39], strategy=strategy),
        lambda: EMBEDDED.request(strategy=strategy),
        lambda: detok.RequestOptions.of({"strategy": strategy}),
    ):
        with pytest.raises(detok.OptionError, match=r"detok\.inspection\.strategies\.open_stream") as error:
            call()
        assert (error.value.option, error.value.value) == ("strategy", strategy)


def test_strategies_are_refused_where_they_cannot_be() -> None:
    """A name that there is not, and the library's DecodeStream where there is no such library."""
    decoder = detok.Decoder(EMBEDDED.vocabulary, EMBEDDED.rules)
    assert open_stream(decoder, "exact").exact
    assert not open_stream(decoder, "window").exact
    with pytest.raises(detok.OptionError, match="is none"):
        open_stream(decoder, "decodestream")
    with pytest.raises(detok.OptionError, match=r"'window\+printable'"):
        open_stream(decoder, "quick")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(detok.OptionError, match="did you mean 'unknown_ids'"):
        open_stream(decoder, "window", unknown_id="skip")


@pytest.mark.parametrize(
    ("strategy", "setting", "why"),
    [
        ("exact", {"lookback": 5}, "lookback=5 .*'exact' has no settings"),
        ("decodestream", {"lookback": 5}, "has recovers"),
        ("window", {"recovers": True}, "has lookback, prompt_tail, third_offset"),
        ("window+printable", {"third_offset": False}, "has lookback, prompt_tail"),
        ("window", {"lookback": -1}, "an integer of at least 0"),
        ("window", {"prompt_tail": 1.0}, "an integer of at least 0"),
        ("window", {"third_offset": 1}, "True, False"),
        ("decodestream", {"recovers": "no"}, "True, False"),
        (None, {"lookback": 5}, "has no settings"),
    ],
)
def test_settings_that_a_strategy_does_not_have_are_refused(strategy: Any, setting: dict[str, Any], why: str) -> None:
    """Before anything is streamed."""
    with pytest.raises(detok.OptionError, match=why):
        by_strategy(EMBEDDED, strategy, **setting)


def test_third_offset_is_a_setting_of_the_window() -> None:
    """It makes SGLang's window of vLLM's."""
    ids = EMBEDDED.encode("two wörds 🦜 漢字", add_special_tokens=False)
    asked: list[tuple[Strategy, bool | None]] = [
        ("window", True),
        ("window+printable", None),
        ("window", False),
        ("window", None),
    ]
    found = [steps(open_stream(EMBEDDED, strategy, third_offset=third), ids) for strategy, third in asked]
    assert found[0] == found[1] != found[2] == found[3]


def test_recovery_is_a_setting_of_decodestream() -> None:
    """Without it the library's error comes out, and the stream is as before."""
    tokenizer = detok.load(make({"type": "ByteFallback"}, ["<0xE3>", "<0x81>", "<0x82>", "<0xFF>", "x"]))
    stream = open_stream(tokenizer, "decodestream", recovers=False)
    assert stream.extend([0, 1, 2, 3]) == "あ"
    before = stream.snapshot()
    with pytest.raises(Exception, match="Invalid prefix encountered"):
        stream.step(4)
    assert stream.snapshot() == before
    assert open_stream(tokenizer, "decodestream", recovers=True).extend([0, 1, 2, 3, 4]) == "あx"


def test_a_snapshot_goes_on_by_the_same_strategy_and_settings_alone() -> None:
    """What a window holds means something else to another."""
    makers = [EMBEDDED, *(by_strategy(EMBEDDED, strategy) for strategy in COMPARED), by_strategy(EMBEDDED, "window", lookback=3)]
    for number, maker in enumerate(makers):
        snapshot = maker.stream().snapshot()
        request = maker.request(stop="x").snapshot()
        for other, decoder in enumerate(makers):
            if other == number:
                assert decoder.restore(snapshot).step(39) == "H"
                assert decoder.restore_request(request).feed([39]).text == "H"
                continue
            with pytest.raises(detok.SnapshotError, match="restore it with the tokenizer that made it"):
                decoder.restore(snapshot)
            with pytest.raises(detok.SnapshotError, match="restore it with the tokenizer that made it"):
                decoder.restore_request(request)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_requests_go_by_a_strategy(strategy: Strategy) -> None:
    """With stops, logprobs, the tokenizer's own ends and the tokenizer's own bytes."""
    decoder = by_strategy(EMBEDDED, strategy)
    ids = EMBEDDED.encode("Zoë STOP it", add_special_tokens=False)
    output = decoder.request(stop="OP").feed(ids, [-1.0] * len(ids))
    assert (output.text, output.finish_reason, output.stop_reason) == ("Zoë ST", "stop", "OP")
    assert [entry.bytes for entry in output.logprobs or ()] == [EMBEDDED.token_bytes(token_id) for token_id in output.token_ids]
    assert decoder.eos_token_ids == EMBEDDED.eos_token_ids
    assert decoder.request().feed([39, EMBEDDED.eos_token_ids[0]]).finish_reason == "stop"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_decoders_by_a_strategy_are_pickled(strategy: Strategy) -> None:
    """As tokenizers are."""
    decoder = by_strategy(EMBEDDED, strategy)
    twin = pickle.loads(pickle.dumps(decoder))
    assert twin.fingerprint == decoder.fingerprint
    assert twin.decode([39, 72]) == "Hi" == decoder.decode([39, 72])


def test_strategy_of_a_tokenizer_is_chosen_by_its_class() -> None:
    """By rules here; windows are those of `OpaqueTokenizer`."""
    assert own_strategy(EMBEDDED) == own_strategy(detok.load(make(WORDPIECE, ["a"]))) == "exact"
    assert by_strategy(EMBEDDED, None) is by_strategy(EMBEDDED, "exact") is EMBEDDED
