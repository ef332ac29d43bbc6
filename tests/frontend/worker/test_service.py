"""What a worker says to every kind of message, and that it goes on behind each."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import detok
from detok.core.request.output import RequestOutput
from detok.core.request.request import RequestDecoder
from detok.frontend.worker import wire
from detok.frontend.worker.service import Limits, Service

TOKENIZER = detok.load(detok.EMBEDDED)
IDS = TOKENIZER.encode("Hello, wörld! The END of it.", add_special_tokens=False)
PLAIN = wire.Raw(wire.encode_plain({}))
LONG_WAY = {0: wire.Extra([-1.0])}
"""A row with logprobs is none that is remembered: it goes to the request itself."""


class Client:
    """Speaks to a worker by hand."""

    def __init__(self, limits: Limits | None = None, name: str = "me", service: Service | None = None) -> None:
        self.service = Service(TOKENIZER, limits, pid=7) if service is None else service
        self.name, self.epoch, self.token, self.seq = name, 1, 0, 0
        self.now = 0.0
        welcome = self.say(wire.Hello(wire.VERSION, name, 1, 0))
        assert isinstance(welcome, wire.Welcome)
        self.token = welcome.token

    def say(self, message: Any) -> Any:
        """The answer to a message; None if there is none."""
        frame = message if isinstance(message, bytes) else wire.encode(message)
        reply = self.service.receive(frame, self.now)
        return None if reply is None else wire.decode_from_worker(reply)

    def step(self, rows: dict[int, Any], *, opens: list[wire.Open] | None = None, **fields: Any) -> Any:
        """The answer to a step."""
        seq = fields.pop("seq", self.seq)
        message = wire.Step(wire.VERSION, self.name, self.epoch, self.token, seq, seq - 1, list(rows), list(rows.values()))
        message.opens = opens or []
        for field, value in fields.items():
            setattr(message, field, value)
        self.seq = max(self.seq, seq + 1)
        return self.say(message)


def opening(slot: int, **options: Any) -> wire.Open:
    """A new request."""
    return wire.Open(slot, [], wire.Raw(wire.encode_plain(options)))


def errors(reply: Any) -> dict[int, str]:
    """The kinds of error of a reply's rows."""
    return {index: output.error.kind for index, output in reply.outputs.items() if output.error is not None}


def test_step_gives_the_texts_of_its_rows() -> None:
    """A row with one id gives its text; a row with more gives them all; others stand beside it only if there is more to say."""
    client = Client()
    reply = client.step({0: IDS[0], 1: IDS}, opens=[opening(0), opening(1, stop=["END"])])
    assert reply.texts == ["Hello", "Hello, wörld! The "] or "".join(reply.texts).startswith(TOKENIZER.decode(IDS[:1]))
    assert reply.texts[1] == "Hello, wörld! The "
    assert list(reply.outputs) == [1]
    assert (reply.outputs[1].finish_reason, reply.outputs[1].stop_reason) == ("stop", "END")


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"garbage",
        b"\xc1",
        b"\x00" * 100,
        b"\x90",
        b"\x91\x01",
        b"\x92\x63\x02",
        b"\x92\x01\x02",
        b"\x92\x90\x02",
        b"\x92\x80\x02",
        b"\x91" * 5000,
        b"\x93\x02\x01\xa1\xff",
    ],
)
def test_garbage_is_refused(frame: bytes) -> None:
    """A frame that is no message gets an answer that names what is wrong, and the worker goes on."""
    client = Client()
    refusal = client.say(frame)
    assert isinstance(refusal, wire.Refusal)
    assert (refusal.code, bool(refusal.field), bool(refusal.message)) == ("malformed", True, True)
    assert client.step({0: IDS[0]}, opens=[opening(0)]).texts


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"slots": ["a"]}, "slots[0]"),
        ({"slots": [-1]}, "slots[0]"),
        ({"slots": [1 << 32]}, "slots[0]"),
        ({"tokens": [1.5]}, "tokens[0]"),
        ({"tokens": [[1, None]]}, "tokens[0][1]"),
        ({"tokens": []}, "tokens"),
        ({"tokens": [1, 2]}, "tokens"),
        ({"extras": {1: wire.Extra(None, "stop")}}, "extras"),
        ({"extras": {-1: wire.Extra(None, "stop")}}, "extras"),
        ({"extras": {0: [7]}}, "extras[...][0]"),
        ({"opens": [[0, "x", {}]]}, "opens[0][1]"),
        ({"closes": 3}, "closes"),
        ({"wants": [None]}, "wants[0]"),
    ],
)
def test_malformed_field_is_named(change: dict[str, Any], field: str) -> None:
    """A message with one wrong field is refused by the name or place of it, before anything of it is done."""
    client = Client()
    client.step({0: IDS[0]}, opens=[opening(0)])
    refusal = client.step({0: IDS[1]}, seq=1, **change)
    assert (refusal.code, refusal.field) == ("malformed", field)
    assert client.step({0: IDS[1]}, seq=1).texts == [TOKENIZER.decode(IDS[:2]).removeprefix(TOKENIZER.decode(IDS[:1]))]


