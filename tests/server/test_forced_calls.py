"""`tool_choice` as structured outputs, and what is read of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from detok import OptionError
from detok.prompts.turn_formats import turn_for
from detok.server.forced_calls import forced_calls, is_forced
from detok.turns.formats import TURN_FORMATS
from detok.turns.parsers import turn_parser
from detok.turns.segments import Text

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("f", "g")]
NAMED = {"type": "function", "function": {"name": "g"}}
CALLING = [name for name in TURN_FORMATS if name != "think"]


@pytest.mark.parametrize(
    "choice", [None, "auto", "none", {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED]}}]
)
def test_nothing_is_forced(choice: Any) -> None:
    """The model may choose, or may not call at all."""
    assert not is_forced(choice)
    assert forced_calls(TURN_FORMATS["qwen"], TOOLS, choice) == {}


def test_schema_has_the_tools() -> None:
    """All, or the one that is named, once."""
    every = forced_calls(TURN_FORMATS["qwen"], TOOLS, "required")["json"]
    assert [one["properties"]["name"]["const"] for one in every["items"]["anyOf"]] == ["f", "g"]
    assert "maxItems" not in every
    assert forced_calls(TURN_FORMATS["qwen"], TOOLS, "required", parallel=False)["json"]["maxItems"] == 1
    named = forced_calls(TURN_FORMATS["qwen"], TOOLS, NAMED)["json"]
    assert ([one["properties"]["name"]["const"] for one in named["items"]["anyOf"]], named["maxItems"]) == (["g"], 1)


@pytest.mark.parametrize(
    ("turn", "tools", "choice", "words"),
    [
        ("qwen", [], "required", "there are no tools"),
        ("qwen", TOOLS, {"type": "function", "function": {"name": "h"}}, "'f', 'g'"),
        ("qwen", TOOLS, "always", "it is auto, none, required"),
        ("qwen", TOOLS, {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}, "it is auto"),
        (None, TOOLS, "required", "--channels"),
        ("think", TOOLS, "required", "has no calls"),
        ("thinking", TOOLS, "required", "switch thinking off"),
    ],
)
def test_what_cannot_be_forced_is_refused(turn: str | None, tools: Any, choice: Any, words: str) -> None:
    """With what to do."""
    format_ = (
        None if turn is None else TURN_FORMATS["qwen"].starting_in("reasoning") if turn == "thinking" else TURN_FORMATS[turn]
    )
    with pytest.raises(OptionError, match=words):
        forced_calls(format_, tools, choice)


def test_engine_without_a_model_ignores_it() -> None:
    """As every valid field."""
    assert forced_calls(None, TOOLS, "required", has_model=False) == {}


@pytest.mark.parametrize("name", CALLING)
@pytest.mark.parametrize("step", [1, 1000])
def test_every_format_reads_what_is_forced(name: str, step: int) -> None:
    """JSON of calls without delimiters."""
    made = [{"name": "f", "arguments": {"a": "[]"}}, {"name": "g", "arguments": {}}]
    text = json.dumps(made)
    parser = turn_parser(turn_for(TURN_FORMATS[name], tools=TOOLS, forced=True))
    calls: dict[int, tuple[str, str]] = {}
    deltas = [delta for at in range(0, len(text), step) for delta in parser.feed([Text(text[at : at + step])])] + parser.finish()
    for delta in deltas:
        assert delta.channel == "tool"
        calls[delta.part] = (delta.name, calls.get(delta.part, ("", ""))[1] + delta.text)
    assert [(call, json.loads(arguments)) for call, arguments in calls.values()] == [
        (one["name"], one["arguments"]) for one in made
    ]
