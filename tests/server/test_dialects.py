"""Conversations in the shapes of OpenAI's Responses and Anthropic's Messages, by the official clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from detok.engines.base import EngineRequest
from detok.engines.scripted import Script, ScriptedEngine, one_by_one
from detok.server.app import Server
from detok.server.dialects.blocks import Blocks
from detok.turns.formats import TURN_FORMATS
from tests.server.support import TOKENIZER, ids_of, model, on_socket, server_of
from tests.server.test_endpoints import asked

KEY = "secret"
RESPONSES, MESSAGES, COUNT = "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"

CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Zürich"}}</tool_call>'
SECOND = '<tool_call>{"name": "book", "arguments": {"days": 3}}</tool_call>'
TURNS = (f"<think>Which city?</think>Let me see.{CALL}", f"<think>Warm.</think>{SECOND}", "Booked \u2028 🦜.")
"""What the model writes at each turn: a call, another one, words."""


class ByTurn(ScriptedEngine):
    """Answers by how many results of tools stand in the prompt."""

    def script(self, request: EngineRequest) -> Script:
        prompt = TOKENIZER.decode(list(request.prompt_ids), skip_special_tokens=False)
        self.prompts.append(prompt)
        return one_by_one(ids_of(TURNS[prompt.count("<|im_start|>tool")]))

    prompts: list[str] = []  # noqa: RUF012  # of all of them, for the tests to look at


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that asks for a key."""

    def make() -> Server:
        tools = model(ByTurn(), "agent", channels=TURN_FORMATS["qwen"], chat_template=TEMPLATE)
        return server_of(tools, model(name="echo"), api_keys=[KEY])

    with on_socket(make) as url:
        yield url


TEMPLATE = """{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}
{%- for c in m.tool_calls or [] %}{% set f = c.function %}
{{- '<tool_call>' ~ {'name': f.name, 'arguments': f.arguments} | tojson ~ '</tool_call>' }}
{%- endfor %}<|im_end|>
{% endfor %}<|im_start|>assistant
"""

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
RESULTS = {"get_weather": "21 degrees", "book": "done"}


@pytest.fixture
def responses(url: str) -> Iterator[Any]:
    """OpenAI's client."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        yield client.responses


@pytest.fixture
def messages(url: str) -> Iterator[Any]:
    """Anthropic's client, whose key has a header of its own."""
    with anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        yield client.messages


def _expected() -> list[tuple[str, str]]:
    return [
        ("reasoning", "Which city?"),
        ("text", "Let me see."),
        ("get_weather", '{"city": "Zürich"}'),
        ("reasoning", "Warm."),
        ("book", '{"days": 3}'),
        ("text", "Booked \u2028 🦜."),
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_responses_hold_a_conversation_of_three_turns(responses: Any, stream: bool) -> None:
    """With two tools, all of it sent back each time as the client has it."""
    tools = [{"type": "function", "name": name, "parameters": PARAMETERS, "strict": False} for name in RESULTS]
    conversation: list[Any] = [{"role": "user", "content": "How is the weather?"}]
    found: list[tuple[str, str]] = []
    for _ in TURNS:
        options = {"model": "agent", "input": conversation, "instructions": "Be kind.", "tools": tools}
        if stream:
            with responses.stream(**options) as events:
                deltas = [event for event in events if event.type.endswith(".delta")]
                response = events.get_final_response()
            assert len(deltas) > 1
        else:
            response = responses.create(**options)
        assert (response.status, response.model) == ("completed", "agent")
        assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens > 0
        for item in response.output:
            conversation.append(item.model_dump(exclude_none=True) if stream else item)
            match item.type:
                case "reasoning":
                    found.append(("reasoning", item.content[0].text))
                case "message":
                    found.append(("text", item.content[0].text))
                case "function_call":
                    found.append((item.name, item.arguments))
                    result = {"type": "function_call_output", "call_id": item.call_id, "output": RESULTS[item.name]}
                    conversation.append(result)
    assert found == _expected()
    _check_prompt()


@pytest.mark.parametrize("stream", [False, True])
def test_messages_hold_a_conversation_of_three_turns(messages: Any, stream: bool) -> None:
    """The same with Anthropic's blocks."""
    tools = [{"name": name, "description": "x", "input_schema": PARAMETERS} for name in RESULTS]
    conversation: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "How is the weather?"}]}]
    found: list[tuple[str, str]] = []
    reasons = []
    for _ in TURNS:
        options: Any = {"model": "agent", "max_tokens": 200, "messages": conversation, "system": "Be kind.", "tools": tools}
        if stream:
            with messages.stream(**options) as events:
                for _event in events:
                    pass
                message = events.get_final_message()
        else:
            message = messages.create(**options)
        assert message.usage.input_tokens == messages.count_tokens(**_count(options)).input_tokens
        assert message.usage.output_tokens > 0
        reasons.append(message.stop_reason)
        conversation.append({"role": "assistant", "content": message.content})
        results = []
        for block in message.content:
            match block.type:
                case "thinking":
                    found.append(("reasoning", block.thinking))
                case "text":
                    found.append(("text", block.text))
                case "tool_use":
                    found.append((block.name, json.dumps(block.input, ensure_ascii=False)))
                    results.append({"type": "tool_result", "tool_use_id": block.id, "content": RESULTS[block.name]})
        if results:
            conversation.append({"role": "user", "content": results})
    assert (found, reasons) == (_expected(), ["tool_use", "tool_use", "end_turn"])
    _check_prompt()


