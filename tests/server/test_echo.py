"""``echo`` with ``logprobs``: the lists tile the text of prompt and output, with null where the engine tells nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest

from detok import Logprob
from detok.engines.base import Engine, EngineOutput, EngineRequest
from detok.engines.echo import EchoEngine
from detok.engines.opening import open_engine, open_prompt_engine
from detok.engines.replay import ReplayEngine
from detok.engines.scripted import ScriptStep
from detok.frontend.detokenizer import OutOfProcess
from detok.frontend.processor import OutputProcessor
from detok.server.models import Model
from tests.engines.support import Reply, fake_engine
from tests.server.support import TOKENIZER, Answer, ask, ids_of, model, running
from tests.server.test_endpoints import COMPLETIONS
from tests.support.workers import endpoint, threaded

Json = dict[str, Any]

PROMPT = ids_of("Hi 🦜!")
OUTPUT = ids_of(" naïve 日本. END x")
TEXT = TOKENIZER.decode(OUTPUT)

Numbers = Callable[[int], float | None]
"""The logprob of the token at a place of the output, if the engine gives one."""


def _all(place: int) -> float | None:
    return -float(place)


def _none(_: int) -> float | None:
    return None


def _some(place: int) -> float | None:
    return None if place % 3 else -float(place)


def _sse(events: list[Any], end: bytes = b"data: [DONE]\n\n") -> Reply:
    return Reply([*(f"data: {json.dumps(event)}\n\n".encode() for event in events), end])


def _vllm(numbers: Numbers) -> Reply:
    events = []
    for place, token_id in enumerate(OUTPUT):
        number = numbers(place)
        content = [{"token_id": token_id, "logprob": number, "rank": 1, "top_logprobs": [{"token_id": 5, "logprob": -1.0}]}]
        choice = {"index": 0, "token_ids": [token_id], "logprobs": None if number is None else {"content": content}}
        events.append(
            {"request_id": "r", "choices": [{**choice, "finish_reason": "length" if place == len(OUTPUT) - 1 else None}]}
        )
    return _sse(events)


def _sglang(numbers: Numbers) -> Reply:
    events = []
    for place, token_id in enumerate(OUTPUT):
        finish = {"type": "length", "length": len(OUTPUT)} if place == len(OUTPUT) - 1 else None
        meta: Json = {"completion_tokens": place + 1, "finish_reason": finish}
        if (number := numbers(place)) is not None:
            meta |= {"output_token_logprobs": [[number, token_id, None]], "output_top_logprobs": [[[-0.5, 6, None]]]}
        events.append({"output_ids": [token_id], "meta_info": meta})
    return _sse(events)


def _llamacpp(numbers: Numbers) -> list[Reply]:
    replies, begin, size = [], 0, 1
    while begin < len(OUTPUT):
        ids = OUTPUT[begin : begin + size]
        told: list[Json] = [{"id": one, "logprob": numbers(begin + at), "top_logprobs": []} for at, one in enumerate(ids)]
        more = {"completion_probabilities": [one for one in told if one["logprob"] is not None]}
        body = {"tokens": ids, "stop": True, "stop_type": "limit", **more}
        replies.append(Reply([json.dumps(body).encode()], media_type="application/json"))
        begin, size = begin + size, begin + size
    return replies


class _Odd:
    """An engine that gives logprobs with some steps and not with others, several ids a step, and a last step without ids."""

    def __init__(self) -> None:
        self._batches: asyncio.Queue[list[EngineOutput] | None] = asyncio.Queue()

    async def submit(self, request: EngineRequest) -> None:
        for begin in range(0, len(OUTPUT), 2):
            ids = OUTPUT[begin : begin + 2]
            told = None if begin % 4 else [Logprob(-1.0, top=((ids[0], -1.0), (5, -2.0))), None][: len(ids)]
            self._batches.put_nowait([EngineOutput(request_id=request.request_id, token_ids=ids, logprobs=told)])
        self._batches.put_nowait([EngineOutput(request_id=request.request_id, finish_reason="length")])

    async def outputs(self) -> AsyncIterator[list[EngineOutput]]:
        while (batch := await self._batches.get()) is not None:
            yield batch

    async def abort(self, _: object) -> None:
        """Nothing runs."""

    async def close(self) -> None:
        self._batches.put_nowait(None)


def _script(numbers: Numbers) -> ReplayEngine:
    steps = [ScriptStep((one,), (Logprob(numbers(place)),)) for place, one in enumerate(OUTPUT)]
    return ReplayEngine([[*steps, ScriptStep(finish_reason="length")]])


EMBEDDED: dict[str, Callable[[], Engine]] = {
    "echo": EchoEngine,
    "replay": lambda: ReplayEngine([OUTPUT]),
    "replay with logprobs": lambda: _script(_all),
    "in some steps": _Odd,
}


@asynccontextmanager
async def _model(kind: str) -> AsyncIterator[Model]:
    """A model before an engine of a kind."""
    if kind in EMBEDDED:
        yield model(EMBEDDED[kind]())
        return
    if kind == "worker":
        with ExitStack() as stack:
            place = stack.enter_context(endpoint())
            stack.enter_context(threaded(TOKENIZER, place))
            made = model()
            made.frontend = OutputProcessor(TOKENIZER, _Odd(), detokenizer=OutOfProcess(place, TOKENIZER))
            yield made
            await made.close()  # before the worker ends
        return
    name, _, how = kind.partition(" ")
    numbers = {"": _all, "silent": _none, "some": _some, "told": _some}[how]
    if how == "told":
        entries = [None, *({str(one): {"logprob": -2.0, "rank": 3}} for one in PROMPT[1:])]
        told = Reply([json.dumps({"prompt_logprobs": entries}).encode()], media_type="application/json")
        async with fake_engine(told) as before, fake_engine(_vllm(numbers)) as fake:
            engine = open_prompt_engine(f"vllm:{before.url}")
            assert engine is not None
            yield model(open_engine(f"vllm:{fake.url}"), prompts=OutputProcessor(TOKENIZER, engine))
        return
    replies = {"vllm": lambda: [_vllm(numbers)], "sglang": lambda: [_sglang(numbers)], "llamacpp": lambda: _llamacpp(numbers)}[
        name
    ]()
    async with fake_engine(*replies) as fake:
        yield model(open_engine(f"{name}:{fake.url}"))


KINDS = (
    *EMBEDDED,
    *("vllm", "vllm silent", "vllm some", "vllm told", "sglang", "sglang silent", "sglang some", "llamacpp", "llamacpp silent"),
    *("llamacpp some", "worker"),
)

# llama.cpp is asked several times for one choice, so that the fake one has the answers of one choice only in order.
CASES = [(kind, n) for kind in KINDS for n in (1, 3) if n == 1 or not kind.startswith("llamacpp")]


def _choices(answer: Answer, *, stream: bool) -> dict[int, tuple[str, Json]]:
    """The text and the logprobs of each choice, of a stream joined."""
    assert answer.status == 200, answer.json
    found: dict[int, tuple[str, Json]] = {}
    for event in answer.events if stream else [answer.json]:
        for choice in event["choices"]:
            text, lists = found.get(choice["index"], ("", {}))
            new = choice["logprobs"] or {}
            assert new or not choice["text"], "a text without its entries"
            found[choice["index"]] = text + choice["text"], {name: lists.get(name, []) + new[name] for name in new} or lists
    return found


def assert_tiles(text: str, logprobs: Json) -> None:
    """Every list is as long as every other, and the strings, joined, are the text."""
    assert len({len(values) for values in logprobs.values()}) == 1
    assert "".join(logprobs["tokens"]) == text
    place = 0
    for token, offset in zip(logprobs["tokens"], logprobs["text_offset"], strict=True):
        assert offset == place
        place += len(token)


@pytest.mark.parametrize("stop", [None, "ND"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("kind", "n"), CASES)
def test_echo_with_logprobs_tiles_the_text(kind: str, n: int, stream: bool, stop: str | None) -> None:
    """A prompt that ends within nothing; each choice by itself; a stop cuts the lists where it cuts the text."""
    body: Json = {
        "prompt": PROMPT,
        "max_tokens": len(OUTPUT),
        "logprobs": 1,
        "echo": True,
        "n": n,
        "stop": stop,
        "stream": stream,
    }

    async def main() -> Answer:
        async with _model(kind) as made, running(made) as server:
            return await ask(server, COMPLETIONS, body)

    choices = _choices(asyncio.run(main()), stream=stream)
    assert {*choices} == {*range(n)}
    said = "Hi 🦜!" if kind == "echo" else TEXT if stop is None else TEXT.partition("ND")[0]
    for text, logprobs in choices.values():
        assert text == "Hi 🦜!" + said
        assert_tiles(text, logprobs)
        numbers = logprobs["token_logprobs"]
        assert numbers[: len(PROMPT)] == ([None, *[-2.0] * (len(PROMPT) - 1)] if kind == "vllm told" else [None] * len(PROMPT))
        of_output = numbers[len(PROMPT) :]
        if kind in ("vllm", "sglang", "llamacpp", "replay with logprobs"):
            assert of_output == [-float(place) for place in range(len(of_output))]
        elif kind in ("echo", "replay") or kind.endswith("silent"):
            assert set(of_output) == {None}
        else:
            assert {None} < set(of_output)


@pytest.mark.parametrize("stream", [False, True])
def test_echo_of_a_prompt_that_ends_within_a_character(stream: bool) -> None:
    """The character belongs to the output, and the lists tile the text all the same."""
    cut = PROMPT.index(next(one for one in PROMPT if TOKENIZER.token_bytes(one)[:1] >= b"\x80")) + 1
    rest = [*PROMPT[cut:], *OUTPUT]

    async def main() -> Answer:
        async with running(model(ReplayEngine([rest]))) as server:
            body = {"prompt": PROMPT[:cut], "max_tokens": 99, "logprobs": 0, "echo": True, "stream": stream}
            return await ask(server, COMPLETIONS, body)

    ((text, logprobs),) = _choices(asyncio.run(main()), stream=stream).values()
    assert text.endswith("🦜!" + TEXT)
    assert_tiles(text, logprobs)


def test_logprobs_without_echo_are_null_where_the_engine_gives_none() -> None:
    """There is nothing that they would stand beside."""

    async def main() -> Any:
        async with running(model(ReplayEngine([OUTPUT]))) as server:
            return (await ask(server, COMPLETIONS, {"prompt": "a", "logprobs": 1})).json

    assert asyncio.run(main())["choices"][0]["logprobs"] is None
