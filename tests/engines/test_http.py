"""HTTP engines on a real socket: cuts, errors in every phase, aborts that are heard once."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any

import pytest

from detok.engines.dialect import Dialect
from detok.engines.http import HttpEngine
from detok.engines.llamacpp import LlamaCpp
from detok.engines.sglang import Sglang
from detok.engines.vllm import Vllm
from detok.errors import DuplicateRequest, EngineError, OptionError
from tests.engines.support import Act, FakeEngine, Reply, became, fake_engine, ids_of, recorded, request, until_ended

JSON = "application/json"
FIRST = recorded("vllm.sse").partition(b"\n\n")[0] + b"\n\n"
ENDED = {"vllm.sse": ([271, 9906, 11, 127, 234], "length"), "sglang-cumulative.sse": ([271, 9906, 11, 127, 128009], "stop")}
ABORTED = {"vllm": {"request_ids": ["generate-tokens-a"]}, "sglang": {"rid": "a"}}


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a test, for as long as a test may take."""

    async def limited() -> None:
        async with asyncio.timeout(60):
            await coroutine

    asyncio.run(limited())


async def answered(fake: FakeEngine, dialect: Dialect, **options: Any) -> tuple[list[int], str | None, str | None, int | None]:
    """Run one request to its end: its ids, and how the last output says that it ended."""
    engine = HttpEngine(dialect, fake.url, **options)
    await engine.submit(request())
    outputs = (await until_ended(engine, "a"))["a"]
    await engine.close()
    return ids_of(outputs), outputs[-1].finish_reason, outputs[-1].error, outputs[-1].error_status


async def refused(fake: FakeEngine, dialect: Dialect, **options: Any) -> EngineError:
    """Submit a request that is refused, and see that nothing is left of it."""
    engine = HttpEngine(dialect, fake.url, **options)
    with pytest.raises(EngineError) as caught:
        await engine.submit(request())
    await engine.close()
    assert [batch async for batch in engine.outputs()] == []
    return caught.value


@pytest.mark.parametrize(("name", "dialect", "step"), [("vllm.sse", Vllm(), 1), ("sglang-cumulative.sse", Sglang(), 13)])
def test_stream_cut_at_every_byte_gives_the_same_ids(name: str, dialect: Dialect, step: int) -> None:
    """Two pieces for every cut (of one engine: all are cut the same way), and all bytes one by one, over one connection."""

    async def main() -> None:
        data = recorded(name)
        cuts = [Reply([data[:cut], data[cut:]]) for cut in range(0, len(data), step)]
        async with fake_engine(*cuts, Reply([bytes([byte]) for byte in data])) as fake:
            engine = HttpEngine(dialect, fake.url)
            for count in range(len(fake.replies)):
                await engine.submit(request(f"r{count}"))
                outputs = (await until_ended(engine, [f"r{count}"]))[f"r{count}"]
                assert (ids_of(outputs), outputs[-1].finish_reason) == ENDED[name]
            await engine.close()
            assert len(fake.asked) == len(cuts) + 1
            assert fake.connections < 5

    run(main())


def test_requests_at_the_same_time_are_told_apart() -> None:
    """A hundred streams: each has its own ids, in order, and a connection."""

    async def main() -> None:
        names = [f"r{number}" for number in range(100)]
        async with fake_engine(Reply([FIRST, Act.WAIT, recorded("vllm.sse")[len(FIRST) :]])) as fake:
            engine = HttpEngine(Vllm(), fake.url)
            await asyncio.gather(*(engine.submit(request(name)) for name in names))
            assert fake.connections == 100
            fake.go.set()
            outputs = await until_ended(engine, names)
            assert {tuple(ids_of(outputs[name])) for name in names} == {(271, 9906, 11, 127, 234)}
            assert sorted(asked.body["request_id"] for asked in fake.asked) == sorted(names)
            await engine.close()

    run(main())


def test_request_has_the_key_and_the_path_of_the_url() -> None:
    """A path before the dialect's own, a bearer token, no compression."""

    async def main() -> None:
        async with fake_engine(Reply([recorded("vllm.sse")])) as fake:
            fake.url += "/behind/"
            await answered(fake, Vllm(), api_key="secret")
            assert fake.asked[0].path == "/behind/inference/v1/generate"
            assert fake.asked[0].headers["authorization"] == "Bearer secret"
            assert fake.asked[0].headers["accept-encoding"] == "identity"

    run(main())


