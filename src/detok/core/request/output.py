"""`RequestOutput`: the text and ids of a step, and how a request ended. `OutputCollector` gathers those of several steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ...turns.channels import ChannelDelta, joined_deltas
from ...turns.segments import Segment, joined
from ..options import PlainData
from ..snapshot import Plain
from .logprobs import TokenLogprob
from .options import RequestOptions

# Maximum outputs that wait unmerged, besides as many as there are ids in the merged one.
MAX_WAITING = 1 << 10


class RequestOutput:
    """
    One output of a request: the new text and ids ("delta"), or all so far ("cumulative", "final").

    An output is true if there is something to pass on. An output that is not due yet (`stream_interval`, "final") is empty, and
    false. The outputs of usual tokens are shared by many requests and cannot be changed; ``copy.copy(output)`` can.
    """

    # Defaults of rare fields are in the class: most outputs have two fields of their own, and are made in a fifth of the time.
    finish_reason: str | None = None
    """"stop", "length", "abort", "error"; None while the request goes on."""

    stop_reason: str | int | None = None
    """The stop string, pattern or token id that ended the request; None for the end of sequence, and for other ends."""

    dropped_token_ids: Sequence[int] = ()
    """Ids of the last step that come after the end of the text."""

    retracted_tokens: int = 0
    """Number of last ids of earlier outputs that come after the end of the text too: the text of an open byte run was held."""

    tokens_kept: int | None = None
    """At the end: number of ids of the whole request, up to the one that completed the stop."""

    text_end: int | None = None
    """At the end: number of characters of the whole request."""

    error: Exception | None = None
    """The error, with ``finish_reason="error"``."""

    logprobs: list[TokenLogprob] | None = None
    """An entry for each token whose part of the text is out. None if the request has no logprobs."""

    segments: list[Segment] | None = None
    """The text with special tokens as events (option `segments`)."""

    channels: list[ChannelDelta] | None = None
    """The text by channel (option `channels`)."""

    cumulative = False
    """Whether this output includes all outputs before it."""

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
        Return one output with the content of this one and the next, for a slow consumer. Neither is changed.

        Args:
            later: The next output of the same request.
        """
        if later.cumulative or not self:
            return later
        return merged([self, later]) if later else self

    def as_dict(self) -> PlainData:
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

Items = list[Any]

BESIDE: Mapping[str, Callable[[Items], Items]] = {"logprobs": list, "segments": joined, "channels": joined_deltas}
"""The lists that an output may have besides text and ids, each with the function that joins several in a row."""

_FIELDS = ("text", "token_ids", *END_FIELDS, *BESIDE, "cumulative")


_set = object.__setattr__


class SharedOutput(RequestOutput):
    """
    The output of a usual token. Many requests share it, so it cannot be changed; ``copy.copy`` gives an output that can.

    Args:
        text: The text that comes out.
        token_ids: The id, or none.
    """

    __slots__ = ("_token_ids",)

    _token_ids: tuple[int, ...]

    def __init__(self, text: str, *token_ids: int) -> None:
        if hasattr(self, "_token_ids"):
            raise AttributeError("many requests share this output, so it cannot be made anew")
        _set(self, "text", text)
        _set(self, "_token_ids", token_ids)

    @property
    def __dict__(self) -> PlainData:  # type: ignore[override]  # a copy, so that ``vars(output)`` changes nothing
        return {"text": self.text}

    @property
    def token_ids(self) -> list[int]:  # type: ignore[override]  # a new list each time: the caller may change it
        return [*self._token_ids]

    def __bool__(self) -> bool:
        return bool(self._token_ids)

    def as_dict(self) -> PlainData:
        """Return the fields that this output has."""
        return {"text": self.text, "token_ids": self.token_ids}

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"many requests share this output, so its {name} cannot be set; copy.copy() gives one of your own")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"many requests share this output, so its {name} cannot be deleted")

    def __reduce__(self) -> tuple[object, ...]:
        return RequestOutput, (self.text, self.token_ids)


NOT_DUE = SharedOutput("")
"""The output of a step after which no output is due (`stream_interval`, "final")."""


