"""The endpoints over ASGI: what they answer, and what they refuse, each with its own words."""

from __future__ import annotations

import asyncio
import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.responses import Response
from starlette.routing import Route

from detok.engines.echo import EchoEngine
from detok.errors import EncoderBusy, EngineError
from detok.server.config import ServerConfig
from detok.server.generation import Asked
from detok.server.models import Model
from detok.server.schema import CompletionBody
from tests.frontend.manual import ManualEngine, row
from tests.server.support import TOKENIZER, Answer, Client, ask, ids_of, model, running
from tests.support.handmade import byte_tokens, handmade

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
HI = [{"role": "user", "content": "Hi"}]
IM_END = "<|im_end|>"


def asked(
    path: str, body: Any = None, *, method: str = "POST", headers: Any = None, of: Model | None = None, **config: Any
) -> Answer:
    """Ask a server of its own."""

    async def main() -> Answer:
        async with running(of or model(), **config) as server:
            return await ask(server, path, body, method=method, headers=headers)

    return asyncio.run(main())


def refused(path: str, body: Any, status: int, param: str | None, words: str, **more: Any) -> None:
    """Ask for what is refused."""
    answer = asked(path, body, **more)
    assert answer.status == status, answer.json
    assert answer.error["param"] == param
    assert words in answer.error["message"]


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        (b"", None, "no JSON"),
        (b"{", None, "no JSON"),
        (b"[]", None, "Expected `object`"),
        (b'{"prompt": "\xff"}', None, "no JSON"),
        (b"[" * 5000, None, ""),
        ({}, "prompt", "it is missing"),
        ({"prompt": 5}, "prompt", "prompt: expected"),
        ({"prompt": []}, "prompt", "no list of ids is empty"),
        ({"prompt": [[]]}, "prompt", "no list of ids is empty"),
        ({"prompt": ["a", 1]}, "prompt", "not mixed"),
        ({"prompt": [1, True]}, "prompt[1]", "prompt[1]: expected"),
        ({"prompt": [-1]}, "prompt[0]", "0 or more"),
        ({"prompt": [1 << 70]}, "prompt[0]", "prompt[0]"),
        ({"prompt": ""}, "prompt", "makes no token"),
        ({"prompt": "a", "max_tokens": "b"}, "max_tokens", "max_tokens: expected"),
        ({"prompt": "a", "max_tokens": 0}, "max_tokens", "at least 1"),
        ({"prompt": "a", "max_tokens": -1}, "max_tokens", "max_tokens"),
        ({"prompt": "a", "n": 0}, "n", "at least 1"),
        ({"prompt": ["a", "b"], "n": 100}, "n", "200 choices; 128"),
        ({"prompt": "a", "stop": 5}, "stop", "stop: expected"),
        ({"prompt": "a", "stop": ""}, "stop[0]", "empty stop"),
        ({"prompt": "a", "stop": ["a"] * 65}, "stop", "65 stops"),
        ({"prompt": "a", "stop": "a" * 4097}, "stop", "4,097 characters"),
        ({"prompt": "a", "stop_regex": "("}, "stop_regex", "("),
        ({"prompt": "a", "stop_regex": ["a+", "b", "c", "d", "e"]}, "stop_regex", "5 patterns, and 4"),
        ({"prompt": "a", "stop_token_ids": list(range(65))}, "stop_token_ids", "65 stops"),
        ({"prompt": "a", "logprobs": 21}, "logprobs", "between 0 and 20"),
        ({"prompt": "a", "logprobs": True}, "logprobs", "logprobs: expected"),
        ({"prompt": "a", "min_tokens": 9, "max_tokens": 5}, "min_tokens", "must not be more"),
        ({"prompt": "a", "suffix": "b"}, "suffix", "cannot be inserted"),
        ({"prompt": "a", "best_of": 3}, "best_of", "as many choices"),
        ({"prompt": "a", "byte_fallback": "lazy"}, "byte_fallback", "invalid enum"),
        ({"prompt": "a", "stream_options": 1}, "stream_options", "stream_options: expected"),
        ({"prompt": "a", "truncate_prompt_tokens": 0}, "truncate_prompt_tokens", "1 or more"),
        ({"prompt": [5, 6], "truncate_prompt_tokens": 0}, "truncate_prompt_tokens", "1 or more"),
        ({"prompt": [5, 6], "truncate_prompt_tokens": -1}, "truncate_prompt_tokens", "1 or more"),
    ],
)
def test_bad_completion_is_400(body: Any, param: str | None, words: str) -> None:
    """With the field in `param`, streamed or not."""
    for stream in (False, True):
        content = body if isinstance(body, bytes) else json.dumps({**body, "stream": stream}).encode()
        refused(COMPLETIONS, content, 400, param, words)


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        ({}, "messages", "it is missing"),
        ({"messages": "a"}, "messages", "messages: expected"),
        ({"messages": [{"role": 5, "content": "a"}]}, "messages[0].role", ""),
        ({"messages": [{"content": "a"}]}, "messages[0]", ""),
        ({"messages": HI, "top_logprobs": 3}, "top_logprobs", "logprobs=true"),
        ({"messages": HI, "logprobs": True, "top_logprobs": 30}, "top_logprobs", "between"),
        ({"messages": HI, "max_completion_tokens": 0}, "max_completion_tokens", "at least 1"),
        ({"messages": HI, "chat_template": "{{ 1 }}"}, "chat_template", "no templates from requests"),
        ({"messages": HI, "chat_template_kwargs": {"chat_template": "{{ 1 }}"}}, "chat_template_kwargs.chat_template", "field"),
        ({"messages": HI, "truncate_prompt_tokens": 0}, "truncate_prompt_tokens", "1 or more"),
        ({"messages": HI, "truncate_prompt_tokens": -1}, "truncate_prompt_tokens", "1 or more"),
        ({"messages": HI, "tool_choice": "required"}, "tool_choice", "there are no tools"),
        ({"messages": HI, "tool_choice": "always"}, "tool_choice", "auto, none, required"),
        ({"messages": HI, "response_format": {"type": "xml"}}, "response_format", "json_object"),
        ({"messages": HI, "continue_final_message": True, "add_generation_prompt": True}, "continue_final_message", ""),
    ],
)
def test_bad_chat_is_400(body: Any, param: str | None, words: str) -> None:
    """Of a message with its place."""
    refused(CHAT, body, 400, param, words)


