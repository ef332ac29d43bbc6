"""The options of a request, checked once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, NoReturn, get_args

from ...errors import OptionError
from ...ids import as_ids
from ...turns.formats import TurnFormat, turn_format
from ..options import DecodeOptions, check_at_least, check_choice

OutputKind = Literal["delta", "cumulative", "final"]
AfterStop = Literal["cut", "keep"]
AfterFinish = Literal["error", "ignore"]

# What a stop may hold back is bounded by its length; and all that it may come to has to be remembered at once, or it is found out
# again and again (`stops.MAX_MOVES`).
MAX_STOP_LENGTH = 1 << 12

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions(DecodeOptions):
    """
    How ids become text, where the text ends, and how it is given. The names are those of vLLM's SamplingParams.

    Lists may be given as any iterable; `stop` and `stop_regex` also as one string. They become tuples.

    Raises:
        OptionError: A value is not accepted, or contradicts another.
        TokenTypeError: A stop token id is no integer.
        MissingExtra: `stop_regex` without the library ``regex``.
    """

    OF: ClassVar[str] = "a request"

    stop: str | Iterable[str] = ()
    """The text ends before the first of these that completes in it. Literal, in any script, over any number of tokens."""

    stop_regex: str | Iterable[str] = ()
    """The same for patterns of the library ``regex``: a match counts as soon as it is one, and ``a+`` is one with one a."""

    stop_regex_timeout: float = 0.1
    """So many seconds one search for one pattern may take before the request fails with `StopRegexTimeout`."""

    stop_token_ids: Iterable[int] = ()
    """The text ends before these ids."""

    eos_token_ids: Iterable[int] | None = None
    """The text ends before these ids too, and the `stop_reason` is None. None: those that the tokenizer knows."""

    ignore_eos: bool = False
    """`eos_token_ids` end nothing. An id that is in `stop_token_ids` does all the same."""

    include_stop_str_in_output: bool = False
    """The text ends behind what stopped it, string or token, whether that token is special or not."""

    min_tokens: int = 0
    """What would stop at or before this many tokens does not, then or later."""

    max_tokens: int | None = None
    """After this many tokens the request ends with "length"."""

    detokenize: bool = True
    """False: ids pass through and there is no text."""

    output: OutputKind = "delta"
    """"delta": what is new since the last output. "cumulative": all so far. "final": one output, at the end."""

    stream_interval: int = 1
    """An output is due with the first token, then with every so many, and at the end."""

    after_stop: AfterStop = "cut"
    """"cut": ids behind the one that completed the stop, and their logprobs, are left out. "keep": they stay. The text is the
    same."""

    after_finish: AfterFinish = "error"
    """What `feed` does with ids for a finished request: refuses them with `RequestFinished`, or ignores them."""

    segments: bool = False
    """Give the text also as segments, with `Special` events for the special tokens between them."""

    channels: str | TurnFormat | None = None
    """Give the text also by channel (`content`, `reasoning`, `tool`): the name of a format in `TURN_FORMATS`, or a format."""

    def __post_init__(self) -> None:
        # Named, since a slotted dataclass is another class than the one that `super()` was compiled for.
        DecodeOptions.__post_init__(self)
        self._set("stop", _texts("stop", self.stop))
        self._set("stop_regex", _texts("stop_regex", self.stop_regex))
        self._set("stop_token_ids", tuple(as_ids(self.stop_token_ids, where="stop_token_ids")))
        if self.eos_token_ids is not None:
            self._set("eos_token_ids", tuple(as_ids(self.eos_token_ids, where="eos_token_ids")))
        self._set("channels", turn_format(self.channels))
        for option in ("ignore_eos", "include_stop_str_in_output", "detokenize", "segments"):
            check_choice(option, getattr(self, option), (True, False))
        check_choice("output", self.output, get_args(OutputKind))
        check_choice("after_stop", self.after_stop, get_args(AfterStop))
        check_choice("after_finish", self.after_finish, get_args(AfterFinish))
        check_at_least("min_tokens", self.min_tokens, 0)
        check_at_least("stream_interval", self.stream_interval, 1)
        if self.max_tokens is not None:
            check_at_least("max_tokens", self.max_tokens, 1)
            if self.min_tokens > self.max_tokens:
                _refuse("min_tokens", self.min_tokens, f"max_tokens is {self.max_tokens}, and min_tokens must not be more")
        timeout = self.stop_regex_timeout
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < float("inf"):
            _refuse("stop_regex_timeout", timeout, "it is a number of seconds above 0")
        self._set("stop_regex_timeout", float(timeout))
        if not self.detokenize:
            self._needs_text()

    def _needs_text(self) -> None:
        for option in ("stop", "stop_regex", "segments", "channels"):
            if wanted := getattr(self, option):
                _refuse(option, wanted, "with detokenize=False there is no text to look for it in; leave one of the two out")

    def _set(self, option: str, value: object) -> None:
        object.__setattr__(self, option, value)

    @property
    def decoding(self) -> DecodeOptions:
        """The options that concern the text alone."""
        return DecodeOptions(**{field.name: getattr(self, field.name) for field in fields(DecodeOptions)})

    def as_dict(self) -> dict[str, Any]:
        """The options as plain data, for a snapshot."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**plain, "channels": self.channels.as_dict() if isinstance(self.channels, TurnFormat) else None}


def _texts(option: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = (value,)
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        _refuse(option, value, "it is a string or a list of strings")
    texts: tuple[Any, ...] = tuple(value)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            _refuse(f"{option}[{position}]", text, "it is a string")
        if not text:
            _refuse(f"{option}[{position}]", text, "an empty stop would end the text before it begins; leave it out")
        if len(text) > MAX_STOP_LENGTH:
            _refuse(
                f"{option}[{position}]",
                f"{text[:20]}…",
                f"it is longer than {MAX_STOP_LENGTH:,} characters",
            )
        if _SURROGATE.search(text):
            _refuse(f"{option}[{position}]", text, "no text has a lone surrogate in it, so it would never be found")
    # Of subclasses of str, the text.
    return tuple("".join((text,)) for text in texts)


def _refuse(option: str, value: object, accepted: str) -> NoReturn:
    raise OptionError(option=option, value=value, accepted=accepted)
