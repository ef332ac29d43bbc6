"""
The fields of a body beyond their types: numbers that are whole though written otherwise, and names that nobody knows.

Tested in tests/server/test_api_fields.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

__all__ = ["near_misses", "read_body_as"]

Body = TypeVar("Body", bound=msgspec.Struct)

MAX_WARNINGS = 8
MAX_NAME = 64
"""Characters. A name that is longer is no slip of the pen."""

HARMLESS = frozenset(
    (
        # OpenAI's, which say something to OpenAI alone.
        *("metadata", "prediction", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "service_tier", "store"),
        *("user", "verbosity"),
        # vLLM's, about what is not done here: routing, and what its own renderer says of a prompt.
        *("mm_payload", "mm_processor_kwargs", "media_io_kwargs", "return_mm_kwargs"),
        *("return_token_offsets", "routed_experts_prompt_start", "session_id"),
    )
)
"""Known, and without an effect."""

_keys = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def read_body_as(content: bytes, kind: type[Body]) -> Body:
    """
    Read a body. An integer may be written as JSON Schema has it, ``2.0``.

    Raises:
        msgspec.DecodeError: It is not what it has to be; the message names the field.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError:
        values = msgspec.json.decode(content)
        if not isinstance(values, dict):
            raise
        whole = {name: _whole(value) for name, value in values.items()}
        if whole == values and all(type(one) is type(values[name]) for name, one in whole.items()):
            raise
        # In objects (a schema, a message) a number stays as it was written.
        return msgspec.convert(whole, type=kind)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return [_whole(one) for one in value] if isinstance(value, list) else value


def near_misses(content: bytes, kind: type[msgspec.Struct]) -> list[str]:
    """
    Return a warning for each field of a body that nobody knows and that is nearly one that there is.

    >>> class Point(msgspec.Struct):
    ...     temperature: float | None = None
    >>> near_misses(b'{"temprature": 0.5, "something": 1}', Point)
    ["unknown field 'temprature', did you mean 'temperature'?"]
    """
    known = _fields(kind)
    unknown = [name for name in _keys(content) if name not in known]
    return [warning for name in unknown if (warning := _warning(name, known)) is not None][:MAX_WARNINGS]


@lru_cache(maxsize=16)
def _fields(kind: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(kind.__struct_fields__) | HARMLESS


def _warning(name: str, known: Iterable[str]) -> str | None:
    if len(name) > MAX_NAME:
        return None
    folded = name.replace("-", "_").lower()
    nearest = get_close_matches(folded, known, n=1, cutoff=0.85) or get_close_matches(_snake(name), known, n=1, cutoff=0.95)
    return f"unknown field {name!a}, did you mean {nearest[0]!r}?" if nearest else None


def _snake(name: str) -> str:
    """A name in camel case as the API writes it."""
    return "".join(f"_{one.lower()}" if one.isupper() else one for one in name)