@pytest.mark.parametrize("name", ["self", "messages", "safe", "double_bos", "now", "tools"])
@pytest.mark.parametrize("path", [CHAT, "/tokenize"])
def test_variable_that_is_no_templates_is_400(path: str, name: str) -> None:
    """Whether it is a field of the body, or a word of the code behind it."""
    field = f"chat_template_kwargs.{name}"
    refused(path, {"messages": HI, "chat_template_kwargs": {name: 1}}, 400, field, "it is a field of the body")


@pytest.mark.parametrize("name", ["func", "options", "truncate", "variables", "marks_generation"])
def test_variable_may_be_called_as_it_likes(name: str) -> None:
    """A name that some function on the way has for itself is no error."""
    assert asked("/tokenize", {"messages": HI, "chat_template_kwargs": {name: 1}}).status == 200


def test_limits_are_told_apart() -> None:
    """A body, a prompt, and a request too many."""
    refused(COMPLETIONS, {"prompt": "a" * 100}, 413, None, "longer than the 50 bytes", limits=_limits(max_body_bytes=50))
    short = model(max_model_len=10)
    refused(COMPLETIONS, {"prompt": "a b c d e f g h i j k"}, 400, None, "the prompt has", of=short)
    refused(COMPLETIONS, {"prompt": [5] * 11}, 400, None, "the prompt has 11 tokens", of=model(max_model_len=10))
    answer = asked(COMPLETIONS, {"prompt": [5] * 5, "max_tokens": 6}, of=model(max_model_len=10))
    assert (answer.status, answer.error["code"]) == (400, "context_length_exceeded")
    assert asked(COMPLETIONS, {"prompt": [5] * 5, "max_tokens": 5}, of=model(max_model_len=10)).status == 200


