"""JSON of answers. Text is escaped once, and whatever a tokenizer calls text can be sent."""

from __future__ import annotations

import json
from typing import Any

import msgspec

__all__ = ["json_bytes"]

_encode = msgspec.json.Encoder().encode


# Characters that JSON may have as they are, and that end a line for many readers: str.splitlines of Python is one, and httpx
# reads events with it.
LINE_ENDS = {one.encode(): b"\\u%04x" % ord(one) for one in ("\u2028", "\u2029", "\u0085")}


def json_bytes(value: Any) -> bytes:
    """
    Return a value as JSON, on one line for whoever reads it.

    >>> json_bytes("🦜\\n"), json_bytes("\\ud800"), json_bytes("\\u2028")
    (b'"\\xf0\\x9f\\xa6\\x9c\\\\n"', b'"\\\\ud800"', b'"\\\\u2028"')
    """
    try:
        written = _encode(value)
        if not written.isascii():
            for end, escape in LINE_ENDS.items():
                if end in written:
                    written = written.replace(end, escape)
        return written
    except UnicodeEncodeError:  # a lone surrogate, which some vocabularies have
        return json.dumps(value, separators=(",", ":")).encode()
