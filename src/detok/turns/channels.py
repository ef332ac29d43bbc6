"""Channels: what of a model's output is content, what is reasoning, and what is a tool call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from .segments import Segment

__all__ = ["CONTENT", "REASONING", "TOOL", "ChannelDelta", "TurnFollower", "joined_deltas"]

CONTENT, REASONING, TOOL = "content", "reasoning", "tool"


class ChannelDelta(NamedTuple):
    """Text of one channel."""

    channel: str
    """"content", "reasoning" or "tool"."""

    text: str
    """As it is written; of a call, more of its arguments as JSON, which may be empty."""

    part: int
    """Which part of the output it is of, from 0 on: two tool calls in a row are two parts."""

    header: str = ""
    """In harmony: what the model wrote before the part to say what it is, such as ``commentary to=functions.weather``."""

    name: str = ""
    """Of a call: the function's."""

    call_id: str = ""
    """Of a call: the id that the model wrote, if it wrote one."""

    begin: int = 0
    """Where it begins in the text as it is written, with special tokens. That of a call's first delta is where its head
    begins."""

    end: int = 0

    tokens: int = 0
    """Number of tokens that begin in it."""


def joined_deltas(deltas: Sequence[ChannelDelta]) -> list[ChannelDelta]:
    """Return the deltas with neighbours of one part as one."""
    parts = [list(group) for _, group in groupby(deltas, attrgetter("part"))]
    return [part[0] if len(part) == 1 else _joined(part) for part in parts]


def _joined(part: Sequence[ChannelDelta]) -> ChannelDelta:
    text = "".join(delta.text for delta in part)
    return part[0]._replace(text=text, end=part[-1].end, tokens=sum(delta.tokens for delta in part))


class TurnFollower(Protocol):
    """Segments in, text by channel out."""

    @property
    def state(self) -> Any:
        """Where it stands, as plain data."""
        ...

    def copy(self) -> TurnFollower:
        """Return another one that stands here too."""
        ...

    def feed(self, segments: Sequence[Segment]) -> list[ChannelDelta]:
        """Take segments and return what of each channel is certain now."""
        ...

    def finish(self) -> list[ChannelDelta]:
        """Return what is still held; a second time there is nothing."""
        ...