def _limits(**values: Any) -> Any:
    from detok.server.limits import Limits

    return Limits(**values)


def test_patterns_take_no_time_from_others() -> None:
    """There are few of them, and each has less time than a caller of the library gives it."""
    body = CompletionBody(prompt="a", stop_regex=["a+", "b", "c", "d"])
    options = Asked.of(body, model(), ServerConfig(), "cmpl").options(max_tokens=1)
    assert (options.stop_regex, options.stop_regex_timeout) == (("a+", "b", "c", "d"), 0.02)
    none = {"prompt": "a", "stop_regex": "a"}
    refused(COMPLETIONS, none, 400, "stop_regex", "1 patterns, and 0", limits=_limits(max_stop_regex=0))


def test_too_many_requests_at_once_are_429() -> None:
    """And when one has ended there is room again."""

    async def main() -> None:
        engine = ManualEngine()
        async with running(model(engine), limits=_limits(max_requests=1)) as server:
            first = asyncio.create_task(ask(server, COMPLETIONS, {"prompt": [1]}))
            (name,) = await engine.arrived(1)
            answer = await ask(server, COMPLETIONS, {"prompt": [1]})
            assert (answer.status, answer.headers["retry-after"]) == (429, "1")
            assert answer.error["type"] == "rate_limit_error"
            assert (await ask(server, "/health", method="GET")).status == 200
            engine.give(row(name, finish_reason="stop"))
            assert (await first).status == 200
            second = asyncio.create_task(ask(server, COMPLETIONS, {"prompt": [1]}))
            engine.give(row((await engine.arrived(2))[1], finish_reason="stop"))
            assert (await second).status == 200

    asyncio.run(main())


def test_busy_encoder_is_503() -> None:
    """Whoever comes later may come again."""

    class Busy:
        async def encode(self, text: str, **options: Any) -> list[int]:
            raise EncoderBusy(waiting=5, limit=5)

        async def aclose(self) -> None:
            pass

    busy = model()
    busy.encoder = Busy()  # type: ignore[assignment]
    refused(COMPLETIONS, {"prompt": "a"}, 503, None, "try again later", of=busy)


def test_fault_of_the_server_is_500_without_details(caplog: pytest.LogCaptureFixture) -> None:
    """Its words are for the log."""

    class Broken(EchoEngine):
        def script(self, request: Any) -> Any:
            raise RuntimeError("a path and a secret")

    refused(COMPLETIONS, {"prompt": "a"}, 500, None, "its log says why", of=model(Broken()))
    assert "a path and a secret" in caplog.text


def test_unknown_fields_are_ignored_and_null_is_as_if_absent() -> None:
    """As OpenAI does."""
    body = {"prompt": "Hi", "user": "x", "store": True, "n": None, "stop": None, "max_tokens": None, "stream_options": None}
    assert asked(COMPLETIONS, body).json["choices"][0]["text"] == "Hi"


def test_wrong_media_type_is_415() -> None:
    """So that no other site can post to a server of this machine without asking."""
    headers = {"content-type": "text/plain"}
    assert asked(COMPLETIONS, {"prompt": "a"}, headers=headers).status == 415


@pytest.mark.parametrize(
    ("path", "method", "status"), [("/nowhere", "GET", 404), (COMPLETIONS, "GET", 405), ("/health", "POST", 405)]
)
def test_unknown_path_or_method_is_told_as_json(path: str, method: str, status: int) -> None:
    """In the shape of every other error."""
    answer = asked(path, method=method)
    assert (answer.status, answer.error["param"]) == (status, None)


def test_api_key_is_asked_for() -> None:
    """Everywhere but at /health; any of the keys will do, and no part of one."""

    async def main() -> None:
        async with running(model(), api_keys=["one", "two"]) as server:
            for given in (None, "Bearer", "Bearer ", "Bearer on", "Bearer onee", "Basic one", "one"):
                headers = {} if given is None else {"authorization": given}
                for path in ("/v1/models", "/metrics", "/tokenize", "/openapi.json", "/nowhere"):
                    answer = await ask(server, path, {"prompt": "a"}, method="GET", headers=headers)
                    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
            for given in ("Bearer one", "bearer two"):
                assert (await ask(server, "/v1/models", method="GET", headers={"authorization": given})).status == 200
            assert (await ask(server, "/health", method="GET")).status == 200

    asyncio.run(main())


