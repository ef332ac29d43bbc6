"""Clients and a worker over real sockets."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Hashable, Iterator
from contextlib import ExitStack

import pytest
import zmq

import detok
from detok.data import sample
from detok.frontend.worker import wire
from detok.frontend.worker.async_client import AsyncDetokenizerClient
from detok.frontend.worker.client import DetokenizerClient
from detok.frontend.worker.kept import Pace
from detok.frontend.worker.service import Limits, Service
from tests.support.workers import endpoint, threaded

TOKENIZER = detok.load(detok.EMBEDDED)
IDS = TOKENIZER.encode(sample("mixed"), add_special_tokens=False)[:200]
TEXT = TOKENIZER.decode(IDS)
NOBODY = "ipc:///tmp/detok-nobody-is-here"


@pytest.fixture
def place() -> Iterator[str]:
    """A place to listen."""
    with endpoint() as found:
        yield found


def test_sync_client_gets_the_text(place: str) -> None:
    """Step by step, one request beside another with a stop; the ids and ends are those of the request."""
    with threaded(TOKENIZER, place), DetokenizerClient(place) as client:
        client.open("a")
        client.open("b", stop=["zzz"], max_tokens=50)
        texts: dict[Hashable, str] = {"a": "", "b": ""}
        for token_id in IDS:
            rows = [(name, [token_id], None, None, None) for name in texts if name in client]
            for name, output in client.step(rows):
                texts[name] += output.text
        ((_, last),) = client.step([("a", [], None, "stop", None)])
        assert texts["a"] + last.text == TEXT
        assert texts["b"] == TOKENIZER.decode(IDS[:50])
        assert len(client) == 0


def test_steps_under_way_come_in_order(place: str) -> None:
    """Many steps that are sent before the first is waited for, in whatever order they are waited for."""
    with threaded(TOKENIZER, place), DetokenizerClient(place, pace=Pace(window=4)) as client:
        client.open("a")
        tickets = [client.send([("a", [token_id], None, None, None)]) for token_id in IDS]
        tickets.append(client.send([("a", [], None, "stop", None)]))
        client.wait(tickets[-1])
        assert "".join(client.wait(ticket)[0][1].text for ticket in tickets) == TEXT


def test_client_that_comes_first_waits_for_the_worker(place: str) -> None:
    """A step that is sent before there is a worker is answered once there is one."""
    with DetokenizerClient(place) as client:
        client.open("a")
        ticket = client.send([("a", IDS, None, "stop", None)])
        with threaded(TOKENIZER, place):
            assert client.wait(ticket)[0][1].text == TEXT


def test_worker_that_is_replaced_is_not_noticed(place: str) -> None:
    """A worker ends, another begins in its place: the same client goes on, in the middle of a character too."""
    with DetokenizerClient(place, pace=Pace(retry=0.02)) as client:
        client.open("a")
        text = ""
        for part in range(0, len(IDS), 50):
            with threaded(TOKENIZER, place):
                for token_id in IDS[part : part + 50]:
                    text += client.step([("a", [token_id], None, None, None)])[0][1].text
        with threaded(TOKENIZER, place):
            text += client.step([("a", [], None, "stop", None)])[0][1].text
        assert text == TEXT
        assert client.sessions >= 5


def test_no_worker_is_an_error_and_loses_nothing(place: str) -> None:
    """A worker that is not there raises after a while; the ticket can be waited for again."""
    with DetokenizerClient(place, timeout=0.05) as client:
        client.open("a")
        ticket = client.send([("a", IDS, None, "stop", None)])
        with pytest.raises(detok.WorkerUnavailable, match="detok worker"):
            client.wait(ticket)
    with DetokenizerClient(place, timeout=0.3) as client:
        client.open("a")
        ticket = client.send([("a", IDS, None, "stop", None)])
        with pytest.raises(detok.WorkerUnavailable):
            client.wait(ticket)
        with threaded(TOKENIZER, place):
            while not ticket.done:
                try:
                    client.wait(ticket)
                except detok.WorkerUnavailable:  # a slow machine
                    continue
        assert ticket.outputs[0][1].text == TEXT


def test_other_tokenizer_is_refused(place: str) -> None:
    """A client that asks for a tokenizer does not work with another."""
    with threaded(TOKENIZER, place), DetokenizerClient(place, fingerprint="other") as client:
        client.open("a")
        with pytest.raises(detok.WorkerError, match="'other'"):
            client.step([("a", IDS, None, None, None)])


def test_client_that_leaves_says_goodbye(place: str) -> None:
    """Nothing is kept for a client that was closed; closing twice is once."""
    with threaded(TOKENIZER, place) as service:
        client = DetokenizerClient(place)
        client.open("a")
        client.step([("a", IDS[:3], None, None, None)])
        assert len(service) == 1
        client.close()
        client.close()
        with DetokenizerClient(place) as other:
            other.open("b")
            other.step([("b", IDS[:3], None, None, None)])
            # Messages of two clients have no order among each other; the worker takes the goodbye with one of the next steps.
            while len(service) > 1:
                other.step([("b", IDS[3:4], None, None, None)])


def test_poll_keeps_the_session(place: str) -> None:
    """A client that polls says that it lives: what it has there is not forgotten for its silence."""
    with (
        threaded(TOKENIZER, place, Limits(max_silence=0.2)) as service,
        DetokenizerClient(place, pace=Pace(heartbeat=0.01)) as client,
    ):
        client.open("a")
        client.step([("a", IDS[:3], None, None, None)])
        steps = service.metrics.steps.value
        while service.metrics.steps.value < steps + 20:
            client.poll()
        assert (len(service), client.sessions) == (1, 1)


def test_several_workers_share_the_requests(place: str) -> None:
    """Requests are pinned to workers; a step is cut into their parts, and its outputs are in the order of the rows."""
    places = [f"{place}.{index}" for index in range(3)]
    with ExitStack() as stack:
        services = [stack.enter_context(threaded(TOKENIZER, one)) for one in places]
        client = stack.enter_context(DetokenizerClient(places))
        for request_id in range(9):
            client.open(request_id)
        outputs = client.step([(request_id, IDS[: request_id + 1], None, None, None) for request_id in range(9)])
        assert [name for name, _ in outputs] == list(range(9))
        assert [output.token_ids for _, output in outputs] == [IDS[: number + 1] for number in range(9)]
        assert [len(service) for service in services] == [3, 3, 3]


def test_async_client_gets_the_text(place: str) -> None:
    """Many tasks with a request each, all at once, while the event loop stays free for others."""

    async def one(client: AsyncDetokenizerClient, name: int) -> str:
        client.open(name)
        text = ""
        for token_id in IDS:
            text += (await client.step([(name, [token_id], None, None, None)]))[0][1].text
        return text + (await client.step([(name, [], None, "stop", None)]))[0][1].text

    async def main() -> list[str]:
        async with AsyncDetokenizerClient(place) as client:
            texts = await asyncio.gather(*(one(client, name) for name in range(8)))
            assert len(client) == 0
            return texts

    with threaded(TOKENIZER, place):
        assert asyncio.run(main()) == [TEXT] * 8


def test_async_consumer_that_vanishes_loses_nothing_of_others(place: str) -> None:
    """A task that is cancelled while it waits takes nothing from the others, and its request can still be ended."""

    async def main() -> str:
        async with AsyncDetokenizerClient(place) as client:
            client.open("gone")
            client.open("stays")
            waiting = asyncio.create_task(client.step([("gone", IDS[:5], None, None, None)]))
            await asyncio.sleep(0)
            waiting.cancel()
            text = (await client.step([("stays", IDS, None, "stop", None)]))[0][1].text
            client.abort("gone")
            assert len(client) == 0
            return text

    with threaded(TOKENIZER, place):
        assert asyncio.run(main()) == TEXT


def test_async_no_worker_is_an_error_and_loses_nothing(place: str) -> None:
    """As for the other client: an error after a while, and the ticket can be waited for again."""

    async def main() -> str:
        async with AsyncDetokenizerClient(place, timeout=0.1) as client:
            client.open("a")
            ticket = client.send([("a", IDS, None, "stop", None)])
            with pytest.raises(detok.WorkerUnavailable):
                await client.wait(ticket)
            with threaded(TOKENIZER, place):
                while not ticket.done:
                    try:
                        await client.wait(ticket)
                    except detok.WorkerUnavailable:
                        continue
            return ticket.outputs[0][1].text

    assert asyncio.run(main()) == TEXT


def test_async_client_closes_while_somebody_waits(place: str) -> None:
    """Whoever waits when the client is closed is cancelled, not left waiting."""

    async def main() -> None:
        client = AsyncDetokenizerClient(NOBODY)
        async with client:
            client.open("a")
            waiting = asyncio.create_task(client.step([("a", IDS, None, None, None)]))
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await client.close()

    asyncio.run(main())


@pytest.fixture
def stranger(place: str) -> Iterator[tuple[Service, zmq.Socket[bytes]]]:
    """Somebody who speaks to a worker without knowing how."""
    context = zmq.Context()
    with threaded(TOKENIZER, place, Limits(max_frame=4096)) as service:
        dealer = context.socket(zmq.DEALER)
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.connect(place)
        try:
            yield service, dealer
        finally:
            dealer.close()
            context.term()


def test_garbage_gets_an_answer(stranger: tuple[Service, zmq.Socket[bytes]]) -> None:
    """Garbage, another version and what is too long are answered on the socket that they came from, each by its field."""
    _, dealer = stranger
    for frame, code, field in (
        (b"?", "malformed", "frame"),
        (b"\x93\x03\x07\x01", "version", "version"),
        (bytes(5000), "too_large", "frame"),
    ):
        dealer.send(frame)
        refusal = wire.decode_from_worker(dealer.recv())
        assert isinstance(refusal, wire.Refusal)
        assert (refusal.code, refusal.field) == (code, field)
    dealer.send(wire.encode(wire.Ask(wire.VERSION)))
    assert isinstance(wire.decode_from_worker(dealer.recv()), wire.Status)


def test_envelope_comes_back(stranger: tuple[Service, zmq.Socket[bytes]]) -> None:
    """What a REQ socket puts before its message stands before the answer."""
    _, dealer = stranger
    dealer.send_multipart([b"", wire.encode(wire.Ask(wire.VERSION))])
    empty, answer = dealer.recv_multipart()
    assert (empty, type(wire.decode_from_worker(answer))) == (b"", wire.Status)


def test_bytes_that_are_no_zmq_do_not_matter(place: str) -> None:
    """Somebody who speaks HTTP to the socket is cut off; others are served."""
    with threaded(TOKENIZER, place), socket.socket(socket.AF_UNIX) as http:
        http.connect(place.removeprefix("ipc://"))
        http.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
        with DetokenizerClient(place) as client:
            client.open("a")
            assert client.step([("a", IDS, None, "stop", None)])[0][1].text == TEXT


def test_client_that_does_not_read_does_not_hold_others_up(place: str) -> None:
    """A client that sends and never reads gets no more than its window; the worker serves the others meanwhile."""
    with threaded(TOKENIZER, place) as service, DetokenizerClient(place) as slow, DetokenizerClient(place) as other:
        slow.open("a")
        slow.step([("a", IDS[:1], None, None, None)])
        tickets = [slow._dispatch.step([("a", [token_id], None, None, None)], time.monotonic()) for token_id in IDS[1:]]
        slow._send()
        other.open("b")
        assert other.step([("b", IDS, None, "stop", None)])[0][1].text == TEXT
        assert service.metrics.rows.value <= 2 + Pace().window
        slow.wait(tickets[-1])
        assert "".join(ticket.outputs[0][1].text for ticket in tickets)
