"""What a client refuses, and what it hears of workers that it cannot work with."""

from __future__ import annotations

from typing import Any

import pytest

import detok
from detok import RequestOptions
from detok.frontend.worker import wire
from detok.frontend.worker.dispatch import Dispatch
from detok.frontend.worker.link import LinkState
from detok.frontend.worker.service import Limits
from tests.support.network import PACE, Network

TOKENIZER = detok.load(detok.EMBEDDED)
IDS = TOKENIZER.encode("Hello, wörld! The END of it.", add_special_tokens=False)


def test_second_open_is_refused() -> None:
    """An id that is open cannot be opened."""
    network = Network(TOKENIZER)
    network.client.open("a")
    with pytest.raises(detok.DuplicateRequest, match="'a'"):
        network.client.open("a")
    assert len(network.client) == 1


@pytest.mark.parametrize(
    ("prompt", "options", "error"),
    [
        (["x"], RequestOptions(), detok.TokenTypeError),
        ("text", RequestOptions(), detok.TokenTypeError),
        ([], RequestOptions(stop_token_ids=[1 << 70]), detok.OptionError),
    ],
)
def test_open_that_cannot_be_sent_is_refused(prompt: Any, options: RequestOptions, error: type[Exception]) -> None:
    """What is wrong with a request is said at once, and nothing is kept of it."""
    network = Network(TOKENIZER)
    with pytest.raises(error):
        network.client.open("a", prompt, options)
    assert "a" not in network.client


@pytest.mark.parametrize(
    ("row", "error"),
    [
        (("a", ["x"], None, None, None), detok.TokenTypeError),
        (("a", [1.5], None, None, None), detok.TokenTypeError),
        (("a", [True], None, None, None), detok.TokenTypeError),
        (("a", 5, None, None, None), detok.TokenTypeError),
        (("a", [1], [], None, None), detok.OptionError),
        (("a", [1], ["x"], None, None), detok.OptionError),
        (("a", [1], None, "stop", "\ud800"), UnicodeEncodeError),
        (("a", [1], None, object(), None), detok.OptionError),
        (("a", [1], None, 5, None), detok.OptionError),
        (("a", [1], None, ["stop"], None), detok.OptionError),
        (("a", [1], None, "halt", None), detok.OptionError),
        (("a", [1], None, "stop", b"x"), detok.OptionError),
        (("a", [1], None, "stop", ["x"]), detok.OptionError),
        (("a", [1], None, "stop", True), detok.OptionError),
        (("a", [1], None, "stop", 1 << 70), OverflowError),
        (("nobody", [1], None, None, None), detok.UnknownRequest),
        ((["a"], [1], None, None, None), detok.UnknownRequest),
        (({}, [1], None, None, None), detok.UnknownRequest),
    ],
)
def test_bad_row_fails_alone(row: tuple[Any, ...], error: type[Exception]) -> None:
    """A row that cannot be gets its error in its place, and its request has ended; the other rows are sent."""
    network = Network(TOKENIZER)
    for name in "ab":
        network.client.open(name)
    ticket = network.step([("b", IDS[:1], None, None, None), row, ("b", IDS[1:2], None, None, None)])
    network.settle()
    names = [name for name, _ in ticket.outputs]
    assert names == ["b", row[0], "b"]
    first, bad, last = (output for _, output in ticket.outputs)
    assert isinstance(bad.error, error)
    assert bad.finish_reason == "error"
    assert first.text + last.text == TOKENIZER.decode(IDS[:2])
    assert "b" in network.client
    assert ("a" in network.client) == (row[0] != "a")


@pytest.mark.parametrize(
    "row",
    [("a", [1]), (), ("a", [1], None, None, None, None), None, 5, iter("abcde")],
    ids=["two", "nothing", "six", "None", "number", "iterator"],
)
def test_step_with_what_is_no_row_is_refused(row: Any) -> None:
    """It is said which one it is, nothing of the step is taken, and the next step gives what it would have given."""
    network = Network(TOKENIZER)
    network.client.open("a")
    good = ("a", IDS[:1], None, None, None)
    with pytest.raises(detok.OptionError, match=r"rows\[1\]"):
        network.step([good, row])
    assert network.client.links[0].gathering is None
    ticket = network.step([good])
    network.settle()
    assert [(name, output.text) for name, output in ticket.outputs] == [("a", TOKENIZER.decode(IDS[:1]))]


def test_row_that_the_worker_refuses_fails_alone() -> None:
    """What only the worker can see, such as an id that its tokenizer does not have, comes back as the row's error."""
    network = Network(TOKENIZER)
    network.client.open("a", (), RequestOptions(unknown_ids="error"))
    network.client.open("b")
    ticket = network.step([(name, [10_000_000], None, None, None) for name in "ab"])
    network.settle()
    error = ticket.outputs[0][1].error
    assert isinstance(error, detok.RequestFailed)
    assert (error.kind, "10000000" in error.problem) == ("UnknownTokenId", True)
    assert ticket.outputs[1][1].error is None
    assert ("a" in network.client, "b" in network.client) == (False, True)


