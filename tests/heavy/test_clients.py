"""
The clients that people have hold a conversation of three turns with two tools: over a format of JSON, one of tags, and harmony.

The other formats are tried with OpenAI's client alone. Each client sends its history as it keeps it, so that what is tried is
both ways: what the model writes becomes the client's calls, and what the client sends back becomes the next prompt.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from tokenizers import AddedToken
from tokenizers import Tokenizer as Library

import detok
from detok.engines.base import EngineRequest
from detok.engines.scripted import Script, ScriptedEngine, one_by_one
from detok.prompts.turn_formats import detect_format
from detok.server.app import Server
from detok.turns.formats import TURN_FORMATS
from tests.server.support import model, on_socket, server_of
from tests.support.trl_templates import trl_templates
from tests.support.vocabularies import real, real_tokenizer
from tests.turns.test_parsers import tokens_of
from tests.turns.turn_texts import FAMILIES

# litellm's own classes warn at its import.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

KEY = "secret"
CALLS: list[tuple[str, dict[str, Any]]] = [("get_weather", {"city": "Zürich \u2028 🦜"}), ("book", {"days": 3, "city": "Zürich"})]
RESULTS = {"get_weather": "21 degrees", "book": "booked it"}
THOUGHTS = ("Which city?", "Warm enough.", "All is done.")
LAST = "Booked \u2028 🦜."
QUESTION, INSTRUCTIONS = "How is the weather?", "Be kind."

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
FUNCTIONS = [{"name": name, "description": "What it does", "parameters": PARAMETERS} for name in RESULTS]
TOOLS = [{"type": "function", "function": function} for function in FUNCTIONS]

PLAIN_TEMPLATE = """{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content %}{{ m.reasoning_content }}
{% endif %}{{ m.content }}
{%- for c in m.tool_calls or [] %}{% set f = c.function %}
{{- {'name': f.name, 'arguments': f.arguments} | tojson }}{% endfor %}<|im_end|>
{% endfor %}<|im_start|>assistant
"""
"""For formats whose template no package ships."""

MAIN = {"qwen": ("qwen3", "qwen3"), "qwen3_coder": ("qwen3", "qwen3_5_nothink"), "harmony": ("gptoss", "gptoss")}
"""The formats of which every client is tried: vocabulary and template."""

OTHERS = {
    "hermes": ("qwen3", "qwen2_5"),
    "glm": ("", "glm4moe"),
    "deepseek_v3": ("deepseek-v3", "deepseekv3"),
    "deepseek_v31": ("deepseek-v3", ""),
    "kimi_k2": ("", ""),
    "minimax": ("", ""),
    "mistral": ("", ""),
    "mistral, new": ("", ""),
    "llama3_json": ("llama3", "llama3_1"),
    "llama4_pythonic": ("", ""),
    "gemma": ("", "gemma4"),
    "granite": ("", ""),
}
"""The same of the others. No vocabulary: that of Qwen 3, with delimiters added."""


def test_every_format_with_calls_is_tried() -> None:
    """A new one is to be added."""
    assert {*MAIN, *OTHERS} == FAMILIES.keys() - {"think"}


def written(name: str) -> list[str]:
    """What a model of this format writes at each turn: a call, another one, words."""
    family = FAMILIES[name]
    start = "<|start|>assistant" if name == "harmony" else ""
    final = "<|channel|>final<|message|>" if name == "harmony" else ""
    thoughts = [f"{family.opens}{one}{family.closes}{start}" if family.opens else "" for one in THOUGHTS]
    return [
        *(thought + family.write([call]) for thought, call in zip(thoughts, CALLS, strict=False)),
        f"{thoughts[2]}{final}{LAST}",
    ]


class ByTurn(ScriptedEngine):
    """Answers by how many results of tools stand in the prompt."""

    def __init__(self, tokenizer: detok.Tokenizer, turns: list[str]) -> None:
        super().__init__()
        self._tokenizer = tokenizer
        self._turns = turns
        self.prompts: list[str] = []

    def script(self, request: EngineRequest) -> Script:
        """The next turn."""
        prompt = self._tokenizer.decode(list(request.prompt_ids), skip_special_tokens=False)
        self.prompts.append(prompt)
        turn = self._turns[sum(result in prompt for result in RESULTS.values())]
        return one_by_one(self._tokenizer.encode(turn, add_special_tokens=False))


def with_delimiters(folder: Path) -> detok.Tokenizer:
    """Qwen 3's vocabulary with the delimiters of the families that have none here."""
    library = Library.from_file(str(real("qwen3") / "tokenizer.json"))
    marks = dict.fromkeys(mark for name, (of, _) in OTHERS.items() if not of for mark in tokens_of(FAMILIES[name]))
    library.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in marks])
    library.save(str(folder / "tokenizer.json"))
    return detok.load(folder)


