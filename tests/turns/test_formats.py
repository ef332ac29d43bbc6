"""Turn formats by the names of vLLM's parsers."""

from __future__ import annotations

import pytest

from detok import OptionError
from detok.turns.formats import IMPLIED, REASONING_PARSERS, TOOL_PARSERS, TURN_FORMATS, parser_format, turn_format


def test_parsers_of_vllm_are_formats() -> None:
    """Each name is the half of one; together they are a format."""
    for name, of in TOOL_PARSERS.items():
        made = parser_format(name, None)
        assert made is not None
        assert made.tools == TURN_FORMATS[of].tools
        assert made.layout == TURN_FORMATS[of].layout
    for name, of in REASONING_PARSERS.items():
        made = parser_format(None, name)
        assert made is not None
        assert made.layout == TURN_FORMATS[of].layout
        assert made.reasoning is None or made.reasoning.implied == (name in IMPLIED)
    assert parser_format("hermes", "granite_thinking_parser") is not None
    assert parser_format(None, None) is None


@pytest.mark.parametrize(
    ("tools", "reasoning", "words"),
    [
        ("x", None, "tool_call_parser='x'"),
        (None, "x", "reasoning_parser='x'"),
        ("hermes", "openai_gptoss", "one format"),
        ("think", None, "it is one of hermes"),
    ],
)
def test_unknown_parsers_are_refused(tools: str | None, reasoning: str | None, words: str) -> None:
    """With the names that there are."""
    with pytest.raises(OptionError, match=words):
        parser_format(tools, reasoning)


@pytest.mark.parametrize("name", TURN_FORMATS)
def test_format_is_plain_data(name: str) -> None:
    """For snapshots and workers."""
    assert turn_format(TURN_FORMATS[name].as_dict()) == TURN_FORMATS[name]
