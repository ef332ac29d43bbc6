"""Fields of the API and what becomes of them: used, given to the engine, refused by name, or ignored with a word about it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from detok.engines.opening import open_engine, open_prompt_engine
from detok.engines.scripted import ScriptedEngine
from detok.frontend.processor import OutputProcessor
from detok.server.fields import near_misses
from detok.server.schema import ChatBody, CompletionBody, EngineFields
from tests.engines.support import FakeEngine, Reply, fake_engine
from tests.frontend.manual import ManualEngine, row
from tests.server.support import TOKENIZER, Answer, ask, ids_of, model, running
from tests.server.test_endpoints import CHAT, COMPLETIONS, HI, asked, refused

Body = dict[str, Any]

EXAMPLES: Body = {
    "temperature": 0.5,
    "top_p": 0.5,
    "top_k": 5,
    "min_p": 0.1,
    "seed": 3,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
    "repetition_penalty": 1.5,
    "length_penalty": 2.0,
    "logit_bias": {"7": 1.5},
    "allowed_token_ids": [5, 6],
    "bad_words": ["x"],
    "structured_outputs": {"regex": "a+"},
    "thinking_token_budget": 9,
    "repetition_detection": {"max_pattern_size": 3},
    "logprob_token_ids": [5],
    "use_beam_search": True,
    "watermarking": True,
    "priority": 2,
    "cache_salt": "salt",
    "vllm_xargs": {"a": 1},
    "kv_transfer_params": {"a": 1},
    "ec_transfer_params": {"a": 1},
    "ignore_eos": True,
    "min_tokens": 1,
    "stop_token_ids": [5],
}
"""A value of each field that is for the engine, which says something."""

UNDERSTOOD = {
    "vllm": EXAMPLES.keys() - {"length_penalty", "use_beam_search"},
    "sglang": {
        *("temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty", "repetition_penalty"),
        *("logit_bias", "structured_outputs", "ignore_eos", "stop_token_ids", "priority", "min_tokens"),
    },
    "llamacpp": {
        *("temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty", "repetition_penalty"),
        *("logit_bias", "ignore_eos", "stop_token_ids", "priority", "min_tokens"),
    },
}
"""What an engine is told, or what is no loss where it is not."""


def test_every_field_of_the_engine_has_an_example() -> None:
    """So that one which is added is tried."""
    assert {*EXAMPLES} == {*EngineFields.__struct_fields__}


def posted(kind: str, body: Body, path: str = COMPLETIONS) -> tuple[Answer, list[Body]]:
    """Ask before an engine on a socket; return the answer, and what the engine was sent."""

    async def main() -> tuple[Answer, list[Body]]:
        replies = [Reply([b"{}"], status=400, media_type="application/json")] * 2
        async with fake_engine(*replies) as fake, running(model(open_engine(f"{kind}:{fake.url}"))) as server:
            answer = await ask(server, path, body)
            return answer, [one.body for one in fake.asked]

    return asyncio.run(main())


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("kind", UNDERSTOOD)
def test_field_reaches_the_engine_or_is_refused(kind: str, name: str) -> None:
    """By its name; a value that says nothing is no reason."""
    answer, sent = posted(kind, {"prompt": "Hi", "max_tokens": 5, name: EXAMPLES[name]})
    if name in UNDERSTOOD[kind]:
        assert len(sent) == 1
    else:
        assert (answer.status, sent) == (400, [])
        assert answer.error["param"] == name
        assert kind in answer.error["message"]
    for nothing in (None, type(EXAMPLES[name])()) if name not in ("temperature", "cache_salt") else (None,):
        assert len(posted(kind, {"prompt": "Hi", "max_tokens": 5, name: nothing})[1]) == 1


def test_vllm_gets_every_field_under_its_own_name() -> None:
    """Four stand beside the sampling parameters."""
    given = {name: value for name, value in EXAMPLES.items() if name in UNDERSTOOD["vllm"]}
    body = posted("vllm", {"prompt": "Hi", "max_tokens": 5, **given})[1][0]
    beside = {"priority", "cache_salt", "kv_transfer_params", "ec_transfer_params"}
    expected = {name: value for name, value in given.items() if name not in {*beside, "vllm_xargs"}}
    assert body["sampling_params"] == {**expected, "max_tokens": 5, "extra_args": {"a": 1}, "detokenize": False}
    assert {name: body[name] for name in beside} == {name: given[name] for name in beside}


@pytest.mark.parametrize("body", [{"modalities": ["text", "audio"]}, {"audio": {"voice": "x"}}, {"web_search_options": {"a": 1}}])
def test_wish_that_no_text_fulfils_is_refused(body: Body) -> None:
    """By engines with a model; those without one take every valid field."""
    for kind in UNDERSTOOD:
        answer, sent = posted(kind, {"messages": HI, **body}, CHAT)
        assert (answer.status, answer.error["param"], sent) == (400, next(iter(body)), [])
    assert asked(CHAT, {"messages": HI, **body}).status == 200
    assert len(posted("vllm", {"messages": HI, "modalities": ["text"]}, CHAT)[1]) == 1


def test_engine_without_a_model_takes_every_field() -> None:
    """And ignores it."""
    assert asked(COMPLETIONS, {"prompt": "Hi", **EXAMPLES, "stop_token_ids": [], "prompt_logprobs": 1}).status == 200


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("wish", "vllm", "sglang", "llamacpp"),
    [
        ({"response_format": {"type": "text"}}, None, {}, {}),
        (
            {"response_format": {"type": "json_object"}},
            {"json_object": True},
            {"json_schema": '{"type": "object"}'},
            {"json_schema": {"type": "object"}},
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
            {"json": SCHEMA},
            {"json_schema": json.dumps(SCHEMA)},
            {"json_schema": SCHEMA},
        ),
        ({"structured_outputs": {"regex": "a+"}}, {"regex": "a+"}, {"regex": "a+"}, None),
        (
            {"structured_outputs": {"choice": ["a", 'b"']}},
            {"choice": ["a", 'b"']},
            {"regex": '(a|b")'},
            {"grammar": 'root ::= "a" | "b\\""'},
        ),
        ({"structured_outputs": {"grammar": "r"}}, {"grammar": "r"}, {"ebnf": "r"}, {"grammar": "r"}),
        ({"guided_json": SCHEMA}, {"json": SCHEMA}, {"json_schema": json.dumps(SCHEMA)}, {"json_schema": SCHEMA}),
        ({"guided_choice": ["a"]}, {"choice": ["a"]}, {"regex": "(a)"}, {"grammar": 'root ::= "a"'}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
def test_bound_answer_is_asked_for_in_the_words_of_the_engine(
    path: str, wish: Body, vllm: Body | None, sglang: Body, llamacpp: Body | None
) -> None:
    """On both endpoints alike; what an engine has nothing for is 400, and names the client's field."""
    body = {**({"prompt": "Hi"} if path == COMPLETIONS else {"messages": HI}), "max_tokens": 5, **wish}
    assert posted("vllm", body, path)[1][0]["sampling_params"].get("structured_outputs") == vllm
    sent = posted("sglang", body, path)[1][0]["sampling_params"]
    assert {name: value for name, value in sent.items() if name != "max_new_tokens"} == sglang
    answer, bodies = posted("llamacpp", body, path)
    if llamacpp is None:
        assert (answer.status, answer.error["param"], bodies) == (400, next(iter(wish)), [])
        return
    assert {name: bodies[0][name] for name in ("json_schema", "grammar") if name in bodies[0]} == llamacpp
    # All of a bound answer comes in one call: a grammar begins anew with each.
    assert bodies[0]["n_predict"] == (5 if llamacpp else 1)


