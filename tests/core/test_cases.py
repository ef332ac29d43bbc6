"""Inputs that broke somebody's streaming detokenizer, with the steps as they arrived."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import detok
from tests.support.laws import judge
from tests.support.vocabularies import real

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent.parent / "cases" / "streams.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case_comes_out_right(case: dict[str, Any]) -> None:
    """The text is the expected one, no delta splits a character, and the prompt does not come out."""
    tokenizer = detok.load(real(case["tokenizer"]) / "tokenizer.json")
    options = {"skip_special_tokens": case["skip_special_tokens"]}
    stream = tokenizer.stream(prompt_ids=case["prompt_ids"], **options)
    deltas, start = [], 0
    for step in case["steps"]:
        deltas.append(stream.extend(case["ids"][start : start + step]))
        start += step
    assert start == len(case["ids"])
    before_finish = "".join(deltas)
    deltas.append(stream.finish())
    text = "".join(deltas)
    assert text == case["text"]
    whole = judge(tokenizer, case["prompt_ids"] + case["ids"], **options)
    prompt = judge(tokenizer, case["prompt_ids"], **options)
    assert prompt.rstrip("\ufffd") + text == whole
    if "\ufffd" in text and "stray" in case["name"]:
        assert len(before_finish) >= len(text) - 1
