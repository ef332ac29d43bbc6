"""Streams: what a client gets when an engine fails, when it is slow itself, when nothing happens, and when it goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from detok.data import sample
from detok.engines.base import EngineRequest
from detok.engines.echo import EchoEngine
from detok.errors import EngineError
from detok.server.app import Server
from detok.turns.formats import turn_format
from tests.frontend.manual import ManualEngine, row
from tests.server.support import Client, ask, ids_of, model, running
from tests.support.event_loop import settle

COMPLETIONS = "/v1/completions"


def body(*, stream: bool = True, **more: Any) -> dict[str, Any]:
    """A request for a completion."""
    return {"prompt": [1], "stream": stream, "max_tokens": 99_999, **more}


Test = Callable[[ManualEngine, Server], Awaitable[None]]


def with_engine(test: Test, **config: Any) -> None:
    """Run a test with an engine by hand."""

    async def main() -> None:
        engine = ManualEngine()
        async with running(model(engine), **config) as server:
            await test(engine, server)
            assert server.running == 0
            assert server.models["test"].frontend.metrics.registry.text().count('detok_open_requests{model="test"} 0') == 1

    asyncio.run(main())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("given", "status"), [(400, 400), (422, 400), (429, 429), (401, 502), (500, 502), (503, 503), (None, 502)]
)
def test_late_refusal_is_a_status(stream: bool, given: int | None, status: int) -> None:
    """An engine that refuses in its first output is answered as if it had refused at once, in its own words."""

    async def test(engine: ManualEngine, server: Server) -> None:
        asking = asyncio.create_task(ask(server, COMPLETIONS, body(stream=stream)))
        (name,) = await engine.arrived(1)
        engine.give(row(name, finish_reason="error", error="no such id", error_status=given))
        answer = await asking
        assert (answer.status, answer.error["message"]) == (status, "no such id")

    with_engine(test)


@pytest.mark.parametrize("stream", [False, True])
def test_early_refusal_is_a_status(stream: bool) -> None:
    """With type, param and code as the engine gave them; the other choices are aborted."""

    class Refusing(EchoEngine):
        async def submit(self, request: EngineRequest) -> None:
            raise EngineError("too long", status=400, type="BadRequestError", param="prompt", code=7)

    async def main() -> None:
        async with running(model(Refusing())) as server:
            for n in (1, 3):
                answer = await ask(server, COMPLETIONS, body(stream=stream, n=n))
                assert answer.status == 400
                assert answer.error == {"message": "too long", "type": "BadRequestError", "param": "prompt", "code": 7}

    asyncio.run(main())


def test_failure_within_a_stream_is_an_event() -> None:
    """What came before is there, then the error, then [DONE]."""

    async def test(engine: ManualEngine, server: Server) -> None:
        client = Client(server, COMPLETIONS, body())
        asking = asyncio.create_task(client.run())
        (name,) = await engine.arrived(1)
        engine.give(row(name, *ids_of("Hi")))
        await client.wrote.wait()
        engine.give(row(name, *ids_of("!"), finish_reason="error", error="out of memory"))
        answer = await asking
        assert (answer.status, answer.text()) == (200, "Hi!")
        assert answer.events[-1]["error"]["message"] == "out of memory"

    with_engine(test)


def test_server_that_closes_ends_streams_with_an_event() -> None:
    """Nobody waits for what will not come."""

    async def test(engine: ManualEngine, server: Server) -> None:
        client = Client(server, COMPLETIONS, body())
        asking = asyncio.create_task(client.run())
        (name,) = await engine.arrived(1)
        engine.give(row(name, *ids_of("Hi")))
        await client.wrote.wait()
        await server.close()
        assert "aborted" in (await asking).events[-1]["error"]["message"]

    with_engine(test)


@pytest.mark.parametrize("stream", [False, True])
def test_stop_in_the_text_aborts_once(stream: bool) -> None:
    """Two choices: the one whose text has the stop is aborted, the other goes on."""

    async def test(engine: ManualEngine, server: Server) -> None:
        asking = asyncio.create_task(ask(server, COMPLETIONS, body(stream=stream, n=2, stop="END")))
        first, second = await engine.arrived(2)
        engine.give(row(first, *ids_of("one END two")), row(second, *ids_of("three")))
        while not engine.aborted:
            await asyncio.sleep(0)
        engine.give(row(first, *ids_of(" more")), row(second, *ids_of(" four"), finish_reason="length"))
        answer = await asking
        if stream:
            assert [answer.text(0), answer.text(1)] == ["one ", "three four"]
        else:
            assert [choice["text"] for choice in answer.json["choices"]] == ["one ", "three four"]
            assert [choice["stop_reason"] for choice in answer.json["choices"]] == ["END", None]
        assert engine.aborted == [first]

    with_engine(test)


@pytest.mark.parametrize("n", [1, 3])
def test_slow_client_gets_all_in_few_pieces(n: int) -> None:
    """What comes while it does not read is joined, and nothing is lost."""

    async def test(engine: ManualEngine, server: Server) -> None:
        client = Client(server, COMPLETIONS, body(n=n))
        asking = asyncio.create_task(client.run())
        names = await engine.arrived(n)
        text = sample("mixed")[:400]
        ids = ids_of(text)
        engine.give(*(row(name, ids[0]) for name in names))
        await client.wrote.wait()
        await settle()
        client.may_write.clear()
        for one in ids[1:-1]:
            engine.give(*(row(name, one) for name in names))
        engine.give(*(row(name, ids[-1], finish_reason="stop") for name in names))
        while server.models["test"].frontend.metrics.outputs.value < n * len(ids):
            await asyncio.sleep(0)
        client.may_write.set()
        answer = await asking
        assert [answer.text(index) for index in range(n)] == [text] * n
        assert len(answer.bodies) < 6
        assert len(answer.events) <= 4 * n

    with_engine(test)


def test_silence_is_filled_with_comments() -> None:
    """Also before the first token; what fails then is an event, since the status is out."""

    async def test(engine: ManualEngine, server: Server) -> None:
        client = Client(server, COMPLETIONS, body())
        asking = asyncio.create_task(client.run())
        (name,) = await engine.arrived(1)
        while len(client.answer.bodies) < 3:
            client.wrote.clear()
            await client.wrote.wait()
        assert {body[:1] for body in client.answer.bodies} == {b":"}
        engine.give(row(name, finish_reason="error", error="no", error_status=400))
        answer = await asking
        assert (answer.status, answer.events[-1]["error"]["message"]) == (200, "no")

    with_engine(test, heartbeat_seconds=0.01)


def test_call_that_is_gathered_is_a_silence() -> None:
    """Before its name nothing is sent of it, not even an empty piece, and so there are comments."""

    async def main() -> None:
        engine = ManualEngine()
        tools = [{"type": "function", "function": {"name": "f"}}]
        body = {"messages": [{"role": "user", "content": "?"}], "stream": True, "tools": tools}
        async with running(model(engine, channels=turn_format("hermes")), heartbeat_seconds=0.01) as server:
            client = Client(server, "/v1/chat/completions", body)
            asking = asyncio.create_task(client.run())
            (name,) = await engine.arrived(1)
            engine.give(row(name, *ids_of('So:<tool_call>{"arguments": {"a": "')))
            await client.wrote.wait()
            before = len(client.answer.bodies)
            while not any(body[:1] == b":" for body in client.answer.bodies[before:]):
                engine.give(row(name, *ids_of("a")))
                await asyncio.sleep(0)
            engine.give(row(name, *ids_of('"}, "name": "f"}</tool_call>'), finish_reason="stop"))
            answer = await asking
            assert b"" not in answer.bodies
            assert answer.text() == "So:"
            assert answer.events[-1]["choices"][0]["finish_reason"] == "tool_calls"

    asyncio.run(main())


async def _submitting(engine: ManualEngine, client: Client) -> None:
    await engine.arrived(1)


async def _before_the_first_output(engine: ManualEngine, client: Client) -> None:
    await engine.arrived(1)
    await settle()


async def _within(engine: ManualEngine, client: Client) -> None:
    for name in await engine.arrived(1):
        engine.give(row(name, *ids_of("Hi")))
    await client.wrote.wait()


async def _while_it_is_slow(engine: ManualEngine, client: Client) -> None:
    await _within(engine, client)
    await settle()
    client.may_write.clear()
    engine.give(*(row(name, *ids_of("there")) for name in await engine.arrived(1)))
    await settle()


PHASES = (
    *((phase, False) for phase in (_submitting, _before_the_first_output, _within, _while_it_is_slow)),
    # No output comes from an engine that has not taken the request.
    *((phase, True) for phase in (_submitting, _before_the_first_output)),
)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(("phase", "hangs"), PHASES)
def test_client_that_goes_away_ends_its_requests_once(phase: Any, n: int, hangs: bool) -> None:
    """Whenever it goes, and whether or not the engine has taken the request."""

    async def test(engine: ManualEngine, server: Server) -> None:
        engine.hangs = asyncio.Event() if hangs else None
        client = Client(server, COMPLETIONS, body(n=n))
        asking = asyncio.create_task(client.run())
        await phase(engine, client)
        names = await engine.arrived(n)
        client.gone.set()
        await asking
        if engine.hangs is not None:
            engine.hangs.set()
        while len(engine.aborted) < n:
            await asyncio.sleep(0)
        await settle()
        assert sorted(engine.aborted) == sorted(names)
        assert server.gone.value == 1

    with_engine(test)


def test_client_that_goes_away_while_a_refusal_waits_ends_all_choices() -> None:
    """Choice 0 failed, choice 1 runs, and the engine is slow to let go of choice 2."""

    async def test(engine: ManualEngine, server: Server) -> None:
        is_free = asyncio.Event()
        submit = engine.submit

        async def slow(request: EngineRequest) -> None:
            await submit(request)
            if len(engine.submitted) == 3:
                try:
                    await asyncio.Event().wait()
                finally:
                    await is_free.wait()

        engine.submit = slow  # type: ignore[method-assign]
        client = Client(server, COMPLETIONS, body(n=3))
        asking = asyncio.create_task(client.run())
        first, *others = await engine.arrived(3)
        engine.give(row(first, finish_reason="error", error="no", error_status=400))
        await settle()
        client.gone.set()
        await asking
        is_free.set()
        await settle()
        assert sorted(engine.aborted) == sorted(others)

    with_engine(test)


def test_client_that_goes_away_from_an_unstreamed_answer_ends_it() -> None:
    """It is watched there, too."""

    async def test(engine: ManualEngine, server: Server) -> None:
        client = Client(server, COMPLETIONS, body(stream=False))
        asking = asyncio.create_task(client.run())
        names = await engine.arrived(1)
        client.gone.set()
        answer = await asking
        await settle()
        assert (answer.status, engine.aborted, server.gone.value) == (None, names, 1)

    with_engine(test)


def test_client_that_goes_away_within_its_body_asks_nothing() -> None:
    """The engine never hears of it."""

    async def test(engine: ManualEngine, server: Server) -> None:
        client = Client(server, COMPLETIONS).in_pieces(
            {"type": "http.request", "body": b'{"prompt": ', "more_body": True}, {"type": "http.disconnect"}
        )
        answer = await client.run()
        assert (answer.status, engine.submitted, server.gone.value) == (None, [], 1)

    with_engine(test)


def test_client_that_goes_at_the_end_changes_nothing() -> None:
    """All was said, and nothing is aborted."""

    async def test(engine: ManualEngine, server: Server) -> None:
        client = Client(server, COMPLETIONS, body())
        asking = asyncio.create_task(client.run())
        for name in await engine.arrived(1):
            engine.give(row(name, *ids_of("Hi"), finish_reason="stop"))
        answer = await asking
        client.gone.set()
        await settle()
        assert (answer.text(), engine.aborted, server.gone.value) == ("Hi", [], 0)

    with_engine(test)


def test_send_that_raises_ends_the_request() -> None:
    """As servers of newer ASGI versions say that a client is gone."""

    async def test(engine: ManualEngine, server: Server) -> None:
        class Lost(Client):
            async def send(self, message: Any) -> None:
                if message["type"] == "http.response.body":
                    raise OSError("gone")
                await super().send(message)

        client = Lost(server, COMPLETIONS, body())
        asking = asyncio.create_task(client.run())
        names = await engine.arrived(1)
        engine.give(row(names[0], *ids_of("Hi")))
        await asking
        await settle()
        assert (engine.aborted, server.gone.value) == (names, 1)

    with_engine(test)


def test_thousand_streams_at_once() -> None:
    """Each with its own text, in as many steps as the longest has tokens."""

    async def main() -> None:
        texts = [f"{number} {sample('mixed')[number % 50 :][:40]}" for number in range(1000)]
        async with running(model(EchoEngine(max_batch=1000))) as server:
            asked = [{"prompt": text, "stream": True, "max_tokens": 200} for text in texts]
            answers = await asyncio.gather(*(ask(server, COMPLETIONS, one) for one in asked))
        assert [answer.text() for answer in answers] == texts

    asyncio.run(main())
