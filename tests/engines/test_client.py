"""What a connection to an engine may do: TLS, silence in every direction, what is no HTTP, exceptions in a reader, bursts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme

from detok.engines.dialect import Call
from detok.engines.http import HttpEngine
from detok.engines.openings import OPENINGS_A_TURN
from detok.engines.sglang import Sglang
from detok.engines.vllm import Vllm
from detok.errors import EngineError, OptionError
from tests.engines.support import Act, FakeEngine, Reply, became, fake_engine, ids_of, recorded, request, until_ended
from tests.engines.test_http import FIRST, JSON, answered, refused, run


@contextlib.asynccontextmanager
async def secured(authority: trustme.CA, *replies: Reply, host: str = "127.0.0.1") -> AsyncIterator[FakeEngine]:
    """A fake engine that speaks TLS, with a certificate of this authority."""
    fake = FakeEngine([*replies])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    server = await asyncio.start_server(fake.serve, "127.0.0.1", 0, ssl=context)
    fake.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield fake
    finally:
        server.close()
        await fake.stop()


@contextlib.asynccontextmanager
async def raw(serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[FakeEngine]:
    """A server that does what it likes with a connection, which is closed with the context."""
    writers = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await serve(reader, writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield FakeEngine([], url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """One that is trusted, as operators make their own trusted."""
    made = trustme.CA()
    made.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return made


def test_stream_over_tls(authority: trustme.CA) -> None:
    """Cut into bytes."""

    async def main() -> None:
        async with secured(authority, Reply([bytes([one]) for one in recorded("vllm.sse")])) as fake:
            assert await answered(fake, Vllm()) == ([271, 9906, 11, 127, 234], "length", None, None)

    run(main())


def test_abort_over_tls_is_heard(authority: trustme.CA) -> None:
    """The connection is closed, and the post comes."""

    async def main() -> None:
        async with secured(authority, Reply([FIRST, Act.HOLD])) as fake:
            engine = HttpEngine(Sglang(), fake.url)
            await engine.submit(request())
            await engine.abort(["a"])
            await became(lambda: fake.gone)
            await engine.close()
            assert (fake.gone, fake.aborted) == (1, [{"rid": "a"}])

    run(main())


@pytest.mark.parametrize("host", ["127.0.0.1", "elsewhere.example"])
def test_certificate_that_is_not_trusted_is_said(host: str, request: pytest.FixtureRequest) -> None:
    """One of an unknown authority, and one for another host. Nothing is sent."""
    trusted = host != "127.0.0.1"
    maker = request.getfixturevalue("authority") if trusted else trustme.CA()

    async def main() -> None:
        async with secured(maker, Reply([recorded("vllm.sse")]), host=host) as fake:
            error = await refused(fake, Vllm())
            assert error.message == "the engine cannot be reached: its certificate is not trusted, or it does not speak TLS"
            assert fake.asked == []

    run(main())


def test_tls_to_an_engine_without_it_is_said() -> None:
    """As a wrong scheme in a URL has it."""

    async def main() -> None:
        async with fake_engine(Reply([recorded("vllm.sse")])) as fake:
            fake.url = fake.url.replace("http:", "https:")
            error = await refused(fake, Vllm(), connect_timeout=0.1)
            assert error.message.startswith("the engine cannot be reached")

    run(main())


def test_engine_that_does_not_read_is_silent() -> None:
    """Also if the prompt is longer than what the system buffers."""

    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            reader._transport.pause_reading()  # type: ignore[attr-defined]

        async with raw(serve) as fake:
            engine = HttpEngine(Vllm(), fake.url, silence_timeout=0.2, connect_timeout=0.2)
            with pytest.raises(EngineError, match=r"sent nothing for 0\.2 s"):
                await engine.submit(request(prompt=[100_000] * 3_000_000))
            await engine.close()

    run(main())


def test_long_prompt_arrives_whole() -> None:
    """Of some MB, over a connection that is used again."""

    async def main() -> None:
        async with fake_engine(Reply([recorded("vllm.sse")])) as fake:
            engine = HttpEngine(Vllm(), fake.url)
            for name in ("a", "b"):
                await engine.submit(request(name, prompt=range(400_000)))
                await until_ended(engine, name)
            await engine.close()
            assert [asked.body["token_ids"] for asked in fake.asked] == [[*range(400_000)]] * 2
            assert fake.connections == 1

    run(main())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"220 mail.example ESMTP\r\n\r\n", "the engine's answer is no HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "the engine's answer is no HTTP"),
        (b"", "the connection to the engine was lost"),
        (b"HTTP/1.1 200 OK\r\nContent-", "the connection to the engine was lost"),
    ],
)
def test_answer_that_is_no_http_is_raised_at_submit(answer: bytes, message: str) -> None:
    """Nothing waits for ever."""

    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"}")
            writer.write(answer)
            writer.close()

        async with raw(serve) as fake:
            assert (await refused(fake, Vllm())).message == message

    run(main())


def test_chunk_that_is_none_ends_the_request_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ids that came before stay."""
    monkeypatch.setattr("detok.engines.http.ABORT_TIMEOUT_S", 0.1)

    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"}}")
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            writer.write(head + b"%x\r\n%b\r\n" % (len(FIRST), FIRST))
            await asyncio.sleep(0.05)
            writer.write(b"no length\r\n\r\n")

        async with raw(serve) as fake:
            ids, reason, error, _ = await answered(fake, Vllm())
            assert (ids, reason) == ([271], "error")
            assert error == "the connection to the engine was lost"

    run(main())


