"""What a request gives: text, ids, and how it ended; and what gathers the outputs of several steps into one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from .channels import ChannelDelta, joined_deltas
from .logprobs import TokenLogprob
from .options import RequestOptions
from .segments import Segment, joined

__all__ = ["END_FIELDS", "NOT_DUE", "OutputCollector", "RequestOutput", "SharedOutput"]

# `OutputCollector.until_due` never says more, so that nobody keeps long lists beside the collector's.
MAX_WAITING = 1 << 10


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
    """Ids of the last step that come after the end."""

    retracted_tokens: int = 0
    """Number of ids in earlier outputs that come after the end too: an open byte run is decided later than its ids come."""

    tokens_kept: int | None = None
    """At the end: number of ids that the request has in all, up to the one that completed the stop."""

    text_end: int | None = None
    """At the end: number of characters that the request has in all."""

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

    @classmethod
    def failed(cls, error: Exception) -> RequestOutput:
        """Return the output of a request that ended with an error."""
        output = RequestOutput()
        output.finish_reason, output.error = "error", error
        return output

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
        both._end_as(later)
        if retracted:
            both.retracted_tokens = later.retracted_tokens - retracted
        for name, merge in BESIDE.items():
            values = [value for value in (getattr(self, name), getattr(later, name)) if value is not None]
            if values:
                setattr(both, name, merge([one for value in values for one in value]))
        both.cumulative = self.cumulative
        return both

    def _end_as(self, other: RequestOutput) -> None:
        """Take over how another output says that the request ended."""
        for name in END_FIELDS:
            if name in other.__dict__:
                setattr(self, name, getattr(other, name))

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that this output has."""
        return dict(self.__dict__)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RequestOutput):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _FIELDS)

    __hash__ = None  # type: ignore[assignment]  # it holds lists

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.as_dict().items() if value is not None)
        return f"RequestOutput({given})"


END_FIELDS = ("finish_reason", "stop_reason", "dropped_token_ids", "retracted_tokens", "tokens_kept", "text_end", "error")

BESIDE: Mapping[str, Callable[[list[Any]], list[Any]]] = {"logprobs": list, "segments": joined, "channels": joined_deltas}
"""The lists that an output may have beside text and ids, each with what makes one list of several in a row."""

_FIELDS = ("text", "token_ids", *END_FIELDS, *BESIDE, "cumulative")


class SharedOutput(RequestOutput):
    """
    The output of a usual token. Many requests share it, so it cannot be changed; ``copy.copy`` gives one that can.

    Args:
        text: What came out.
        token_ids: What it came of.
    """

    __slots__ = ("_token_ids",)

    _token_ids: tuple[int, ...]

    def __init__(self, text: str, *token_ids: int) -> None:
        self.__dict__["text"] = text
        object.__setattr__(self, "_token_ids", token_ids)

    @property
    def token_ids(self) -> list[int]:  # type: ignore[override]  # a list of one's own, since this one is shared
        return [*self._token_ids]

    def __bool__(self) -> bool:
        return bool(self._token_ids)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that this output has."""
        return {"text": self.text, "token_ids": self.token_ids}

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"many requests share this output, so its {name} cannot be set; copy.copy() gives one of your own")

    def __reduce__(self) -> tuple[Any, ...]:
        return RequestOutput, (self.text, self.token_ids)


NOT_DUE = SharedOutput("")
"""What a step gives whose text waits for more (`stream_interval`, "final")."""


class OutputCollector:
    """
    Gathers what each step gives into outputs of the kind that was asked for.

    Args:
        options: Of them, `output` and `stream_interval`.
    """

    __slots__ = ("_beside", "_ids", "_interval", "_kind", "_sent", "_texts")

    def __init__(self, options: RequestOptions) -> None:
        self._kind = options.output
        self._interval = options.stream_interval
        self._sent = 0
        """Number of ids that were in outputs."""
        self._texts: list[str] = []
        self._ids: list[int] = []
        self._beside: dict[str, list[Any]] = {}

    def copy(self) -> OutputCollector:
        """Return another one that has gathered the same."""
        other = OutputCollector.__new__(OutputCollector)
        other._kind, other._interval = self._kind, self._interval
        other.restore(*self.plain())
        return other

    def add(self, new: RequestOutput) -> RequestOutput:
        """Take what a step gave, and return what is due; an empty output if nothing is."""
        if self._kind == "delta" and self._interval == 1:
            return new
        # A stop may have cut ids that came in steps before.
        retracted = min(new.retracted_tokens, len(self._ids))
        del self._ids[len(self._ids) - retracted :]
        if retracted:
            new.retracted_tokens -= retracted
        self.gather(new.text, new.token_ids)
        for name in BESIDE:
            more = getattr(new, name)
            if more is not None:
                self._beside.setdefault(name, []).extend(more)
        return self._output(new) if self._is_due(new) else NOT_DUE

    def gather(self, text: str, token_ids: Sequence[int]) -> None:
        """Take text and ids of steps after which no output is due."""
        self._texts.append(text)
        self._ids += token_ids

    def _waiting(self) -> int:
        """Return how many ids came since the last output."""
        return len(self._ids) - (self._sent if self._kind == "cumulative" else 0)

    def _is_due(self, new: RequestOutput) -> bool:
        if new.finished:
            return True
        waiting = self._waiting()
        return self._kind != "final" and bool(waiting) and (not self._sent or waiting >= self._interval)

    def until_due(self) -> int:
        """Return how many ids it takes at least until an output is due."""
        if self._kind == "final":
            return MAX_WAITING
        return min(self._interval - self._waiting(), MAX_WAITING) if self._sent else 1

    def _output(self, new: RequestOutput) -> RequestOutput:
        output = RequestOutput("".join(self._texts), list(self._ids))
        output.cumulative = self._kind != "delta"
        for name, merge in BESIDE.items():
            if name in self._beside:
                # Merged once and for all, so that a cumulative output costs no more than its text.
                self._beside[name] = merge(self._beside[name])
                setattr(output, name, list(self._beside[name]))
        output._end_as(new)
        if output.cumulative:
            self._texts = [output.text]
            self._sent = len(self._ids)
        else:
            self._sent += len(self._ids)
            self._texts, self._ids = [], []
            self._beside = {name: [] for name in self._beside}
        return output

    def plain(self) -> tuple[object, ...]:
        """Return what `restore` takes."""
        return (self._sent, "".join(self._texts), list(self._ids), *(self._beside.get(name) for name in BESIDE))

    def restore(self, sent: Any, text: Any, ids: Any, *beside: Any) -> None:
        """Stand where another one stood."""
        self._sent, self._texts, self._ids = sent, [text], list(ids)
        self._beside = {name: list(values) for name, values in zip(BESIDE, beside, strict=True) if values is not None}
