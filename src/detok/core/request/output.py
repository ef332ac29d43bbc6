"""What a request gives: text, ids, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .channels import ChannelDelta, joined_deltas
from .logprobs import TokenLogprob
from .segments import Segment, joined

__all__ = ["END_FIELDS", "RequestOutput"]


class RequestOutput:
    """
    What is new since the last output ("delta"), or all so far ("cumulative", "final").

    It is true if there is something to pass on. One that is not due (`stream_interval`, "final") is false, and empty.
    """

    # Rare fields stand in the class: most outputs have but two of their own, and are made in a fifth of the time.
    finish_reason: str | None = None
    """"stop", "length", "abort", "error"; None while the request goes on."""

    stop_reason: str | int | None = None
    """The stop string, pattern or token id that ended it; None for the end of sequence, and for other ends."""

    dropped_token_ids: Sequence[int] = ()
    """Ids of the last step that stand behind the end."""

    retracted_tokens: int = 0
    """So many of the last ids in outputs before stand behind it too: an open byte run is decided later than its ids come."""

    tokens_kept: int | None = None
    """At the end: how many ids the request has in all, up to the one that completed the stop."""

    text_end: int | None = None
    """At the end: how many characters the request has in all."""

    error: Exception | None = None
    """With ``finish_reason="error"``: what went wrong."""

    logprobs: list[TokenLogprob] | None = None
    """Of the tokens whose part of the text is out. None if the request has none."""

    segments: list[Segment] | None = None
    """The text with special tokens as events, if `segments` was asked for."""

    channels: list[ChannelDelta] | None = None
    """The text by channel, if `channels` was asked for."""

    cumulative = False
    """Whether it stands for all before it."""

    def __init__(self, text: str = "", token_ids: list[int] | None = None) -> None:
        self.text = text
        self.token_ids: list[int] = [] if token_ids is None else token_ids

    @property
    def finished(self) -> bool:
        """Whether the request has ended: the last output of it says so."""
        return self.finish_reason is not None

    def __bool__(self) -> bool:
        beside = self.logprobs or self.segments or self.channels
        return bool(self.token_ids or self.text or self.finish_reason is not None or beside)

    def coalesce(self, later: RequestOutput) -> RequestOutput:
        """
        Return one output that says what this one and the next of the same request say, for a consumer that is slow.

        Args:
            later: The next output of the same request.
        """
        if later.cumulative or not self:
            return later
        if not later:
            return self
        retracted = min(later.retracted_tokens, len(self.token_ids))
        both = RequestOutput(self.text + later.text, self.token_ids[: len(self.token_ids) - retracted] + later.token_ids)
        for field in END_FIELDS:
            if field in later.__dict__:
                both.__dict__[field] = later.__dict__[field]
        if retracted:
            both.retracted_tokens = later.retracted_tokens - retracted
        both.logprobs = _together(self.logprobs, later.logprobs)
        both.segments = _together(self.segments, later.segments)
        both.channels = _together(self.channels, later.channels)
        both.segments = None if both.segments is None else joined(both.segments)
        both.channels = None if both.channels is None else joined_deltas(both.channels)
        both.cumulative = self.cumulative
        return both

    def as_dict(self) -> dict[str, Any]:
        """The fields that this output has."""
        return dict(self.__dict__)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RequestOutput):
            return NotImplemented
        return all(getattr(self, field) == getattr(other, field) for field in _FIELDS)

    __hash__ = None  # type: ignore[assignment]  # it holds lists

    def __repr__(self) -> str:
        given = ", ".join(f"{field}={value!r}" for field, value in self.as_dict().items() if value is not None)
        return f"RequestOutput({given})"


END_FIELDS = ("finish_reason", "stop_reason", "dropped_token_ids", "retracted_tokens", "tokens_kept", "text_end", "error")
_FIELDS = ("text", "token_ids", *END_FIELDS, "logprobs", "segments", "channels", "cumulative")


def _together(before: list[Any] | None, after: list[Any] | None) -> list[Any] | None:
    return after if before is None else before if after is None else before + after