@pytest.mark.parametrize(
    ("wishes", "param"),
    [
        ({"response_format": {"type": "json_object"}, "structured_outputs": {"regex": "a"}}, "response_format"),
        ({"guided_regex": "a", "guided_choice": ["a"]}, "guided_regex"),
        ({"structured_outputs": {"regex": "a"}, "guided_json": {}}, "structured_outputs"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"response_format": {}}, "response_format"),
    ],
)
def test_answer_that_is_bound_twice_is_400(wishes: Body, param: str) -> None:
    """Whatever the engine."""
    refused(COMPLETIONS, {"prompt": "a", **wishes}, 400, param, "")
    refused(CHAT, {"messages": HI, **wishes}, 400, param, "")


def test_integer_may_be_written_as_json_schema_has_it() -> None:
    """In fields and lists; in messages a number stays as it is written; one with a fraction is none."""
    answer = asked(COMPLETIONS, b'{"prompt": [5.0, 6.0], "max_tokens": 2.0, "n": 1.0, "temperature": 1.0}')
    assert answer.json["usage"]["completion_tokens"] == 2
    template = "{{ messages[0].extra }}"
    body = {"messages": [{"role": "user", "content": "x", "extra": 2.0}], "chat_template": template}
    assert asked("/tokenize", body, trust_request_chat_template=True).json["tokens"] == ids_of("2.0")
    whole = json.dumps({**body, "max_tokens": 5.0, "return_token_ids": True}).encode()
    assert asked(CHAT, whole, trust_request_chat_template=True).json["prompt_token_ids"] == ids_of("2.0")
    refused(COMPLETIONS, {"prompt": "a", "max_tokens": 2.5}, 400, "max_tokens", "expected")
    refused(COMPLETIONS, {"prompt": "a", "logit_bias": {"abc": 1}}, 400, "logit_bias", "logit_bias")


