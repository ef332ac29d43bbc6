"""What a client keeps of its requests and steps, so that a worker can go on with them exactly, whatever happened to it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from ...core.request.output import RequestOutput
from . import wire
from .wire import Extra

__all__ = ["Outputs", "Pace", "Part", "Stream", "Ticket", "Tokens"]

Tokens = int | list[int]
"""The ids of a row; one alone stands for itself."""

Outputs = list[tuple[Hashable, RequestOutput]]
"""With the ids of their requests."""


class Ticket:
    """A step that was given to a client, and what comes of it."""

    __slots__ = ("missing", "outputs")

    def __init__(self, rows: int) -> None:
        self.outputs: list[tuple[Hashable, RequestOutput]] = [_NOTHING] * rows
        """One for each row, in order; once it is done, also those of requests that ended without a row."""
        self.missing = 0
        """Parts that are not answered."""

    @property
    def done(self) -> bool:
        """Whether all is there."""
        return not self.missing


_NOTHING: tuple[Hashable, RequestOutput] = (None, RequestOutput())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When a client does what."""

    keep: int = 256
    """When so many rows of a request are kept, the worker is asked for a snapshot of it."""

    retry: float = 0.25
    """What is not answered in so many seconds, with nothing else coming either, is sent again."""

    heartbeat: float = 10.0
    """After so many seconds without a step an empty one is sent."""

    window: int = 16
    """So many steps are under way at once; others wait."""


class Home(Protocol):
    """What a request goes over: a `Link`."""

    pace: Pace
    gathering: Part | None

    def gather(self, ticket: Ticket | None) -> Part: ...
    def forget(self, stream: Stream) -> None: ...


class Stream:
    """A request, as its client knows it."""

    __slots__ = (
        "absent_since",
        "asked",
        "base",
        "ended",
        "kept",
        "limit",
        "link",
        "options",
        "present",
        "prompt_ids",
        "request_id",
        "sent_in",
        "slot",
        "snapshot",
        "unsent",
    )

    def __init__(self, request_id: Hashable, slot: int, prompt_ids: list[int], options: bytes, link: Home) -> None:
        self.request_id, self.slot, self.link = request_id, slot, link
        self.prompt_ids, self.options = prompt_ids, options
        self.snapshot: bytes | None = None
        self.base = 0
        """How many ids it stands behind."""
        self.kept: list[Tokens | tuple[Tokens, Extra]] = []
        """The rows since then."""
        self.unsent = 0
        """How many of them are in steps that are still to be sent."""
        self.sent_in = -1
        """The number of the last step with a row of it that was sent."""
        self.present = False
        """Whether the worker has it."""
        self.absent_since: float | None = None
        self.ended = False
        self.asked = False
        """Whether a snapshot is on its way."""
        keep = link.pace.keep
        # Not at the same row for all, since requests often begin together. A long prompt is a burden from the first row on.
        self.limit = 1 if len(prompt_ids) > keep else keep - slot * 37 % max(1, keep // 2)

    def opening(self) -> wire.Open:
        """Return what the worker needs to go on with the first row that is still to be sent."""
        rows = self.kept[: len(self.kept) - self.unsent]
        tokens = [row[0] if isinstance(row, tuple) else row for row in rows]
        extras = {index: row[1] for index, row in enumerate(rows) if isinstance(row, tuple)}
        options = wire.Raw(self.options)
        return wire.Open(self.slot, self.prompt_ids, options, self.snapshot, tokens, extras)

    def save(self, saved: wire.Saved) -> None:
        """Take a snapshot, and forget the rows that are in it."""
        covered, rows = saved.tokens - self.base, 0
        while covered > 0 and rows < len(self.kept):
            row = self.kept[rows]
            tokens = row[0] if isinstance(row, tuple) else row
            covered -= len(tokens) if isinstance(tokens, list) else 1
            rows += 1
        del self.kept[:rows]
        self.snapshot, self.base = saved.data, saved.tokens
        self.prompt_ids, self.options, self.asked = [], _NO_OPTIONS, False
        self.limit = self.link.pace.keep


_NO_OPTIONS = wire.encode_plain({})


class Part:
    """The rows of a step that go to one worker."""

    __slots__ = ("closes", "error", "extras", "frame", "positions", "reply", "seq", "streams", "ticket", "tokens", "wants")

    def __init__(self, ticket: Ticket | None) -> None:
        self.ticket = ticket
        self.seq = -1
        self.streams: list[Stream] = []
        self.positions: list[int] = []
        """Which rows of the step they are."""
        self.tokens: list[Tokens] = []
        self.extras: dict[int, Extra] = {}
        self.closes: list[int] = []
        self.wants: list[int] = []
        self.frame: bytes | None = None
        """As it was sent in this session."""
        self.reply: wire.Reply | None = None
        self.error: Exception | None = None
        """Why its only row was not sent."""

    def cut(self) -> Part | None:
        """Keep the first half of what there is to say, and return the other, to be sent behind it; None if there are no two."""
        rows = 0 if self.closes else len(self.tokens) // 2
        closes = len(self.closes) if self.tokens else len(self.closes) // 2
        if not rows and not closes:
            return None
        rest = Part(self.ticket)
        self.streams, rest.streams = self.streams[:rows], self.streams[rows:]
        self.positions, rest.positions = self.positions[:rows], self.positions[rows:]
        self.tokens, rest.tokens = self.tokens[:rows], self.tokens[rows:]
        self.closes, rest.closes = self.closes[:closes], self.closes[closes:]
        rest.extras = {index - rows: extra for index, extra in self.extras.items() if index >= rows}
        self.extras = {index: extra for index, extra in self.extras.items() if index < rows}
        later = {stream.slot for stream in rest.streams}
        rest.wants = [slot for slot in self.wants if slot in later]
        self.wants = [slot for slot in self.wants if slot not in later]
        if self.ticket is not None:
            self.ticket.missing += 1
        return rest
