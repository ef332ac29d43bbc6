"""Conversations over HTTP: what clients send back becomes the prompt, what cannot be told is 400 and names its place."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import detok
from detok.errors import ChatTemplateError, OptionError, SourceError
from detok.server.app import open_server
from detok.server.config import ModelConfig, ServerConfig, read_config
from tests.prompts.support import real_tokenizer
from tests.server.support import Answer, ask, ids_of, model, running
from tests.server.test_endpoints import CHAT, HI, asked, refused
from tests.support.vocabularies import real

Body = dict[str, Any]

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"city":"Zoë"}'}}
TURNS: list[Body] = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None, "annotations": [], "function_call": None},
    {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "21"}]},
]


def qwen(**settings: Any) -> Any:
    """A model with Qwen3's vocabulary and template."""
    return model(tokenizer=real_tokenizer("qwen3"), **settings)


def prompt_of(body: Body, of: Any = None) -> str:
    """The prompt that a chat becomes."""
    answer = asked("/tokenize", body, of=of or qwen())
    assert answer.status == 200, answer.json
    return real_tokenizer("qwen3").decode(answer.json["tokens"], skip_special_tokens=False)


def test_second_turn_with_a_tool_goes_on() -> None:
    """As the official client, LangChain and the Agents SDK send it."""
    expected = (
        '<|im_start|>assistant\n<tool_call>\n{"name": "f", "arguments": {"city": "Zoë"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\n21\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )
    assert prompt_of({"messages": TURNS, "tools": [TOOL]}).endswith(expected)
    assert asked(CHAT, {"messages": TURNS, "tools": [TOOL], "max_tokens": 1}, of=qwen()).status == 200
    old: list[Body] = [
        TURNS[0],
        {"role": "assistant", "content": None, "function_call": CALL["function"]},
        {"role": "function", "name": "f", "content": "21"},
    ]
    assert prompt_of({"messages": old}) == prompt_of({"messages": TURNS})


def test_tools_of_the_old_api_are_tools() -> None:
    """`functions`, and `function_call` for `tool_choice`."""
    body = {"messages": HI, "max_tokens": 1, "return_token_ids": True}
    new = asked(CHAT, {**body, "tools": [TOOL]}, of=qwen()).json["prompt_token_ids"]
    old = asked(CHAT, {**body, "functions": [TOOL["function"]], "function_call": "auto"}, of=qwen()).json["prompt_token_ids"]
    assert new == old
    none = asked(CHAT, {**body, "functions": [TOOL["function"]], "function_call": "none"}, of=qwen()).json["prompt_token_ids"]
    assert none == asked(CHAT, body, of=qwen()).json["prompt_token_ids"] != new


IMAGE = {"type": "image_url", "image_url": {"url": "x"}}
SOUND = [{"type": "text", "text": "a"}, {"type": "input_audio"}]
CUSTOM = {"type": "custom", "custom": {}}
LISTED = {"type": "function", "function": {"name": "x", "parameters": []}}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": [{"role": "user", "content": [IMAGE]}]}, "messages[0].content[0]"),
        ({"messages": [*HI, {"role": "user", "content": SOUND}]}, "messages[1].content[1]"),
        ({"messages": [*HI, {"role": "critic", "content": "a"}]}, "messages[1].role"),
        ({"messages": [*HI, {"role": "assistant", "audio": {"id": "x"}}]}, "messages[1].audio"),
        ({"messages": [*HI, {"role": "assistant", "tool_calls": [CUSTOM]}]}, "messages[1].tool_calls[0].type"),
        ({"messages": [*HI, {"role": "assistant", "tool_calls": [{"type": "function"}]}]}, "messages[1].tool_calls[0].function"),
        ({"messages": HI, "tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"messages": HI, "tools": [{"type": "function"}]}, "tools[0].function"),
        ({"messages": HI, "tools": [{"name": "x"}]}, "tools[0].function"),
        ({"messages": HI, "tools": [LISTED]}, "tools[0].function.parameters"),
        ({"messages": HI, "functions": [{"name": 5}]}, "functions[0]"),
        ({"messages": HI, "reasoning_effort": "much"}, "reasoning_effort"),
    ],
)
def test_what_cannot_be_told_is_named(body: Body, param: str) -> None:
    """With a template that passes over parts and roles that it does not know."""
    if "functions" not in body:
        refused("/tokenize", body, 400, param, "", of=qwen())
    refused(CHAT, body, 400, param, "", of=qwen())


def test_refusal_of_a_template_names_the_message() -> None:
    """The one that it does not take."""
    chat = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    refused(CHAT, {"messages": chat}, 400, "messages[1]", "alternate", of=model(tokenizer=real_tokenizer("gemma3")))


@pytest.mark.parametrize(("effort", "thinks"), [("none", False), ("low", True), ("high", True)])
def test_effort_is_a_variable_of_the_template(effort: str, thinks: bool) -> None:
    """And says whether the model thinks, unless the request or nobody says so."""
    template = "{{ reasoning_effort }}|{{ enable_thinking }}|{{ other }}"
    body: Body = {"messages": HI, "reasoning_effort": effort}

    def set_to() -> Any:
        return model(chat_template=template, chat_template_kwargs={"other": 1, "enable_thinking": "?"})

    def text(body: Body) -> Any:
        return asked("/tokenize", body, of=set_to()).json["tokens"]

    assert text(body) == ids_of(f"{effort}|{thinks}|1")
    assert text({**body, "chat_template_kwargs": {"enable_thinking": 5, "other": 2}}) == ids_of(f"{effort}|5|2")
    assert text({"messages": HI}) == ids_of("|?|1")
    chat = asked(CHAT, {**body, "return_token_ids": True, "max_tokens": 1}, of=set_to()).json
    assert chat["prompt_token_ids"] == ids_of(f"{effort}|{thinks}|1")


def test_special_tokens_are_added_to_a_chat_once() -> None:
    """What the encoder puts in front of a text, if the template has not."""
    tokenizer = real_tokenizer("gemma3")

    def ids(special: bool | None, **settings: Any) -> Any:
        body = {"messages": HI, "add_special_tokens": special}
        return asked("/tokenize", body, of=model(tokenizer=tokenizer, **settings)).json["tokens"]

    template = "{{ messages[0].content }}"
    assert ids(True, chat_template=template) == [tokenizer.bos_token_id, *ids(None, chat_template=template)]
    assert ids(True) == ids(False) == ids(None)


def opened(config: ServerConfig, path: str, body: Any = None, method: str = "POST") -> Answer:
    """Ask a server that was opened with a configuration."""

    async def main() -> Answer:
        server = open_server(config)
        try:
            return await ask(server, path, body, method=method)
        finally:
            await server.close()

    return asyncio.run(main())


def test_model_has_a_template_of_its_own(tmp_path: Path) -> None:
    """Out of a file, with variables, for a tokenizer that brings none."""
    path = tmp_path / "chat.jinja"
    path.write_text("{{ messages[0].content }}{{ mark }}", encoding="utf-8")
    settings: Body = {"chat_template": str(path), "default_chat_template_kwargs": {"mark": "!"}}
    config = ServerConfig(models={"a": ModelConfig(**settings)})
    assert opened(config, "/tokenize", {"messages": HI}).json["tokens"] == ids_of("Hi!")
    body = {"messages": HI, "chat_template_kwargs": {"mark": "?"}}
    assert opened(config, "/tokenize", body).json["tokens"] == ids_of("Hi?")
    without = str(real("gptoss"))
    answer = opened(ServerConfig(models={"a": ModelConfig(tokenizer=without)}), CHAT, {"messages": HI})
    assert (answer.status, "--chat-template FILE" in answer.error["message"]) == (400, True)
    config = ServerConfig(models={"a": ModelConfig(tokenizer=without, chat_template=str(path))})
    assert opened(config, "/tokenize", {"messages": HI}).status == 200


@pytest.mark.parametrize(
    ("template", "error", "words"),
    [
        ("nowhere.jinja", OptionError, "no such file"),
        ("bad.jinja", ChatTemplateError, "line 1"),
        ("latin.jinja", SourceError, "cannot be read"),
    ],
)
def test_template_that_is_none_is_told_at_the_start(tmp_path: Path, template: str, error: type[Exception], words: str) -> None:
    """Not when the first client asks."""
    (tmp_path / "bad.jinja").write_text("{% for %}")
    (tmp_path / "latin.jinja").write_bytes("ü".encode("latin-1"))
    with pytest.raises(error, match=words):
        open_server(ServerConfig(models={"a": ModelConfig(chat_template=str(tmp_path / template))}))
    with pytest.raises(OptionError, match=r"default_chat_template_kwargs\.tools"):
        open_server(ServerConfig(models={"a": ModelConfig(default_chat_template_kwargs={"tools": []})}))


def test_model_may_have_several_names(tmp_path: Path) -> None:
    """Each is listed and answers; the first one signs."""
    config = read_config(None, {"model": {"engine": "echo", "served_model_names": ["a", "b/c"]}})
    assert [*config.models] == ["a"]
    for name in ("a", "b/c", None):
        answer = opened(config, "/v1/completions", {"model": name, "prompt": "x"})
        assert answer.json["model"] == "a"
    listed = opened(config, "/v1/models", method="GET").json["data"]
    assert [(one["id"], one["root"]) for one in listed] == [("a", "a"), ("b/c", "a")]
    assert opened(config, "/v1/models/b/c", method="GET").json["id"] == "b/c"
    assert "'b/c'" in opened(config, "/v1/completions", {"model": "z", "prompt": "x"}).error["message"]
    named = read_config(None, {"model": {"name": "m", "served_model_names": ["a"]}})
    assert (named.models["m"].served_model_names, [*named.models]) == (["a"], ["m"])
    path = tmp_path / "models.toml"
    path.write_text("[models.a]\nserved_model_names = ['b']\n[models.b]\n")
    with pytest.raises(OptionError, match="served_model_names='b'"):
        read_config(path)


def test_reasoning_has_both_names() -> None:
    """vLLM's clients read `reasoning`, others `reasoning_content`."""
    from detok.engines.replay import ReplayEngine
    from detok.turns.formats import turn_format

    def made() -> Any:
        return model(ReplayEngine([ids_of("<think>hm</think>Well.")]), channels=turn_format("think"))

    message = asked(CHAT, {"messages": HI}, of=made()).json["choices"][0]["message"]
    assert (message["reasoning"], message["reasoning_content"], message["content"]) == ("hm", "hm", "Well.")
    deltas = [event["choices"][0]["delta"] for event in asked(CHAT, {"messages": HI, "stream": True}, of=made()).events]
    for name in ("reasoning", "reasoning_content"):
        assert "".join(delta.get(name) or "" for delta in deltas) == "hm"


def test_padded_ids_are_no_errors() -> None:
    """Qwen3's model has 151,936 rows, and its tokenizer 151,669 ids."""
    answer = asked("/detokenize", {"tokens": [*real_tokenizer("qwen3").encode("Hi"), 151_669, 151_935]}, of=qwen())
    assert answer.json["text"] == "Hi"
    refused("/detokenize", {"tokens": [152_500]}, 400, "tokens[0]", "no such id", of=qwen())
    refused("/detokenize", {"tokens": [151_936]}, 400, "tokens[0]", "no such id", of=qwen(vocab_size=151_936))


def test_heartbeat_may_be_never() -> None:
    """As balancers that count comments want it."""
    assert asked("/v1/completions", {"prompt": "Hi", "stream": True}, heartbeat_seconds=0).text() == "Hi"


def test_history_of_every_message_is_kept_apart() -> None:
    """Two conversations at once do not touch each other, nor the bodies that they came in."""

    async def main() -> None:
        async with running(qwen()) as server:
            bodies = [{"messages": [*TURNS, {"role": "user", "content": str(n)}], "tools": [TOOL]} for n in range(8)]
            before = json.dumps(bodies)
            answers = await asyncio.gather(*(ask(server, "/tokenize", one) for one in [*bodies, {"messages": [5]}]))
            assert [one.status for one in answers] == [200] * 8 + [400]
            assert len({tuple(one.json["tokens"]) for one in answers[:8]}) == 8
            assert json.dumps(bodies) == before

    asyncio.run(main())


def test_embedded_tokenizer_takes_the_same() -> None:
    """Its template shows contents alone: the calls are left out, as transformers does."""
    assert detok.load(detok.EMBEDDED).render_chat(TURNS).count("21") == 1