def test_other_sites_are_told_nothing_unless_asked() -> None:
    """No CORS by default."""
    headers = {"origin": "http://else.where"}
    assert "access-control-allow-origin" not in asked("/health", method="GET", headers=headers).headers
    answer = asked("/health", method="GET", headers=headers, cors_origins=["http://else.where"])
    assert answer.headers["access-control-allow-origin"] == "http://else.where"


def test_page_is_shown_to_everybody_and_its_data_to_those_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is mounted where it is installed, and only if it is wanted."""

    async def shown(request: Any) -> Response:
        return Response("shown")

    def page_routes(tokenizers: Any) -> list[Route]:
        assert [*tokenizers] == ["test"]
        return [Route(path, shown) for path in ("/", "/page/script.js", "/page/setup")]

    monkeypatch.setitem(sys.modules, "detok.server.page", SimpleNamespace(page_routes=page_routes))
    for path, status in (("/", 200), ("/page/script.js", 200), ("/page/setup", 401)):
        assert asked(path, method="GET", api_keys=["k"]).status == status
    assert asked("/page/setup", method="GET", api_keys=["k"], headers={"authorization": "Bearer k"}).status == 200
    assert asked("/", method="GET", page=False).status == 404


def test_models_are_listed_and_told() -> None:
    """The first is the default."""
    (one,) = asked("/v1/models", method="GET", of=model(name="a/b", max_model_len=7)).json["data"]
    assert (one["id"], one["object"], one["max_model_len"]) == ("a/b", "model", 7)
    assert asked("/v1/models/a/b", method="GET", of=model(name="a/b")).json["id"] == "a/b"
    refused("/v1/models/c", None, 404, "model", "there is no model 'c'", method="GET")
    refused(COMPLETIONS, {"prompt": "a", "model": "c"}, 404, "model", "there is no model 'c'")


def test_metrics_count_answers() -> None:
    """By endpoint and status, beside those of the models."""

    async def main() -> None:
        async with running(model()) as server:
            await ask(server, COMPLETIONS, {"prompt": "a"})
            await ask(server, COMPLETIONS, {"prompt": 5})
            answer = await ask(server, "/metrics", method="GET")
            text = b"".join(answer.bodies).decode()
            for status in (200, 400):
                assert f'detok_http_requests_total{{path="{COMPLETIONS}",status="{status}"}} 1\n' in text
            assert answer.headers["content-type"].startswith("text/plain")

    asyncio.run(main())


@pytest.mark.parametrize("path", ["/tokenize", "/v1/tokenize"])
def test_tokenize_speaks_both_dialects(path: str) -> None:
    """One prompt, several, and chats."""
    one = asked(path, {"prompt": "Hi 🦜", "return_token_strs": True}, of=model(max_model_len=99)).json
    ids = ids_of("Hi 🦜")
    assert (one["tokens"], one["count"], one["max_model_len"]) == (ids, len(ids), 99)
    assert one["token_strs"] == [TOKENIZER.piece(token_id).text for token_id in ids]
    several = asked(path, {"prompt": ["Hi", ""]}).json
    assert (several["tokens"], several["count"], several["token_strs"]) == ([ids_of("Hi"), []], [len(ids_of("Hi")), 0], None)
    chat = asked(path, {"messages": HI, "add_generation_prompt": False}).json
    assert chat["tokens"] == TOKENIZER.encode_chat(HI, add_generation_prompt=False)
    refused(path, {}, 400, "prompt", "one of the two")
    refused(path, {"prompt": "a", "messages": HI}, 400, "prompt", "one of the two")
    refused(path, {"messages": HI, "chat_template": "{{ 1 }}"}, 400, "chat_template", "no templates")


def test_request_may_bring_a_template_where_it_is_trusted() -> None:
    """And it still runs in the sandbox."""
    trusting: dict[str, Any] = {"trust_request_chat_template": True}
    found = asked("/tokenize", {"messages": HI, "chat_template": "{{ messages[0].content }}!"}, **trusting).json
    assert found["tokens"] == ids_of("Hi!")
    assert (
        asked("/tokenize", {"messages": HI, "chat_template": "{% for i in range(10**9) %}x{% endfor %}"}, **trusting).status
        == 400
    )


def test_detokenize_speaks_both_dialects() -> None:
    """Specials are kept by vLLM's path, and left out by SGLang's; both can be told."""
    ids = [*ids_of("Hi 🦜"), TOKENIZER.encode(IM_END)[0]]
    for path, shown in (("/detokenize", f"Hi 🦜{IM_END}"), ("/v1/detokenize", "Hi 🦜")):
        assert asked(path, {"tokens": ids}).json == {"prompt": shown, "text": shown}
        assert asked(path, {"tokens": [ids, []]}).json == {"prompt": [shown, ""], "text": [shown, ""]}
        for skips, told in ((True, "Hi 🦜"), (False, f"Hi 🦜{IM_END}")):
            assert asked(path, {"tokens": ids, "skip_special_tokens": skips}).json["text"] == told


@pytest.mark.parametrize(
    ("tokens", "param"),
    [
        ([5, -1], "tokens[1]"),
        ([99_999], "tokens[0]"),
        ([[5], [5, -2]], "tokens[1][1]"),
        ([5, [5]], "tokens"),
        (["a"], "tokens[0]"),
        ([True], "tokens[0]"),
        ([1.5], "tokens[0]"),
        ([1 << 80], "tokens[0]"),
        ("a", "tokens"),
    ],
)
def test_unknown_id_is_400(tokens: Any, param: str) -> None:
    """Never 500, and never a token 0 in its place."""
    refused("/detokenize", {"tokens": tokens}, 400, param, "")


def test_sampling_reaches_the_engine_and_text_options_do_not() -> None:
    """Each choice gets a seed of its own."""

    async def main() -> None:
        engine = ManualEngine()
        async with running(model(engine)) as server:
            body = {
                "messages": HI,
                "n": 2,
                "seed": 7,
                "temperature": 0.5,
                "stop": "x",
                "stop_token_ids": [5],
                "max_completion_tokens": 9,
                "logprobs": True,
                "response_format": {"type": "json_object"},
            }
            asking = asyncio.create_task(ask(server, CHAT, body))
            for name in await engine.arrived(2):
                engine.give(row(name, finish_reason="stop"))
            await asking
        first, second = (request.sampling for request in engine.submitted)
        assert first == {
            "temperature": 0.5,
            "stop_token_ids": [5],
            "max_tokens": 9,
            "logprobs": 0,
            "structured_outputs": {"json_object": True},
            "seed": 7,
        }
        assert second["seed"] == 8
        assert engine.submitted[0].prompt_ids == TOKENIZER.encode_chat(HI)

    asyncio.run(main())


def test_delta_is_empty_where_no_character_is_complete() -> None:
    """One delta a token; the hands-on part of the documentation counts them."""
    text = "naïve 🦜 𒀭𒂗𒆤 ꦗꦮ"
    choices = [event["choices"][0] for event in asked(COMPLETIONS, {"prompt": text, "stream": True, "max_tokens": 200}).events]
    texts = [choice["text"] for choice in choices]
    assert (len(texts), texts.count("")) == (len(ids_of(text)), 13) == (26, 13)
    assert "".join(texts) == text


def test_token_ids_are_returned() -> None:
    """The prompt's in the first chunk, then each its own; logprobs may name them."""
    ids = ids_of("Hi 🦜")
    body = {"prompt": "Hi 🦜", "return_token_ids": True, "logprobs": 0, "return_tokens_as_token_ids": True}
    (choice,) = asked(COMPLETIONS, body).json["choices"]
    assert (choice["token_ids"], choice["prompt_token_ids"]) == (ids, ids)
    events = asked(COMPLETIONS, {**body, "stream": True}).events
    choices = [event["choices"][0] for event in events]
    assert [choice.get("prompt_token_ids") for choice in choices] == [ids, *[None] * (len(choices) - 1)]
    assert [one for choice in choices for one in choice["token_ids"]] == ids
    chat = {"messages": HI, "return_token_ids": True}
    first, *rest = asked(CHAT, {**chat, "stream": True}).events
    assert first["prompt_token_ids"] == TOKENIZER.encode_chat(HI) == asked(CHAT, chat).json["prompt_token_ids"]
    assert [one for event in rest for one in event["choices"][0]["token_ids"]] == asked(CHAT, chat).json["choices"][0][
        "token_ids"
    ]


