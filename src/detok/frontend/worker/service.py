"""
The worker's side of the protocol, without a socket or a clock: a frame in, the frame of the answer out.

What can go wrong on the way is harmless by numbers. A step that comes again gets the reply that it got; one that comes too early
is not taken; messages of a session that is over are ignored. And nothing here has to be kept: a client that hears that its
session is unknown begins another, and gives with each row whatever the worker needs to go on.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...core.decoder import Decoder
from ...core.request.output import RequestOutput
from ...errors import DuplicateRequest, OptionError, RequestExpired, UnknownRequest, WireError
from . import wire
from .payload import output_to_wire, problem_of, row_of
from .service_metrics import ServiceMetrics
from .states import States

__all__ = ["Limits", "Service"]

SLOT_BITS = 32
SLOTS = 1 << SLOT_BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """
    What a worker bounds.

    Raises:
        OptionError: One is not positive.
    """

    max_states: int = 65_536
    """So many requests are kept; past it the least recently used are handed back to their clients, who bring them again."""

    max_idle: float = 3600.0
    """A request without a row for so many seconds expires."""

    max_silence: float = 120.0
    """What is kept for a client that says nothing for so many seconds is forgotten; if it comes back, it goes on all the same."""

    max_frame: int = wire.DEFAULT_MAX_FRAME
    """A longer message is refused."""

    def __post_init__(self) -> None:
        for field in ("max_states", "max_idle", "max_silence", "max_frame"):
            if not getattr(self, field) > 0:
                raise OptionError(option=field, value=getattr(self, field), accepted="it is more than 0")


class Session:
    """What a worker knows of a client."""

    def __init__(self, hello: wire.Hello, number: int, now: float) -> None:
        self.client, self.epoch, self.seq = hello.client, hello.epoch, hello.seq
        self.number = number
        self.base = number << SLOT_BITS
        """The key of slot 0 in the table, which is that of all sessions."""
        self.seen = now
        self.replies: dict[int, bytes] = {}
        """Those that are not acknowledged, by number."""
        self.evicted: dict[int, wire.Saved] = {}
        """Requests to be handed back with the next reply."""
        self.handed: dict[int, tuple[int, wire.Saved]] = {}
        """Those that went with the reply of a number. Until it is acknowledged, a row may come without them."""
        self.failures: list[wire.Failure] = []
        """Requests whose end is to be told with the next reply."""

    def acknowledge(self, ack: int) -> None:
        """The client has the replies up to this one."""
        for seq in [seq for seq in self.replies if seq <= ack]:
            del self.replies[seq]
        if self.handed:
            self.handed = {slot: kept for slot, kept in self.handed.items() if kept[0] > ack}

    def take_back(self, slot: int) -> wire.Saved | None:
        """Return a request that the client does not know to be handed back."""
        saved = self.evicted.pop(slot, None)
        handed = self.handed.pop(slot, None)
        return saved if handed is None else handed[1]


class Service:
    """
    Args:
        decoder: What decodes.
        limits: What is bounded.
        first_token: Where the tokens of sessions begin; random, so that no two workers give the same.
        pid: Of the process, for those who ask.
        restarts: How often it was started before.
    """

    def __init__(
        self, decoder: Decoder, limits: Limits | None = None, *, first_token: int = 0, pid: int = 0, restarts: int = 0
    ) -> None:
        self.limits = Limits() if limits is None else limits
        self.draining = False
        self._decoder = decoder
        self._first_token = first_token
        self._pid = pid
        self._states = States(decoder)
        self._sessions: dict[str, Session] = {}
        self._numbers: dict[int, Session] = {}
        self._count = 0
        self.metrics = ServiceMetrics(
            states=lambda: len(self._states),
            sessions=lambda: len(self._sessions),
            holding=self._states.holding,
            restarts=restarts,
        )

    def __len__(self) -> int:
        return len(self._states)

    def receive(self, frame: bytes, now: float) -> bytes | None:
        """
        Take a message and return the answer; None if it needs none.

        Args:
            frame: As it came.
            now: Seconds on a clock that never goes back.
        """
        self.tick(now)
        if len(frame) > self.limits.max_frame:
            return self._refuse("too_large", "frame", f"it has {len(frame):,} bytes, and {self.limits.max_frame:,} are allowed")
        try:
            message = wire.decode_from_client(frame)
            match message:
                case wire.Step():
                    return self._step(message, now)
                case wire.Hello():
                    return self._hello(message, now)
                case wire.Ask():
                    return wire.encode(wire.Status(wire.VERSION, self._pid, self.metrics.text()))
                case wire.Bye():
                    self._bye(message)
                    return None
        except WireError as error:
            return self._refuse(error.code, error.field, error.problem)

    def tick(self, now: float) -> None:
        """Let requests and clients go from which nothing came for too long."""
        while (oldest := self._states.oldest()) is not None and now - oldest[1] > self.limits.max_idle:
            self._end(oldest[0], RequestExpired(idle=self.limits.max_idle))
            self.metrics.expired.add()
        for session in [one for one in self._sessions.values() if now - one.seen > self.limits.max_silence]:
            self._forget(session)

    def _hello(self, hello: wire.Hello, now: float) -> bytes | None:
        session = self._sessions.get(hello.client)
        if session is not None and session.epoch > hello.epoch:
            return None
        if session is None or session.epoch < hello.epoch:
            if session is not None:
                self._forget(session)
            if self.draining:
                return self._refuse("draining", "epoch", "the worker is about to end", hello)
            self._count += 1
            session = Session(hello, self._count, now)
            self._sessions[hello.client] = self._numbers[self._count] = session
        limits = self.limits
        return wire.encode(
            wire.Welcome(
                wire.VERSION,
                hello.client,
                hello.epoch,
                self._first_token + session.number,
                self._pid,
                self._decoder.fingerprint,
                limits.max_frame,
                wire.MAX_WINDOW,
                limits.max_idle,
            )
        )

    def _bye(self, bye: wire.Bye) -> None:
        session = self._sessions.get(bye.client)
        if session is not None and session.epoch <= bye.epoch:
            self._forget(session)

    def _step(self, step: wire.Step, now: float) -> bytes | None:
        session = self._sessions.get(step.client)
        is_known = session is not None and step.token == self._first_token + session.number
        if session is None or session.epoch < step.epoch or (session.epoch == step.epoch and not is_known):
            return self._refuse(
                "unknown_session", "epoch", "no Hello of this session came; begin one, and bring what is open", step
            )
        if session.epoch > step.epoch:
            return None
        session.seen = now
        if step.seq < session.seq:
            self.metrics.repeated.add()
            return session.replies.get(step.seq)
        if step.seq > session.seq:
            return self._refuse("gap", "seq", f"step {session.seq} did not come", step, session.seq)
        # Not of a step that comes too early: one that is still to come may need what is kept until this acknowledgement.
        session.acknowledge(step.ack)
        if len(session.replies) >= wire.MAX_WINDOW:
            return self._refuse("window", "ack", f"{wire.MAX_WINDOW} replies are not acknowledged", step)
        _check(step)
        session.seq += 1
        reply = session.replies[step.seq] = self._encoded(session, step, self._reply(session, step, now))
        return reply

    def _reply(self, session: Session, step: wire.Step, now: float) -> wire.Reply:
        """Do what a step says."""
        base, states, metrics = session.base, self._states, self.metrics
        for slot in step.closes:
            session.take_back(slot)
            states.drop(base + slot)
        failed = self._open(session, step, now)
        keys = [base + slot for slot in step.slots]
        if step.extras:
            taken = [row_of(tokens, step.extras.get(index)) for index, tokens in enumerate(step.tokens)]
            rows = [(key, *row) for key, row in zip(keys, taken, strict=True)]
            lists = [row[0] for row in taken]
        else:
            lists = [[tokens] if isinstance(tokens, int) else tokens for tokens in step.tokens]
            rows = [(key, ids, None, None, None) for key, ids in zip(keys, lists, strict=True)]
        texts: list[str] = []
        outputs: dict[int, wire.Output] = {}
        for output, ids in zip(states.step(keys, rows, now), lists, strict=True):
            # Nearly every output has a text and the ids of its row, and nothing else.
            if len(output.__dict__) > 2 or output.token_ids != ids:
                if output.error is not None:
                    self._name_error(output, step.slots[len(texts)], failed)
                outputs[len(texts)] = output_to_wire(output, ids)
            texts.append(output.text)
        metrics.steps.add()
        metrics.rows.add(len(lists))
        metrics.tokens.add(sum(map(len, lists)))
        session.failures += [wire.Failure(slot, *problem_of(error)) for slot, error in failed.items()]
        snapshots = [saved for slot in step.wants if (saved := self._save(base + slot)) is not None]
        self._evict(session)
        reply = wire.Reply(wire.VERSION, session.client, session.epoch, step.seq, texts, outputs, snapshots)
        reply.evicted, reply.failures, reply.draining = list(session.evicted.values()), session.failures, self.draining
        session.handed |= {slot: (step.seq, saved) for slot, saved in session.evicted.items()}
        session.evicted, session.failures = {}, []
        return reply

    def _open(self, session: Session, step: wire.Step, now: float) -> dict[int, Exception]:
        """Take the requests that a step brings, and those of its rows that are on their way back; return what failed, by slot."""
        failed: dict[int, Exception] = {}
        for opening in step.opens:
            session.take_back(opening.slot)
            self.metrics.opened.add()
            self.metrics.replayed.add(len(opening.tokens))
            try:
                self._states.open(session.base + opening.slot, opening, now)
            except DuplicateRequest:
                failed[opening.slot] = DuplicateRequest(opening.slot)
            except Exception as error:
                failed[opening.slot] = error
        if session.evicted or session.handed:
            for slot in step.slots:
                if (saved := session.take_back(slot)) is not None:
                    try:
                        self._states.restore(session.base + slot, saved.data, now)
                    except Exception as error:
                        failed[slot] = error
        return failed

    def _name_error(self, output: RequestOutput, slot: int, failed: dict[int, Exception]) -> None:
        self.metrics.errors.add()
        if isinstance(output.error, UnknownRequest):
            output.error = failed.pop(slot, None) or UnknownRequest(slot)

    def _save(self, key: int) -> wire.Saved | None:
        """Return the snapshot of a request; a request that has none is ended."""
        if key not in self._states:
            return None
        try:
            return wire.Saved(key % SLOTS, *self._states.save(key))
        except Exception as error:
            self._end(key, error)
            return None

    def _evict(self, session: Session) -> None:
        """Hand back what is too much; all that is the client's, if the worker is about to end."""
        excess = len(self._states) - self.limits.max_states
        keys = [key for key, _ in zip(self._states, range(excess), strict=False)]
        if self.draining:
            keys = [key for key in self._states if key >> SLOT_BITS == session.base >> SLOT_BITS]
        for key in keys:
            if (saved := self._save(key)) is not None:
                self._states.drop(key)
                self._numbers[key >> SLOT_BITS].evicted[saved.slot] = saved
                self.metrics.evicted.add()

    def _end(self, key: int, error: Exception) -> None:
        """End a request without a row, and tell its owner."""
        self._states.drop(key)
        self.metrics.errors.add()
        self._numbers[key >> SLOT_BITS].failures.append(wire.Failure(key % SLOTS, *problem_of(error)))

    def _forget(self, session: Session) -> None:
        for key in [key for key in self._states if key >> SLOT_BITS == session.base >> SLOT_BITS]:
            self._states.drop(key)
        del self._sessions[session.client], self._numbers[session.base >> SLOT_BITS]

    def _encoded(self, session: Session, step: wire.Step, reply: wire.Reply) -> bytes:
        """Return the frame of a reply; a row that is no UTF-8, as a lone surrogate is not, fails alone."""
        try:
            return wire.encode(reply)
        except UnicodeEncodeError:
            pass
        for index, text in enumerate(reply.texts):
            try:
                wire.encode((text, reply.outputs.get(index)))
            except UnicodeEncodeError as error:
                self._states.drop(session.base + step.slots[index])
                self.metrics.errors.add()
                reply.texts[index] = ""
                reply.outputs[index] = wire.Output(finish_reason="error", error=problem_of(error))
        return wire.encode(reply)

    def _refuse(self, code: str, field: str, problem: str, of: wire.Hello | wire.Step | None = None, expected: int = 0) -> bytes:
        self.metrics.refused.add()
        client, epoch = ("", 0) if of is None else (of.client, of.epoch)
        return wire.encode(wire.Refusal(wire.VERSION, code, field, problem, client, epoch, expected))


def _check(step: wire.Step) -> None:
    """
    Look at what the decoder cannot see.

    Raises:
        WireError: Columns are not of one length.
    """
    rows = len(step.slots)
    if len(step.tokens) != rows:
        raise WireError("malformed", field="tokens", problem=f"there are {len(step.tokens)} for {rows} slots")
    if step.extras and not 0 <= min(step.extras) <= max(step.extras) < rows:
        raise WireError("malformed", field="extras", problem=f"their indices are of {rows} rows")
