"""A client without its sockets: requests pinned to workers, a step cut into a part for each, outputs in the order of the rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Sized
from contextlib import suppress
from typing import Any, SupportsIndex

from ...core.request.ends import as_end
from ...core.request.logprobs import as_logprobs
from ...core.request.options import RequestOptions
from ...core.request.output import RequestOutput
from ...errors import DuplicateRequest, OptionError, UnknownRequest
from ...ids import as_ids
from .kept import Pace, Stream, Ticket
from .link import Link
from .payload import logprobs_to_wire
from .wire import Extra, encode, encode_plain

__all__ = ["Dispatch"]

# Integers in msgpack have 64 bits. What is beyond is no token of any tokenizer, and neither is the last that fits.
LEAST_ID, LARGEST_ID = -(1 << 63), (1 << 63) - 1

_DEFAULTS = RequestOptions().as_dict()


class Dispatch:
    """
    Args:
        client: A name that no other client has.
        endpoints: One for each worker; only named here.
        pace: When to do what.
        fingerprint: Of the tokenizer that the workers have to have; None for any, but all the same.
        now: Seconds on a clock that never goes back.

    Raises:
        OptionError: There is no endpoint.
    """

    def __init__(self, client: str, endpoints: Sequence[str], *, pace: Pace, fingerprint: str | None, now: float) -> None:
        if not endpoints:
            raise OptionError(option="endpoints", value=endpoints, accepted="there is at least one worker")
        self.links = [Link(client, endpoint, pace, fingerprint, now) for endpoint in endpoints]
        self._streams: dict[Hashable, Stream] = {}
        self._slots = 0
        self._options: dict[RequestOptions, bytes] = {}

    def open(self, request_id: Hashable, prompt_ids: Iterable[SupportsIndex] = (), options: RequestOptions | None = None) -> None:
        """
        Begin a request, with the worker that has the fewest. Nothing is sent before its first row.

        Args:
            request_id: What its rows and outputs are known by.
            prompt_ids, options: As ``tokenizer.request`` takes them.

        Raises:
            DuplicateRequest: There is one of this id.
            OptionError: An option cannot be sent to another process.
            TokenTypeError: An id of the prompt is no integer.
        """
        if request_id in self._streams:
            raise DuplicateRequest(request_id)
        prompt = list(map(_bounded, as_ids(prompt_ids, where="prompt_ids")))
        plain = self._plain(RequestOptions() if options is None else options)
        link = min(self.links, key=lambda one: len(one.streams))
        stream = Stream(request_id, self._slots, prompt, plain, link)
        self._slots += 1
        self._streams[request_id] = link.streams[stream.slot] = stream

    def step(self, rows: Iterable[tuple[Any, ...]], now: float) -> Ticket:
        """
        Take a step; the ticket will have its outputs.

        A row that cannot be fails alone: its output has the `error`, and its request has ended.

        Args:
            rows: Each a `Row`, or a tuple of its five fields.

        Raises:
            OptionError: One of the rows has not five fields; nothing is taken of the step.
            WireError, WorkerError: As `check`.
        """
        self.check()
        rows = _of_five(rows)
        ticket = Ticket(len(rows))
        streams = self._streams
        for position, (request_id, token_ids, logprobs, finish_reason, stop_reason) in enumerate(rows):
            try:
                stream = streams.get(request_id)
            except Exception:
                stream = None  # what has no hash is the id of no request
            if stream is None or stream.ended:
                ticket.outputs[position] = request_id, RequestOutput.failed(UnknownRequest(request_id))
                continue
            tokens: Any = None
            extra = None
            if logprobs is None and finish_reason is None and type(token_ids) is list and len(token_ids) == 1:
                tokens = token_ids[0]
            if type(tokens) is not int or not LEAST_ID <= tokens <= LARGEST_ID:
                try:
                    tokens, extra = _checked(token_ids, logprobs, finish_reason, stop_reason)
                except Exception as error:
                    ticket.outputs[position] = request_id, RequestOutput.failed(error)
                    self.abort(request_id)
                    continue
            part = stream.link.gathering
            if part is None:
                part = stream.link.gather(ticket)
            if extra is None:
                stream.kept.append(tokens)
            else:
                stream.kept.append((tokens, extra))
                part.extras[len(part.tokens)] = extra
            if len(stream.kept) >= stream.limit and not stream.asked:
                stream.asked = True
                part.wants.append(stream.slot)
            stream.unsent += 1
            part.streams.append(stream)
            part.positions.append(position)
            part.tokens.append(tokens)
        self._submit(ticket, now)
        return ticket

    def _submit(self, ticket: Ticket, now: float) -> None:
        gathered = [link for link in self.links if link.gathering is not None]
        ticket.missing = len(gathered)
        for link in gathered:
            link.submit(now)
        if not gathered:
            self._complete(ticket)

    def receive(self, index: int, frame: bytes, now: float) -> list[Ticket]:
        """Take a message of a worker, and return the tickets that are complete now."""
        link = self.links[index]
        complete = []
        for part in link.receive(frame, now):
            if part.ticket is not None:
                part.ticket.missing -= 1
                if part.ticket.done:
                    complete.append(part.ticket)
        for request_id in link.take_finished():
            self._gone(request_id)
        for ticket in complete:
            self._complete(ticket)
        return complete

    def abort(self, request_id: Hashable) -> None:
        """
        Forget a request: nobody wants its output any more. A row with ``finish_reason="abort"`` gives what is held first.

        Raises:
            UnknownRequest: None of this id is open.
        """
        stream = self._streams.pop(request_id, None)
        if stream is None:
            raise UnknownRequest(request_id)
        if not stream.ended:
            stream.link.forget(stream)

    def check(self) -> None:
        """
        Raise what makes it useless to go on.

        Raises:
            WireError: A worker speaks another version, or refused a message that it will refuse again.
            WorkerError: A worker has another tokenizer.
        """
        for link in self.links:
            if link.failure is not None:
                raise link.failure

    def tick(self, now: float) -> None:
        """Do what is due by the clock."""
        for link in self.links:
            link.tick(now)

    @property
    def wake_at(self) -> float:
        """When `tick` has something to do."""
        return min(link.wake_at for link in self.links)

    def __contains__(self, request_id: Hashable) -> bool:
        return request_id in self._streams

    def __len__(self) -> int:
        return len(self._streams)

    def _complete(self, ticket: Ticket) -> None:
        for link in self.links:
            for request_id, output in link.take_ended():
                self._gone(request_id)
                ticket.outputs.append((request_id, output))

    def _gone(self, request_id: Hashable) -> None:
        stream = self._streams.get(request_id)
        if stream is not None and stream.ended:
            del self._streams[request_id]

    def _plain(self, options: RequestOptions) -> bytes:
        """Return options as the wire has them, encoded once."""
        plain = self._options.get(options)
        if plain is None:
            asked = {name: value for name, value in options.as_dict().items() if value != _DEFAULTS[name]}
            try:
                plain = encode_plain(asked)
            except (TypeError, ValueError, OverflowError) as error:
                raise OptionError(option="options", value=asked, accepted=f"they go to another process: {error}") from None
            if len(self._options) >= MAX_OPTIONS:
                self._options.clear()
            self._options[options] = plain
        return plain


MAX_OPTIONS = 1024


def _of_five(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows of a step, or raise which of them is none."""
    rows = rows if isinstance(rows, list) else list(rows)
    with suppress(TypeError):
        if set(map(len, rows)) <= {5}:
            return rows
    position = next(place for place, row in enumerate(rows) if not isinstance(row, Sized) or len(row) != 5)
    accepted = "it has a request id, token ids, logprobs, a finish reason and a stop reason"
    raise OptionError(option=f"rows[{position}]", value=rows[position], accepted=accepted)


def _checked(token_ids: Any, logprobs: Any, finish_reason: Any, stop_reason: Any) -> tuple[list[int], Extra | None]:
    """Return a row as the wire has it, or raise what is wrong with it."""
    ids = list(map(_bounded, as_ids(token_ids)))
    if logprobs is None and finish_reason is None and stop_reason is None:
        return ids, None
    finish_reason, stop_reason = as_end(finish_reason, stop_reason)
    plain = None if logprobs is None else logprobs_to_wire(as_logprobs(logprobs, len(ids)))
    extra = Extra(plain, finish_reason, stop_reason)
    encode(extra)
    return ids, extra


def _bounded(token_id: int) -> int:
    return min(max(token_id, LEAST_ID), LARGEST_ID)