def test_echo_stands_before_the_output() -> None:
    """Once, with its tokens in the logprobs; also alone."""
    body = {"prompt": ids_of("Hi 🦜"), "echo": True, "logprobs": 1, "max_tokens": 1}
    for stream in (False, True):
        answer = asked(COMPLETIONS, {**body, "stream": stream})
        text = answer.text() if stream else answer.json["choices"][0]["text"]
        assert text == "Hi 🦜H"
    logprobs = asked(COMPLETIONS, body).json["choices"][0]["logprobs"]
    assert "".join(logprobs["tokens"][:4]) == "Hi 🦜"
    assert logprobs["text_offset"][:4] == [0, 1, 2, 3]
    answer = asked(COMPLETIONS, {**body, "max_tokens": 0}).json
    assert (answer["choices"][0]["text"], answer["usage"]["completion_tokens"]) == ("Hi 🦜", 0)


@pytest.mark.parametrize("logprobs", [None, 0])
@pytest.mark.parametrize("as_ids", [False, True])
def test_prompt_is_cut_and_echoed_as_it_was_kept(as_ids: bool, logprobs: int | None) -> None:
    """Its end is left; one that is short enough stays as it is."""
    text = "one two 🦜 three"
    prompt = ids_of(text) if as_ids else text
    end = TOKENIZER.decode(ids_of(text)[-2:])
    assert end != text
    for most, echoed in ((2, end), (len(ids_of(text)), text), (1000, text)):
        body = {"prompt": prompt, "truncate_prompt_tokens": most, "echo": True, "max_tokens": 0, "logprobs": logprobs}
        answer = asked(COMPLETIONS, body).json
        assert answer["choices"][0]["text"] == echoed
        assert answer["usage"]["prompt_tokens"] == min(most, len(ids_of(text)))