@pytest.mark.parametrize("message", [[1, 1, "me", 1, 0], [2, 99, "other fields"], [3, 0], [9, 3, 1, 1]])
def test_other_version_is_refused(message: list[Any]) -> None:
    """A message of another version is refused for its version, whatever shape it has there."""
    client = Client()
    refusal = client.say(msgspec.msgpack.encode(message))
    assert (refusal.code, refusal.field) == ("version", "version")
    assert str(message[1]) in refusal.message
    assert str(wire.VERSION) in refusal.message


def test_long_frame_is_refused() -> None:
    """A frame over the limit is refused unread; one at the limit is taken."""
    client = Client(Limits(max_frame=1000))
    step = wire.Step(wire.VERSION, "me", 1, client.token, 0, -1, [0], [IDS[0]], opens=[opening(0)])
    step.opens[0].prompt_ids = [1] * (1000 - len(wire.encode(step)))
    over = wire.encode(step)
    while len(over) > 1000:
        step.opens[0].prompt_ids.pop()
        over = wire.encode(step)
    at = over
    step.opens[0].prompt_ids.append(1)
    refusal = client.say(wire.encode(step))
    assert (refusal.code, refusal.field) == ("too_large", "frame")
    assert (len(at), client.say(at).texts) == (1000, [TOKENIZER.decode(IDS[:1])])


def test_unknown_request_fails_alone() -> None:
    """A row for a request that nobody opened gets an error; its neighbours their text."""
    client = Client()
    reply = client.step({5: IDS[0], 0: IDS[0]}, opens=[opening(0)])
    assert errors(reply) == {0: "UnknownRequest"}
    assert "5" in reply.outputs[0].error.message
    assert reply.texts[1]


def test_second_open_leaves_the_first() -> None:
    """A second open of a slot is told as a failure; the request that is open goes on."""
    client = Client()
    client.step({0: IDS[0]}, opens=[opening(0)])
    reply = client.step({0: IDS[1]}, opens=[opening(0, stop="x")])
    assert [(failure.slot, failure.kind) for failure in reply.failures] == [(0, "DuplicateRequest")]
    assert TOKENIZER.decode(IDS[:1]) + reply.texts[0] == TOKENIZER.decode(IDS[:2])


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (opening(0, stop=[""]), "OptionError"),
        (opening(0, stopp="x"), "OptionError"),
        (opening(0, channels="nonsense"), "OptionError"),
        (wire.Open(0, [], wire.Raw(b"\x01")), "TypeError"),
        (wire.Open(0, [], PLAIN, b"no snapshot"), None),
        (wire.Open(0, [], PLAIN, wire.encode_plain({"detok": 1})), "SnapshotError"),
        (wire.Open(0, [], PLAIN, None, [1, 2], {0: wire.Extra(None, "stop")}), None),
        (wire.Open(0, [], PLAIN, None, [[1], [2]], {1: wire.Extra(None, "never")}), "OptionError"),
    ],
)
def test_open_that_cannot_be_fails_alone(bad: wire.Open, kind: str | None) -> None:
    """What is wrong with a request is the error of its first row, and nothing of it is kept."""
    client = Client()
    reply = client.step({0: IDS[0], 1: IDS[0]}, opens=[bad, opening(1)])
    found = errors(reply)
    assert list(found) == [0]
    assert kind is None or found[0] == kind
    assert reply.texts[1]
    assert len(client.service) == 1


