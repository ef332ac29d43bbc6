"""Channels as fields of a message."""

from __future__ import annotations

from detok.server.tool_calls import MessageDeltas, whole_message
from detok.turns.channels import ChannelDelta

CALL = [ChannelDelta("tool", text, 1, name="f") for text in ("", '{"a"', "", ": 1}")]


def message(*deltas: ChannelDelta, parallel: bool = True, reasoning: bool = True) -> dict[str, object]:
    """The whole message of deltas that come one by one, without the ids of its calls."""
    fields = MessageDeltas(parallel=parallel, reasoning=reasoning)
    whole = whole_message([delta for one in deltas for delta in fields.feed([one])])
    for call in whole.get("tool_calls", ()):
        assert call.pop("id").startswith("call_")
        assert call.pop("type") == "function"
    return whole


def test_call_is_framed() -> None:
    """The name with the first piece of arguments, and nothing for a piece without text; two in a row are two."""
    function = {"function": {"name": "f", "arguments": '{"a": 1}'}}
    second = [delta._replace(part=2) for delta in CALL]
    assert message(ChannelDelta("content", "So:", 0), *CALL, *second) == {
        "role": "assistant",
        "content": "So:",
        "reasoning_content": None,
        "tool_calls": [function, function],
    }
    assert len(MessageDeltas().feed(CALL)) == 3
    assert len(message(*CALL, *second, parallel=False)["tool_calls"]) == 1  # type: ignore[arg-type]


def test_id_of_the_model_is_the_calls() -> None:
    """Kimi's templates want it back."""
    (first,) = MessageDeltas().feed([ChannelDelta("tool", "{}", 0, name="f", call_id="functions.f:0")])
    assert first["tool_calls"][0]["id"] == "functions.f:0"


def test_reasoning_may_be_left_out() -> None:
    """It is counted all the same."""
    fields = MessageDeltas(reasoning=False)
    assert fields.feed([ChannelDelta("reasoning", "hm", 0, tokens=2), ChannelDelta("content", "a", 1, tokens=1)]) == [
        {"content": "a"}
    ]
    assert fields.reasoning_tokens == 2