def test_chat_is_cut() -> None:
    """Its end is left, even of one that is longer than the model takes."""
    ids = asked("/tokenize", {"messages": HI}).json["tokens"]
    body = {"messages": HI, "return_token_ids": True, "max_tokens": 1}
    refused(CHAT, body, 400, None, "the prompt has", of=model(max_model_len=4))
    answer = asked(CHAT, {**body, "truncate_prompt_tokens": 3}, of=model(max_model_len=4)).json
    assert answer["prompt_token_ids"] == ids[-3:]
    long = {**body, "truncate_prompt_tokens": 99_999}
    assert asked(CHAT, long).json["prompt_token_ids"] == ids


def test_prompt_without_an_encoder_is_ids() -> None:
    """Texts are refused, with what to do instead."""
    deaf = model()
    deaf.encoder = None
    refused(COMPLETIONS, {"prompt": "Hi"}, 400, None, "give the prompt as token ids", of=deaf)
    deaf = model()
    deaf.encoder = None
    assert asked(COMPLETIONS, {"prompt": ids_of("Hi")}, of=deaf).json["choices"][0]["text"] == "Hi"


def test_log_has_no_prompt_unless_asked(caplog: pytest.LogCaptureFixture) -> None:
    """A line for each request, with what an operator counts."""
    caplog.set_level("INFO", "detok.server")
    asked(COMPLETIONS, {"prompt": "secret", "stream": True})
    (record,) = [one for one in caplog.records if one.message == "request"]
    fields = record.fields  # type: ignore[attr-defined]
    assert "secret" not in json.dumps(fields)
    assert (fields["status"], fields["model"], fields["stream"], fields["prompt_tokens"]) == (
        200,
        "test",
        True,
        len(ids_of("secret")),
    )
    caplog.clear()
    asked(COMPLETIONS, {"prompt": "secret"}, log_prompts=True)
    assert caplog.records[-1].fields["prompt"] == "secret"  # type: ignore[attr-defined]