@pytest.mark.parametrize("token_id", [1 << 64, -(1 << 64), 1 << 200])
def test_integer_beyond_the_wire_is_an_unknown_id(token_id: int) -> None:
    """No integer breaks a message; one that no message can have is as unknown to the worker as it is here."""
    network = Network(TOKENIZER)
    network.client.open("a")
    ticket = network.step([("a", [token_id], None, None, None), ("a", [IDS[0], token_id, IDS[1]], None, "length", None)])
    network.settle()
    assert "".join(output.text for _, output in ticket.outputs) == TOKENIZER.decode(IDS[:2])


def test_numpy_rows_are_taken() -> None:
    """Arrays of ids and numpy's numbers, as engines give them."""
    numpy = pytest.importorskip("numpy")
    network = Network(TOKENIZER)
    network.client.open("a")
    network.client.open("b", numpy.array(IDS[:2]))
    logprobs = numpy.array([-0.5, -1.0], dtype=numpy.float32)
    ticket = network.step([("a", numpy.array(IDS[:2]), logprobs, None, None), ("b", [numpy.int64(IDS[2])], None, None, None)])
    network.settle()
    assert ticket.outputs[0][1].text == TOKENIZER.decode(IDS[:2])
    assert [entry.logprob for entry in ticket.outputs[0][1].logprobs or ()] == [-0.5, -1.0]
    assert ticket.outputs[1][1].token_ids == [IDS[2]]


def test_empty_step_is_done() -> None:
    """A step without rows needs no worker."""
    network = Network(TOKENIZER)
    assert network.step([]).done
    assert network.step([]).outputs == []


def test_endpoints_are_needed() -> None:
    """A client without a worker is refused."""
    with pytest.raises(detok.OptionError, match="endpoints"):
        Dispatch("client", [], pace=PACE, fingerprint=None, now=0.0)


def test_other_tokenizer_is_refused() -> None:
    """A worker with another tokenizer than the one that is asked for, or than the one before it, is not worked with."""
    network = Network(TOKENIZER)
    network.client.open("a")
    network.step([("a", IDS[:1], None, None, None)])
    network.settle()
    link = network.client.links[0]
    network.kill(0)
    network.step([("a", IDS[1:2], None, None, None)])
    network.deliver_to_worker(0)
    network.deliver_to_client(0)
    assert (link.state, link.welcome is not None) == (LinkState.GREETING, True)
    welcome = wire.Welcome(wire.VERSION, *_greeting(network), 5, 7, "other", 1 << 20, 64, 60.0)
    network.client.receive(0, wire.encode(welcome), 0.0)
    with pytest.raises(detok.WorkerError, match="'other'"):
        network.client.check()
    with pytest.raises(detok.WorkerError):
        network.step([("a", IDS[1:2], None, None, None)])


def _greeting(network: Network) -> tuple[str, int]:
    hello = wire.decode_from_client(network.to_worker[0][0])
    assert isinstance(hello, wire.Hello)
    return hello.client, hello.epoch


@pytest.mark.parametrize(
    "frame",
    [
        b"garbage",
        wire.encode(wire.Refusal(wire.VERSION, "malformed", "slots[0]", "it is bad")),
        wire.encode(wire.Refusal(wire.VERSION, "too_large", "frame", "it is long")),
        wire.encode(wire.Refusal(3, "version", "version", "it is 2, and this side speaks 3")),
    ],
)
def test_refusal_for_good_is_raised(frame: bytes) -> None:
    """What a worker will refuse again is not sent again: it is raised, and no later message changes that."""
    network = Network(TOKENIZER)
    network.client.receive(0, frame, 0.0)
    with pytest.raises(detok.WireError):
        network.client.check()
    network.settle()
    assert network.client.links[0].state is LinkState.FAILED
    assert network.client.links[0].wake_at == float("inf")


def test_reply_of_another_length_is_refused() -> None:
    """A worker that does not answer every row is not trusted with more."""
    network = Network(TOKENIZER)
    network.client.open("a")
    network.settle()
    network.step([("a", IDS[:1], None, None, None)])
    network.deliver_to_worker(0)
    reply = wire.decode_from_worker(network.to_client[0][0])
    assert isinstance(reply, wire.Reply)
    reply.texts = []
    network.client.receive(0, wire.encode(reply), 0.0)
    with pytest.raises(detok.WireError, match="texts"):
        network.client.check()


