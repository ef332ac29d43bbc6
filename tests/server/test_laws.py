"""A request's text is the same streamed and unstreamed, and is what the tokenizer's own decode says, whatever the ids."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import detok
from detok.engines.replay import ReplayEngine
from detok.turns.formats import TURN_FORMATS
from tests.server.support import TOKENIZER, ask, ids_of, model, running

SOME = [*ids_of("<think>a 🦜</think> b ဗမာ END <tool_call>{}</tool_call>"), *TOKENIZER.special_ids]
IDS = st.lists(st.sampled_from(SOME) | st.integers(0, TOKENIZER.vocab_size - 1), min_size=1, max_size=40)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "stop": st.sampled_from(["END", ["a", "🦜"], "မ"]),
        "include_stop_str_in_output": st.booleans(),
        "skip_special_tokens": st.booleans(),
        "min_tokens": st.integers(0, 5),
        "max_tokens": st.integers(6, 50),
        "stream_interval": st.integers(1, 5),
        "byte_fallback": st.sampled_from(["eager", "exact"]),
        "stop_token_ids": st.lists(st.sampled_from(SOME), max_size=2),
    },
)


async def _both(path: str, ids: list[int], body: dict[str, Any], step: int, **settings: Any) -> tuple[list[Any], Any]:
    engine = ReplayEngine([ids], step_tokens=step)
    async with running(model(engine, **settings)) as server:
        streamed = await ask(server, path, {**body, "stream": True, "stream_options": {"include_usage": True}})
        whole = await ask(server, path, body)
    assert streamed.status == whole.status == 200
    return streamed.events, whole.json


@given(IDS, OPTIONS, st.integers(1, 7))
def test_completion_is_the_same_streamed_and_not(ids: list[int], options: dict[str, Any], step: int) -> None:
    """Text, ids, reason and usage; and the text is that of a request in the library."""
    body = {"prompt": [5], "max_tokens": 99, "return_token_ids": True, **options}
    events, whole = asyncio.run(_both("/v1/completions", ids, body, step))
    (choice,) = whole["choices"]
    choices = [event["choices"][0] for event in events[:-1]]
    assert "".join(one["text"] for one in choices) == choice["text"]
    assert [one for each in choices for one in each["token_ids"]] == choice["token_ids"]
    assert [one["finish_reason"] for one in choices] == [None] * (len(choices) - 1) + [choice["finish_reason"]]
    assert choices[-1]["stop_reason"] == choice["stop_reason"]
    assert events[-1]["usage"] == whole["usage"]
    known = {name: value for name, value in options.items() if name != "stream_interval"}
    request = TOKENIZER.request([5], **{"max_tokens": 99, "byte_fallback": "eager", **known})
    most = options.get("max_tokens", 99)
    assert request.feed(ids[:most], finish_reason="length" if len(ids) > most else "stop").text == choice["text"]


@settings(max_examples=20)
@given(IDS, OPTIONS, st.integers(1, 7), st.sampled_from([None, "qwen", "think"]))
def test_chat_is_the_same_streamed_and_not(ids: list[int], options: dict[str, Any], step: int, channels: str | None) -> None:
    """Content, reasoning and calls, which are but for their ids."""
    body = {"messages": [{"role": "user", "content": "?"}], **options}
    settings = {} if channels is None else {"channels": TURN_FORMATS[channels]}
    events, whole = asyncio.run(_both("/v1/chat/completions", ids, body, step, **settings))
    message = whole["choices"][0]["message"]
    deltas = [event["choices"][0]["delta"] for event in events[:-1]]
    for field in ("content", "reasoning_content"):
        assert "".join(delta.get(field) or "" for delta in deltas) == (message[field] or "")
    called = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
    assert called == [call["function"] for call in message.get("tool_calls", ())]
    assert events[-2]["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"]


def test_law_would_find_a_difference() -> None:
    """The two ways are not the same list of chunks to begin with."""
    events, whole = asyncio.run(_both("/v1/completions", ids_of("Hi 🦜!"), {"prompt": [5]}, 1))
    assert len(events) > 3
    assert whole["choices"][0]["text"] == "Hi 🦜!" == detok.load(detok.EMBEDDED).decode(ids_of("Hi 🦜!"))