def test_poisoned_request_ends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a request raises ends it with an error output that says so; the others and the worker go on."""
    feed = RequestDecoder.feed

    def poisoned(self: RequestDecoder, token_ids: Any, *rest: Any) -> RequestOutput:
        if list(token_ids) == [IDS[3]]:
            raise RuntimeError("a bug of ours\udcff")
        return feed(self, token_ids, *rest)

    monkeypatch.setattr(RequestDecoder, "feed", poisoned)
    client = Client()
    reply = client.step({0: IDS[3], 1: IDS[0]}, opens=[opening(0), opening(1)], extras=LONG_WAY)
    assert errors(reply) == {0: "RuntimeError"}
    assert reply.outputs[0].finish_reason == "error"
    assert len(client.service) == 1
    assert client.step({1: IDS[1]}).outputs == {}


def test_text_that_is_no_utf8_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lone surrogate cannot be sent; its request ends with an error, and the others have their text."""
    feed = RequestDecoder.feed
    surrogate = lambda self, ids, *rest: RequestOutput("\ud800", list(ids)) if ids == [9] else feed(self, ids, *rest)  # noqa: E731
    monkeypatch.setattr(RequestDecoder, "feed", surrogate)
    client = Client()
    reply = client.step({0: 9, 1: IDS[0]}, opens=[opening(0), opening(1)], extras=LONG_WAY)
    assert errors(reply) == {0: "UnicodeEncodeError"}
    assert reply.texts == ["", TOKENIZER.decode(IDS[:1])]
    assert len(client.service) == 1


def test_repeated_step_gets_the_reply_that_it_got() -> None:
    """A step that comes again does nothing, and is answered as before until that was acknowledged."""
    client = Client()
    first = client.step({0: IDS[0]}, opens=[opening(0)])
    assert client.step({0: IDS[0]}, opens=[opening(0)], seq=0) == first
    second = client.step({0: IDS[1]}, seq=1)
    assert client.step({0: IDS[0]}, seq=0) is None
    assert client.step({0: IDS[1]}, seq=1) == second
    assert client.service.metrics.repeated.value == 3


def test_early_step_is_not_taken() -> None:
    """A step whose predecessor did not come is refused, and taken once that is there."""
    client = Client()
    refusal = client.step({0: IDS[1]}, seq=1)
    assert (refusal.code, refusal.field, refusal.expected) == ("gap", "seq", 0)
    client.step({0: IDS[0]}, opens=[opening(0)], seq=0)
    assert client.step({0: IDS[1]}, seq=1).texts


def test_too_many_unacknowledged_steps_are_refused() -> None:
    """A client that never acknowledges is refused when the window is full; what is kept for it is bounded."""
    client = Client()
    for seq in range(wire.MAX_WINDOW):
        assert isinstance(client.step({}, seq=seq, ack=-1), wire.Reply)
    assert client.step({}, seq=wire.MAX_WINDOW, ack=-1).code == "window"
    assert isinstance(client.step({}, seq=wire.MAX_WINDOW), wire.Reply)


def test_unknown_session_is_refused() -> None:
    """Steps of a session that was never begun here, or of another worker, are refused as such."""
    client = Client()
    for change in ({"client": "other"}, {"epoch": 2}, {"token": 12345}):
        refusal = client.step({}, seq=0, **change)
        assert (refusal.code, refusal.field) == ("unknown_session", "epoch")


def test_session_that_is_over_is_ignored() -> None:
    """Messages of an older session of the client are dropped without a word, a late Hello too."""
    client = Client()
    client.step({0: IDS[0]}, opens=[opening(0)])
    assert isinstance(client.say(wire.Hello(wire.VERSION, "me", 2, 0)), wire.Welcome)
    assert len(client.service) == 0
    assert client.step({0: IDS[1]}, seq=1) is None
    assert client.say(wire.Hello(wire.VERSION, "me", 1, 0)) is None


