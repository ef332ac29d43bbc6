"""Whatever the network and the workers do, each request gives what it gives in this process: nothing lost, nothing twice."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import detok
from detok import Logprob, RequestOptions
from detok.data import sample
from detok.frontend.worker import wire
from detok.frontend.worker.kept import Ticket
from detok.frontend.worker.service import Limits
from tests.support.network import PACE, Network, joined, reference

TOKENIZER = detok.load(detok.EMBEDDED)
IDS = TOKENIZER.encode(sample("mixed"), add_special_tokens=False)
ROWS = 24
# One request with all that it is opened with has room in it, and eight together have none.
LEAST_FRAME = 4500
EXAMPLES = int(os.environ.get("DETOK_FUZZ", 40))

KINDS: Sequence[RequestOptions] = (
    RequestOptions(),
    RequestOptions(stop=["the", "日本", "é"]),
    RequestOptions(stream_interval=3),
    RequestOptions(output="cumulative", segments=True),
    RequestOptions(output="final", channels="think"),
    RequestOptions(max_tokens=17, include_stop_str_in_output=True, stop="t"),
)

ACTIONS = (
    "step",
    "to worker",
    "to client",
    "again to worker",
    "again to client",
    "lose to worker",
    "lose to client",
    "kill",
    "wait",
)
EVENTS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 3), st.integers(0, 5)), min_size=20, max_size=220)


class Story:
    """Requests of all kinds, and what happens to them."""

    def __init__(self, network: Network, requests: int) -> None:
        self.network = network
        self.ids = [IDS[place : place + ROWS] for place in range(0, 31 * requests, 31)]
        self.rows: list[list[tuple[Any, ...]]] = [[] for _ in self.ids]
        self.tickets: list[Ticket] = []
        for index, ids in enumerate(self.ids):
            network.client.open(index, ids[:index], self.options(index))

    @staticmethod
    def options(index: int) -> RequestOptions:
        """Of a request."""
        return KINDS[index % len(KINDS)]

    def step(self, skip: int = 0) -> None:
        """A step of the engine: a row for most requests."""
        rows = []
        for index, (ids, taken) in enumerate(zip(self.ids, self.rows, strict=True)):
            done = sum(len(row[0]) for row in taken)
            if index % 4 == skip or index not in self.network.client or done == len(ids):
                continue
            step = ids[done : done + 1 + index % 3]
            logprobs = [Logprob(-0.5, 1, [(ids[0], -0.5), (7, -1.5)])] * len(step) if index % 5 == 4 else None
            row = (step, logprobs, "length" if done + len(step) == len(ids) else None, None)
            taken.append(row)
            rows.append((index, *row))
        self.tickets.append(self.network.step(rows))

    def happen(self, event: tuple[str, int, int]) -> None:
        """One thing happens."""
        action, worker, place = event
        network, worker = self.network, worker % len(self.network.services)
        match action:
            case "step":
                self.step(skip=place)
            case "to worker" | "again to worker":
                network.deliver_to_worker(worker, place // 2, repeat=action.startswith("again"))
            case "to client" | "again to client":
                network.deliver_to_client(worker, place // 2, repeat=action.startswith("again"))
            case "lose to worker" | "lose to client":
                network.drop(worker, place, from_worker=action == "lose to client")
            case "kill":
                network.kill(worker)
            case _:
                network.wait(place / 2)

    def end(self) -> None:
        """The rest goes well."""
        while any(
            sum(len(row[0]) for row in rows) < ROWS and index in self.network.client for index, rows in enumerate(self.rows)
        ):
            self.step(skip=-1)
            self.network.settle()
        self.network.settle()

    def assert_right(self) -> None:
        """Every output of every request is that of a request in this process."""
        outputs = joined(self.tickets)
        for index, rows in enumerate(self.rows):
            expected = reference(TOKENIZER, self.options(index), self.ids[index][:index], rows)
            assert outputs.get(index, []) == expected, (index, self.options(index))


@given(EVENTS, st.integers(1, 3), st.sampled_from([1, 3, 65_536]), st.sampled_from([LEAST_FRAME, 1 << 20]))
@settings(max_examples=2 * EXAMPLES)
def test_outputs_whatever_happens(events: list[tuple[str, int, int]], workers: int, max_states: int, max_frame: int) -> None:
    """Messages are lost, repeated and reordered, workers die and hand requests back: every output is right, and comes once."""
    story = Story(Network(TOKENIZER, workers=workers, limits=Limits(max_states=max_states, max_frame=max_frame)), 8)
    for event in events:
        story.happen(event)
    story.end()
    story.assert_right()
    assert len(story.network.client) == 0
    assert all(len(service) == 0 for service in story.network.services)


@pytest.mark.parametrize("at", range(24))
def test_outputs_kill_at_every_step(at: int) -> None:
    """A worker that dies behind any step, with steps under way or not, is not noticed in any output."""
    story = Story(Network(TOKENIZER), 6)
    for number in range(ROWS):
        story.step(skip=-1)
        if number == at:
            story.network.deliver_to_worker(0, at % 2)
            story.network.kill(0)
        if number % 3 == 0:
            story.network.settle()
    story.end()
    story.assert_right()
    assert story.network.client.links[0].sessions == 2


def test_openings_that_are_too_long_together_are_split() -> None:
    """After a death, requests that no single message can have come in several; none of them ends or repeats anything."""
    network = Network(TOKENIZER, limits=Limits(max_frame=2000))
    prompts = {name: IDS[place : place + 300] for place, name in enumerate("abcdefgh")}
    tickets = []
    for name, prompt in prompts.items():
        network.client.open(name, prompt)
        tickets.append(network.step([(name, IDS[:1], None, None, None)]))
        network.settle()
    link = network.client.links[0]
    for stream in link.streams.values():
        assert len(wire.encode(stream.opening())) < 2000 < 8 * len(wire.encode(stream.opening()))
    network.kill(0)
    for number in range(1, 6):
        reason = "length" if number == 5 else None
        tickets.append(network.step([(name, [IDS[number]], None, reason, None) for name in prompts]))
        assert not tickets[-1].done
    network.settle()
    assert [len(ticket.outputs) for ticket in tickets[8:]] == [8] * 5
    outputs = joined(tickets)
    for name, prompt in prompts.items():
        rows = [([token_id], None, "length" if place == 5 else None, None) for place, token_id in enumerate(IDS[:6])]
        assert outputs[name] == reference(TOKENIZER, RequestOptions(), prompt, rows)
    assert (link.sessions, network.services[0].metrics.opened.value) == (2, 8)
    assert 5 < network.services[0].metrics.steps.value < 20


def test_closes_that_are_too_long_together_are_split() -> None:
    """However many requests are forgotten at once, the worker hears of it."""
    network = Network(TOKENIZER, limits=Limits(max_frame=1000))
    for number in range(1000):
        network.client.open(number)
    for number in range(0, 1000, 50):
        network.step([(one, IDS[:1], None, None, None) for one in range(number, number + 50)])
    network.settle()
    assert len(network.services[0]) == 1000
    for number in range(999):
        network.client.abort(number)
    ticket = network.step([(999, IDS[1:2], None, "length", None)])
    network.settle()
    assert (len(network.services[0]), ticket.outputs[0][1].finish_reason) == (0, "length")


def test_kept_rows_stay_bounded() -> None:
    """Snapshots let the client forget rows: it keeps no more than `keep` for each request, and those under way."""
    network = Network(TOKENIZER)
    for request_id in range(8):
        network.client.open(request_id)
    most = 0
    for number in range(200):
        network.step([(request_id, [IDS[number]], None, None, None) for request_id in range(8)])
        network.settle()
        most = max(most, *(len(stream.kept) for stream in network.client.links[0].streams.values()))
    assert most <= PACE.keep


def test_replay_takes_only_rows_since_the_snapshot() -> None:
    """After a death, a request that has taken 200 rows is fed the few again that came since its last snapshot."""
    network = Network(TOKENIZER)
    network.client.open("a")
    for number in range(200):
        network.step([("a", [IDS[number]], None, None, None)])
        network.settle()
    network.kill(0)
    network.step([("a", [IDS[200]], None, "length", None)])
    network.settle()
    assert joined(network.done)["a"][-1].tokens_kept == 201
    assert network.services[0].metrics.replayed.value < PACE.keep


def test_long_prompt_is_sent_once() -> None:
    """A prompt that is longer than what is kept is forgotten with the first row, for a snapshot."""
    network = Network(TOKENIZER)
    network.client.open("a", IDS[:100])
    network.step([("a", [IDS[100]], None, None, None)])
    network.settle()
    (stream,) = network.client.links[0].streams.values()
    assert (stream.prompt_ids, stream.kept, stream.snapshot is None) == ([], [], False)
    network.kill(0)
    tickets = [network.step([("a", [token_id], None, None, None)]) for token_id in IDS[101:140]]
    network.settle()
    expected = reference(TOKENIZER, RequestOptions(), IDS[:100], [([token_id], None, None, None) for token_id in IDS[100:140]])
    assert joined(tickets)["a"] == expected[1:]


def test_evicted_requests_come_back() -> None:
    """With room for two requests, eight go on as if there was room for all."""
    story = Story(Network(TOKENIZER, limits=Limits(max_states=2)), 8)
    while any(index in story.network.client for index in range(8)):
        story.step(skip=-1)
        story.network.settle()
        assert len(story.network.services[0]) <= 2
    story.assert_right()
    assert story.network.services[0].metrics.evicted.value > 20


def test_evicted_with_rows_under_way() -> None:
    """A row that was sent before the client knew that its request was handed back finds it there still."""
    network = Network(TOKENIZER, limits=Limits(max_states=1))
    for request_id in "ab":
        network.client.open(request_id)
    tickets = [network.step([(name, [token_id], None, None, None) for name in "ab"]) for token_id in IDS[:4]]
    network.settle()
    outputs = joined(tickets)
    expected = reference(TOKENIZER, RequestOptions(), [], [([token_id], None, None, None) for token_id in IDS[:4]])
    assert outputs == {"a": expected, "b": expected}
    assert network.services[0].metrics.opened.value == 2


def test_drained_worker_hands_everything_back() -> None:
    """A worker that is about to end gives all requests back with its last reply, so its successor replays nothing."""
    story = Story(Network(TOKENIZER), 6)
    for _ in range(4):
        story.step(skip=-1)
        story.network.settle()
    old = story.network.services[0]
    old.draining = True
    story.step(skip=-1)
    story.network.deliver_to_worker(0)
    story.network.deliver_to_client(0)
    assert len(old) == 0
    story.network.deliver_to_worker(0)  # the client's next Hello: refused
    story.network.deliver_to_client(0)
    story.network.kill(0)
    story.end()
    story.assert_right()
    assert story.network.services[0].metrics.replayed.value == 0


def test_abort_forgets_a_request() -> None:
    """An aborted request is dropped by the worker with the next step, and its id can be used again."""
    network = Network(TOKENIZER)
    network.client.open("a")
    network.step([("a", IDS[:3], None, None, None)])
    network.settle()
    network.client.abort("a")
    assert "a" not in network.client
    network.client.open("a", (), RequestOptions(stop="ZZZ"))
    network.step([])
    network.wait(PACE.heartbeat + 1)
    network.settle()
    assert len(network.services[0]) == 0
    ticket = network.step([("a", IDS[:3], None, "abort", None)])
    network.settle()
    assert ticket.outputs[0][1].finish_reason == "abort"
    with pytest.raises(detok.UnknownRequest):
        network.client.abort("a")


def test_rows_behind_a_stop_are_ignored() -> None:
    """Rows that were under way when a stop was found give empty outputs; later ones are of an unknown request."""
    network = Network(TOKENIZER)
    network.client.open("a", (), RequestOptions(stop="END"))
    tickets = [network.step([("a", [token_id], None, None, None)]) for token_id in TOKENIZER.encode("The END of it")]
    network.settle()
    outputs = joined(tickets)["a"]
    assert "".join(output.text for output in outputs) == "The "
    assert [output.finish_reason for output in outputs if output.finish_reason] == ["stop"]
    late = network.step([("a", [5], None, None, None)])
    assert isinstance(late.outputs[0][1].error, detok.UnknownRequest)


def test_requests_are_spread_over_workers() -> None:
    """Each new request goes to the worker with the fewest, and all its rows go there."""
    network = Network(TOKENIZER, workers=3)
    for request_id in range(9):
        network.client.open(request_id)
    for token_id in IDS[:5]:
        network.step([(request_id, [token_id], None, None, None) for request_id in range(9)])
        network.settle()
    assert [len(service) for service in network.services] == [3, 3, 3]
    assert [service.metrics.rows.value for service in network.services] == [15, 15, 15]
