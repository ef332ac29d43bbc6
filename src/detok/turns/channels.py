"""
Channels: what of a model's output is content, what is reasoning, and what is a tool call.

Models write delimiters between them: special tokens in one vocabulary, plain text in another, split over tokens in a third. A
`ChannelTable` says which delimiters matter in which channel and where each leads; splitting is the same walk for all of them. A
new model family is a new table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from ..errors import OptionError
from ..ids import as_id
from ..text_search import StopStrings, stop_strings
from .segments import Segment, Special, Text

CONTENT, REASONING, TOOL = "content", "reasoning", "tool"
HEADER = "header"
"""A channel whose text is not given out, but becomes the `header` of the part behind it."""

# A header is a few words. What is longer is none: it comes out as content.
MAX_HEADER = 512
# So much text is looked at for a delimiter at once, so that many in one step cost no more each.
CHUNK = 256


@dataclass(frozen=True, slots=True)
class Delimiter:
    """What ends a channel: it is in neither channel's text."""

    at: str | int
    """A text, over any number of ordinary tokens, or the text of one special token; or the id of a token, special or not."""

    to: str
    """The channel that begins."""

    routes: tuple[tuple[str, str], ...] = ()
    """Behind a header: the first of these whose text is in it says which channel begins, not ``to``."""

    def __post_init__(self) -> None:
        if not isinstance(self.at, str):
            object.__setattr__(self, "at", as_id(self.at, where="Delimiter.at"))
        elif not self.at:
            raise OptionError(option="Delimiter.at", value=self.at, accepted="it is a text or a token id")

    def target(self, header: str) -> str:
        """The channel that begins behind a header."""
        return next((channel for text, channel in self.routes if text in header), self.to)


@dataclass(frozen=True, slots=True)
class ChannelTable:
    """
    Which delimiters matter in which channel.

    Raises:
        OptionError: A delimiter leads to a channel that the table does not have.
    """

    start: str
    """The channel that the output begins in."""

    delimiters: Mapping[str, tuple[Delimiter, ...]] = field(hash=False)
    """By channel."""

    def __post_init__(self) -> None:
        if not isinstance(self.delimiters, Mapping) or not self.delimiters:
            raise OptionError(option="delimiters", value=self.delimiters, accepted="they are given by channel")
        for channel, delimiters in self.delimiters.items():
            where = f"delimiters[{channel!r}]"
            if not isinstance(delimiters, tuple) or not all(isinstance(one, Delimiter) for one in delimiters):
                raise OptionError(option=where, value=delimiters, accepted="it is a tuple of detok.Delimiter")
            for delimiter in delimiters:
                for to in (delimiter.to, *(to for _, to in delimiter.routes)):
                    self._check(to, where)
        self._check(self.start, "start")

    def _check(self, channel: str, where: str) -> None:
        if not isinstance(channel, str) or channel not in self.delimiters:
            raise OptionError(option=where, value=channel, accepted=f"the table has the channels {', '.join(self.delimiters)}")

    def starting_in(self, channel: str) -> ChannelTable:
        """Return the same table for outputs that begin in another channel, as behind a prompt that ends in ``<think>``."""
        return replace(self, start=channel)

    @property
    def plain_channel(self) -> str:
        """Where text goes that has no header."""
        return next(
            (channel for channel in (CONTENT, self.start, *self.delimiters) if channel in self.delimiters and channel != HEADER),
            HEADER,
        )

    @property
    def token_ids(self) -> frozenset[int]:
        """The ids among the delimiters."""
        every = (one.at for delimiters in self.delimiters.values() for one in delimiters)
        return frozenset(at for at in every if isinstance(at, int))

    def as_dict(self) -> dict[str, Any]:
        """The table as plain data, which `channel_table` takes."""
        rows = {name: [[one.at, one.to, [list(r) for r in one.routes]] for one in row] for name, row in self.delimiters.items()}
        return {"start": self.start, "delimiters": rows}


class ChannelDelta(NamedTuple):
    """Text of one channel."""

    channel: str
    text: str
    part: int
    """Which part of the output it is of, from 0 on: two tool calls in a row are two parts."""

    header: str = ""
    """What the model wrote before the part to say what it is, such as ``commentary to=functions.weather``."""


class SplitterState(NamedTuple):
    """Where a splitter stands."""

    channel: str
    held: str = ""
    """What may yet become a delimiter."""
    header: str = ""
    part: int = 0