def test_expired_request_is_told_once() -> None:
    """A request for which nothing came ends with an error behind the rows of the next step, and only that one does."""
    network = Network(TOKENIZER, limits=Limits(max_idle=100.0))
    for name in "ab":
        network.client.open(name)
    network.step([(name, IDS[:1], None, None, None) for name in "ab"])
    network.settle()
    network.wait(60.0)
    network.settle()
    network.step([("b", IDS[1:2], None, None, None)])
    network.settle()
    network.wait(60.0)
    network.settle()
    ticket = network.step([("b", IDS[2:3], None, None, None)])
    network.settle()
    (_, going), (ended_id, ended) = ticket.outputs
    assert (ended_id, ended.finish_reason, str(ended.error)[:11]) == ("a", "error", "nothing cam")
    assert isinstance(ended.error, detok.RequestExpired)
    assert (going.error, "a" in network.client, "b" in network.client) == (None, False, True)


def test_request_that_no_worker_has_expires_too() -> None:
    """A request that was handed back and never goes on is the client's to end."""
    network = Network(TOKENIZER, limits=Limits(max_idle=100.0, max_states=1))
    for name in "ab":
        network.client.open(name)
    network.step([(name, IDS[:1], None, None, None) for name in "ab"])
    network.settle()
    tickets = []
    for _ in range(4):
        network.wait(40.0)
        tickets.append(network.step([("b", IDS[1:2], None, None, None)]))
        network.settle()
    told = [(name, type(output.error)) for ticket in tickets for name, output in ticket.outputs if output.error]
    assert told == [("a", detok.RequestExpired)]


@pytest.mark.parametrize("first", [IDS[:1], []])
def test_request_that_makes_a_message_too_long_fails_alone(first: list[int]) -> None:
    """A prompt that no message can have ends its request with an error that says so; the other rows go on."""
    network = Network(TOKENIZER, limits=Limits(max_frame=2000))
    network.client.open("a", [300] * 1000)
    network.client.open("b")
    ticket = network.step([("a", first, None, None, None), ("b", IDS[:1], None, None, None)])
    network.settle()
    later = network.step([("b", IDS[1:2], None, None, None)])
    network.settle()
    assert [len(ticket.outputs), len(later.outputs)] == [2, 1]
    error = ticket.outputs[0][1].error
    assert isinstance(error, detok.WireError)
    assert (error.code, error.field, "a" in network.client) == ("too_large", "prompt_ids", False)
    assert ticket.outputs[1][1].text + later.outputs[0][1].text == TOKENIZER.decode(IDS[:2])


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize(("ids", "logprobs"), [(1000, None), (200, [-0.123] * 200)])
def test_row_that_makes_a_message_too_long_fails_alone(begun: bool, ids: int, logprobs: list[float] | None) -> None:
    """Its own output has the error, and its request has ended, here and in the worker; the client and the other rows go on."""
    network = Network(TOKENIZER, limits=Limits(max_frame=2000))
    for name in "abc":
        network.client.open(name)
    if begun:
        network.step([(name, [], None, None, None) for name in "abc"])
        network.settle()
    row = ("b", [300] * ids, logprobs, None, None)
    ticket = network.step([("a", IDS[:1], None, None, None), row, ("c", IDS[:1], None, None, None)])
    network.settle()
    later = network.step([(name, IDS[1:2], None, None, None) for name in "abc"])
    network.settle()
    assert [name for name, _ in ticket.outputs] == ["a", "b", "c"]
    (_, first), (_, bad), (_, last) = ticket.outputs
    assert isinstance(bad.error, detok.WireError)
    assert (bad.finish_reason, bad.error.code, bad.error.field) == ("error", "too_large", "token_ids")
    assert "2,000" in str(bad.error)
    assert first.text + later.outputs[0][1].text == last.text + later.outputs[2][1].text == TOKENIZER.decode(IDS[:2])
    assert isinstance(later.outputs[1][1].error, detok.UnknownRequest)
    assert ("b" in network.client, len(network.client), len(network.services[0])) == (False, 2, 2)


def test_heartbeat_keeps_a_silent_client() -> None:
    """A client without anything to say says so, before the worker forgets it."""
    network = Network(TOKENIZER, limits=Limits(max_silence=120.0))
    network.client.open("a")
    network.step([("a", IDS[:1], None, None, None)])
    network.settle()
    for _ in range(20):
        network.wait(PACE.heartbeat)
        network.settle()
    assert (len(network.services[0]), network.client.links[0].sessions) == (1, 1)


def test_window_bounds_what_is_under_way() -> None:
    """However many steps there are, so many are sent; the others wait for replies."""
    network = Network(TOKENIZER)
    network.client.open("a")
    network.deliver_to_worker(0)
    network.deliver_to_client(0)
    tickets = [network.step([("a", [token_id], None, None, None)]) for token_id in IDS[:10]]
    assert len(network.to_worker[0]) == PACE.window
    network.settle()
    assert "".join(ticket.outputs[0][1].text for ticket in tickets) == TOKENIZER.decode(IDS[:10])
    assert network.client.links[0].resent == 0
