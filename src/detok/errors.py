"""
Every exception that detok raises on purpose. Any other exception is a bug of detok.

`UsageError` and its children are faults of the caller. The others are faults of data (`SourceError`, `SnapshotError`), of an
engine (`EngineError`), of a worker, or of the installation (`MissingExtra`). Each has its facts as attributes, and its text says
what to do. Some are a built-in exception too: `OptionError` is a `ValueError`, `TokenTypeError` a `TypeError`.

>>> raise OptionError(option="max_tokens", value=0, accepted="it is an integer of at least 1")
Traceback (most recent call last):
    ...
detok.errors.OptionError: max_tokens=0 is invalid; it is an integer of at least 1
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

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
    """The base class of all exceptions of detok."""

    def __reduce__(self) -> tuple[object, ...]:
        # Pickled by its fields, since most constructors take keywords. So an error reaches another process unchanged.
        return _rebuilt, (type(self), self.args, dict(self.__dict__))


def _rebuilt(kind: type[DetokError], args: tuple[object, ...], fields: dict[str, object]) -> DetokError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


class UsageError(DetokError):
    """The caller asked for something invalid. The fault is in the call, and the same call fails again."""


class OptionError(UsageError, ValueError):
    """The value of an option is invalid; `accepted` says which values are valid."""

    def __init__(self, *, option: str, value: object, accepted: str) -> None:
        super().__init__(option, value, accepted)
        self.option, self.value, self.accepted = option, value, accepted

    def __str__(self) -> str:
        return f"{self.option}={self.value!r} is invalid; {self.accepted}"


class TokenTypeError(UsageError, TypeError):
    """A token id is not an integer, or a list of token ids is not a list. `where` and `position` name the place."""

    def __init__(self, value: object, *, where: str, position: int | None = None, wants_list: bool = False) -> None:
        super().__init__(value, where, position, wants_list)
        self.value, self.where, self.position, self.wants_list = value, where, position, wants_list

    def __str__(self) -> str:
        place = self.where if self.position is None else f"{self.where}[{self.position}]"
        wanted = "a list of token ids is expected" if self.wants_list else "a token id is an integer (int or numpy integer)"
        return f"{place} is the {type(self.value).__name__} {self.value!r}; {wanted}{self._hint}"

    @property
    def _hint(self) -> str:
        if not self.wants_list:
            several = self.where == "token_id" and isinstance(self.value, (list, tuple))
            return "; extend() takes a list of them" if several else ""
        if isinstance(self.value, bool):
            return ""
        try:
            return f"; give a list: [{index(self.value)}]"  # type: ignore[arg-type]  # what is no integer raises
        except (TypeError, ValueError, RuntimeError):  # as in `detok.ids`
            return ""


class UnknownTokenId(UsageError, LookupError):
    """The tokenizer has no such id. Streams and requests raise it with ``unknown_ids="error"`` only."""

    def __init__(self, token_id: int, *, position: int | None = None) -> None:
        super().__init__(token_id, position)
        self.token_id, self.position = token_id, position

    def __str__(self) -> str:
        where = "" if self.position is None else f" at position {self.position}"
        return f"the tokenizer has no id {self.token_id}{where}"


class StreamFinished(UsageError):
    """An id came for a stream that is finished."""

    def __str__(self) -> str:
        return "the stream is finished and takes no more ids; open a new one with tokenizer.stream()"


class RequestFinished(StreamFinished):
    """An id came for a request that has ended."""

    def __init__(self, finish_reason: str) -> None:
        super().__init__(finish_reason)
        self.finish_reason = finish_reason

    def __str__(self) -> str:
        return (
            f"the request has ended ({self.finish_reason}) and takes no more ids; open a new one with tokenizer.request(), "
            'or give the request after_finish="ignore"'
        )


class DuplicateRequest(UsageError):
    """A request was opened with the id of another open request."""

    def __init__(self, request_id: object) -> None:
        super().__init__(request_id)
        self.request_id = request_id

    def __str__(self) -> str:
        return f"the request {self.request_id!r} is open already; give each request its own id"


class UnknownRequest(UsageError, LookupError):
    """A row or an end came for a request that is not open."""

    def __init__(self, request_id: object) -> None:
        super().__init__(request_id)
        self.request_id = request_id

    def __str__(self) -> str:
        return f"no request {self.request_id!r} is open; it was never opened, or it has ended"


class StopRegexTimeout(UsageError, TimeoutError):
    """The search for a stop pattern took longer than `stop_regex_timeout`. The request is unchanged."""

    def __init__(self, pattern: str, *, timeout: float) -> None:
        super().__init__(pattern, timeout)
        self.pattern, self.timeout = pattern, timeout

    def __str__(self) -> str:
        return (
            f"the stop_regex {self.pattern!r} took longer than {self.timeout} s on this text; "
            "write it without nested repeats, or raise stop_regex_timeout"
        )


class MessageError(UsageError, ValueError):
    """A message, tool or document of a chat is invalid. `place` names it, as in ``messages[2].content``."""

    def __init__(self, place: str, *, found: str, accepted: str) -> None:
        super().__init__(place, found, accepted)
        self.place, self.found, self.accepted = place, found, accepted

    def __str__(self) -> str:
        return f"{self.place} {self.found}; {self.accepted}"


class DoubleBos(UsageError, ValueError):
    """A prompt would begin with two BOS tokens (with ``double_bos="error"`` only)."""

    def __init__(self, token_id: int, *, text: str) -> None:
        super().__init__(token_id, text)
        self.token_id, self.text = token_id, text

    def __str__(self) -> str:
        return (
            f"the prompt begins with {self.text!r} (id {self.token_id}) twice, which no model was trained on; "
            'remove one of them, or give double_bos="fix"'
        )


class ChatTemplateError(DetokError, ValueError):
    """A chat template is invalid, or it refuses a chat, or fails while it renders one."""

    def __init__(self, template: str, *, line: int | None, problem: str, place: str | None = None) -> None:
        super().__init__(template, line, problem)
        self.template, self.line, self.problem, self.place = template, line, problem, place

    def __str__(self) -> str:
        where = "" if self.line is None else f", line {self.line}"
        at = "" if self.place is None else f" (at {self.place})"
        return f"chat template {self.template!r}{where}: {self.problem}{at}"


class SourceError(DetokError, ValueError):
    """A source is not a tokenizer that detok can read: it is damaged, or of another kind."""

    def __init__(self, source: object, *, found: str, accepted: str) -> None:
        super().__init__(source, found, accepted)
        self.source, self.found, self.accepted = source, found, accepted

    def __str__(self) -> str:
        return f"{self.source}: {self.found}; {self.accepted}"


class UnknownDecoder(SourceError):
    """A tokenizer has a decoder of an unknown type. detok refuses it, since its text would be a guess."""

    def __init__(self, source: object, *, decoder: object, known: Sequence[str]) -> None:
        super().__init__(source, found=f"unknown decoder type {decoder!r}", accepted=f"known are {', '.join(known)}")
        self.decoder, self.known = decoder, tuple(known)


class SnapshotError(DetokError, ValueError):
    """A snapshot is of another tokenizer, version or kind, or it is damaged."""


class RequestFailed(DetokError, RuntimeError):
    """A worker failed at a request. The request has ended; all others continue."""

    def __init__(self, kind: str, *, problem: str) -> None:
        super().__init__(kind, problem)
        self.kind, self.problem = kind, problem

    def __str__(self) -> str:
        return f"{self.problem} ({self.kind} in the worker)"


class RequestExpired(DetokError, TimeoutError):
    """A worker ended a request that got no row for too long."""

    def __init__(self, *, idle: float) -> None:
        super().__init__(idle)
        self.idle = idle

    def __str__(self) -> str:
        return (
            f"nothing came for this request in {self.idle:g} s; "
            "end requests with a finish reason or abort(), or raise --max-idle of the worker"
        )


class WireError(DetokError, ValueError):
    """A message between worker and client is malformed, of another version, or out of order."""

    def __init__(self, code: str, *, field: str, problem: str) -> None:
        super().__init__(code, field, problem)
        self.code, self.field, self.problem = code, field, problem

    def __str__(self) -> str:
        return f"{self.field}: {self.problem} ({self.code})"


class WorkerError(DetokError, RuntimeError):
    """A client cannot use a worker: it has another tokenizer or version, or it refused a message."""

    def __init__(self, endpoint: str, *, problem: str) -> None:
        super().__init__(endpoint, problem)
        self.endpoint, self.problem = endpoint, problem

    def __str__(self) -> str:
        return f"the worker at {self.endpoint}: {self.problem}"


class WorkerUnavailable(DetokError, TimeoutError):
    """A worker did not answer in time. Nothing is lost: wait for the same step again."""

    def __init__(self, endpoint: str, *, seconds: float) -> None:
        super().__init__(endpoint, seconds)
        self.endpoint, self.seconds = endpoint, seconds

    def __str__(self) -> str:
        return f"no answer from {self.endpoint} in {self.seconds:g} s; is `detok worker` running there?"


class EncodeUnsupported(DetokError, NotImplementedError):
    """detok can decode with this tokenizer, but not encode."""

    def __init__(self, kind: str, *, instead: str) -> None:
        super().__init__(kind, instead)
        self.kind, self.instead = kind, instead

    def __str__(self) -> str:
        return f"detok has no encoder for {self.kind}; {self.instead}"


class PromptTooLong(UsageError, ValueError):
    """A prompt is longer than the limit; `unit` is "tokens" or "characters"."""

    def __init__(self, *, length: int, limit: int, unit: str) -> None:
        super().__init__(length, limit, unit)
        self.length, self.limit, self.unit = length, limit, unit

    def __str__(self) -> str:
        instead = "shorten it" if self.unit == "characters" else "shorten it, give truncate_prompt_tokens"
        return f"the prompt has {self.length:,} {self.unit}, and {self.limit:,} are allowed; {instead} or raise max_{self.unit}"


class EncoderBusy(DetokError, RuntimeError):
    """The queue of prompts to encode is full. A server answers this with status 503."""

    def __init__(self, *, waiting: int, limit: int) -> None:
        super().__init__(waiting, limit)
        self.waiting, self.limit = waiting, limit

    def __str__(self) -> str:
        return f"{self.waiting} prompts wait to be encoded, and {self.limit} may wait; try again later, or raise max_queue"


class EncoderClosed(UsageError, RuntimeError):
    """The encoder was closed before the prompt was encoded."""

    def __str__(self) -> str:
        return "the encoder is closed and takes no more prompts; make a new one with tokenizer.async_encoder()"


class MissingExtra(DetokError, ImportError):
    """A library is missing; the text says which extra of detok installs it."""

    def __init__(self, library: str, *, extra: str, purpose: str) -> None:
        super().__init__(library, extra, purpose)
        self.library, self.extra, self.purpose = library, extra, purpose

    def __str__(self) -> str:
        return f"{self.purpose} needs the library {self.library!r}; install it with: pip install 'detok[{self.extra}]'"


class EngineError(DetokError):
    """An engine refused a request, did not answer, or broke off its answer."""

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
            message: The engine's own message, if it gave one. It has no address in it, so a client may see it.
            engine: The name and address of the engine, for the operator only.
            status: The HTTP status of the answer; None if there was none.
            type: The engine's name for the kind of error.
            code: The engine's code for the error.
            param: The field of the request that the engine names.
        """
        super().__init__(message)
        self.message, self.engine, self.status, self.type, self.code, self.param = message, engine, status, type, code, param

    def __str__(self) -> str:
        status = "" if self.status is None else f" (status {self.status})"
        return f"{self.engine or 'the engine failed'}: {self.message}{status}"
