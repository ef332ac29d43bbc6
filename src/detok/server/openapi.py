"""The description of the server in OpenAPI 3.1, from the types that read its bodies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from .endpoint import Described

__all__ = ["description"]

REFERENCE = "#/components/schemas/{name}"

ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "integer", "null"]},
            },
        }
    },
}

REFUSALS = {
    "400": "The body is invalid; `param` names the field.",
    "401": "There is no API key, or a wrong one.",
    "404": "There is no such model.",
    "413": "The body is too long.",
    "415": "The body is not JSON.",
    "429": "Too many requests at once, here or at the engine.",
    "501": "A library is missing on the server.",
    "502": "The engine failed.",
    "503": "The engine or the server takes no requests now.",
}


def description(endpoints: Sequence[Described]) -> dict[str, Any]:
    """Return the description."""
    from .. import __version__

    bodies = [one.body for one in endpoints if one.body is not None]
    schemas, components = msgspec.json.schema_components(bodies, ref_template=REFERENCE)
    by_body = dict(zip(bodies, schemas, strict=True))
    paths: dict[str, Any] = {}
    for one in endpoints:
        paths.setdefault(one.path.replace(":path", ""), {})[one.method.lower()] = _operation(one, by_body)
    return {
        "openapi": "3.1.0",
        "info": {"title": "detok", "version": __version__, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": ERROR},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def _operation(one: Described, schemas: dict[type[msgspec.Struct], Any]) -> dict[str, Any]:
    media: dict[str, Any] = {"text/plain": {}} if one.path == "/metrics" else {"application/json": {}}
    if one.generates:
        media["text/event-stream"] = {}
    refusal = {"application/json": {"schema": {"$ref": REFERENCE.format(name="Error")}}}
    answers: dict[str, Any] = {"200": {"description": "The answer.", "content": media}}
    for status, words in REFUSALS.items():
        if one.body is not None or status == "401":
            answers[status] = {"description": words, "content": refusal}
    operation: dict[str, Any] = {
        "operationId": "_".join([one.method.lower(), *re.findall(r"\w+", one.path)]),
        "summary": one.handler.__doc__,
        "responses": answers,
    }
    if "{name" in one.path:
        name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        operation["parameters"] = [name]
        answers["404"] = {"description": REFUSALS["404"], "content": refusal}
    if one.body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schemas[one.body]}}}
    return operation