ENGINES: dict[str, ByTurn] = {}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a model of each format, and one that takes short prompts alone."""
    every = {**MAIN, **OTHERS}
    made = with_delimiters(tmp_path_factory.mktemp("vocabulary"))
    # Before the server listens, which it is waited for.
    tokenizers = {name: real_tokenizer(of) if of else made for name, (of, _) in every.items()}

    def make() -> Server:
        models = []
        for name, (_, template) in every.items():
            tokenizer = tokenizers[name]
            text = trl_templates()[template] if template else PLAIN_TEMPLATE
            own = TURN_FORMATS[name.partition(",")[0]]
            found = detect_format(tokenizer, text) if template else None
            assert found is None or found.format == own, found
            ENGINES[name] = ByTurn(tokenizer, written(name))
            models.append(model(ENGINES[name], name, tokenizer=tokenizer, channels=own, chat_template=text))
        short = model(name="short", tokenizer=real_tokenizer("qwen3"), max_model_len=64)
        return server_of(*models, short, api_keys=[KEY])

    with on_socket(make) as url:
        yield url


Held = list[tuple[str, Any]]
"""The calls of a conversation, as the client understood them, and its last words."""

EXPECTED: Held = [*CALLS, ("", LAST)]


def check(name: str, found: Held) -> None:
    """What the client understood is what the model wrote, and the last prompt has all that was said, in order."""
    assert found == EXPECTED
    prompt = ENGINES[name].prompts[-1]
    said = (QUESTION, "get_weather", "21 degrees", "book", "booked it")
    begin = 0 if INSTRUCTIONS not in prompt else prompt.index(INSTRUCTIONS)
    places = [prompt.index(QUESTION, begin)]
    for one in said[1:]:
        places.append(prompt.index(one, places[-1]))
    assert INSTRUCTIONS in prompt
    # An object again: the templates say how a family writes it.
    assert "Zürich" in prompt[places[0] :]
    assert '\\"days\\"' not in prompt


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", [*MAIN, *OTHERS])
def test_openai(url: str, name: str, stream: bool) -> None:
    """Chat completions."""
    found: Held = []
    messages: list[Any] = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": QUESTION}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        for turn in range(3):
            asked: Any = {"model": name, "messages": messages, "tools": TOOLS}
            if stream:
                with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as events:
                    for _ in events:
                        pass
                    answer = events.get_final_completion()
            else:
                answer = client.chat.completions.create(**asked)
            (choice,) = answer.choices
            message = choice.message
            details = answer.usage.completion_tokens_details if answer.usage else None
            assert details is not None
            assert bool(details.reasoning_tokens) == bool(FAMILIES[name].opens)
            assert choice.finish_reason == ("tool_calls" if turn < 2 else "stop")
            if FAMILIES[name].opens:
                assert message.model_extra is not None
                assert message.model_extra["reasoning"] == THOUGHTS[turn] == message.model_extra["reasoning_content"]
            messages.append(message)
            for call in message.tool_calls or ():
                found.append((call.function.name, json.loads(call.function.arguments)))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": RESULTS[call.function.name]})
        found.append(("", messages[-1].content))
    check(name, found)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", MAIN)
def test_openai_responses(url: str, name: str, stream: bool) -> None:
    """Responses."""
    found: Held = []
    items: list[Any] = [{"role": "user", "content": QUESTION}]
    tools = [{"type": "function", "strict": False, **function} for function in FUNCTIONS]
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        for _ in range(3):
            asked: Any = {"model": name, "input": items, "instructions": INSTRUCTIONS, "tools": tools}
            if stream:
                with client.responses.stream(**asked) as events:
                    for _event in events:
                        pass
                    answer: Any = events.get_final_response()
            else:
                answer = client.responses.create(**asked)
            for item in answer.output:
                items.append(item.model_dump(exclude_none=True))
                if item.type == "function_call":
                    found.append((item.name, json.loads(item.arguments)))
                    items.append({"type": "function_call_output", "call_id": item.call_id, "output": RESULTS[item.name]})
        found.append(("", answer.output_text))
    check(name, found)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", MAIN)
def test_anthropic(url: str, name: str, stream: bool) -> None:
    """Messages."""
    found: Held = []
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    tools = [{"name": one["name"], "description": "x", "input_schema": PARAMETERS} for one in FUNCTIONS]
    with anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        for _ in range(3):
            asked: Any = {"model": name, "max_tokens": 500, "messages": messages, "system": INSTRUCTIONS, "tools": tools}
            if stream:
                with client.messages.stream(**asked) as events:
                    for _event in events:
                        pass
                    answer: Any = events.get_final_message()
            else:
                answer = client.messages.create(**asked)
            messages.append({"role": "assistant", "content": answer.content})
            results = []
            for block in answer.content:
                if block.type == "tool_use":
                    found.append((block.name, block.input))
                    results.append({"type": "tool_result", "tool_use_id": block.id, "content": RESULTS[block.name]})
            if results:
                messages.append({"role": "user", "content": results})
        found.append(("", answer.content[-1].text))
    check(name, found)


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", MAIN)
def test_langchain(url: str, name: str, stream: bool, api: str) -> None:
    """`ChatOpenAI` with tools bound to it; what it streams is added up by its own rules."""
    langchain = pytest.importorskip("langchain_openai", reason="make heavy installs it")
    said = pytest.importorskip("langchain_core.messages", reason="comes with langchain-openai")
    settings = {"base_url": f"{url}/v1", "api_key": KEY, "max_retries": 0, "use_responses_api": api == "responses"}
    settings |= {"stream_usage": True}
    chat = langchain.ChatOpenAI(model=name, **settings).bind_tools(TOOLS)
    messages: list[Any] = [said.SystemMessage(INSTRUCTIONS), said.HumanMessage(QUESTION)]
    found: Held = []
    for _ in range(3):
        if stream:
            answer: Any = None
            for chunk in chat.stream(messages):
                answer = chunk if answer is None else answer + chunk
        else:
            answer = chat.invoke(messages)
        assert answer.usage_metadata["output_tokens"] > 0
        assert not answer.invalid_tool_calls
        messages.append(answer)
        for call in answer.tool_calls:
            found.append((call["name"], call["args"]))
            messages.append(said.ToolMessage(RESULTS[call["name"]], tool_call_id=call["id"]))
    content = messages[-1].content
    found.append(("", content if isinstance(content, str) else "".join(one.get("text", "") for one in content)))
    check(name, found)


def test_langchain_is_told_of_overflow(url: str) -> None:
    """By the class that it has for that."""
    langchain = pytest.importorskip("langchain_openai", reason="make heavy installs it")
    chat = langchain.ChatOpenAI(model="short", base_url=f"{url}/v1", api_key=KEY, max_retries=0)
    with pytest.raises(pytest.importorskip("langchain_core.exceptions", reason="as above").ContextOverflowError):
        chat.invoke("a " * 200)


@pytest.mark.parametrize("method", ["function_calling", "json_schema", "json_mode"])
def test_langchain_structured_output_is_asked_for(url: str, method: str) -> None:
    """In each of its three ways the request is one that the server takes."""
    langchain = pytest.importorskip("langchain_openai", reason="make heavy installs it")
    chat = langchain.ChatOpenAI(model="qwen", base_url=f"{url}/v1", api_key=KEY, max_retries=0)
    schema = {"title": "get_weather", "description": "x", **PARAMETERS}
    bound = chat.with_structured_output(schema, method=method, include_raw=True)
    answer = bound.invoke([("system", f"{INSTRUCTIONS} JSON."), ("user", QUESTION)])
    assert answer["raw"].response_metadata["model_name"] == "qwen"


@pytest.mark.parametrize("api", ["chat_completions", "responses"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", MAIN)
def test_openai_agents(url: str, name: str, stream: bool, api: str) -> None:
    """Its own loop: it calls the functions and goes on until there are words."""
    agents = pytest.importorskip("agents", reason="make heavy installs it: openai-agents")
    agents.set_tracing_disabled(True)
    found: Held = []

    async def get_weather(city: str) -> str:
        """Tell the weather."""
        found.append(("get_weather", {"city": city}))
        return RESULTS["get_weather"]

    async def book(days: int, city: str) -> str:
        """Book."""
        found.append(("book", {"days": days, "city": city}))
        return RESULTS["book"]

    async def hold() -> str:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
            kind = agents.OpenAIResponsesModel if api == "responses" else agents.OpenAIChatCompletionsModel
            tools = [agents.function_tool(get_weather), agents.function_tool(book)]
            agent = agents.Agent(name="a", instructions=INSTRUCTIONS, model=kind(model=name, openai_client=client), tools=tools)
            if not stream:
                return str((await agents.Runner.run(agent, QUESTION)).final_output)
            run = agents.Runner.run_streamed(agent, QUESTION)
            async for _ in run.stream_events():
                pass
            return str(run.final_output)

    found.append(("", asyncio.run(hold())))
    check(name, found)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", MAIN)
def test_litellm(url: str, name: str, stream: bool, provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over chat completions, and over Messages."""
    litellm = _litellm(monkeypatch)
    found: Held = []
    messages: list[Any] = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": QUESTION}]
    base = f"{url}/v1" if provider == "openai" else url
    for _ in range(3):
        asked = {"model": f"{provider}/{name}", "api_base": base, "api_key": KEY, "messages": messages, "tools": TOOLS}
        if stream:
            answer = litellm.stream_chunk_builder(list(litellm.completion(**asked, stream=True)), messages=messages)
        else:
            answer = litellm.completion(**asked)
        message = answer.choices[0].message
        messages.append(message.model_dump())
        for call in message.tool_calls or ():
            found.append((call.function.name, json.loads(call.function.arguments)))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": RESULTS[call.function.name]})
    found.append(("", message.content))
    check(name, found)


def test_litellm_is_told_of_overflow(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the class that it has for that, so that its routers try a longer context."""
    litellm = _litellm(monkeypatch)
    asked = {"model": "openai/short", "api_base": f"{url}/v1", "api_key": KEY}
    with pytest.raises(litellm.ContextWindowExceededError):
        litellm.completion(**asked, messages=[{"role": "user", "content": "a " * 200}])


def _litellm(monkeypatch: pytest.MonkeyPatch) -> Any:
    # Else it asks for a list of prices at its first import.
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    library = pytest.importorskip("litellm", reason="make heavy installs it")
    library.telemetry = False
    return library