@pytest.mark.parametrize(
    ("field", "meant"),
    [
        ("temprature", "temperature"),
        ("maxTokens", "max_tokens"),
        ("max-tokens", "max_tokens"),
        ("top_P", "top_p"),
        ("stops", "stop"),
    ],
)
def test_near_miss_of_a_field_is_told(field: str, meant: str, caplog: pytest.LogCaptureFixture) -> None:
    """In a header, for who writes clients, and in the log; it is no error."""
    caplog.set_level("INFO", "detok.server")
    answer = asked(COMPLETIONS, {"prompt": "a", field: 1})
    warning = f"unknown field '{field}', did you mean '{meant}'?"
    assert (answer.status, answer.headers["x-detok-warning"]) == (200, warning)
    assert caplog.records[-1].fields["warnings"] == [warning]  # type: ignore[attr-defined]


@pytest.mark.parametrize("field", ["user", "store", "metadata", "service_tier", "something", "x" * 1000, "über", "a\r\nb: c"])
def test_field_that_is_known_or_far_from_any_is_ignored(field: str) -> None:
    """Without a word."""
    answer = asked(COMPLETIONS, {"prompt": "a", field: None})
    assert answer.status == 200
    assert "x-detok-warning" not in answer.headers


def test_warnings_are_few_and_fit_a_header() -> None:
    """Whatever the names are."""
    content = json.dumps({f"temperatur{'é' * n}": 1 for n in range(40)}).encode()
    warnings = near_misses(content, ChatBody)
    assert len(warnings) <= 8
    assert all(one.isascii() and "\n" not in one for one in warnings)


def test_client_names_its_request(caplog: pytest.LogCaptureFixture) -> None:
    """The name comes back on every answer, in its id and in the log; so does one of ours."""
    caplog.set_level("INFO", "detok.server")
    headers = {"x-request-id": "trace-7"}
    for stream in (False, True):
        answer = asked(COMPLETIONS, {"prompt": "a", "stream": stream}, headers=headers)
        assert answer.headers["x-request-id"] == "trace-7"
        assert (answer.events[0] if stream else answer.json)["id"] == "cmpl-trace-7"
        assert caplog.records[-1].fields["request_id"] == "trace-7"  # type: ignore[attr-defined]
    assert asked(CHAT, {"messages": HI}, headers=headers).json["id"] == "chatcmpl-trace-7"
    assert asked(CHAT, {"messages": HI, "request_id": "mine"}).json["id"] == "chatcmpl-mine"
    wrong: list[tuple[str, Any, str]] = [
        (COMPLETIONS, {"prompt": 5}, "POST"),
        (COMPLETIONS, b"{", "POST"),
        ("/nowhere", None, "GET"),
        (COMPLETIONS, None, "GET"),
        ("/health", None, "GET"),
        ("/v1/models/none", None, "GET"),
    ]
    for path, body, method in wrong:
        assert asked(path, body, method=method, headers=headers).headers["x-request-id"] == "trace-7"
        assert len(asked(path, body, method=method).headers["x-request-id"]) == 32
    assert asked("/v1/models", method="GET", headers=headers, api_keys=["k"]).headers["x-request-id"] == "trace-7"
    for bad in ("x" * 129, "a b", "ü", ""):
        assert asked("/health", method="GET", headers={"x-request-id": bad}).headers["x-request-id"] != bad