def _count(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "max_tokens"}


def _check_prompt() -> None:
    """The last prompt has all that was said, as the model wrote it."""
    prompt = ByTurn.prompts[-1]
    turns = [f"<|im_start|>assistant\n{TURNS[0]}<|im_end|>", f"<|im_start|>assistant\n{TURNS[1]}<|im_end|>"]
    places = [prompt.index(one) for one in ("Be kind.", "How is the weather?", turns[0], "21 degrees", turns[1], "done")]
    assert places == sorted(places)


def test_events_of_responses_are_numbered_and_name_what_they_say(url: str, responses: Any) -> None:
    """As OpenAI's own, from created to completed; what opens is closed."""
    tools = [{"type": "function", "name": name, "parameters": PARAMETERS, "strict": False} for name in RESULTS]
    events = list(responses.create(model="agent", input="Hi", stream=True, tools=tools))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    types = [event.type for event in events]
    assert types[:2] == ["response.created", "response.in_progress"]
    assert types[-1] == "response.completed"
    assert types.count("response.output_item.added") == types.count("response.output_item.done") == 3
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == next(event.text for event in events if event.type == "response.output_text.done") == "Let me see."
    assert events[-1].response.output_text == text


def test_events_of_messages_are_anthropics(messages: Any) -> None:
    """In their order."""
    tools: Any = [{"name": name, "description": "x", "input_schema": PARAMETERS} for name in RESULTS]
    asked: Any = [{"role": "user", "content": "Hi"}]
    events = list(messages.create(model="agent", max_tokens=200, messages=asked, tools=tools, stream=True))
    types = [event.type for event in events]
    assert (types[0], types[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert types.count("content_block_start") == types.count("content_block_stop") == 3
    assert events[-2].usage.output_tokens > 0


def test_answer_that_is_cut_off_says_so(responses: Any, messages: Any) -> None:
    """And one that meets a stop says which."""
    response = responses.create(model="echo", input="one two three", max_output_tokens=3)
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert response.output[-1].status == "incomplete"
    *_, last = responses.create(model="echo", input="one two three", max_output_tokens=3, stream=True)
    assert last.type == "response.incomplete"
    said: Any = [{"role": "user", "content": "one two three"}]
    assert messages.create(model="echo", max_tokens=3, messages=said).stop_reason == "max_tokens"
    message = messages.create(model="echo", max_tokens=99, messages=said, stop_sequences=["two"])
    assert (message.stop_reason, message.stop_sequence, message.content[0].text) == ("stop_sequence", "two", "user\none ")


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (RESPONSES, {"input": "a", "previous_response_id": "x"}, "previous_response_id"),
        (RESPONSES, {"input": "a", "conversation": "x"}, "conversation"),
        (RESPONSES, {"input": "a", "background": True}, "background"),
        (RESPONSES, {"input": [{"type": "web_search_call"}]}, "input[0].type"),
        (RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0]"),
        (RESPONSES, {"input": [{"type": "function_call", "name": "f"}]}, "input[0]"),
        (RESPONSES, {"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
        (RESPONSES, {"input": "a", "tools": [{"type": "web_search"}]}, "tools[0].type"),
        (RESPONSES, {"input": "a", "text": {"format": {"type": "xml"}}}, "response_format"),
        (RESPONSES, {}, "input"),
        (MESSAGES, {"messages": [], "max_tokens": 5}, "messages"),
        (MESSAGES, {"messages": [{"role": "user", "content": "a"}]}, "max_tokens"),
        (MESSAGES, {"messages": [{"role": "tool", "content": "a"}], "max_tokens": 5}, "messages[0].role"),
        (MESSAGES, {"messages": [{"role": "user", "content": [{"type": "image"}]}], "max_tokens": 5}, "messages[0].content[0]"),
        (
            MESSAGES,
            {"messages": [{"role": "assistant", "content": [{"type": "odd"}]}], "max_tokens": 5},
            "messages[0].content[0]",
        ),
        (
            MESSAGES,
            {"messages": [{"role": "user", "content": "a"}], "max_tokens": 5, "tools": [{"type": "bash"}]},
            "tools[0].type",
        ),
        (COUNT, {"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        (COUNT, {"messages": [{"role": "user", "content": "a"}], "system": [{"type": "image"}]}, "system[0]"),
    ],
)
def test_what_cannot_be_told_names_the_clients_own_place(path: str, body: dict[str, Any], param: str) -> None:
    """400, in the shape that the API's clients read."""
    answer = asked(path, body)
    assert (answer.status, answer.json["error"]["param"]) == (400, param), answer.json
    if path != RESPONSES:
        assert (answer.json["type"], answer.json["error"]["type"]) == ("error", "invalid_request_error")


def test_errors_have_the_classes_of_each_client(url: str, responses: Any, messages: Any) -> None:
    """By status, with our words."""
    with pytest.raises(openai.NotFoundError, match="there is no model 'x'"):
        responses.create(model="x", input="a")
    with pytest.raises(anthropic.NotFoundError, match="there is no model 'x'"):
        messages.create(model="x", max_tokens=5, messages=[{"role": "user", "content": "a"}])
    other = anthropic.Anthropic(base_url=url, api_key="wrong", max_retries=0)
    with other, pytest.raises(anthropic.AuthenticationError, match="is wrong"):
        other.messages.create(model="agent", max_tokens=5, messages=[{"role": "user", "content": "a"}])


def test_thinking_and_effort_are_variables_of_the_template() -> None:
    """As the two APIs name them."""
    template = "{{ enable_thinking }}|{{ reasoning_effort }}"
    said = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 50}
    cases: list[tuple[str, dict[str, Any], str]] = [
        (MESSAGES, {**said, "thinking": {"type": "enabled", "budget_tokens": 2000}}, "True|"),
        (MESSAGES, {**said, "thinking": {"type": "disabled"}}, "False|none"),
        (MESSAGES, {**said, "output_config": {"effort": "low"}}, "True|low"),
        (RESPONSES, {"input": "a", "reasoning": {"effort": "high", "summary": "auto"}}, "True|high"),
        (RESPONSES, {"input": "a"}, "|"),
    ]
    for path, body, text in cases:
        found = asked(path, body, of=model(chat_template=template)).json
        content = found["content"] if path == MESSAGES else found["output"][0]["content"]
        assert content[0]["text"] == text


def test_blocks_open_grow_and_close_in_turn() -> None:
    """Whatever the deltas are; empty ones open nothing."""
    blocks = Blocks()
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "x"},
        {"content": ""},
        {"content": "y"},
        {"tool_calls": [call]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
        {"tool_calls": [{**call, "index": 1, "id": "b"}]},
    ]
    steps = [(step.what, step.block.kind, step.block.index, step.text) for one in deltas for step in blocks.feed([one])]
    steps += [(step.what, step.block.kind, step.block.index, step.text) for step in blocks.feed([], ends=True)]
    assert steps == [
        ("opens", "reasoning", 0, ""),
        ("grows", "reasoning", 0, "x"),
        ("closes", "reasoning", 0, ""),
        ("opens", "text", 1, ""),
        ("grows", "text", 1, "y"),
        ("closes", "text", 1, ""),
        ("opens", "call", 2, ""),
        ("grows", "call", 2, "{}"),
        ("closes", "call", 2, ""),
        ("opens", "call", 3, ""),
        ("closes", "call", 3, ""),
    ]
    assert blocks.feed([], ends=True) == []
