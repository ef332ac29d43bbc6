"""An engine on a socket behind the server: what it recorded comes out as text, whatever the cuts, and it is told when to stop."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from detok.engines.opening import open_engine
from tests.engines.support import Act, FakeEngine, Reply, became, fake_engine
from tests.server.support import TOKENIZER, Client, ask, ids_of, model, running

COMPLETIONS = "/v1/completions"


def events(ids: list[int], *, finish: str | None = "stop") -> bytes:
    """What vLLM sends for these ids, one an event."""
    choices: list[dict[str, Any]] = [
        {"index": 0, "token_ids": [one], "finish_reason": None, "stop_reason": None, "logprobs": None} for one in ids
    ]
    if finish is not None:
        choices[-1]["finish_reason"] = finish
    sent = [json.dumps({"request_id": "r", "choices": [choice]}) for choice in choices]
    return "".join(f"data: {one}\n\n" for one in [*sent, "[DONE]"][: None if finish else -1]).encode()


def behind(fake: FakeEngine) -> Any:
    """A model whose engine this is."""
    return model(open_engine(f"vllm:{fake.url}"))


TEXT = "Hi 🦜 ဗမာ!"


@pytest.mark.parametrize("size", [1, 2, 7, 64, 100_000])
def test_text_does_not_depend_on_the_cuts(size: int) -> None:
    """The engine's answer comes in pieces of any size."""

    async def main() -> None:
        whole = events(ids_of(TEXT))
        pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
        async with fake_engine(Reply(pieces)) as fake, running(behind(fake)) as server:
            answer = await ask(server, COMPLETIONS, {"prompt": "a", "stream": True, "max_tokens": 99, "seed": 3})
            assert answer.text() == TEXT
            whole_answer = await ask(server, COMPLETIONS, {"prompt": "a", "max_tokens": 99})
            assert whole_answer.json["choices"][0]["text"] == TEXT
        sent = fake.asked[0].body
        assert (sent["token_ids"], sent["sampling_params"]) == (
            TOKENIZER.encode("a"),
            {"max_tokens": 99, "seed": 3, "detokenize": False},
        )

    asyncio.run(main())


@pytest.mark.parametrize("stream", [False, True])
def test_refusal_of_the_engine_keeps_its_words(stream: bool) -> None:
    """As a status of HTTP, or as the first event of an answer that began well."""

    async def main() -> None:
        error = {"error": {"message": "token id 9 is out of vocabulary", "type": "BadRequestError", "param": None, "code": 400}}
        early = Reply([json.dumps(error).encode()], status=400, media_type="application/json")
        late = Reply([f"data: {json.dumps(error)}\n\n".encode()])
        async with fake_engine(early, late) as fake, running(behind(fake)) as server:
            for _ in range(2):
                answer = await ask(server, COMPLETIONS, {"prompt": "a", "stream": stream})
                assert (answer.status, answer.error["message"]) == (400, "token id 9 is out of vocabulary")

    asyncio.run(main())


def test_engine_that_cannot_be_reached_is_502() -> None:
    """Without its address."""

    async def main() -> None:
        async with fake_engine() as fake:
            url = fake.url
        async with running(model(open_engine(f"vllm:{url}"))) as server:
            answer = await ask(server, COMPLETIONS, {"prompt": "a"})
            assert answer.status in (502, 503)
            assert "127.0.0.1" not in answer.error["message"]

    asyncio.run(main())


def test_stop_in_the_text_closes_the_request_upstream() -> None:
    """The engine has more to say, and nobody to say it to."""

    async def main() -> None:
        reply = Reply([events(ids_of("one END"), finish=None), Act.HOLD])
        async with fake_engine(reply) as fake, running(behind(fake)) as server:
            answer = await ask(server, COMPLETIONS, {"prompt": "a", "stream": True, "stop": "END", "max_tokens": 99})
            assert (answer.text(), answer.events[-1]["choices"][0]["stop_reason"]) == ("one ", "END")
            await became(lambda: fake.gone == 1)

    asyncio.run(main())


def test_client_that_goes_away_closes_the_request_upstream() -> None:
    """At once."""

    async def main() -> None:
        reply = Reply([events(ids_of("one"), finish=None), Act.HOLD])
        async with fake_engine(reply) as fake, running(behind(fake)) as server:
            client = Client(server, COMPLETIONS, {"prompt": "a", "stream": True, "max_tokens": 99})
            asking = asyncio.create_task(client.run())
            await client.wrote.wait()
            client.gone.set()
            await asking
            await became(lambda: fake.gone == 1)

    asyncio.run(main())


def usage_of(fake: FakeEngine) -> Any:
    """A model whose engine tells what was cached."""
    return model(open_engine(f"vllm:{fake.url}", cached_tokens=True))


CACHED = [
    (COMPLETIONS, {"prompt": "a b c", "n": 2}, "usage.prompt_tokens_details.cached_tokens", 2),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}, "usage.prompt_tokens_details.cached_tokens", 2),
    ("/v1/responses", {"input": "a"}, "usage.input_tokens_details.cached_tokens", 2),
    ("/v1/messages", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 9}, "usage.cache_read_input_tokens", 2),
]


@pytest.mark.parametrize(("path", "body", "place", "expected"), CACHED)
def test_cached_tokens_are_in_the_usage(path: str, body: dict[str, Any], place: str, expected: int) -> None:
    """In each API's own place, streamed and not; of the choices of a prompt, those of the one that found least."""

    def reply(cached: int) -> Reply:
        said = {"choices": [], "usage": {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": cached}}}
        return Reply(
            [events(ids_of("Hi"), finish="stop").replace(b"data: [DONE]", f"data: {json.dumps(said)}\n\ndata: [DONE]".encode())]
        )

    def found(answer: Any) -> Any:
        for name in place.split("."):
            answer = answer[name]
        return answer

    async def main() -> None:
        async with fake_engine(reply(2), reply(4), reply(2), reply(4)) as fake, running(usage_of(fake)) as server:
            whole = await ask(server, path, body)
            assert (whole.status, found(whole.json)) == (200, expected)
            if path == COMPLETIONS:
                options = {"stream_options": {"include_usage": True}}
                streamed = await ask(server, path, {**body, **options, "stream": True})
                assert streamed.events[-1]["usage"] == whole.json["usage"]
            elif path == "/v1/messages":
                assert whole.json["usage"]["input_tokens"] >= 0

    asyncio.run(main())


def test_usage_says_nothing_of_a_cache_that_nobody_told_of() -> None:
    """A zero would be a lie."""

    async def main() -> None:
        async with fake_engine(Reply([events(ids_of("Hi"))])) as fake, running(behind(fake)) as server:
            answer = await ask(server, COMPLETIONS, {"prompt": "a"})
            assert answer.json["usage"].keys() == {"prompt_tokens", "completion_tokens", "total_tokens"}

    asyncio.run(main())
