"""`detok channels`."""

from __future__ import annotations

import json

from detok import TURN_FORMATS
from tests.cli.support import run
from tests.support.vocabularies import real


def test_formats_are_listed() -> None:
    """For people and for machines, with vLLM's names."""
    assert "qwen3_coder" in run("channels").stdout
    rows = {row["name"]: row for row in json.loads(run("channels", "--json").stdout)}
    assert list(rows) == list(TURN_FORMATS)
    assert "hermes" in rows["qwen"]["tool_call_parsers"]
    assert rows["harmony"]["reasoning_parsers"] == ["openai_gptoss"]
    assert (rows["think"]["tools"], rows["hermes"]["reasoning"]) == (False, False)


def test_format_of_a_tokenizer_is_told() -> None:
    """And why."""
    assert json.loads(run("channels", "--tokenizer", str(real("qwen3")), "--json").stdout)["name"] == "qwen"
    assert run("channels", "--tokenizer", str(real("qwen3"))).stdout.startswith("qwen: the chat template has ")