def test_error_body_that_drips_is_waited_for_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The status is told without it."""
    monkeypatch.setattr("detok.engines.http.ERROR_BODY_S", 0.05)

    async def main() -> None:
        async with fake_engine(Reply([b'{"error":', Act.HOLD], 500, JSON)) as fake:
            error = await refused(fake, Vllm())
            assert (error.status, error.message) == (500, "the engine answered 500 Said with application/json")

    run(main())


@pytest.mark.parametrize("deep", [b'{"error":' + b"[" * 100_000, b'{"choices":' + b"[" * 100_000])
def test_event_that_is_too_deep_ends_the_request(deep: bytes) -> None:
    """What a parser refuses by recursion is refused as all else that the engine does not send."""

    async def main() -> None:
        async with fake_engine(Reply([FIRST, b"data: ", deep, b"\n\n", Act.HOLD])) as fake:
            ids, reason, error, _ = await answered(fake, Vllm())
            assert (ids, reason) == ([271], "error")
            assert error is not None
            assert error.startswith("the engine sent what vllm does not send")

    run(main())


@pytest.mark.parametrize("body", [b'{"error":' + b"[" * 100_000, b"\xff\xfe", b"null", b"[]", b"3"])
def test_error_body_that_is_nothing_readable_is_still_a_refusal(body: bytes) -> None:
    """With the engine's status."""

    async def main() -> None:
        async with fake_engine(Reply([body], 500, JSON)) as fake:
            error = await refused(fake, Vllm())
            assert (error.status, error.message) == (500, "the engine answered 500 Said with application/json")

    run(main())


class Failing(Vllm):
    """A dialect with a bug: it fails at an event, or before it has sent anything."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where

    def begin(self, request: Any) -> Any:
        """Begin a request whose ``where`` fails."""
        call: Call = super().begin(request)
        plain = call.read
        count = 0

        def fails(data: bytes) -> Any:
            nonlocal count
            count += 1
            if count > 1:
                raise ZeroDivisionError("no such token")
            return plain(data)

        def no_bodies() -> Any:
            raise ZeroDivisionError("no such token")

        setattr(call, self._where, fails if self._where == "read" else no_bodies)
        return call


def test_exception_in_a_reader_ends_its_request_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """With its traceback; the engine is told to stop; clients read nothing of it; others go on."""

    async def main() -> None:
        async with fake_engine(Reply([recorded("vllm.sse"), Act.HOLD])) as fake:
            assert await answered(fake, Failing("read")) == (
                [271],
                "error",
                "reading the engine's answer failed; detok's log says why",
                None,
            )
            assert fake.aborted == [{"request_ids": ["generate-tokens-a"]}]

    with caplog.at_level(logging.ERROR, logger="detok.engines"):
        run(main())
    assert [record.exc_info is not None for record in caplog.records] == [True]
    assert "ZeroDivisionError: no such token" in caplog.text


def test_exception_before_the_request_is_sent_is_raised_at_submit(caplog: pytest.LogCaptureFixture) -> None:
    """And logged, too."""

    async def main() -> None:
        async with fake_engine(Reply([recorded("vllm.sse")])) as fake:
            error = await refused(fake, Failing("bodies"))
            assert error.message == "reading the engine's answer failed; detok's log says why"
            assert fake.asked == []

    with caplog.at_level(logging.ERROR, logger="detok.engines"):
        run(main())
    assert "ZeroDivisionError" in caplog.text


def test_burst_is_opened_over_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No turn of the loop begins more requests than a turn may, on new connections and on those that were kept."""
    turn = 0
    begun: Counter[int] = Counter()
    plain = aiohttp.ClientSession.post

    def post(self: aiohttp.ClientSession, *args: Any, **options: Any) -> Any:
        begun[turn] += 1
        return plain(self, *args, **options)

    monkeypatch.setattr(aiohttp.ClientSession, "post", post)

    async def count_turns() -> None:
        nonlocal turn
        while True:
            await asyncio.sleep(0)
            turn += 1

    async def main() -> None:
        async with fake_engine(Reply([recorded("vllm.sse")])) as fake:
            engine = HttpEngine(Vllm(), fake.url)
            counting = asyncio.create_task(count_turns())
            for part in ("new", "kept"):
                begun.clear()
                names = [f"{part}{number}" for number in range(100)]
                await asyncio.gather(*(engine.submit(request(name)) for name in names))
                outputs = await until_ended(engine, names)
                assert {tuple(ids_of(one)) for one in outputs.values()} == {(271, 9906, 11, 127, 234)}
                assert (begun.total(), max(begun.values())) == (100, OPENINGS_A_TURN)
            counting.cancel()
            await engine.close()

    run(main())