@pytest.mark.parametrize("url", ["", "127.0.0.1:8000", "ftp://a", "http://", "http://a?b=c", "http://a:b", "http://a#b"])
def test_url_that_is_none_is_refused(url: str) -> None:
    """Before anything is sent, naming it."""
    with pytest.raises(OptionError, match="url="):
        HttpEngine(Vllm(), url)


def test_name_has_no_password() -> None:
    """It is for logs."""
    assert HttpEngine(Vllm(), "http://me:secret@host:1/x").name == "vllm at http://host:1/x/"


def test_engine_that_is_not_there_is_said_at_submit() -> None:
    """Nothing listens."""

    async def main() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            error = await refused(FakeEngine([], url=f"http://127.0.0.1:{taken.getsockname()[1]}"), Vllm())
            assert (error.message, error.status) == ("the engine cannot be reached", None)

    run(main())


def test_connecting_is_tried_again() -> None:
    """An engine that begins to listen a little later is found."""

    async def main() -> None:
        with socket.socket() as later:
            later.bind(("127.0.0.1", 0))
            fake = FakeEngine([Reply([recorded("vllm.sse")])], url=f"http://127.0.0.1:{later.getsockname()[1]}")
            answer = asyncio.create_task(answered(fake, Vllm()))
            await asyncio.sleep(0.05)
            server = await asyncio.start_server(fake.serve, sock=later)
            assert (await answer)[1] == "length"
            server.close()
            await fake.stop()

    run(main())


@pytest.mark.parametrize(
    ("reply", "status", "message"),
    [
        (
            Reply([b'{"error":{"message":"Token id 9 is out of vocabulary","type":"BadRequestError","code":400}}'], 400, JSON),
            400,
            "Token id 9 is out of vocabulary",
        ),
        (Reply([b'{"detail":"Not Found"}'], 404, JSON), 404, "Not Found"),
        (Reply([b"Internal Server Error"], 500, "text/plain"), 500, "Internal Server Error"),
        (Reply([b"<html><h1>500</h1>"], 500, "text/html"), 500, "the engine answered 500 Said with text/html"),
        (Reply([b'{"error":'], 502, JSON), 502, "the engine answered 502 Said with application/json"),
        (Reply([b"x" * 500_000], 500, "text/plain"), 500, "x" * 1000),
        (Reply([b"<html>hello"], 200, "text/html"), None, "the engine answered 200 Said with text/html"),
        (Reply([], 307, "text/html"), None, "the engine answered 307 Said with text/html"),
        (Reply([b'{"error":{"mess', Act.LOSE], 503, JSON), 503, "the engine answered 503 Said with application/json"),
    ],
)
def test_refusal_is_raised_at_submit_in_the_engines_words(reply: Reply, status: int | None, message: str) -> None:
    """With its status; asked once, whatever the status, and no page is passed on."""

    async def main() -> None:
        async with fake_engine(reply) as fake:
            error = await refused(fake, Vllm())
            assert (error.status, error.message) == (status, message)
            assert len(fake.asked) == 1

    run(main())


def test_refusal_keeps_all_that_the_engine_said() -> None:
    """Type, code and param too."""

    async def main() -> None:
        body = b'{"error":{"message":"no","type":"Bad Request","param":"body.token_ids","code":400}}'
        async with fake_engine(Reply([body], 400, JSON)) as fake:
            error = await refused(fake, Vllm())
            assert (error.type, error.code, error.param) == ("Bad Request", 400, "body.token_ids")
            assert str(error) == f"vllm at {fake.url}: no (status 400)"

    run(main())


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([FIRST, Act.LOSE], "the connection to the engine was lost"),
        ([FIRST, b'data: {"choi', Act.LOSE], "the connection to the engine was lost"),
        ([FIRST], "the engine ended its answer without a finish_reason"),
        ([FIRST, b"data: [DONE]\n\n", Act.HOLD], "the engine ended its answer without a finish_reason"),
        ([FIRST, b"data: {\n\n", Act.HOLD], "the engine sent what vllm does not send: Input data was truncated"),
        (
            [FIRST, b'data: {"choices":[{"token_ids":[-1]}]}\n\n', Act.HOLD],
            "the engine sent what vllm does not send: Expected `int` >= 0 - at `$.choices[0].token_ids[0]`",
        ),
    ],
)
def test_answer_that_breaks_off_ends_with_an_error(pieces: list[bytes | Act], message: str) -> None:
    """The ids that came stay; it is not asked again; and the engine is told to stop, in case it goes on."""

    async def main() -> None:
        async with fake_engine(Reply(pieces)) as fake:
            assert await answered(fake, Vllm()) == ([271], "error", message, None)
            assert len(fake.asked) == 1
            assert fake.aborted == [ABORTED["vllm"]]

    run(main())


