"""Which JSON types a tool's parameters may have, for formats that write values without their types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["tool_types"]

# A schema may refer to itself. What is nested more deeply allows any type.
MAX_DEPTH = 16
ANY = ("string",)

_ALIASES = {
    "str": "string", "text": "string", "int": "integer", "float": "number", "double": "number", "bool": "boolean", "dict":
    "object", "list": "array", "none": "null",
}  # fmt: skip


def tool_types(tools: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, tuple[str, ...]]]:
    """
    Return the types of each parameter, by tool.

    A parameter whose schema says no type is a string, as in vLLM.

    Args:
        tools: As in OpenAI's API.

    >>> schema = {"type": "object", "properties": {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "s": {}}}
    >>> tool_types([{"type": "function", "function": {"name": "f", "parameters": schema}}])
    {'f': {'n': ('integer', 'null'), 's': ('string',)}}
    """
    made = {}
    for tool in tools:
        function = tool.get("function", tool)
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            continue
        schema = function.get("parameters")
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        rows = properties if isinstance(properties, Mapping) else {}
        made[function["name"]] = {str(name): tuple(dict.fromkeys(_types(one, schema, 0))) or ANY for name, one in rows.items()}
    return made


def _types(schema: object, root: Any, depth: int) -> Iterator[str]:
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return
    kind = schema.get("type")
    for one in (kind,) if isinstance(kind, str) else kind if isinstance(kind, (list, tuple)) else ():
        if isinstance(one, str):
            name = one.strip().lower()
            yield _ALIASES.get(name, name)
    if schema.get("nullable") is True:
        yield "null"
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if kind is None and isinstance(values, (list, tuple)):
        yield from map(_type_of, values)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(keyword) or ():
            yield from _types(one, root, depth + 1)
    if isinstance(reference := schema.get("$ref"), str):
        yield from _types(_referred(reference, root), root, depth + 1)
    if kind is None:
        yield from (name for key, name in (("properties", "object"), ("items", "array")) if key in schema)


def _type_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case Mapping():
            return "object"
    return "array"


def _referred(reference: str, root: Any) -> object:
    """What a reference within the schema names."""
    at = root
    for key in reference.removeprefix("#/").split("/"):
        at = at.get(key) if isinstance(at, Mapping) else None
    return at
