"""Law 8, counted: what a stream holds, and how often the pipeline is asked; no clock."""

from __future__ import annotations

import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import detok
from detok.core.decoding import automaton
from detok.core.options import DecodeOptions
from tests.support.handmade import BYTE_LEVEL, FALLBACK, FUSE, UNDERSCORE, byte_level_tokens, byte_tokens, make, sequence, strip
from tests.support.kinds import CountingPrompt


@pytest.fixture
def mistral() -> detok.Tokenizer:
    """A byte-fallback tokenizer with all bytes, a special token and some words."""
    tokens = ["<s>", "<unk>", *byte_tokens(bytes(range(256))), "▁the", "▁a", "word", "�"]
    decoder = sequence(UNDERSCORE, FALLBACK, FUSE, strip(1, 0))
    return detok.load(make(decoder, tokens, special=["<s>"]))


@pytest.fixture
def byte_level() -> detok.Tokenizer:
    """A byte-level tokenizer with all bytes, a special token and some words."""
    tokens = ["<s>", "<unk>", *byte_level_tokens(*(bytes([byte]) for byte in range(256))), "the", "\u0120a"]
    return detok.load(make(BYTE_LEVEL, tokens, special=["<s>"]))


def questions(tokenizer: detok.Tokenizer) -> int:
    """How often the pipeline of the default options was asked."""
    return tokenizer.automaton(DecodeOptions()).questions


@pytest.mark.parametrize("hostile", ["skipped specials", "lone lead bytes", "continuation bytes", "literal U+FFFD", "words"])
@pytest.mark.parametrize("kind", ["mistral", "byte_level"])
def test_hostile_runs_ask_the_pipeline_a_handful_of_times(kind: str, hostile: str, request: pytest.FixtureRequest) -> None:
    """100,000 ids that hold, vanish or are invalid cost remembered moves: the pipeline is asked no more than for a few."""
    tokenizer: detok.Tokenizer = request.getfixturevalue(kind)
    replacement = tokenizer.encode("�")[-1:] if kind == "mistral" else [2 + 0xEF, 2 + 0xBF, 2 + 0xBD]
    ids = {
        "skipped specials": [0],
        "lone lead bytes": [2 + 0xE3],
        "continuation bytes": [2 + 0x80],
        "literal U+FFFD": replacement,
        "words": [258, 259],
    }[hostile]
    stream = tokenizer.stream()
    for count in range(100_000 // len(ids)):
        stream.extend(ids)
        if count == 20:
            settled = questions(tokenizer)
    assert questions(tokenizer) == settled
    assert len(stream.held) <= 3 or hostile == "literal U+FFFD"


def test_open_run_is_never_read_again(mistral: detok.Tokenizer) -> None:
    """A valid byte run is held whole in exact mode, yet each byte of it asks once, and it comes out right."""
    stream, text = mistral.stream(), "あ" * 5_000
    ids = [2 + byte for byte in text.encode()]
    before = questions(mistral)
    assert stream.extend(ids) == ""
    assert stream.held == text.encode()
    assert questions(mistral) - before <= len(ids)
    assert stream.step(260) == text + "word"


def test_long_literal_replacement_run_flows(mistral: detok.Tokenizer) -> None:
    """A run that spells U+FFFD is certain at once, since it is U+FFFD however the run ends; little of it is kept."""
    stream = mistral.stream()
    assert stream.extend([2 + byte for byte in b"\xef\xbf\xbd" * 3_000]) == "�" * 3_000
    assert stream.step(2 + 0xFF) == "�" * 6_001
    assert stream.finish() == ""


@pytest.mark.parametrize("length", [10, 1_000, 250_000])
@pytest.mark.parametrize("kind", ["mistral", "byte_level"])
def test_priming_reads_only_the_end_of_a_prompt(kind: str, length: int, request: pytest.FixtureRequest) -> None:
    """However long the prompt is, a few ids of it are looked at."""
    tokenizer: detok.Tokenizer = request.getfixturevalue(kind)
    prompt = CountingPrompt([258, 259] * (length // 2))
    stream = tokenizer.stream(prompt_ids=prompt)
    assert prompt.read <= 8
    assert stream.step(259) == " a"


def test_idle_stream_is_small(byte_level: detok.Tokenizer) -> None:
    """A stream without held text costs at most 256 bytes beyond the shared tables."""
    byte_level.stream().step(258)
    tracemalloc.start()
    try:
        streams = [byte_level.stream() for _ in range(1_000)]
        for stream in streams:
            stream.step(258)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held / len(streams) <= 256
    assert sys.getsizeof(streams[0]) <= 64


def test_memory_of_moves_is_bounded(byte_level: detok.Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the budget is used up the memory begins again, and the text is right all the same."""
    monkeypatch.setattr(automaton, "MAX_MOVES", 50)
    monkeypatch.setattr(automaton, "MAX_NODES", 20)
    tokenizer = detok.load(make(BYTE_LEVEL, [piece.text for piece in map(byte_level.piece, byte_level.ids)]))
    machine = tokenizer.automaton(DecodeOptions())
    data = "".join(map(chr, range(0x80, 0x3000, 7))).encode()
    stream, text = tokenizer.stream(), ""
    for byte in data:
        text += stream.step(2 + byte)
        assert len(machine._nodes) <= 20
        assert sum(len(node.moves) for node in machine._nodes.values()) <= 50 + len(machine._nodes)
    assert text == data.decode()


def test_huge_id_in_a_sparse_vocabulary_costs_no_table() -> None:
    """An id of many millions is decoded without a list that reaches up to it."""
    tokenizer = detok.load(make(None, ["<unk>", "word"], holes=[]))
    library = make(None, ["a"])
    library.add_tokens(["b"])
    machine = tokenizer.automaton(DecodeOptions())
    tokenizer.decode([1, 1, 1])
    assert len(machine.home.texts) <= 4


def test_threads_share_a_tokenizer(mistral: detok.Tokenizer) -> None:
    """8 threads with 100 streams each on one tokenizer, from its first id on, all get the right text."""
    text = "the 日本 あいう \U0001f600 ะ"
    ids = [0, 258, *(2 + byte for byte in text.encode()), 259, 260]
    expected = mistral.library.decode(ids, skip_special_tokens=True)
    start = threading.Barrier(8)

    def work() -> set[str]:
        start.wait()
        streams = [mistral.stream() for _ in range(100)]
        texts = [""] * len(streams)
        for token_id in ids:
            for place, stream in enumerate(streams):
                texts[place] += stream.step(token_id)
        return {text + stream.finish() for text, stream in zip(texts, streams, strict=True)}

    with ThreadPoolExecutor(8) as pool:
        results = [future.result() for future in [pool.submit(work) for _ in range(8)]]
    assert results == [{expected}] * 8


@pytest.mark.parametrize(
    "options", [{}, {"output": "cumulative"}, {"segments": True}, {"stop": "no such"}, {"stop_regex": "no such"}], ids=str
)
def test_requests_ask_the_pipeline_no_more_than_streams(byte_level: detok.Tokenizer, options: dict[str, Any]) -> None:
    """Whatever is asked for, one id at a time or several: what a stream remembers, every way through a request finds."""
    ids = [258, 259, 2 + 0xC3, 2 + 0xAB, 0, 258]
    byte_level.decode(ids * 2)
    settled = questions(byte_level)
    for logprobs in (None, [-1.0] * len(ids)):
        request = byte_level.request(**options)
        request.feed(ids, logprobs)
        for place, token_id in enumerate(ids):
            request.feed([token_id], logprobs and logprobs[place : place + 1])
        request.finish()
    assert questions(byte_level) == settled