@pytest.mark.parametrize("stream", [False, True])
def test_log_of_an_error_has_no_prompt_unless_asked(stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Neither from our own words nor from an engine's."""

    class Refusing(EchoEngine):
        def script(self, request: Any) -> Any:
            raise EngineError("secret is no prompt", status=400, param="prompt", code=7)

    caplog.set_level("INFO", "detok.server")
    kinds = {
        "suffix": {"type": "invalid_request_error", "param": "suffix", "code": None},
        "user": {"type": "invalid_request_error", "param": "prompt", "code": 7},
    }
    for field, kind in kinds.items():
        body = {"prompt": "a", field: "secret", "stream": stream}
        for log_prompts in (False, True):
            caplog.clear()
            answer = asked(COMPLETIONS, body, of=model(Refusing()), log_prompts=log_prompts)
            assert "secret" in answer.error["message"]
            logged = caplog.records[-1].fields["error"]  # type: ignore[attr-defined]
            assert logged == (answer.error if log_prompts else kind)


@pytest.mark.parametrize("field", ["suffix", "prompt"])
def test_long_value_is_not_told_whole(field: str) -> None:
    """The field and what to do are."""
    values = {"suffix": "a" * 300_000, "prompt": ["a" * 300_000, 1]}
    answer = asked(COMPLETIONS, {"prompt": "a", field: values[field]})
    message = answer.error["message"]
    assert (answer.status, answer.error["param"], message[: len(field) + 1]) == (400, field, f"{field}=")
    assert len(message) < 1100
    assert message.endswith("only continued" if field == "suffix" else "not mixed")


def test_byte_fallback_is_eager_and_exact_when_asked() -> None:
    """A run of byte tokens with a bad one: eager keeps what is whole, exact is what the library makes of it."""
    library, tokenizer = handmade("ByteFallback")
    ids = [library.token_to_id(token) for token in byte_tokens(b"\xe3\x81\x82")] + [library.token_to_id("<0xE3>")]

    def text(asked_for: str | None, **settings: Any) -> str:
        made = model(tokenizer=tokenizer, **settings)
        body = {"prompt": ids, "byte_fallback": asked_for}
        streamed = asked(COMPLETIONS, {**body, "stream": True}, of=made).text()
        again = model(tokenizer=tokenizer, **settings)
        assert streamed == asked(COMPLETIONS, body, of=again).json["choices"][0]["text"]
        return streamed

    exact = library.decode([one for one in ids if one is not None])
    assert text(None) == text("eager", byte_fallback="exact") == "あ�"
    assert text(None, byte_fallback="exact") == text("exact") == exact == "�" * 4


def test_client_in_pieces_is_read() -> None:
    """A body may come in as many as it likes."""

    async def main() -> None:
        async with running(model()) as server:
            content = json.dumps({"prompt": "Hi"}).encode()
            pieces = [{"type": "http.request", "body": content[i : i + 1], "more_body": True} for i in range(len(content))]
            answer = await Client(server, COMPLETIONS).in_pieces(*pieces, {"type": "http.request"}).run()
            assert answer.json["choices"][0]["text"] == "Hi"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/completions", {}, "prompt"),
        ("/v1/chat/completions", {"model": "echo"}, "messages"),
        ("/detokenize", {}, "tokens"),
    ],
)
def test_missing_field_is_the_param(path: str, body: dict[str, Any], param: str) -> None:
    """A client is told which field to give."""
    answer = asked(path, body)
    assert (answer.status, answer.json["error"]["param"]) == (400, param)
    assert answer.json["error"]["message"] == f"{param}: it is missing"