def merged(outputs: Sequence[RequestOutput]) -> RequestOutput:
    """Return one output with the content of several in a row. Only the first may be cumulative."""
    ids: list[int] = []
    retracted = 0
    for output in outputs:
        # A stop may cut ids of earlier steps. Ids of these outputs are taken out; the others remain to be retracted.
        cut = min(output.retracted_tokens, len(ids))
        retracted += output.retracted_tokens - cut
        del ids[len(ids) - cut :]
        ids += output.token_ids
    one = RequestOutput("".join([output.text for output in outputs]), ids)
    for name in END_FIELDS:
        if name in outputs[-1].__dict__:
            setattr(one, name, getattr(outputs[-1], name))
    if retracted != one.retracted_tokens:
        one.retracted_tokens = retracted
    for name, merge in BESIDE.items():
        values = [value for output in outputs if (value := getattr(output, name)) is not None]
        if values:
            setattr(one, name, merge([item for value in values for item in value]))
    if outputs[0].cumulative:
        one.cumulative = True
    return one


class OutputCollector:
    """
    Makes the outputs that the options `output` and `stream_interval` ask for from the outputs of single steps.

    Args:
        options: The options of the request.
    """

    __slots__ = ("_ids", "_interval", "_kind", "_sent", "_waiting")

    def __init__(self, options: RequestOptions) -> None:
        self._kind = options.output
        self._interval = options.stream_interval
        self._sent = 0
        """Number of ids in the outputs so far."""
        self._ids = 0
        """Number of ids since the last output; since the beginning, if outputs are cumulative."""
        self._waiting: list[RequestOutput] = []
        """The outputs of the steps since the last output; since the beginning, if outputs are cumulative."""

    def add(self, new: RequestOutput) -> RequestOutput:
        """Take the output of a step, and return the output that is due; `NOT_DUE` if none is."""
        if self._kind == "delta" and self._interval == 1:
            return new
        self.gather([new])
        if not new.finished and (self._kind == "final" or not self._since_output() or self.until_due() > 0):
            return NOT_DUE
        output = merged(self._waiting)
        if self._kind != "delta":
            output.cumulative = True
        self._sent = self._ids if output.cumulative else self._sent + self._ids
        # The merged output replaces its parts, so that a cumulative output costs no more than its text. It is the caller's, who
        # may change it, so a copy is kept.
        self._waiting = [_gathered(*_contents(output))] if output.cumulative else []
        self._ids = self._ids if output.cumulative else 0
        return output

    def gather(self, outputs: Sequence[RequestOutput]) -> None:
        """Take the outputs of steps after which none is due."""
        self._waiting += outputs
        self._ids += sum([len(output.token_ids) - output.retracted_tokens for output in outputs])
        # A merge costs time in the length of the whole text. It comes when that has doubled, so O(1) for each output.
        if len(self._waiting) > MAX_WAITING + len(self._waiting[0].token_ids):
            self._waiting = [merged(self._waiting)]

    def _since_output(self) -> int:
        """Return the number of ids since the last output."""
        return self._ids - (self._sent if self._kind == "cumulative" else 0)

    def until_due(self) -> int:
        """Return the least number of further ids until an output is due."""
        if self._kind == "final":
            return MAX_WAITING
        return (self._interval if self._sent else 1) - self._since_output()

    def plain(self) -> tuple[Plain, ...]:
        """Return the arguments of `restore`."""
        one = merged(self._waiting) if self._waiting else RequestOutput()
        return (self._sent, self._ids, *_contents(one))

    def restore(self, sent: int, ids: int, text: str, token_ids: Sequence[int], *beside: Items | None) -> None:
        """Take over the state of another collector."""
        self._sent, self._ids = sent, ids
        self._waiting = [_gathered(text, token_ids, *beside)]


def _contents(output: RequestOutput) -> tuple[Any, ...]:
    """Return the arguments of `_gathered`."""
    return (output.text, output.token_ids, *(getattr(output, name) for name in BESIDE))


def _gathered(text: str, token_ids: Sequence[int], *beside: Items | None) -> RequestOutput:
    """Return an output with lists of its own."""
    one = RequestOutput(text, list(token_ids))
    for name, values in zip(BESIDE, beside, strict=True):
        if values is not None:
            setattr(one, name, list(values))
    return one