def test_abort_of_one_that_waits_for_its_turn_sends_nothing() -> None:
    """Nor does it take the place of another."""

    async def main() -> None:
        async with fake_engine(Reply([recorded("vllm.sse")])) as fake:
            engine = HttpEngine(Vllm(), fake.url)
            names = [f"r{number}" for number in range(5 * OPENINGS_A_TURN)]
            submits = [asyncio.create_task(engine.submit(request(name))) for name in names]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await engine.abort(names[-OPENINGS_A_TURN:])
            await asyncio.gather(*submits)
            await until_ended(engine, names[:-OPENINGS_A_TURN])
            await engine.close()
            assert sorted(asked.body["request_id"] for asked in fake.asked) == sorted(names[:-OPENINGS_A_TURN])

    run(main())


def test_user_of_the_url_is_basic_authentication_and_excludes_a_key() -> None:
    """Two kinds in one header cannot be; no password is shown."""

    async def main() -> None:
        async with fake_engine(Reply([recorded("vllm.sse")])) as fake:
            fake.url = fake.url.replace("//", "//me:secret@")
            await answered(fake, Vllm())
            assert fake.asked[0].headers["authorization"] == "Basic bWU6c2VjcmV0"

    run(main())
    with pytest.raises(OptionError, match="names no user") as caught:
        HttpEngine(Vllm(), "http://me:secret@host", api_key="k")
    assert "secret" not in str(caught.value)


def test_cookies_are_not_kept() -> None:
    """A balancer's would bind every stream to one server."""

    async def main() -> None:
        async with fake_engine(
            Reply([recorded("vllm.sse")], media_type="text/event-stream\r\nSet-Cookie: at=one; Path=/")
        ) as fake:
            engine = HttpEngine(Vllm(), fake.url)
            for name in ("a", "b"):
                await engine.submit(request(name))
                await until_ended(engine, name)
            await engine.close()
            assert ["cookie" in asked.headers for asked in fake.asked] == [False, False]

    run(main())


def test_slow_consumer_holds_the_engine_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody takes stays with the engine, and not in this process."""
    monkeypatch.setattr("detok.engines.http.ABORT_TIMEOUT_S", 0.1)

    async def main() -> None:
        sent = 0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            await reader.readuntil(b"}}")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            chunk = b"%x\r\n%b\r\n" % (len(FIRST), FIRST)
            with contextlib.suppress(ConnectionError):
                for _ in range(200_000):
                    writer.write(chunk)
                    sent += 1
                    await writer.drain()

        async with raw(serve) as fake:
            engine = HttpEngine(Vllm(), fake.url)
            await engine.submit(request())
            # It stands still when every buffer on the way is full.
            before = -1
            while before != sent:
                before = sent
                await asyncio.sleep(0.1)
            assert sent < 100_000
            taken = await anext(engine.outputs())
            assert 8192 <= len(taken) < 16_000
            await became(lambda: sent > before)
            await engine.close()

    run(main())