def test_error_within_a_stream_ends_it_in_the_engines_words() -> None:
    """SGLang refuses a request like this; there is nothing to tell it then."""

    async def main() -> None:
        async with fake_engine(Reply([recorded("sglang-refused.sse")])) as fake:
            ids, reason, error, status = await answered(fake, Sglang())
            assert (ids, reason, status) == ([], "error", 400)
            assert error == "The input (9000 tokens) is longer than the model's context length (8192 tokens)."
            assert fake.aborted == []

    run(main())


@pytest.mark.parametrize("rest", [[], [Act.LOSE], [Act.HOLD], [b"data: {not json\n\n"]])
def test_what_follows_the_finish_reason_changes_nothing(rest: list[bytes | Act]) -> None:
    """No end mark, a lost connection, an engine that does not close, rubbish: the request has ended well."""

    async def main() -> None:
        data = recorded("vllm.sse").replace(b"data: [DONE]\n\n", b"")
        async with fake_engine(Reply([data, *rest])) as fake:
            assert await answered(fake, Vllm()) == ([271, 9906, 11, 127, 234], "length", None, None)
            assert fake.aborted == []

    run(main())


def test_silence_before_the_answer_is_raised_at_submit() -> None:
    """And the engine, which heard of the request, is told to stop."""

    async def main() -> None:
        async with fake_engine(Reply(before_head=Act.HOLD)) as fake:
            error = await refused(fake, Vllm(), silence_timeout=0.05)
            assert (error.message, error.status) == ("the engine sent nothing for 0.05 s", None)
            assert fake.aborted == [ABORTED["vllm"]]

    run(main())


def test_silence_within_the_answer_ends_it_with_an_error() -> None:
    """The ids that came stay."""

    async def main() -> None:
        async with fake_engine(Reply([FIRST, Act.HOLD])) as fake:
            assert await answered(fake, Vllm(), silence_timeout=0.05) == (
                [271],
                "error",
                "the engine sent nothing for 0.05 s",
                None,
            )

    run(main())


@pytest.mark.parametrize("dialect", [Vllm(), Sglang()])
@pytest.mark.parametrize("reply", [Reply(before_head=Act.HOLD), Reply([Act.HOLD]), Reply([b": hello\n\n", b"data: ", Act.HOLD])])
def test_abort_is_heard_once(dialect: Dialect, reply: Reply) -> None:
    """In each phase: the connection is closed, the post comes once, and whoever submits is let go; no output comes."""

    async def main() -> None:
        async with fake_engine(reply) as fake:
            engine = HttpEngine(dialect, fake.url)
            submitted = asyncio.create_task(engine.submit(request()))
            await fake.held.wait()
            await engine.abort(["a", "a", "unknown"])
            await engine.abort(["a"])
            await submitted
            await became(lambda: fake.gone)
            await engine.close()
            assert (fake.gone, fake.aborted) == (1, [ABORTED[dialect.name]])
            assert [batch async for batch in engine.outputs()] == []

    run(main())


def test_abort_drops_outputs_that_wait() -> None:
    """Those of others stay."""

    async def main() -> None:
        async with fake_engine(Reply([FIRST, Act.HOLD])) as fake:
            engine = HttpEngine(Vllm(), fake.url)
            for name in ("a", "b", "c"):
                await engine.submit(request(name))
            await asyncio.sleep(0.05)
            await engine.abort(["a", "c"])
            batch = await anext(engine.outputs())
            assert [output.request_id for output in batch] == ["b"]
            await engine.close()
            assert fake.aborted == [
                {"request_ids": ["generate-tokens-a", "generate-tokens-c"]},
                {"request_ids": ["generate-tokens-b"]},
            ]

    run(main())


def test_abort_of_one_that_ended_does_nothing() -> None:
    """There is nothing to tell."""

    async def main() -> None:
        async with fake_engine(Reply([recorded("vllm.sse")])) as fake:
            engine = HttpEngine(Vllm(), fake.url)
            await engine.submit(request())
            await until_ended(engine, "a")
            await engine.abort(["a"])
            await engine.close()
            assert fake.aborted == []

    run(main())