def test_same_name_twice_at_once_is_two_requests() -> None:
    """The engine sees different ids."""

    async def main() -> None:
        engine = ManualEngine()
        async with running(model(engine)) as server:
            both = [ask(server, COMPLETIONS, {"prompt": [1]}, headers={"x-request-id": "a"}) for _ in range(2)]
            tasks = [asyncio.create_task(one) for one in both]
            names = await engine.arrived(2)
            assert len({*names}) == 2
            for name in names:
                engine.give(row(name, finish_reason="stop"))
            assert [(await one).status for one in tasks] == [200, 200]

    asyncio.run(main())


@pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
def test_usage_stands_in_each_chunk_if_asked(path: str) -> None:
    """It grows, and ends as the whole."""
    body = {"prompt": "Hi 🦜"} if path == COMPLETIONS else {"messages": HI, "max_tokens": 5}
    options = {"include_usage": True, "continuous_usage_stats": True}
    events = asked(path, {**body, "stream": True, "stream_options": options}).events
    counts = [event["usage"]["completion_tokens"] for event in events]
    assert counts == sorted(counts)
    assert counts[-1] == counts[-2] > 1
    assert len({*counts}) > 2
    assert {event["usage"]["prompt_tokens"] for event in events} == {events[-1]["usage"]["prompt_tokens"]}
    alone = asked(path, {**body, "stream": True, "stream_options": {"continuous_usage_stats": True}}).events
    assert all("usage" not in event for event in alone)


def test_line_ends_of_unicode_are_escaped() -> None:
    """Readers that cut events by str.splitlines, as httpx does, get whole JSON."""
    text = "a\u2028b\u2029c\u0085d é"
    for stream in (False, True):
        answer = asked(COMPLETIONS, {"prompt": text, "max_tokens": 99, "stream": stream})
        body = b"".join(answer.bodies).decode()
        assert not any(end in body for end in "\u2028\u2029\u0085")
        assert (answer.text() if stream else answer.json["choices"][0]["text"]) == text


def test_list_of_models_has_two_paths() -> None:
    """With a stroke at its end, too."""
    assert asked("/v1/models/", method="GET").json["data"][0]["id"] == "test"


def test_overflow_is_told_in_openais_words() -> None:
    """As litellm and LangChain look for them; nothing in it is for the operator."""
    small: Body = {"max_model_len": 10}
    bodies: list[Body] = [{"prompt": [5] * 11}, {"prompt": [5] * 5, "max_tokens": 6}, {"prompt": "a b c d e f g h i j k l"}]
    for body in bodies:
        answer = asked(COMPLETIONS, body, of=model(**small))
        message = answer.error["message"]
        assert message.startswith("This model's maximum context length is 10 tokens. However, ")
        assert (answer.status, answer.error["code"]) == (400, "context_length_exceeded")
        assert "raise" not in message
        assert "context_length_exceeded" in message


def test_truncation_to_what_the_model_takes() -> None:
    """-1, as vLLM has it, where its length is known."""
    body = {"prompt": [5] * 20, "truncate_prompt_tokens": -1, "max_tokens": 1, "return_token_ids": True}
    refused(COMPLETIONS, {**body, "max_tokens": 2}, 400, "max_tokens", "maximum context", of=model(max_model_len=10))
    answer = asked(CHAT, {"messages": HI, "truncate_prompt_tokens": -1, "max_tokens": 1}, of=model(max_model_len=4))
    assert answer.error["code"] == "context_length_exceeded"


