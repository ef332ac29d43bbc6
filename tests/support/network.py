"""Clients and workers without sockets: a network that loses, repeats and reorders what it is told to, and workers that die."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import detok
from detok.core.request.output import RequestOutput
from detok.frontend.worker.dispatch import Dispatch
from detok.frontend.worker.kept import Pace, Ticket
from detok.frontend.worker.service import Limits, Service

__all__ = ["PACE", "Network", "joined", "reference"]

PACE = Pace(keep=6, retry=1.0, heartbeat=50.0, window=4)


class Network:
    """
    One client and some workers. Time goes on when it is told to.

    Args:
        tokenizer: Of the workers.
        workers: How many.
        limits: Of each.
        pace: Of the client.
    """

    def __init__(self, tokenizer: detok.Tokenizer, *, workers: int = 1, limits: Limits | None = None, pace: Pace = PACE) -> None:
        self.now = 0.0
        self.deaths = 0
        self.tokenizer, self.limits = tokenizer, limits
        self.services = [Service(tokenizer, limits) for _ in range(workers)]
        self.client = Dispatch("client", [f"worker {index}" for index in range(workers)], pace=pace, fingerprint=None, now=0.0)
        self.to_worker: list[list[bytes]] = [[] for _ in range(workers)]
        self.to_client: list[list[bytes]] = [[] for _ in range(workers)]
        self.done: list[Ticket] = []
        """In the order in which they were."""
        self._collect()

    def step(self, rows: Iterable[tuple[Any, ...]]) -> Ticket:
        """The client takes a step."""
        ticket = self.client.step(list(rows), self.now)
        if ticket.done:
            self.done.append(ticket)
        self._collect()
        return ticket

    def deliver_to_worker(self, index: int, place: int = 0, *, repeat: bool = False) -> None:
        """A message arrives at a worker, and stays on its way too if it is to arrive again."""
        if self.to_worker[index]:
            place %= len(self.to_worker[index])
            frame = self.to_worker[index][place] if repeat else self.to_worker[index].pop(place)
            reply = self.services[index].receive(frame, self.now)
            if reply is not None:
                self.to_client[index].append(reply)

    def deliver_to_client(self, index: int, place: int = 0, *, repeat: bool = False) -> None:
        """The same in the other direction."""
        if self.to_client[index]:
            place %= len(self.to_client[index])
            frame = self.to_client[index][place] if repeat else self.to_client[index].pop(place)
            self.done += self.client.receive(index, frame, self.now)
            self._collect()

    def drop(self, index: int, place: int, *, from_worker: bool) -> None:
        """A message is lost."""
        queue = (self.to_client if from_worker else self.to_worker)[index]
        if queue:
            del queue[place % len(queue)]

    def kill(self, index: int) -> None:
        """A worker dies; another one is there at once. What was on its way arrives, or not."""
        self.deaths += 1
        self.services[index] = Service(self.tokenizer, self.limits, first_token=self.deaths << 20)

    def wait(self, seconds: float) -> None:
        """Time goes by."""
        self.now += seconds
        self.client.tick(self.now)
        for service in self.services:
            service.tick(self.now)
        self._collect()

    def settle(self, most: int = 2_000) -> None:
        """From here on nothing is lost: go on until everything is answered."""
        for _ in range(most):
            for index in range(len(self.services)):
                while self.to_worker[index] or self.to_client[index]:
                    self.deliver_to_worker(index)
                    self.deliver_to_client(index)
            if not any(link.waits for link in self.client.links):
                return
            self.wait(PACE.retry)
        raise AssertionError("the client still waits")

    def _collect(self) -> None:
        for link, queue in zip(self.client.links, self.to_worker, strict=True):
            queue.extend(link.outbox)
            link.outbox.clear()


def reference(
    tokenizer: detok.Tokenizer, options: detok.RequestOptions, prompt: Sequence[int], rows: Iterable[tuple[Any, ...]]
) -> list[RequestOutput]:
    """What a request in this process gives for rows of ids, finish reason, logprobs and stop reason; nothing behind its end."""
    request = tokenizer.request(prompt, options=options)
    outputs = []
    for ids, logprobs, finish_reason, stop_reason in rows:
        outputs.append(RequestOutput() if request.finished else request.feed(ids, logprobs, finish_reason, stop_reason))
    return outputs


def joined(tickets: Iterable[Ticket]) -> dict[Hashable, list[RequestOutput]]:
    """The outputs of each request, in order."""
    outputs: dict[Hashable, list[RequestOutput]] = {}
    for ticket in tickets:
        for request_id, output in ticket.outputs:
            outputs.setdefault(request_id, []).append(output)
    return outputs