def test_cancelled_submit_aborts() -> None:
    """A client that goes away while its request waits leaves nothing behind."""

    async def main() -> None:
        async with fake_engine(Reply(before_head=Act.HOLD)) as fake:
            engine = HttpEngine(Vllm(), fake.url)
            submitted = asyncio.create_task(engine.submit(request()))
            await fake.held.wait()
            submitted.cancel()
            with pytest.raises(asyncio.CancelledError):
                await submitted
            await became(lambda: fake.gone and fake.aborted)
            await engine.close()
            assert (fake.gone, fake.aborted) == (1, [ABORTED["vllm"]])

    run(main())


def test_abort_right_after_submit_began_lets_go() -> None:
    """The task that carries the request has not even begun."""

    async def main() -> None:
        async with fake_engine(Reply([recorded("vllm.sse")])) as fake:
            engine = HttpEngine(Vllm(), fake.url)
            submitted = asyncio.create_task(engine.submit(request()))
            await asyncio.sleep(0)
            await engine.abort(["a"])
            await submitted
            await engine.close()
            assert fake.asked == []

    run(main())


def test_close_aborts_all_and_ends_outputs() -> None:
    """Afterwards nothing can be submitted; a second close does nothing."""

    async def main() -> None:
        async with fake_engine(Reply([Act.HOLD])) as fake:
            engine = HttpEngine(Sglang(), fake.url)
            await asyncio.gather(engine.submit(request("a")), engine.submit(request("b")))
            consumer = asyncio.create_task(until_ended(engine, ["a", "b"]))
            await engine.close()
            await engine.close()
            assert await consumer == {"a": [], "b": []}
            assert sorted(body["rid"] for body in fake.aborted) == ["a", "b"]
            await became(lambda: fake.gone == 2)
            with pytest.raises(EngineError, match="closed"):
                await engine.submit(request())

    run(main())


def test_id_that_runs_cannot_be_submitted_again_until_it_has_ended() -> None:
    """Its outputs could not be told apart."""

    async def main() -> None:
        async with fake_engine(Reply([Act.WAIT, recorded("vllm.sse")])) as fake:
            engine = HttpEngine(Vllm(), fake.url)
            await engine.submit(request())
            with pytest.raises(DuplicateRequest, match="'a' is open"):
                await engine.submit(request())
            fake.go.set()
            await until_ended(engine, "a")
            await engine.submit(request())
            await until_ended(engine, "a")
            await engine.close()
            assert len(fake.asked) == 2

    run(main())


@pytest.mark.parametrize("value", [object(), {"deep": [1j]}])
def test_value_that_is_no_json_is_refused(value: object) -> None:
    """Nothing is sent, and the id is free again."""

    async def main() -> None:
        async with fake_engine(Reply([recorded("vllm.sse")])) as fake:
            engine = HttpEngine(Vllm(), fake.url)
            with pytest.raises(OptionError, match=r"odd=.* has to be JSON"):
                await engine.submit(request(odd=value))
            assert fake.asked == []
            await engine.submit(request())
            await engine.close()

    run(main())


def test_llamacpp_goes_on_from_answer_to_answer() -> None:
    """Its parts of one request are one stream of outputs, over one connection."""

    async def main() -> None:
        replies = [Reply([recorded(f"llamacpp-{part}.json")], media_type=JSON) for part in (1, 2, 3)]
        async with fake_engine(*replies) as fake:
            assert await answered(fake, LlamaCpp()) == ([271, 127, 234, 2], "stop", None, None)
            assert [asked.body["prompt"] for asked in fake.asked] == [[1, 2, 3], [1, 2, 3, 271], [1, 2, 3, 271, 127]]
            assert fake.connections == 1

    run(main())


def test_llamacpp_that_fails_later_ends_with_an_error() -> None:
    """The first answer has been given, so that it cannot be raised any more."""

    async def main() -> None:
        later = Reply([b'{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}'], 503, JSON)
        async with fake_engine(Reply([recorded("llamacpp-1.json")], media_type=JSON), later) as fake:
            assert await answered(fake, LlamaCpp()) == ([271], "error", "Loading model", 503)

    run(main())


def test_llamacpp_hears_an_abort_by_its_connection() -> None:
    """There is no other way, and it is enough."""

    async def main() -> None:
        async with fake_engine(Reply(before_head=Act.HOLD)) as fake:
            engine = HttpEngine(LlamaCpp(), fake.url)
            submitted = asyncio.create_task(engine.submit(request()))
            await fake.held.wait()
            await engine.abort(["a"])
            await submitted
            await became(lambda: fake.gone)
            await engine.close()
            assert (fake.gone, fake.aborted) == (1, [])

    run(main())