def test_side_of_a_prompt_that_is_cut_off() -> None:
    """As vLLM names it; the left by default, so that the end stays."""
    text = "one two three four five"
    ids = ids_of(text)
    for prompt in (text, ids):
        for side, kept in ((None, ids[-2:]), ("left", ids[-2:]), ("right", ids[:2])):
            body = {"prompt": prompt, "truncate_prompt_tokens": 2, "truncation_side": side, "return_token_ids": True}
            assert asked(COMPLETIONS, body).json["choices"][0]["prompt_token_ids"] == kept
    whole = TOKENIZER.encode_chat(HI)
    chat: Body = {
        "messages": HI,
        "truncate_prompt_tokens": 2,
        "truncation_side": "right",
        "return_token_ids": True,
        "max_tokens": 1,
    }
    assert asked(CHAT, chat).json["prompt_token_ids"] == whole[:2]
    refused(COMPLETIONS, {"prompt": "a", "truncation_side": "top"}, 400, "truncation_side", "")


def test_text_of_the_prompt_is_returned() -> None:
    """Of a chat, once."""
    text = TOKENIZER.render_chat(HI)
    body = {"messages": HI, "max_tokens": 2, "return_prompt_text": True}
    assert asked(CHAT, body).json["prompt_text"] == text
    first, *rest = asked(CHAT, {**body, "stream": True}).events
    assert first["prompt_text"] == text
    assert not any("prompt_text" in event for event in rest)


@pytest.mark.parametrize("wanted", [None, 0, 1, 2])
def test_alternatives_are_as_many_as_asked_for(wanted: int | None) -> None:
    """The likeliest, whether the sampled token is one of them or not, and each once, however often the engine names it."""

    async def main() -> Any:
        from detok import Logprob

        engine = ManualEngine()
        async with running(model(engine)) as server:
            asking = asyncio.create_task(ask(server, CHAT, {"messages": HI, "logprobs": True, "top_logprobs": wanted}))
            (name,) = await engine.arrived(1)
            said = Logprob(-3.0, 7, ((5, -3.0), (6, -0.5), (7, -1.0), (6, -0.5)))
            engine.give(row(name, 5, finish_reason="stop", logprobs=[said]))
            return (await asking).json["choices"][0]["logprobs"]["content"]

    (entry,) = asyncio.run(main())
    assert [one["logprob"] for one in entry["top_logprobs"]] == [-0.5, -1.0][: wanted or 0]


def test_top_logprobs_of_none_need_no_logprobs() -> None:
    """As clients send their defaults."""
    assert asked(CHAT, {"messages": HI, "top_logprobs": 0}).json["choices"][0]["logprobs"] is None


PROMPT = ids_of("Hi 🦜!")


def _told(top: int) -> bytes:
    entries: list[Any] = [None]
    for place, token_id in enumerate(PROMPT[1:], 1):
        ranked = {str(7 + n): {"logprob": -0.25 * (n + 1), "rank": n + 1, "decoded_token": "x"} for n in range(top)}
        entries.append({str(token_id): {"logprob": -float(place), "rank": 9, "decoded_token": "y"}, **ranked})
    return json.dumps({"request_id": "r", "prompt_logprobs": entries, "choices": [{"index": 0, "token_ids": [5]}]}).encode()


def _generated() -> bytes:
    logprobs = {"content": [{"token_id": 5, "logprob": -0.5, "rank": 1, "top_logprobs": []}]}
    choice = {"index": 0, "token_ids": [5], "finish_reason": "length", "logprobs": logprobs}
    return f"data: {json.dumps({'request_id': 'r', 'choices': [choice]})}\n\ndata: [DONE]\n\n".encode()


def before(fake: FakeEngine) -> Any:
    """A model before a vLLM that tells of prompts, too."""
    told = open_prompt_engine(f"vllm:{fake.url}")
    assert told is not None
    return model(open_engine(f"vllm:{fake.url}"), prompts=OutputProcessor(TOKENIZER, told))


