"""
A client's side of the protocol with one worker, without a socket or a clock.

For each open request the client keeps its rows since the last snapshot, and whether the worker has it. A row for a request that
the worker does not have takes along what it needs: prompt and options, or the snapshot, and the rows that came since. So opening
a request, going on after the worker took it out of its table, and going on after the worker was killed are one and the same.

Replies are taken in the order of the steps, each once. So the rows that were answered are exactly those whose outputs were
delivered; a worker that gets them again is told not to say them again, and the others are sent as if for the first time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from enum import Enum
from itertools import islice

from ...core.request.output import RequestOutput
from ...errors import RequestExpired, RequestFailed, WireError, WorkerError
from . import wire
from .kept import Outputs, Pace, Part, Stream, Ticket
from .payload import output_from_wire

__all__ = ["Link", "LinkState"]


class LinkState(Enum):
    """A link is in exactly one of these states."""

    GREETING = "greeting"
    """A Hello is on its way; steps wait."""
    OPEN = "open"
    FAILED = "failed"
    """The worker refused something, and will refuse it again."""


class Link:
    """
    Args:
        client: The name of the client.
        endpoint: Of the worker, for errors.
        pace: When to do what.
        fingerprint: Of the tokenizer that the worker has to have; None for any, but always the same.
        now: Seconds on a clock that never goes back.
    """

    def __init__(self, client: str, endpoint: str, pace: Pace, fingerprint: str | None, now: float) -> None:
        self.pace, self.endpoint = pace, endpoint
        self.outbox: deque[bytes] = deque()
        """Frames to be sent. They may get lost."""
        self.streams: dict[int, Stream] = {}
        """Open requests by slot."""
        self.gathering: Part | None = None
        """The part of the step that is just being put together."""
        self.failure: WireError | WorkerError | None = None
        self.welcome: wire.Welcome | None = None
        self._limits = wire.Welcome(wire.VERSION, client, 0, 0, 0, "", wire.DEFAULT_MAX_FRAME, wire.MAX_WINDOW, float("inf"))
        self.sessions = 0
        """How many were begun: one, and one more for each time that the worker was lost."""
        self.resent = 0
        """Messages that were sent again."""
        self._client = client
        self._fingerprint = fingerprint
        self._next = 0
        self._parts: dict[int, Part] = {}
        """Not answered, in order."""
        self._closes: list[int] = []
        self._absent: deque[tuple[float, Stream]] = deque()
        self._ended: Outputs = []
        self._finished: list[Hashable] = []
        self._begin(now)

    @property
    def waits(self) -> bool:
        """Whether something is not answered."""
        return bool(self._parts)

    def gather(self, ticket: Ticket | None) -> Part:
        """Return the part of the step that is just being put together."""
        if self.gathering is None:
            self.gathering = Part(ticket)
        return self.gathering

    def submit(self, now: float) -> None:
        """The part is complete."""
        part, self.gathering = self.gathering, None
        assert part is not None
        part.closes, self._closes = self._closes, []
        if not self._parts:
            self._heard = now
        part.seq = self._next
        self._parts[part.seq] = part
        self._next += 1
        self._flush(now)

    def forget(self, stream: Stream) -> None:
        """A request is not wanted any more."""
        stream.ended = True
        del self.streams[stream.slot]
        self._closes.append(stream.slot)

    def receive(self, frame: bytes, now: float) -> list[Part]:
        """Take a message from the worker, and return the parts whose rows are answered by it: their tickets have the outputs."""
        if self.state is LinkState.FAILED:
            return []
        try:
            message = wire.decode_from_worker(frame)
        except WireError as error:
            self._fail(error)
            return []
        match message:
            case wire.Welcome():
                self._welcome(message, now)
            case wire.Reply():
                return self._reply(message, now)
            case wire.Refusal():
                self._refusal(message, now)
            case wire.Status():
                pass
        return []

    def tick(self, now: float) -> None:
        """Send again what was not answered, and let the worker know that the client lives."""
        while self._absent and now - self._absent[0][0] > self._limits.max_idle:
            since, stream = self._absent.popleft()
            if stream.absent_since == since and not stream.ended:
                self._end(stream, RequestExpired(idle=self._limits.max_idle))
        if now < self.wake_at:
            return
        self._retry_at = now + self.pace.retry
        if self.outbox:
            return  # what is not even sent need not be sent again
        if self.state is LinkState.GREETING:
            self._say_hello()
        elif self._parts:
            frames = [part.frame for part in self._parts.values() if part.frame is not None and part.reply is None]
            self.resent += len(frames)
            self.outbox.extend(frames)
        elif self.state is LinkState.OPEN:
            self.gather(None)
            self.submit(now)

    @property
    def wake_at(self) -> float:
        """When `tick` has something to do."""
        if self.state is LinkState.FAILED:
            return float("inf")
        return self._retry_at if self._parts or self.state is LinkState.GREETING else self._heard + self.pace.heartbeat

    def is_silent(self, now: float, seconds: float) -> bool:
        """Say, once for each time, whether so many seconds nothing came while something was waited for."""
        if not self._parts or now - self._heard <= seconds:
            return False
        self._heard = now
        return True

    def take_ended(self) -> Outputs:
        """Return the last outputs of requests that ended without a row, each once."""
        ended, self._ended = self._ended, []
        return ended

    def take_finished(self) -> list[Hashable]:
        """Return the requests that ended with a row, each once."""
        finished, self._finished = self._finished, []
        return finished

    def bye(self) -> None:
        """End the session."""
        self.outbox.append(wire.encode(wire.Bye(wire.VERSION, self._client, self.sessions)))

    def _begin(self, now: float) -> None:
        """Begin a session: the worker has nothing, and gets with each row what it needs."""
        self.state = LinkState.GREETING
        self.sessions += 1
        self.outbox.clear()
        for stream in self.streams.values():
            stream.unsent = 0
            self._lose(stream, now)
        for part in self._parts.values():
            part.frame = part.reply = None
            for stream in part.streams:
                stream.unsent += 1
        self._heard, self._retry_at = now, now + self.pace.retry
        self._say_hello()

    def _say_hello(self) -> None:
        seq = next(iter(self._parts), self._next)
        self.outbox.append(wire.encode(wire.Hello(wire.VERSION, self._client, self.sessions, seq)))

    def _welcome(self, welcome: wire.Welcome, now: float) -> None:
        if self.state is not LinkState.GREETING or (welcome.client, welcome.epoch) != (self._client, self.sessions):
            return
        if self._fingerprint not in (None, welcome.fingerprint):
            problem = f"its tokenizer is {welcome.fingerprint!r}, and {self._fingerprint!r} is expected"
            self._fail(WorkerError(self.endpoint, problem=problem))
            return
        self._fingerprint = welcome.fingerprint
        self.welcome = self._limits = welcome
        self.state = LinkState.OPEN
        self._heard = now
        self._flush(now)

    def _refusal(self, refusal: wire.Refusal, now: float) -> None:
        ours = (refusal.client, refusal.epoch) == (self._client, self.sessions)
        match refusal.code:
            case "unknown_session" if ours and self.state is LinkState.OPEN:
                self._begin(now)
            case "unknown_session" | "draining" | "gap" | "window":
                pass  # of a session that is over, or what is sent again mends it
            case code:
                self._fail(WireError(code, field=refusal.field, problem=refusal.message))

    def _fail(self, error: WireError | WorkerError) -> None:
        self.state = LinkState.FAILED
        self.failure = error

    def _flush(self, now: float) -> None:
        """Send the parts that were not sent in this session."""
        if self.state is not LinkState.OPEN:
            return
        window = min(self.pace.window, self._limits.max_window)
        while (part := next((one for one in islice(self._parts.values(), window) if one.frame is None), None)) is not None:
            part.frame = self._encoded(part)
            self.outbox.append(part.frame)
            self._retry_at = now + self.pace.retry

    def _encoded(self, part: Part) -> bytes:
        """Return the frame of a part, and of no more of it than a frame can have: the rest is the part behind it."""
        frame = self._frame(part)
        while len(frame) > self._limits.max_frame and self._shorten(part, len(frame)):
            frame = self._frame(part)
        for stream in part.streams:
            if not stream.ended:
                stream.present, stream.absent_since = True, None
            stream.unsent -= 1
            stream.sent_in = part.seq
        return frame

    def _frame(self, part: Part) -> bytes:
        absent = {stream.slot: stream for stream in part.streams if not stream.present and not stream.ended}
        step = wire.Step(
            wire.VERSION,
            self._client,
            self.sessions,
            self._limits.token,
            part.seq,
            next(iter(self._parts)) - 1,
            [stream.slot for stream in part.streams],
            part.tokens,
            part.extras,
            [stream.opening() for stream in absent.values()],
            part.closes,
            part.wants,
        )
        return wire.encode(step)

    def _shorten(self, part: Part, size: int) -> bool:
        """Leave out half of a part whose message is too long, and return whether there was anything to leave out."""
        rest = part.cut()
        if rest is not None:
            self._insert(rest, part)
            return True
        if not part.streams:
            return False
        (stream,) = part.streams
        if stream.ended and part.tokens == [[]] and not part.extras:
            return False
        if not stream.ended:
            # Its row alone is too long, so that only its request can end; all others go on.
            field = "token_ids" if stream.present or len(wire.encode((part.tokens, part.extras))) > size // 2 else "prompt_ids"
            problem = f"a message with this row alone has {size:,} bytes, and the worker takes {self._limits.max_frame:,}"
            part.error = WireError("too_large", field=field, problem=problem)
            self.forget(stream)
        part.tokens, part.extras, part.wants = [[]], {}, []
        return True

    def _insert(self, rest: Part, before: Part) -> None:
        """Put a part behind another one. None of those behind was sent in this session, so their numbers are free."""
        parts = list(self._parts.values())
        parts.insert(parts.index(before) + 1, rest)
        for seq, part in enumerate(parts, start=parts[0].seq):
            part.seq = seq
        self._parts = {part.seq: part for part in parts}
        self._next += 1

    def _reply(self, reply: wire.Reply, now: float) -> list[Part]:
        part = self._parts.get(reply.seq)
        ours = (reply.client, reply.epoch) == (self._client, self.sessions) and self.state is LinkState.OPEN
        if not ours or part is None:
            return []
        if len(reply.texts) != len(part.tokens):
            problem = f"there are {len(reply.texts)} for {len(part.tokens)} rows"
            self._fail(WireError("malformed", field="texts", problem=problem))
            return []
        part.reply = reply
        self._heard, self._retry_at = now, now + self.pace.retry
        answered = []
        while self._parts:
            first = next(iter(self._parts.values()))
            if first.reply is None:
                break
            del self._parts[first.seq]
            answered.append(first)
            if self._deliver(first, first.reply, now):
                self._begin(now)
        self._flush(now)
        return answered

    def _deliver(self, part: Part, reply: wire.Reply, now: float) -> bool:
        """Take what a reply says, and return whether the worker is about to end."""
        if part.ticket is not None:
            self._give(part, part.ticket, reply)
        for saved in reply.snapshots:
            if (known := self.streams.get(saved.slot)) is not None:
                known.save(saved)
        for saved in reply.evicted:
            if (known := self.streams.get(saved.slot)) is not None:
                known.save(saved)
                # A later step has a row of it already; the worker has that one's state still, for just this case.
                if known.sent_in <= part.seq:
                    self._lose(known, now)
        for failure in reply.failures:
            if (known := self.streams.get(failure.slot)) is not None:
                self._end(known, self._error_of(failure))
        return reply.draining

    def _give(self, part: Part, ticket: Ticket, reply: wire.Reply) -> None:
        """Put the outputs of a part's rows into their ticket."""
        outputs = ticket.outputs
        for position, stream, text, tokens in zip(part.positions, part.streams, reply.texts, part.tokens, strict=True):
            outputs[position] = stream.request_id, RequestOutput(text, [*tokens] if isinstance(tokens, list) else [tokens])
        for index, beside in reply.outputs.items():
            stream, (_, plain) = part.streams[index], outputs[part.positions[index]]
            output = output_from_wire(plain.text, plain.token_ids, beside)
            if stream.ended:
                # The row was under way when the request ended.
                output = RequestOutput()
            elif output.finish_reason is not None:
                stream.ended = True
                del self.streams[stream.slot]
                self._finished.append(stream.request_id)
            outputs[part.positions[index]] = stream.request_id, output
        if part.error is not None:
            (stream,) = part.streams
            outputs[part.positions[0]] = stream.request_id, RequestOutput.failed(part.error)
            self._finished.append(stream.request_id)

    def _error_of(self, failure: wire.Failure) -> Exception:
        if failure.kind == RequestExpired.__name__:
            return RequestExpired(idle=self._limits.max_idle)
        return RequestFailed(failure.kind, problem=failure.message)

    def _end(self, stream: Stream, error: Exception) -> None:
        stream.ended = True
        del self.streams[stream.slot]
        self._ended.append((stream.request_id, RequestOutput.failed(error)))

    def _lose(self, stream: Stream, now: float) -> None:
        """The worker has a request no longer."""
        if stream.present:
            stream.present, stream.absent_since = False, now
            self._absent.append((now, stream))
