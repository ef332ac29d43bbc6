"""The options of a request, checked once when they are made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Literal, NoReturn, get_args

from ...errors import OptionError
from ...ids import as_ids
from ...turns.formats import TurnFormat, turn_format
from ..options import DecodeOptions, PlainData, check_at_least, check_choice

OutputKind = Literal["delta", "cumulative", "final"]
AfterStop = Literal["cut", "keep"]
AfterFinish = Literal["error", "ignore"]

# Maximum characters of a stop. It bounds the text that a stop holds, and keeps all candidates of a long stop within
# `text_search.MAX_MOVES`: beyond that they would be forgotten and found anew at every token.
MAX_STOP_LENGTH = 1 << 12

_SURROGATE = re.compile(f"[{chr(0xD800)}-{chr(0xDFFF)}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions(DecodeOptions):
    """
    How ids become text, what ends the text, and what outputs contain. The names are those of vLLM's ``SamplingParams``.

    A list may be any iterable; `stop` and `stop_regex` may also be one string. They are kept as tuples. Equal options are
    interchangeable, and they can be a dict's key. ``tokenizer.request`` takes the options as an object, or each by name.

    Raises:
        OptionError: A value is not accepted, or contradicts another one, or there is no such option. The error names the option.
        TokenTypeError: A stop token id is not an integer.
    """

    OF: ClassVar[str] = "a request"

    stop: str | Iterable[str] | None = ()
    """
    The text ends before the first of these strings that completes in it, as if it came one character at a time. Of two that
    complete at one character, the first in the list counts. Any number of literal strings, 1 to 4,096 characters each; one may
    come in one token or over many.
    """

    stop_regex: str | Iterable[str] | None = ()
    """
    The same for patterns of the library ``regex``. A match ends the text as soon as it is one: ``a+`` stops at the first "a". A
    match has at most 1,024 characters.
    """

    stop_regex_timeout: float = 0.1
    """Maximum seconds of one search for one pattern. A longer one raises `StopRegexTimeout`."""

    stop_token_ids: Iterable[int] | None = ()
    """The text ends before the first of these ids, special or not. The id itself is kept in `RequestOutput.token_ids`."""

    eos_token_ids: Iterable[int] | None = None
    """
    The text ends before these ids too, with the `stop_reason` None, as in vLLM. None: ``tokenizer.eos_token_ids``; after
    `restore_request` and in a worker those of the tokenizer there, since the fingerprint does not cover them.
    """

    ignore_eos: bool = False
    """True: do not stop at `eos_token_ids`. Ids that `stop_token_ids` lists still stop."""

    include_stop_str_in_output: bool = False
    """True: the text ends after the stop string or stop token, even a special one. Then no text is held for a stop."""

    min_tokens: int = 0
    """Stops are ignored until more than `min_tokens` tokens exist. A stop string that completed earlier never counts."""

    max_tokens: int | None = None
    """Maximum tokens. After them the request ends with "length". None: no limit."""

    detokenize: bool = True
    """False: ids pass through, and there is no text. Stop ids and limits still work."""

    output: OutputKind = "delta"
    """"delta": what is new since the last output. "cumulative": all so far. "final": one output, at the end."""

    stream_interval: int = 1
    """Tokens from one output to the next. The first token and the end have an output in any case."""

    after_stop: AfterStop = "cut"
    """
    "cut": ids after the one that completed the stop are left out, and their logprobs too. "keep": they stay in the output. The
    text is the same.
    """

    after_finish: AfterFinish = "error"
    """Ids for a finished request: `feed` raises `RequestFinished` ("error"), or returns an empty output ("ignore")."""

    segments: bool = False
    """True: outputs have the text also as segments, with a `Special` event for each special token."""

    channels: str | TurnFormat | None = None
    """Outputs have the text also by channel (content, reasoning, tool): the name of one of `TURN_FORMATS`, or a `TurnFormat`."""

    def __post_init__(self) -> None:
        # Called by name: ``slots=True`` makes a new class, and `super()` without arguments refers to the old one.
        DecodeOptions.__post_init__(self)
        self._set("stop", _texts("stop", self.stop))
        self._set("stop_regex", _texts("stop_regex", self.stop_regex))
        # None is the default of vLLM and OpenAI.
        stop_ids = () if self.stop_token_ids is None else self.stop_token_ids
        self._set("stop_token_ids", tuple(as_ids(stop_ids, where="stop_token_ids")))
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
        """The options of these that decide how ids become text."""
        return DecodeOptions(**{field.name: getattr(self, field.name) for field in fields(DecodeOptions)})

    def as_dict(self) -> PlainData:
        """Return the options as plain data, for a snapshot."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**plain, "channels": self.channels.as_dict() if isinstance(self.channels, TurnFormat) else None}


def _texts(option: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = (value,)
    value = () if value is None else value
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        _refuse(option, value, "it is a string or a list of strings")
    texts: tuple[object, ...] = tuple(value)
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
    # A subclass of str becomes a plain str, which a snapshot can carry.
    return tuple("".join((text,)) for text in texts if isinstance(text, str))


def _refuse(option: str, value: object, accepted: str) -> NoReturn:
    raise OptionError(option=option, value=value, accepted=accepted)
