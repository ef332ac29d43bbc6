"""
vLLM's `structured_outputs` in the words of other engines.

Tested in tests/server/test_api_fields.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..errors import OptionError

__all__ = ["for_llamacpp", "for_sglang"]

ANY_OBJECT: dict[str, Any] = {"type": "object"}


def for_sglang(structured: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return what SGLang calls it, among its sampling parameters.

    >>> for_sglang({"json": {"type": "string"}}), for_sglang({"choice": ["a", "b."]})
    ({'json_schema': '{"type": "string"}'}, {'regex': '(a|b\\\\.)'})

    Raises:
        OptionError: It has nothing like it.
    """
    match _one(structured, "sglang"):
        case "json", schema:
            return {"json_schema": schema if isinstance(schema, str) else json.dumps(schema)}
        case "json_object", _:
            return {"json_schema": json.dumps(ANY_OBJECT)}
        case "regex", pattern:
            return {"regex": pattern}
        case "choice", [*choices]:
            return {"regex": f"({'|'.join(map(re.escape, map(str, choices)))})"}
        case "grammar", grammar:
            return {"ebnf": grammar}
        case "structural_tag", tag:
            return {"structural_tag": tag if isinstance(tag, str) else json.dumps(tag)}
    return {}


def for_llamacpp(structured: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return what llama.cpp's server calls it.

    >>> for_llamacpp({"json": '{"type": "string"}'}), for_llamacpp({"choice": ["a", 'b"']})
    ({'json_schema': {'type': 'string'}}, {'grammar': 'root ::= "a" | "b\\\\""'})

    Raises:
        OptionError: It has nothing like it.
    """
    match _one(structured, "llamacpp"):
        case "json", schema:
            return {"json_schema": _object(schema)}
        case "json_object", _:
            return {"json_schema": ANY_OBJECT}
        case "choice", [*choices]:
            return {"grammar": f"root ::= {' | '.join(json.dumps(str(one), ensure_ascii=False) for one in choices)}"}
        case "grammar", grammar:
            return {"grammar": grammar}
        case kind, value:
            accepted = "the engine llamacpp binds its answers by json, json_object, choice or a grammar in GBNF"
            raise OptionError(option="structured_outputs", value={kind: value}, accepted=accepted)
    return {}


def _one(structured: Mapping[str, Any], engine: str) -> tuple[str, Any] | None:
    """The one thing that is asked for; what else there is says how a backend of vLLM's does it."""
    kinds = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")
    given = [(kind, structured[kind]) for kind in kinds if structured.get(kind) not in (None, False)]
    if len(given) > 1:
        accepted = f"the engine {engine} takes one of {', '.join(kinds)}"
        raise OptionError(option="structured_outputs", value=dict(structured), accepted=accepted)
    return given[0] if given else None


def _object(schema: Any) -> Any:
    try:
        return json.loads(schema) if isinstance(schema, str) else schema
    except ValueError as error:
        raise OptionError(option="structured_outputs", value=schema, accepted=f"its schema has to be JSON: {error}") from None
