"""The official client of OpenAI reads our answers as it reads theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import openai
import pytest

from detok.core.request.logprobs import Logprob
from detok.data import sample
from detok.engines.replay import ReplayEngine
from detok.engines.scripted import ScriptStep
from detok.server.app import Server
from detok.turns.formats import TURN_FORMATS
from tests.server.support import ids_of, model, on_socket, server_of

KEY = "secret"
TEXT = "The answer is 42. 🦜 ဗမာ END and more"


def _scripts() -> list[list[ScriptStep]]:
    ids = ids_of("Hi 🦜")
    logprobs = [Logprob(-0.5 * place, 1, ((one, -0.5 * place), (1, -7.0))) for place, one in enumerate(ids)]
    return [[ScriptStep((one,), (given,)) for one, given in zip(ids, logprobs, strict=True)] + [ScriptStep((), None, "stop")]]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server with three models, which asks for a key."""

    def make() -> Server:
        thinking = ids_of('<think>hm</think>Well.<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>')
        return server_of(
            model(name="echo"),
            model(ReplayEngine(_scripts()), "scored"),
            model(ReplayEngine([thinking]), "thinking", channels=TURN_FORMATS["qwen"]),
            api_keys=["other", KEY],
        )

    with on_socket(make) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    """A client with the key."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        yield client


@pytest.mark.parametrize("text", [TEXT, sample("burmese")[:200]])
def test_completion_is_the_same_streamed_and_not(client: openai.OpenAI, text: str) -> None:
    """And it ends before the stop."""
    asked = {"model": "echo", "prompt": text, "max_tokens": 500, "stop": ["END"]}
    whole = client.completions.create(**asked)  # type: ignore[call-overload]
    chunks = list(client.completions.create(**asked, stream=True, stream_options={"include_usage": True}))  # type: ignore[call-overload]
    assert whole.choices[0].text == text.partition("END")[0]
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == whole.choices[0].text
    assert chunks[-1].usage == whole.usage
    assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason == "stop"
    assert {chunk.id for chunk in chunks} == {chunks[0].id}


def test_choices_and_prompts_are_numbered(client: openai.OpenAI) -> None:
    """Two prompts with n=2 are four choices, streamed and not."""
    asked = {"model": "echo", "prompt": ["one", "two and more"], "n": 2, "echo": True, "max_tokens": 50}
    whole = client.completions.create(**asked)  # type: ignore[call-overload]
    assert [choice.text for choice in whole.choices] == ["oneone"] * 2 + ["two and moretwo and more"] * 2
    texts = [""] * 4
    for chunk in client.completions.create(**asked, stream=True):  # type: ignore[call-overload]
        for choice in chunk.choices:
            texts[choice.index] += choice.text
    assert texts == [choice.text for choice in whole.choices]


def test_chat_begins_with_the_role(client: openai.OpenAI) -> None:
    """And the deltas are the message."""
    asked = {"model": "echo", "messages": [{"role": "user", "content": TEXT}], "stop": "END"}
    whole = client.chat.completions.create(**asked)  # type: ignore[call-overload]
    first, *chunks = client.chat.completions.create(**asked, stream=True)  # type: ignore[call-overload]
    assert (first.choices[0].delta.role, first.choices[0].delta.content) == ("assistant", "")
    assert "".join(chunk.choices[0].delta.content for chunk in chunks) == whole.choices[0].message.content
    assert whole.choices[0].message.content == f"user\n{TEXT}".partition("END")[0]
    assert whole.choices[0].finish_reason == chunks[-1].choices[0].finish_reason == "stop"
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens


def test_logprobs_tile_the_text(client: openai.OpenAI) -> None:
    """In both shapes, with bytes of each token alone."""
    chat = client.chat.completions.create(
        model="scored", messages=[{"role": "user", "content": "?"}], logprobs=True, top_logprobs=2
    )
    assert chat.choices[0].logprobs is not None
    entries = chat.choices[0].logprobs.content or []
    assert "".join(entry.token for entry in entries) == "Hi 🦜" == chat.choices[0].message.content
    assert b"".join(bytes(entry.bytes or ()) for entry in entries) == "Hi 🦜".encode()
    assert entries[1].logprob == -0.5
    assert entries[1].top_logprobs[1].logprob == -7.0
    plain = client.completions.create(model="scored", prompt="?", logprobs=1).choices[0].logprobs
    assert plain is not None
    assert plain.token_logprobs == [entry.logprob for entry in entries]
    assert plain.text_offset == [0, 1, 2, 3]


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_and_tools_are_fields(client: openai.OpenAI, stream: bool) -> None:
    """Where the model's channels are known."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    asked = {"model": "thinking", "messages": [{"role": "user", "content": "?"}], "tools": tools}
    if not stream:
        (choice,) = client.chat.completions.create(**asked).choices  # type: ignore[call-overload]
        message, reason = choice.message.model_dump(), choice.finish_reason
        content, reasoning, calls = message["content"], message["reasoning_content"], message["tool_calls"]
    else:
        chunks = list(client.chat.completions.create(**asked, stream=True))  # type: ignore[call-overload]
        deltas = [chunk.choices[0].delta.model_dump() for chunk in chunks]
        content = "".join(delta["content"] or "" for delta in deltas)
        reasoning = "".join(delta.get("reasoning_content") or "" for delta in deltas)
        calls = [call for delta in deltas for call in delta["tool_calls"] or ()]
        reason = chunks[-1].choices[0].finish_reason
    assert (content, reasoning, reason) == ("Well.", "hm", "tool_calls")
    assert [call["function"]["name"] for call in calls if call["function"].get("name")] == ["f"]
    assert "".join(call["function"]["arguments"] for call in calls) == '{"a": 1}'


def test_errors_have_their_classes(url: str, client: openai.OpenAI) -> None:
    """The client tells them apart by status, and shows our words."""
    with pytest.raises(openai.NotFoundError, match="there is no model 'x'"):
        client.completions.create(model="x", prompt="a")
    with pytest.raises(openai.BadRequestError, match="n is 1000") as refused:
        client.completions.create(model="echo", prompt="a", n=1000)
    assert refused.value.param == "n"
    for key, said in (("wrong", "is wrong"), (f"{KEY}x", "is wrong")):
        other = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
        with other, pytest.raises(openai.AuthenticationError, match=said):
            other.models.list()


def test_models_are_listed(client: openai.OpenAI) -> None:
    """Each with its name."""
    assert [one.id for one in client.models.list()] == ["echo", "scored", "thinking"]


def test_async_client_reads_many_streams_at_once(url: str) -> None:
    """Each gets its own text."""

    async def main() -> None:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY) as client:

            async def read(text: str) -> str:
                stream = await client.completions.create(model="echo", prompt=text, max_tokens=99, stream=True)
                return "".join([chunk.choices[0].text async for chunk in stream])

            texts = [f"{number} 🦜 {TEXT}" for number in range(20)]
            assert await asyncio.gather(*map(read, texts)) == texts

    asyncio.run(main())
