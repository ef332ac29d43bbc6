"""`tool_choice`: a call that the model is made to write, by the engine's structured outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import OptionError
from ..turns.channels import REASONING
from ..turns.formats import HARMONY, TurnFormat

__all__ = ["forced_calls", "is_forced"]

ToolChoice = str | Mapping[str, Any] | None


def is_forced(tool_choice: ToolChoice) -> bool:
    """Whether at least one call has to come."""
    if isinstance(tool_choice, Mapping) and tool_choice.get("type") == "allowed_tools":
        return _allowed(tool_choice).get("mode") == "required"
    return tool_choice not in (None, "auto", "none")


def forced_calls(
    turn: TurnFormat | None,
    tools: Sequence[Mapping[str, Any]] | None,
    tool_choice: ToolChoice,
    *,
    parallel: bool = True,
    has_model: bool = True,
) -> dict[str, Any]:
    """
    Return `structured_outputs` for the engine: the JSON of calls that every format reads (`TurnFormat.forced`); {} if none is
    forced.

    Args:
        turn: The format of what follows the prompt; None if the model has none.
        tools: Of the request.
        tool_choice: As in OpenAI's API.
        parallel: Whether there may be several calls.
        has_model: Whether there is a model at the other end. An engine without one ignores what it is made to write.

    Raises:
        OptionError: There is no such tool, no tools or no format; or the prompt has opened reasoning, which no grammar leaves
        room for.
    """
    chosen = _chosen(tools or (), tool_choice)
    if not is_forced(tool_choice) or not has_model:
        return {}
    if turn is None:
        raise OptionError(
            option="tool_choice", value=tool_choice, accepted="the server knows no turn format of this model (--channels)"
        )
    if turn.tools is None and turn.layout != HARMONY:
        accepted = "the turn format of this model has no calls; --channels of one that has, such as qwen"
        raise OptionError(option="tool_choice", value=tool_choice, accepted=accepted)
    if turn.start == REASONING:
        accepted = "the prompt opens reasoning, and a forced call leaves no room for it; switch thinking off, or take auto"
        raise OptionError(option="tool_choice", value=tool_choice, accepted=accepted)
    calls = [_schema(tool) for tool in chosen]
    is_one = not parallel or not (tool_choice == "required" or _allowed(tool_choice))
    return {"json": {"type": "array", "minItems": 1, **({"maxItems": 1} if is_one else {}), "items": {"anyOf": calls}}}


def _schema(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool.get("function", {})
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    properties = {"name": {"const": function.get("name")}, "arguments": parameters}
    return {"type": "object", "properties": properties, "required": ["name", "arguments"], "additionalProperties": False}


def _chosen(tools: Sequence[Mapping[str, Any]], choice: ToolChoice) -> list[Mapping[str, Any]]:
    """The tools that may be called."""
    if choice in (None, "auto", "none"):
        return list(tools)
    if choice == "required":
        if not tools:
            raise OptionError(option="tool_choice", value=choice, accepted="there are no tools; give tools, or take auto")
        return list(tools)
    if isinstance(choice, Mapping):
        names = [_name(one) for one in _allowed(choice).get("tools", ())] if _allowed(choice) else [_name(choice)]
        known = {_name(tool): tool for tool in tools}
        for name in names:
            if name not in known:
                accepted = f"it names one of the tools: {', '.join(map(repr, known)) or 'there are none'}"
                raise OptionError(option="tool_choice", value=choice, accepted=accepted)
        if names:
            return [known[name] for name in names]
    accepted = 'it is auto, none, required, or {"type": "function", "function": {"name": ...}}'
    raise OptionError(option="tool_choice", value=choice, accepted=accepted)


def _allowed(choice: ToolChoice) -> Mapping[str, Any]:
    value = choice.get("allowed_tools") if isinstance(choice, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _name(tool: object) -> Any:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    return function.get("name") if isinstance(function, Mapping) else None