def test_echo_has_the_numbers_of_the_prompt() -> None:
    """As lm-evaluation-harness asks for a loglikelihood: every token of the prompt but the first, then the output."""

    async def main() -> None:
        told, made = Reply([_told(1)], media_type="application/json"), Reply([_generated()])
        async with fake_engine(told, made) as fake, running(before(fake)) as server:
            body = {"prompt": PROMPT, "max_tokens": 1, "logprobs": 1, "echo": True, "temperature": 0, "seed": 1234}
            answer = await ask(server, COMPLETIONS, body)
            asked_for = fake.asked[0].body
        logprobs = answer.json["choices"][0]["logprobs"]
        assert logprobs["token_logprobs"] == [None, *(-float(n) for n in range(1, len(PROMPT))), -0.5]
        assert [len(one or {}) for one in logprobs["top_logprobs"]][:2] == [0, 1]
        assert "".join(logprobs["tokens"][: len(PROMPT)]) == "Hi 🦜!"
        assert answer.json["choices"][0]["text"].startswith("Hi 🦜!")
        assert asked_for["sampling_params"] == {"max_tokens": 1, "prompt_logprobs": 1, "detokenize": False}
        assert (asked_for["stream"], asked_for["token_ids"]) == (False, PROMPT)

    asyncio.run(main())


@pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
def test_prompt_logprobs_are_those_of_the_engine(path: str) -> None:
    """By ids, as vLLM writes them; a stream has none."""

    async def main() -> None:
        entries = [None, {"7": {"logprob": -0.5, "rank": 1}}]
        prompt = PROMPT if path == COMPLETIONS else TOKENIZER.encode_chat(HI)
        whole = json.dumps({"prompt_logprobs": [entries[0], *[{str(i): {"logprob": -2.0, "rank": 3}} for i in prompt[1:]]]})
        told, made = Reply([whole.encode()], media_type="application/json"), Reply([_generated()])
        async with fake_engine(told, made) as fake, running(before(fake)) as server:
            body: Body = {"prompt": prompt} if path == COMPLETIONS else {"messages": HI}
            answer = await ask(server, path, {**body, "max_tokens": 1, "prompt_logprobs": 0})
            holder = answer.json["choices"][0] if path == COMPLETIONS else answer.json
            first, *rest = holder["prompt_logprobs"]
            assert first is None
            assert [(*one,) for one in rest] == [(str(token_id),) for token_id in prompt[1:]]
            assert all(next(iter(one.values()))["logprob"] == -2.0 for one in rest)
            streamed = await ask(server, path, {**body, "stream": True, "prompt_logprobs": 0})
            assert (streamed.status, streamed.error["param"]) == (400, "prompt_logprobs")

    asyncio.run(main())


def test_prompt_logprobs_without_an_engine_that_tells_them_are_400() -> None:
    """Unless it has no model."""
    refused(COMPLETIONS, {"prompt": [1], "prompt_logprobs": 1}, 400, "prompt_logprobs", "does not tell", of=model(ManualEngine()))
    assert not ScriptedEngine.has_model
    assert asked(COMPLETIONS, {"prompt": "a", "prompt_logprobs": 1}).json["choices"][0]["prompt_logprobs"] is None


def test_refusal_of_a_prompt_is_the_engines() -> None:
    """With its status."""

    async def main() -> None:
        error = {"error": {"message": "too long", "type": "BadRequestError", "code": 400}}
        refusal = Reply([json.dumps(error).encode()], status=400, media_type="application/json")
        async with fake_engine(refusal) as fake, running(before(fake)) as server:
            answer = await ask(server, COMPLETIONS, {"prompt": PROMPT, "logprobs": 1, "echo": True})
            assert (answer.status, answer.error["message"]) == (400, "too long")

    asyncio.run(main())


def test_body_has_every_field_of_the_engine() -> None:
    """Completions and chats alike."""
    for kind in (ChatBody, CompletionBody):
        assert {*EngineFields.__struct_fields__} <= {*kind.__struct_fields__}
