"""Inputs whose stops others got wrong: text in chunks, and ids of real tokenizers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import detok
from tests.support.handmade import make
from tests.support.vocabularies import real

CASES = Path(__file__).parents[2] / "cases"
CHUNKS: list[dict[str, Any]] = json.loads((CASES / "stops.json").read_text())
STREAMS: list[dict[str, Any]] = json.loads((CASES / "stopped_streams.json").read_text())


def options_of(case: Mapping[str, Any]) -> dict[str, Any]:
    return {name: case[name] for name in ("stop", "include_stop_str_in_output", "min_tokens") if name in case}


def texts_of(request: detok.RequestDecoder, steps: Sequence[Sequence[int]]) -> tuple[list[str], detok.RequestOutput]:
    outputs = []
    for step in steps:
        outputs.append(request.feed(step))
        if outputs[-1].finished:
            break
    else:
        outputs.append(request.finish("length"))
    return [output.text for output in outputs], outputs[-1]


@pytest.mark.parametrize("case", CHUNKS, ids=[case["name"] for case in CHUNKS])
def test_chunks_come_to_the_text(case: dict[str, Any]) -> None:
    """Each chunk is a token; the text and what stopped it are as they should be, one at a time and all at once."""
    tokenizer = detok.load(make({"type": "Fuse"}, case["chunks"]))
    ids = [tokenizer.encode(chunk, add_special_tokens=False)[0] for chunk in case["chunks"]]
    for steps in ([[token_id] for token_id in ids], [ids]):
        texts, last = texts_of(tokenizer.request(**options_of(case)), steps)
        assert ("".join(texts), last.stop_reason) == (case["text"], case["stop_reason"])
        assert last.finish_reason == ("length" if case["stop_reason"] is None else "stop")


def test_only_a_live_candidate_is_held() -> None:
    """The deltas of the case with STOP, and those of the row of a's."""
    tokenizer = detok.load(make({"type": "Fuse"}, ["x", "ST", "ay", "a"]))
    assert texts_of(tokenizer.request(stop="STOP"), [[0], [1], [2]])[0] == ["x", "", "STay", ""]
    assert texts_of(tokenizer.request(stop="ab"), [[3]] * 6)[0] == ["", "a", "a", "a", "a", "a", "a"]


@pytest.mark.parametrize("case", STREAMS, ids=[case["name"] for case in STREAMS])
def test_stream_stops_where_it_should(case: dict[str, Any]) -> None:
    """Text, stop and ids kept, in the steps of the report, one at a time, and all at once."""
    tokenizer = detok.load(real(case["tokenizer"]) / "tokenizer.json")
    ids, steps, start = case["ids"], [], 0
    for length in case["steps"]:
        steps.append(ids[start : start + length])
        start += length
    assert start == len(ids)
    for split in (steps, [[token_id] for token_id in ids], [ids]):
        texts, last = texts_of(tokenizer.request(**options_of(case)), split)
        assert ("".join(texts), last.stop_reason, last.tokens_kept) == (case["text"], case["stop_reason"], case["tokens_kept"])
        whole = tokenizer.decode(ids[: last.tokens_kept])
        assert case["stop_reason"] is None or case["stop_reason"] in whole
