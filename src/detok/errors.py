"""Every error that detok raises on purpose; anything else that comes out is a bug of ours.

The tree keeps the caller's faults (`UsageError` and its children) apart from faults of the data that was handed in
(`SourceError`, `SnapshotError`) and of an engine (`EngineError`). A wrong type is a `TokenTypeError`, which is a `TypeError` too.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "ChatTemplateError",
    "DetokError",
    "DoubleBos",
    "DuplicateRequest",
    "EncodeUnsupported",
    "EncoderBusy",
    "EncoderClosed",
    "EngineError",
    "MessageError",
    "MissingExtra",
    "OptionError",
    "PromptTooLong",
    "RequestExpired",
    "RequestFailed",
    "RequestFinished",
    "SnapshotError",
    "SourceError",
    "StopRegexTimeout",
    "StreamFinished",
    "TokenTypeError",
    "UnknownDecoder",
    "UnknownRequest",
    "UnknownTokenId",
    "UsageError",
    "WireError",
    "WorkerError",
    "WorkerUnavailable",
]


class DetokError(Exception):
    """The root of the tree."""

    def __reduce__(self) -> tuple[object, ...]:
        # By fields, since most are made with keywords: an error crosses to another process as it is.
        return _rebuilt, (type(self), self.args, dict(self.__dict__))


def _rebuilt(kind: type[DetokError], args: tuple[object, ...], fields: dict[str, object]) -> DetokError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


class UsageError(DetokError):
    """The caller asked for something that cannot be."""


class OptionError(UsageError, ValueError):
    """An option has a value that it cannot have."""

    def __init__(self, *, option: str, value: object, accepted: str) -> None:
        super().__init__(option, value, accepted)
        self.option, self.value, self.accepted = option, value, accepted

    def __str__(self) -> str:
        return f"{self.option}={self.value!r} is not possible; {self.accepted}"


class TokenTypeError(UsageError, TypeError):
    """Something that is no integer stood where a token id belongs, or something that is no list where a list of them does."""

    def __init__(self, value: object, *, where: str, position: int | None = None, wants_list: bool = False) -> None:
        super().__init__(value, where, position, wants_list)
        self.value, self.where, self.position, self.wants_list = value, where, position, wants_list

    def __str__(self) -> str:
        place = self.where if self.position is None else f"{self.where}[{self.position}]"
        wanted = "a list of token ids is expected; step() takes a single one" if self.wants_list else _ONE_ID
        return f"{place} is the {type(self.value).__name__} {self.value!r}; {wanted}"


_ONE_ID = "a token id is an integer (int or numpy integer)"


class UnknownTokenId(UsageError, LookupError):
    """The tokenizer has no such id, and the caller asked to be told (`unknown_ids="error"`)."""

    def __init__(self, token_id: int, *, position: int | None = None) -> None:
        super().__init__(token_id, position)
        self.token_id, self.position = token_id, position

    def __str__(self) -> str:
        where = "" if self.position is None else f" at position {self.position}"
        return f"the tokenizer has no id {self.token_id}{where}"


class StreamFinished(UsageError):
    """`finish()` was called; a finished stream takes no more ids."""

    def __str__(self) -> str:
        return "the stream is finished and takes no more ids; open a new one with tokenizer.stream()"


class RequestFinished(StreamFinished):
    """More ids came for a request that has ended."""

    def __init__(self, finish_reason: str) -> None:
        super().__init__(finish_reason)
        self.finish_reason = finish_reason

    def __str__(self) -> str:
        return (
            f"the request has ended ({self.finish_reason}) and takes no more ids; open a new one with tokenizer.request(), "
            'or ask for after_finish="ignore"'
        )


class DuplicateRequest(UsageError):
    """A request was opened with the id of one that is open."""

    def __init__(self, request_id: object) -> None:
        super().__init__(request_id)
        self.request_id = request_id

    def __str__(self) -> str:
        return f"the request {self.request_id!r} is open already; give each request an id of its own"


class UnknownRequest(UsageError, LookupError):
    """A step or an end came for a request that is not open."""

    def __init__(self, request_id: object) -> None:
        super().__init__(request_id)
        self.request_id = request_id

    def __str__(self) -> str:
        return f"no request {self.request_id!r} is open; it was never opened, or it has ended"


class StopRegexTimeout(UsageError, TimeoutError):
    """A stop pattern took longer than `stop_regex_timeout`; the request is as it was before that step."""

    def __init__(self, pattern: str, *, timeout: float) -> None:
        super().__init__(pattern, timeout)
        self.pattern, self.timeout = pattern, timeout

    def __str__(self) -> str:
        return (
            f"the stop_regex {self.pattern!r} took longer than {self.timeout} s on this text; "
            "write it without nested repeats, or allow it more with stop_regex_timeout"
        )


class MessageError(UsageError, ValueError):
    """A message of a chat, or a tool or document beside it, is not what a chat is made of."""

    def __init__(self, place: str, *, found: str, accepted: str) -> None:
        super().__init__(place, found, accepted)
        self.place, self.found, self.accepted = place, found, accepted

    def __str__(self) -> str:
        return f"{self.place} {self.found}; {self.accepted}"


class DoubleBos(UsageError, ValueError):
    """A prompt would begin with two BOS tokens, and the caller asked to be told (`double_bos="error"`)."""

    def __init__(self, token_id: int, *, text: str) -> None:
        super().__init__(token_id, text)
        self.token_id, self.text = token_id, text

    def __str__(self) -> str:
        return (
            f"the prompt begins with {self.text!r} (id {self.token_id}) twice, which no model was trained on; "
            'take one away, or give double_bos="fix"'
        )


class ChatTemplateError(DetokError, ValueError):
    """A chat template cannot be read, or refuses or fails at a chat."""

    def __init__(self, template: str, *, line: int | None, problem: str) -> None:
        super().__init__(template, line, problem)
        self.template, self.line, self.problem = template, line, problem

    def __str__(self) -> str:
        where = "" if self.line is None else f", line {self.line}"
        return f"chat template {self.template!r}{where}: {self.problem}"


class SourceError(DetokError, ValueError):
    """What was to be loaded is no tokenizer that detok can read."""

    def __init__(self, source: object, *, found: str, accepted: str) -> None:
        super().__init__(source, found, accepted)
        self.source, self.found, self.accepted = source, found, accepted

    def __str__(self) -> str:
        return f"{self.source}: {self.found}; {self.accepted}"


class UnknownDecoder(SourceError):
    """A decoder of a type that detok does not know, so that its text could only be guessed."""

    def __init__(self, source: object, *, decoder: object, known: Sequence[str]) -> None:
        super().__init__(source, found=f"unknown decoder type {decoder!r}", accepted=f"known are {', '.join(known)}")
        self.decoder, self.known = decoder, tuple(known)


class SnapshotError(DetokError, ValueError):
    """A snapshot that does not belong here, is of another version, or was changed on its way."""


class RequestFailed(DetokError, RuntimeError):
    """A worker could not go on with a request; it has ended, and all others go on."""

    def __init__(self, kind: str, *, problem: str) -> None:
        super().__init__(kind, problem)
        self.kind, self.problem = kind, problem

    def __str__(self) -> str:
        return f"{self.problem} ({self.kind} in the worker)"


class RequestExpired(DetokError, TimeoutError):
    """Nothing came for a request for too long, so it was ended."""

    def __init__(self, *, idle: float) -> None:
        super().__init__(idle)
        self.idle = idle

    def __str__(self) -> str:
        return f"nothing came for this request in {self.idle:g} s; end requests with a finish reason or abort(), or allow more"


class WireError(DetokError, ValueError):
    """A message that is garbage, of another version, or not possible now."""

    def __init__(self, code: str, *, field: str, problem: str) -> None:
        super().__init__(code, field, problem)
        self.code, self.field, self.problem = code, field, problem

    def __str__(self) -> str:
        return f"{self.field}: {self.problem} ({self.code})"


class WorkerError(DetokError, RuntimeError):
    """A worker that a client cannot work with."""

    def __init__(self, endpoint: str, *, problem: str) -> None:
        super().__init__(endpoint, problem)
        self.endpoint, self.problem = endpoint, problem

    def __str__(self) -> str:
        return f"the worker at {self.endpoint}: {self.problem}"


class WorkerUnavailable(DetokError, TimeoutError):
    """A worker did not answer in time. Nothing is lost: the step can be waited for again."""

    def __init__(self, endpoint: str, *, seconds: float) -> None:
        super().__init__(endpoint, seconds)
        self.endpoint, self.seconds = endpoint, seconds

    def __str__(self) -> str:
        return f"no answer from {self.endpoint} in {self.seconds:g} s; is `detok worker` running there?"


class EncodeUnsupported(DetokError, NotImplementedError):
    """This kind of tokenizer can be decoded here, but not encoded."""

    def __init__(self, kind: str, *, instead: str) -> None:
        super().__init__(kind, instead)
        self.kind, self.instead = kind, instead

    def __str__(self) -> str:
        return f"detok has no encoder for {self.kind}; {self.instead}"


class PromptTooLong(UsageError, ValueError):
    """A prompt is longer than the caller allows."""

    def __init__(self, *, length: int, limit: int, unit: str) -> None:
        super().__init__(length, limit, unit)
        self.length, self.limit, self.unit = length, limit, unit

    def __str__(self) -> str:
        instead = "shorten it" if self.unit == "characters" else "shorten it, give truncate_prompt_tokens"
        return f"the prompt has {self.length:,} {self.unit}, and {self.limit:,} are allowed; {instead} or raise max_{self.unit}"


class EncoderBusy(DetokError, RuntimeError):
    """As many prompts wait to be encoded as may wait; a server answers this with 503."""

    def __init__(self, *, waiting: int, limit: int) -> None:
        super().__init__(waiting, limit)
        self.waiting, self.limit = waiting, limit

    def __str__(self) -> str:
        return f"{self.waiting} prompts wait to be encoded, and {self.limit} may wait; try again later, or raise max_queue"


class EncoderClosed(UsageError, RuntimeError):
    """The encoder was closed before, or while, the prompt waited."""

    def __str__(self) -> str:
        return "the encoder is closed and takes no more prompts; make a new one with tokenizer.async_encoder()"


class MissingExtra(DetokError, ImportError):
    """A library is needed that this installation does not have."""

    def __init__(self, library: str, *, extra: str, purpose: str) -> None:
        super().__init__(library, extra, purpose)
        self.library, self.extra, self.purpose = library, extra, purpose

    def __str__(self) -> str:
        return f"{self.purpose} needs the library {self.library!r}; install it with: pip install 'detok[{self.extra}]'"


class EngineError(DetokError):
    """An engine refused a request, cannot be reached, or broke off."""

    def __init__(
        self,
        message: str,
        *,
        engine: str | None = None,
        status: int | None = None,
        type: str | None = None,
        code: str | int | None = None,
        param: str | None = None,
    ) -> None:
        """
        Args:
            message: In the engine's own words, if it said any. It names no address, so that a client may read it.
            engine: Which engine, for the operator's eyes.
            status: The HTTP status that it answered; None if it answered none.
            type: What it calls the kind of the error.
            code: Its own code for it.
            param: The field of the request that it names.
        """
        super().__init__(message)
        self.message, self.engine, self.status, self.type, self.code, self.param = message, engine, status, type, code, param

    def __str__(self) -> str:
        status = "" if self.status is None else f" (status {self.status})"
        return f"{self.engine or 'the engine failed'}: {self.message}{status}"
