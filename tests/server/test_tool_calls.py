"""Channels as fields of a message."""

from __future__ import annotations

import pytest

import detok
from detok.server.tool_calls import MessageDeltas, table_behind, whole_message
from detok.turns.channels import CHANNEL_TABLES, ChannelDelta

TOKENIZER = detok.load(detok.EMBEDDED)
CALL = '{"name": "f", "arguments": {"city": "Zoë"}}'


def message(*deltas: ChannelDelta) -> dict[str, object]:
    """The whole message of deltas that come one by one, without the ids of its calls."""
    fields = MessageDeltas()
    made = [delta for one in deltas for delta in fields.feed([one])] + fields.feed([], ends=True)
    whole = whole_message(made)
    for call in whole.get("tool_calls", ()):
        assert call.pop("id").startswith("call_")
        assert call.pop("type") == "function"
    return whole


def test_call_is_given_when_it_is_whole() -> None:
    """Its arguments are JSON, whatever pieces it came in; two in a row are two."""
    pieces = [ChannelDelta("tool", one, 1) for one in CALL] + [ChannelDelta("tool", CALL, 2)]
    function = {"function": {"name": "f", "arguments": '{"city": "Zoë"}'}}
    assert message(ChannelDelta("content", "So:", 0), *pieces) == {
        "role": "assistant",
        "content": "So:",
        "reasoning_content": None,
        "tool_calls": [function, function],
    }


DEEP = "[" * 60_000
NO_CALLS = ["{", "[]", '{"arguments": {}}', '{"name": 5}', "f(1)", DEEP, f'{{"name": "f", "arguments": {DEEP}']


@pytest.mark.parametrize("text", NO_CALLS, ids=range(len(NO_CALLS)))
def test_what_is_no_call_is_shown(text: str) -> None:
    """No text of a model is lost."""
    whole = message(ChannelDelta("content", "a", 0), ChannelDelta("tool", text, 1))
    assert whole["content"] == f"a{text}"
    assert "tool_calls" not in whole


def test_arguments_are_passed_on_where_the_header_names_the_function() -> None:
    """As harmony writes it: at once, piece by piece."""
    header = "commentary to=functions.weather <|constrain|>json"
    fields = MessageDeltas()
    (first,) = fields.feed([ChannelDelta("tool", '{"a"', 3, header)])
    (second,) = fields.feed([ChannelDelta("tool", ": 1}", 3, header)])
    assert first["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"a"'}
    assert second == {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]}
    assert whole_message([first, second])["tool_calls"][0]["function"]["arguments"] == '{"a": 1}'


@pytest.mark.parametrize(
    ("prompt", "start"), [("assistant\n<think>\n", "reasoning"), ("assistant\n", "content"), ("<think>a", "content")]
)
def test_prompt_that_opens_the_reasoning_is_seen(prompt: str, start: str) -> None:
    """As the templates of some models do."""
    ids = TOKENIZER.encode(prompt, add_special_tokens=False)
    assert table_behind(CHANNEL_TABLES["think"], TOKENIZER, ids).start == start
