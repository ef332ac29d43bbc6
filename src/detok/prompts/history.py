"""
A conversation as clients send it back, in the one shape that templates are written for.

The rules are those of vLLM's Python front (its ``_postprocess_messages``) and of OpenAI's API, which has changed its names over
the years. Each message stays at its place, so that an error of a later step still names the client's own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import MessageError
from .messages import REASONING, TEXT_PARTS, Message, plain, short

__all__ = ["arguments_as_object", "arguments_as_text", "as_history"]


def as_history(messages: Sequence[Message], *, keeps: frozenset[str] = frozenset()) -> list[Message]:
    """
    Return checked messages in one shape.

    - An assistant's message has a content, ``""`` if it was null or absent, or its refusal if that is all it has.
    - ``function_call`` and the role ``function`` are ``tool_calls`` and the role ``tool``; empty ``tool_calls`` are none.
    - A result has the name of the call that it answers, by its id, else in the order of the calls.
    - Parts of text are of the type ``text`` whatever API they come from, and the parts of a result are one text, a line each.
    - An assistant's reasoning is there under each of its names.

    Args:
        messages: As `checked_messages` returns them. They are not changed.
        keeps: Types of parts that stay what they are, though they are text.

    Raises:
        MessageError: A call is not one of a function, or what is said cannot be given to a template.
    """
    calls = _Calls()
    return [_message(message, f"messages[{place}]", calls, keeps) for place, message in enumerate(messages)]


@dataclass(slots=True)
class _Calls:
    """The calls of the conversation so far."""

    names: dict[str, str] = field(default_factory=dict)
    """By their ids."""
    unanswered: list[tuple[str | None, str]] = field(default_factory=list)
    """Ids and names of the last calls, in order."""

    def add(self, calls: Sequence[Message]) -> None:
        """Take the calls of a message."""
        self.unanswered = [(call.get("id"), call["function"]["name"]) for call in calls]
        self.names |= {name_of: name for name_of, name in self.unanswered if name_of is not None}

    def name_of(self, call_id: str | None) -> str | None:
        """Return the name of the call that a result answers."""
        place = 0 if call_id is None else next((at for at, one in enumerate(self.unanswered) if one[0] == call_id), None)
        answered = self.unanswered.pop(place) if place is not None and self.unanswered else None
        if call_id is not None:
            return self.names.get(call_id)
        return None if answered is None else answered[1]


def _message(message: Message, place: str, calls: _Calls, keeps: frozenset[str]) -> Message:
    made = {name: value for name, value in message.items() if name not in ("tool_calls", "function_call", "refusal", "audio")}
    if message.get("audio"):
        raise MessageError(
            f"{place}.audio", found="is there", accepted="ids alone cannot carry sound; give what was said as content"
        )
    content = message.get("content")
    if isinstance(content, list):
        content = [part if part["type"] in keeps else _part(part) for part in content if not _is_void(part)]
    if content is None:
        content = message.get("refusal") or ""
    made["content"] = content
    match message["role"]:
        case "assistant":
            if called := _called(message, place):
                made["tool_calls"] = called
                calls.add(called)
            reasoning = next((message[name] for name in REASONING if message.get(name) is not None), None)
            if reasoning is not None:
                made |= dict.fromkeys(REASONING, reasoning)
        case "tool" | "function":
            made["role"] = "tool"
            made["content"] = _as_one_text(content)
            name = calls.name_of(message.get("tool_call_id"))
            if name is not None:
                made.setdefault("name", name)
        case _ if message.get("tool_calls"):
            made["tool_calls"] = message["tool_calls"]
    return made


def _is_void(part: Message) -> bool:
    """Whether it is a text of null, as some clients write for none."""
    kind = TEXT_PARTS.get(part["type"])
    return kind is not None and part.get(kind) is None


def _part(part: Message) -> Message:
    """A part of text under its usual name; others as they are."""
    kind = TEXT_PARTS.get(part["type"])
    if kind is None or part["type"] == "text":
        return part
    others = {name: value for name, value in part.items() if name not in ("type", kind)}
    return {"type": "text", "text": part[kind], **others}


def _as_one_text(content: Any) -> Any:
    """The content of a result: most templates write it as it is, and know no parts of it."""
    if not isinstance(content, list) or any(part["type"] != "text" for part in content):
        return content
    return "\n".join(part["text"] for part in content)


def _called(message: Message, place: str) -> list[Message]:
    """The calls of a message, of both generations of the API."""
    calls = message.get("tool_calls") or []
    if not calls and message.get("function_call") is not None:
        function = message["function_call"]
        _check_function(function, f"{place}.function_call")
        return [{"type": "function", "function": function}]
    return [_call(call, f"{place}.tool_calls[{number}]") for number, call in enumerate(calls)]


def _call(call: Message, place: str) -> Message:
    if call.get("type") not in (None, "function"):
        accepted = "it is function: a chat template knows no other calls"
        raise MessageError(f"{place}.type", found=f"is {short(call['type'])}", accepted=accepted)
    if "function" not in call and isinstance(call.get("name"), str):
        # As transformers' own examples have it, which is for templates that look for it there.
        return {**call, "function": {name: call[name] for name in ("name", "arguments") if name in call}}
    _check_function(call.get("function"), f"{place}.function")
    if call.get("id") is not None and not isinstance(call["id"], str):
        raise MessageError(f"{place}.id", found=f"is {short(call['id'])}", accepted="it is a text")
    return {"type": "function", **{name: value for name, value in call.items() if value is not None}}


def _check_function(function: object, place: str) -> None:
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        found = "is not there" if function is None else f"is {short(function)}"
        raise MessageError(place, found=found, accepted="it is an object with name, and arguments")


def arguments_as_object(arguments: Any) -> dict[str, Any]:
    """
    Return the arguments of a call as an object. What is none, or no JSON, is an empty one: the model wrote it, and the
    conversation has to go on.

    >>> arguments_as_object('{"city": "Zoë"}'), arguments_as_object("[1]"), arguments_as_object('{"ci'), arguments_as_object(None)
    ({'city': 'Zoë'}, {}, {}, {})
    """
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return {}
    if not isinstance(arguments, dict):
        return {}
    try:
        return plain(_whole(arguments), "arguments")  # type: ignore[no-any-return]  # an object stays one
    except (MessageError, RecursionError):  # nested too deeply
        return {}


def _whole(value: Any) -> Any:
    """Texts without lone surrogates, which JSON can spell and UTF-8 cannot."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole(name): _whole(one) for name, one in value.items()}
    return [_whole(one) for one in value] if isinstance(value, list) else value


def arguments_as_text(arguments: Any) -> str:
    """
    Return the arguments of a call as JSON: as they were written where they are an object, else `arguments_as_object`'s.

    >>> arguments_as_text('{"n":1.0}'), arguments_as_text({"n": 1}), arguments_as_text("")
    ('{"n":1.0}', '{"n": 1}', '{}')
    """
    made = arguments_as_object(arguments)
    return arguments if isinstance(arguments, str) and made else json.dumps(made, ensure_ascii=False)
