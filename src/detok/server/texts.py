"""JSON of answers. Text is escaped once, and whatever a tokenizer calls text can be sent."""

from __future__ import annotations

import json
from typing import Any

import msgspec

__all__ = ["json_bytes"]

_encode = msgspec.json.Encoder().encode


def json_bytes(value: Any) -> bytes:
    """
    Return a value as JSON.

    >>> json_bytes("🦜\\n"), json_bytes("\\ud800")
    (b'"\\xf0\\x9f\\xa6\\x9c\\\\n"', b'"\\\\ud800"')
    """
    try:
        return _encode(value)
    except UnicodeEncodeError:  # a lone surrogate, which some vocabularies have
        return json.dumps(value, separators=(",", ":")).encode()