def test_repeated_hello_changes_nothing() -> None:
    """A Hello that comes again gets the same Welcome, and the session goes on."""
    client = Client()
    client.step({0: IDS[0]}, opens=[opening(0)])
    assert client.say(wire.Hello(wire.VERSION, "me", 1, 0)).token == client.token
    assert client.step({0: IDS[1]}).texts
    assert len(client.service) == 1


def test_least_recently_used_is_handed_back() -> None:
    """Past `max_states` the request that was not used for the longest time goes back to its client, whoever made it too many."""
    one = Client(Limits(max_states=2), "one")
    other = Client(name="other", service=one.service)
    one.step({0: IDS[0], 1: IDS[0]}, opens=[opening(0), opening(1)])
    one.step({0: IDS[1]})
    other.step({0: IDS[0]}, opens=[opening(0)])
    assert len(one.service) == 2
    reply = one.step({})
    assert [(saved.slot, saved.tokens) for saved in reply.evicted] == [(1, 1)]
    back = wire.Open(1, [], PLAIN, reply.evicted[0].data)
    text = one.step({1: IDS[1]}, opens=[back]).texts[0]
    assert TOKENIZER.decode(IDS[:1]) + text == TOKENIZER.decode(IDS[:2])


def test_idle_request_expires_for_its_owner_only() -> None:
    """A request without a row for too long ends with an error that its client hears with the next reply; no other client does."""
    one = Client(Limits(max_idle=60.0), "one")
    other = Client(name="other", service=one.service)
    one.step({0: IDS[0], 1: IDS[0]}, opens=[opening(0), opening(1)])
    other.step({0: IDS[0]}, opens=[opening(0)])
    one.now = other.now = 40.0
    one.step({1: IDS[1]})
    other.step({0: IDS[1]})
    one.now = other.now = 61.0
    assert other.step({}).failures == []
    assert [(failure.slot, failure.kind) for failure in one.step({}).failures] == [(0, "RequestExpired")]
    assert one.step({}).failures == []
    assert one.service.metrics.expired.value == 1


def test_silent_client_is_forgotten() -> None:
    """What is kept for a client that says nothing is let go of after a while; one that goes on stays."""
    gone = Client(Limits(max_silence=60.0), "gone")
    stays = Client(name="stays", service=gone.service)
    gone.step({0: IDS[0]}, opens=[opening(0)])
    stays.step({0: IDS[0]}, opens=[opening(0)])
    stays.now = 59.0
    stays.step({})
    stays.now = 61.0
    stays.step({})
    assert len(stays.service) == 1
    assert gone.step({}).code == "unknown_session"


def test_bye_lets_go_at_once() -> None:
    """A client that says goodbye leaves nothing behind; a late goodbye of an older session means nothing."""
    client = Client()
    client.step({0: IDS[0]}, opens=[opening(0)])
    assert client.say(wire.Bye(wire.VERSION, "me", 0)) is None
    assert len(client.service) == 1
    assert client.say(wire.Bye(wire.VERSION, "me", 1)) is None
    assert len(client.service) == 0


def test_draining_worker_begins_no_session() -> None:
    """A worker that is about to end answers steps, hands all of the client's back, and takes no new session."""
    client = Client()
    client.step({0: IDS[0]}, opens=[opening(0)])
    client.service.draining = True
    reply = client.step({})
    assert (reply.draining, [saved.slot for saved in reply.evicted], len(client.service)) == (True, [0], 0)
    assert client.say(wire.Hello(wire.VERSION, "me", 2, 0)).code == "draining"


def test_status_needs_no_session() -> None:
    """Anyone may ask for the metrics."""
    client = Client()
    client.step({0: IDS[0]}, opens=[opening(0)])
    status = client.say(wire.Ask(wire.VERSION))
    assert status.pid == 7
    assert "detok_worker_rows_total 1\n" in status.text
    assert "detok_worker_open_requests 1\n" in status.text


@pytest.mark.parametrize("field", ["max_states", "max_idle", "max_silence", "max_frame"])
def test_limits_are_positive(field: str) -> None:
    """A limit of nothing is refused by its name."""
    with pytest.raises(detok.OptionError, match=f"{field}=0"):
        Limits(**{field: 0})
