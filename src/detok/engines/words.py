"""Errors in an engine's own words, in each of the shapes that engines give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .base import EngineOutput

__all__ = ["error_output", "error_words", "refusal_words"]

# What of a plain text is passed on.
MAX_TEXT = 1000


def error_output(request_id: str, error: Any) -> EngineOutput:
    """Return the output that an error makes which came within an answer, under the key "error"."""
    words = error_words(error)
    code = words.get("code")
    status = code if isinstance(code, int) and 400 <= code <= 599 else None
    return EngineOutput(request_id=request_id, finish_reason="error", error=words["message"], error_status=status)


def refusal_words(status: int | None, line: str, media_type: str, body: bytes) -> dict[str, Any]:
    """
    Return `message`, and `type`, `code` and `param` where there are any, of an answer that is no output.

    >>> refusal_words(400, "400 Bad Request", "application/json", b'{"error":{"message":"empty","code":400}}')
    {'message': 'empty', 'code': 400}
    >>> refusal_words(502, "502 Bad Gateway", "text/html", b"<html>")
    {'message': 'the engine answered 502 Bad Gateway with text/html'}

    Args:
        status: Of an error; None for an answer that says that all is well, but is not what was asked for.
        line: The status and its name.
        media_type: Of the body.
        body: JSON or a plain text has the engine's words; anything else is not for clients.
    """
    if status is not None:
        try:
            value = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            value = None
        if isinstance(value, dict) and value:
            return error_words(value)
        text = body[:MAX_TEXT].decode(errors="replace").strip()
        if media_type == "text/plain" and text:
            return {"message": text}
    return {"message": f"the engine answered {line} with {media_type or 'an untyped body'}"}


def error_words(value: Any) -> dict[str, Any]:
    """
    Return `message`, and `type`, `code` and `param` where there are any, of an error that is a JSON value.

    >>> error_words({"error": {"message": "too long", "type": "BadRequestError", "param": None, "code": 400}})
    {'message': 'too long', 'type': 'BadRequestError', 'code': 400}
    >>> error_words({"object": "error", "message": "too long", "code": 400})
    {'message': 'too long', 'code': 400}
    >>> error_words({"detail": [{"loc": ["body", "rid"], "msg": "not a string"}]})
    {'message': '[{"loc":["body","rid"],"msg":"not a string"}]'}
    """
    if isinstance(value, Mapping):
        inner = value.get("error") or value
        if isinstance(inner, Mapping) and isinstance(inner.get("message"), str):
            kinds = {"message": str, "type": str, "code": str | int, "param": str}
            return {name: inner[name] for name, kind in kinds.items() if isinstance(inner.get(name), kind)}
        value = value.get("error") or value.get("detail") or value
    return {"message": value if isinstance(value, str) else msgspec.json.encode(value).decode()}
