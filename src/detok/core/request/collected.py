"""What came out of a request and is not given yet: the kinds of output, and their interval."""

from __future__ import annotations

from typing import Any

from .channels import ChannelDelta, joined_deltas
from .logprobs import TokenLogprob
from .options import RequestOptions
from .output import END_FIELDS, RequestOutput
from .segments import Segment, joined

__all__ = ["Collected"]

# `until_due` never says more, so that nobody keeps long lists beside this.
MAX_WAITING = 1 << 10


class Collected:
    """
    Gathers what each step gives into outputs of the kind that was asked for.

    Args:
        options: Of them, `output` and `stream_interval`.
    """

    __slots__ = ("_channels", "_ids", "_interval", "_kind", "_logprobs", "_segments", "_sent", "_texts")

    def __init__(self, options: RequestOptions) -> None:
        self._kind = options.output
        self._interval = options.stream_interval
        self._sent = 0
        """So many ids were in outputs."""
        self._texts: list[str] = []
        self._ids: list[int] = []
        self._logprobs: list[TokenLogprob] | None = None
        self._segments: list[Segment] | None = None
        self._channels: list[ChannelDelta] | None = None

    def add(self, new: RequestOutput) -> RequestOutput:
        """Take what a step gave, and return what is due; an empty output if nothing is."""
        if self._kind == "delta" and self._interval == 1:
            return new
        self._texts.append(new.text)
        # A stop may have cut ids that came in steps before.
        retracted = min(new.retracted_tokens, len(self._ids))
        del self._ids[len(self._ids) - retracted :]
        new.retracted_tokens -= retracted
        self._ids += new.token_ids
        self._logprobs = _more(self._logprobs, new.logprobs)
        self._segments = _more(self._segments, new.segments)
        self._channels = _more(self._channels, new.channels)
        return self._output(new) if self._is_due(new) else RequestOutput()

    def _is_due(self, new: RequestOutput) -> bool:
        if new.finished:
            return True
        waiting = len(self._ids) - (self._sent if self._kind == "cumulative" else 0)
        return self._kind != "final" and bool(waiting) and (not self._sent or waiting >= self._interval)

    def until_due(self) -> int:
        """How many ids it takes at least until an output is due."""
        if self._kind == "final":
            return MAX_WAITING
        waiting = len(self._ids) - (self._sent if self._kind == "cumulative" else 0)
        return min(self._interval - waiting, MAX_WAITING) if self._sent else 1

    def _output(self, new: RequestOutput) -> RequestOutput:
        output = RequestOutput("".join(self._texts), list(self._ids))
        output.cumulative = self._kind != "delta"
        output.logprobs = None if self._logprobs is None else list(self._logprobs)
        # Joined once and for all, so that a cumulative output costs no more than its text.
        self._segments = None if self._segments is None else joined(self._segments)
        self._channels = None if self._channels is None else joined_deltas(self._channels)
        output.segments = None if self._segments is None else list(self._segments)
        output.channels = None if self._channels is None else list(self._channels)
        for field in END_FIELDS:
            if field in new.__dict__:
                setattr(output, field, getattr(new, field))
        if output.cumulative:
            self._texts = [output.text]
            self._sent = len(self._ids)
        else:
            self._sent += len(self._ids)
            self._texts, self._ids = [], []
            self._logprobs, self._segments = _empty(self._logprobs), _empty(self._segments)
            self._channels = _empty(self._channels)
        return output

    def plain(self) -> tuple[Any, ...]:
        """What `restore` takes."""
        return self._sent, "".join(self._texts), self._ids, self._logprobs, self._segments, self._channels

    def restore(self, sent: int, text: str, ids: Any, logprobs: Any, segments: Any, channels: Any) -> None:
        """Stand where another one stood."""
        self._sent, self._texts, self._ids = sent, [text], list(ids)
        self._logprobs = None if logprobs is None else list(logprobs)
        self._segments = None if segments is None else list(segments)
        self._channels = None if channels is None else list(channels)


def _more(before: list[Any] | None, new: list[Any] | None) -> list[Any] | None:
    if new is None:
        return before
    if before is None:
        return list(new)
    before += new
    return before


def _empty(values: list[Any] | None) -> list[Any] | None:
    return None if values is None else []
