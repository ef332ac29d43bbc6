"""What goes wrong, as OpenAI's clients read it: a status, and an `error` with message, type, param and code."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from starlette.exceptions import HTTPException

from ..core.request.output import RequestOutput
from ..errors import (
    ChatTemplateError,
    DetokError,
    EncoderBusy,
    EncoderClosed,
    EncodeUnsupported,
    EngineError,
    MessageError,
    MissingExtra,
    OptionError,
    PromptTooLong,
    TokenTypeError,
    UsageError,
)

__all__ = ["OVERFLOW", "Refused", "failure_of", "refusal_of", "shown_reason"]

# Statuses of an engine that speak of the request. Any other (it wants a key, say, or does not know the path) is between us two.
OF_THE_REQUEST = frozenset({400, 404, 408, 409, 413, 422, 429})

OVERFLOW = "context_length_exceeded"
"""OpenAI's code of it. It is in the words as well, where LangChain looks for it."""

TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


LONGEST_HEAD, LONGEST_TAIL = 400, 600
"""Characters of a message. What a client sent may be in its middle, and may be long; what to do stands at the end."""


class Refused(Exception):
    """A request that gets no answer, but a reason. Internal to the server: clients get it as JSON."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | int | None = None,
        type: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        message = _shortened(message)
        super().__init__(message)
        self.status, self.message, self.code = status, message, code
        self.param = None if param is None else _shortened(param)
        self.type = type or TYPES.get(status) or ("invalid_request_error" if status < 500 else "server_error")
        self.headers = headers or {}

    def as_dict(self) -> dict[str, Any]:
        """The body of the answer."""
        return {"error": {"message": self.message, **self.kind}}

    @property
    def kind(self) -> dict[str, Any]:
        """What it says without the words, in which may be what a user wrote."""
        return {"type": self.type, "param": self.param, "code": self.code}


def refusal_of(error: BaseException) -> Refused:
    """
    Return what a client is told of an error. Of one that is a fault of the server it is told no more than that.

    >>> refusal_of(OptionError(option="n", value=0, accepted="it is at least 1")).as_dict()
    {'error': {'message': 'n=0 is invalid; it is at least 1', 'type': 'invalid_request_error', 'param': 'n', 'code': None}}
    """
    match error:
        case Refused():
            return error
        case EngineError():
            return _of_engine(error)
        case PromptTooLong():
            return Refused(400, _too_long(error), code=OVERFLOW)
        case OptionError():
            return Refused(400, str(error), param=error.option)
        case MessageError():
            return Refused(400, str(error), param=error.place)
        case TokenTypeError():
            return Refused(400, str(error), param=error.where)
        case EncoderBusy() | EncoderClosed():
            return Refused(503, str(error), headers={"Retry-After": "1"})
        case MissingExtra():
            return Refused(501, str(error))
        case ChatTemplateError():
            return Refused(400, str(error), param=error.place)
        case UsageError() | EncodeUnsupported():
            return Refused(400, str(error))
        case msgspec.ValidationError():
            return Refused(400, _readable(str(error)), param=_field(str(error)))
        case msgspec.DecodeError() | UnicodeDecodeError():
            return Refused(400, f"the body is no JSON: {error}")
        case HTTPException():
            return Refused(error.status_code, error.detail, headers=dict(error.headers or {}))
        case DetokError():
            return Refused(500, str(error))
    return Refused(500, "the server failed at this request; its log says why")


def _too_long(error: PromptTooLong) -> str:
    """What OpenAI says of it: libraries of clients know an overflow by these words."""
    if error.unit != "tokens":
        return str(error)
    return (
        f"This model's maximum context length is {error.limit} tokens. However, the prompt has {error.length} tokens. "
        f"Please reduce the length of the prompt, or give truncate_prompt_tokens ({OVERFLOW})."
    )


def failure_of(output: RequestOutput) -> BaseException | None:
    """Return what an output failed with, or None if all is well."""
    if output.finish_reason == "error":
        return output.error or EngineError("it did not say why")
    if output.finish_reason == "abort":
        return Refused(503, "the request was aborted before its end: by the engine, or because the server shuts down")
    return None


def shown_reason(output: RequestOutput) -> str | None:
    """Return the finish reason that a choice shows. A failure is told otherwise."""
    return None if output.finish_reason in ("error", "abort") else output.finish_reason


def _shortened(text: str) -> str:
    left_out = len(text) - LONGEST_HEAD - LONGEST_TAIL
    return text if left_out <= 0 else f"{text[:LONGEST_HEAD]} … ({left_out:,} characters) … {text[-LONGEST_TAIL:]}"


def _of_engine(error: EngineError) -> Refused:
    if error.status in OF_THE_REQUEST:
        status = 400 if error.status == 422 else error.status
    else:
        status = 503 if error.status == 503 else 502
    kind = None if error.type in (None, "Bad Request") else error.type
    return Refused(status, error.message, param=error.param, code=error.code, type=kind)


# As msgspec ends a message: " - at `$.stop[...]`".
_PLACE = re.compile(r" - at (?:`?key`? in )?`(?:key in )?\$\.?([^`]*)`$")
_MISSING = re.compile(r"missing required field `(\w+)`")


def _field(message: str) -> str | None:
    found = _PLACE.search(message)
    place = found[1].replace("[...]", "") if found else ""
    missing = _MISSING.search(message)
    return ".".join(filter(None, (place, missing[1] if missing else None))) or None


def _readable(message: str) -> str:
    field = _field(message)
    text = "it is missing" if _MISSING.search(message) else _PLACE.sub("", message)
    return text if field is None else f"{field}: {text[:1].lower()}{text[1:]}"
