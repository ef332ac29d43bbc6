"""
What a request wants its answer to be: `response_format`, `structured_outputs` and vLLM's older fields, as the engine's one.

Tested in tests/server/test_api_fields.py.
"""

from __future__ import annotations

import json
from typing import Any

from ..errors import OptionError
from .schema import GenerationBody

__all__ = ["structured_of"]

GUIDED = {"guided_json": "json", "guided_regex": "regex", "guided_choice": "choice", "guided_grammar": "grammar"}
"""vLLM's names before `structured_outputs`."""


def structured_of(body: GenerationBody) -> tuple[dict[str, Any] | None, str]:
    """
    Return the engine's `structured_outputs`, and the field of the body that it comes from.

    Raises:
        OptionError: Several fields say it, or `response_format` is of no kind that there is.
    """
    found: dict[str, dict[str, Any] | None] = {
        "response_format": _of_format(body.response_format),
        "structured_outputs": body.structured_outputs or None,
        **{field: None if (value := getattr(body, field)) is None else {name: value} for field, name in GUIDED.items()},
    }
    given = [field for field, value in found.items() if value is not None]
    if len(given) > 1:
        accepted = f"the answer can be bound once; give it without {', '.join(given[1:])}"
        raise OptionError(option=given[0], value=getattr(body, given[0]), accepted=accepted)
    return (found[given[0]], given[0]) if given else (None, "structured_outputs")


def _of_format(wanted: dict[str, Any] | None) -> dict[str, Any] | None:
    match wanted:
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return {"json_object": True}
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return {"json": schema}
        case {"type": "structural_tag"}:
            return {"structural_tag": json.dumps(wanted)}
    accepted = "its type is text, json_object, structural_tag, or json_schema with json_schema.schema"
    raise OptionError(option="response_format", value=wanted, accepted=accepted)