class ChannelSplitter:
    """
    Segments in, text by channel out. Whatever the model writes, no text is lost but that of delimiters and headers.

    Args:
        table: Which delimiters matter.
        state: Where another splitter stood.
    """

    __slots__ = ("_strings", "_table", "state")

    def __init__(self, table: ChannelTable, state: SplitterState | None = None) -> None:
        self._table = table
        self._strings = {channel: _strings(delimiters) for channel, delimiters in table.delimiters.items()}
        # The first part begins behind a header, if there is one.
        self.state = SplitterState(table.start, part=-(table.start == HEADER)) if state is None else state

    def copy(self) -> ChannelSplitter:
        """Return another one that stands here too."""
        return ChannelSplitter(self._table, self.state)

    def feed(self, segments: Sequence[Segment]) -> list[ChannelDelta]:
        """Take segments and return what of each channel is certain now."""
        deltas: list[ChannelDelta] = []
        for segment in segments:
            if isinstance(segment, Text):
                self._text(segment.text, deltas)
            else:
                self._special(segment, deltas)
        return joined_deltas(deltas)

    def finish(self) -> list[ChannelDelta]:
        """Return what is still held."""
        deltas: list[ChannelDelta] = []
        self._give(self.state.held, deltas)
        self.state = self.state._replace(held="")
        return deltas

    def _text(self, text: str, deltas: list[ChannelDelta]) -> None:
        place = 0
        while place < len(text):
            place += self._chunk(text[place : place + CHUNK], deltas)

    def _chunk(self, text: str, deltas: list[ChannelDelta]) -> int:
        """Take text up to a delimiter, and return how much that was."""
        strings = self._strings[self.state.channel]
        if strings is None:
            self._give(text, deltas)
            return len(text)
        held = self.state.held
        candidate, match = strings.scan(strings.candidate(held), text)
        whole = held + text
        self.state = self.state._replace(held="")
        if match is None:
            self._give(whole[: len(whole) - candidate.length], deltas)
            self.state = self.state._replace(held=candidate.text)
            return len(text)
        self._give(whole[: len(held) + match.end - match.length], deltas)
        self._move(self._delimiter(match.reason))
        return match.end

    def _special(self, special: Special, deltas: list[ChannelDelta]) -> None:
        delimiter = self._delimiter(special.token_id) or self._delimiter(special.text)
        # What was held is no delimiter: this token stands in the middle of it.
        self._give(self.state.held, deltas)
        self.state = self.state._replace(held="")
        if delimiter is not None:
            self._move(delimiter)
        elif self.state.channel == HEADER:
            self._give(special.text, deltas)
        else:
            self._text(special.shown, deltas)

    def _delimiter(self, at: str | int) -> Delimiter | None:
        return next((one for one in self._table.delimiters[self.state.channel] if one.at == at), None)

    def _give(self, text: str, deltas: list[ChannelDelta]) -> None:
        if not text:
            return
        if self.state.channel == HEADER:
            text = self.state.header + text
            if len(text) <= MAX_HEADER:
                self.state = self.state._replace(header=text)
                return
            self.state = SplitterState(self._table.plain_channel, part=self.state.part + 1)
        deltas.append(ChannelDelta(self.state.channel, text, self.state.part, self.state.header))

    def _move(self, delimiter: Delimiter | None) -> None:
        assert delimiter is not None
        is_header = self.state.channel == HEADER
        channel = delimiter.target(self.state.header) if is_header else delimiter.to
        header = self.state.header if is_header and channel != HEADER else ""
        self.state = SplitterState(channel, "", header, self.state.part + (channel != HEADER))


def _strings(delimiters: Sequence[Delimiter]) -> StopStrings | None:
    """What finds those of the delimiters that are texts."""
    ats = tuple(one.at for one in delimiters if isinstance(one.at, str))
    return stop_strings(ats) if ats else None


def joined_deltas(deltas: Sequence[ChannelDelta]) -> list[ChannelDelta]:
    """Return the deltas with neighbours of one part as one."""
    parts = [list(group) for _, group in groupby(deltas, attrgetter("part"))]
    return [part[0]._replace(text="".join(delta.text for delta in part)) for part in parts]


_THINK = (Delimiter("<think>", REASONING),)
_THINK_ENDS = (Delimiter("</think>", CONTENT),)
_CALL = (Delimiter("<tool_call>", TOOL),)
_CALL_ENDS = (Delimiter("</tool_call>", CONTENT),)
_MESSAGE_ENDS = tuple(Delimiter(at, HEADER) for at in ("<|end|>", "<|call|>", "<|return|>", "<|start|>"))
_HARMONY_HEADER = (
    # A recipient makes it a call, whatever channel it is written to.
    Delimiter("<|message|>", CONTENT, ((" to=", TOOL), ("analysis", REASONING))),
    Delimiter("<|start|>", HEADER),
)

CHANNEL_TABLES: Mapping[str, ChannelTable] = {
    "think": ChannelTable(CONTENT, {CONTENT: _THINK, REASONING: _THINK_ENDS}),
    "hermes": ChannelTable(CONTENT, {CONTENT: _CALL, TOOL: _CALL_ENDS}),
    "qwen": ChannelTable(CONTENT, {CONTENT: (*_THINK, *_CALL), REASONING: _THINK_ENDS, TOOL: _CALL_ENDS}),
    "harmony": ChannelTable(
        HEADER, {HEADER: _HARMONY_HEADER, CONTENT: _MESSAGE_ENDS, REASONING: _MESSAGE_ENDS, TOOL: _MESSAGE_ENDS}
    ),
}
"""
Ready tables: "think" for ``<think>…</think>``, "hermes" for ``<tool_call>…</tool_call>``, "qwen" for both, "harmony" for gpt-oss,
whose prompt ends in ``<|start|>assistant``.
"""


def channel_table(value: object) -> ChannelTable | None:
    """
    Return the table of this name, of this plain data, or as it is.

    Raises:
        OptionError: It is none of these.
    """
    if value is None or isinstance(value, ChannelTable):
        return value
    if isinstance(value, str) and value in CHANNEL_TABLES:
        return CHANNEL_TABLES[value]
    if isinstance(value, Mapping) and value.keys() == {"start", "delimiters"}:
        try:
            rows = {name: tuple(_delimiter(*one) for one in row) for name, row in value["delimiters"].items()}
        except (TypeError, ValueError, AttributeError):
            rows = {}
        return ChannelTable(value["start"], rows)
    accepted = f"it is one of {', '.join(map(repr, CHANNEL_TABLES))}, or a detok.ChannelTable"
    raise OptionError(option="channels", value=value, accepted=accepted)


def _delimiter(at: str | int, to: str, routes: Sequence[Sequence[str]]) -> Delimiter:
    return Delimiter(at, to, tuple((text, channel) for text, channel in routes))
