"""Chats as they come in: looked at once, every fault named by its place, and copied to plain data that a template may have."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..errors import MessageError

__all__ = [
    "REASONING",
    "ROLES",
    "TEXT_PARTS",
    "Message",
    "checked_messages",
    "checked_objects",
    "content_as_parts",
    "content_as_text",
    "plain",
    "short",
]

ROLES = frozenset(("system", "developer", "user", "assistant", "tool", "function"))
"""Those of OpenAI's API; a template knows others that it names itself."""

# The same reasoning under the names that templates and APIs have for it; the first is the usual one.
REASONING = ("reasoning_content", "thinking", "reasoning")

TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal", "thinking": "thinking"}
"""The parts of a content that are text, with the field that has it: of OpenAI's chats and responses, and of vLLM's."""

MAY_BE_SILENT = frozenset(("assistant", "tool", "function"))
"""Roles whose content may be left out: a turn that only calls, or a function that returns nothing."""

# A template's constants are roles that it knows, but so are its special tokens, and none of those is a name.
_NAME = re.compile(r"\w[\w-]*")

MAX_DEPTH = 64
"""Of lists and objects in one another."""

Message = dict[str, Any]


def checked_messages(messages: object, *, roles: Collection[str]) -> list[Message]:
    """
    Return a copy of a chat, of plain dicts, lists, texts and numbers.

    Fields that are None are left out, as an API that sends ``"content": null`` means it.

    Args:
        messages: A list of objects with a role.
        roles: Those that are known beside `ROLES`.

    Raises:
        MessageError: Naming the place and what is wrong there.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence):
        raise MessageError("messages", found=f"is a {type(messages).__name__}", accepted="it is a list of messages")
    if not messages:
        raise MessageError("messages", found="is empty", accepted="a chat has at least one message")
    return [_message(message, f"messages[{place}]", roles) for place, message in enumerate(messages)]


def checked_objects(values: object, name: str) -> list[dict[str, Any]] | None:
    """Return a copy of a list of objects (tools, documents), or None. Errors as `checked_messages`."""
    if values is None:
        return None
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Sequence):
        raise MessageError(name, found=f"is a {type(values).__name__}", accepted="it is a list of objects, or None")
    for place, value in enumerate(values):
        if not isinstance(value, Mapping):
            found = f"is a {type(value).__name__}"
            raise MessageError(f"{name}[{place}]", found=found, accepted="it is an object, of tools with a JSON schema")
    return [plain(value, f"{name}[{place}]") for place, value in enumerate(values)]


def _message(message: object, place: str, roles: Collection[str]) -> Message:
    if not isinstance(message, Mapping):
        raise MessageError(place, found=f"is a {type(message).__name__}", accepted="a message is an object with role and content")
    copy: Message = {key: value for key, value in plain(message, place).items() if value is not None}
    role = copy.get("role")
    if not isinstance(role, str) or not (role in ROLES or (role in roles and _NAME.fullmatch(role))):
        found = "has no role" if role is None else f"has the unknown role {role!r}"
        raise MessageError(f"{place}.role" if role else place, found=found, accepted=f"roles are {', '.join(sorted(ROLES))}")
    _check_content(copy.get("content"), f"{place}.content")
    calls = copy.get("tool_calls")
    if calls is not None and not (isinstance(calls, list) and all(isinstance(call, dict) for call in calls)):
        raise MessageError(f"{place}.tool_calls", found=f"is {short(calls)}", accepted="it is a list of objects")
    for name in ("tool_call_id", "refusal"):
        if not isinstance(copy.get(name, ""), str):
            raise MessageError(f"{place}.{name}", found=f"is {short(copy[name])}", accepted="it is a text")
    if "content" not in message and role not in MAY_BE_SILENT:
        raise MessageError(place, found="has no content", accepted='give content (it may be ""), or tool_calls')
    return copy


def _check_content(content: object, place: str) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise MessageError(place, found=f"is {short(content)}", accepted="it is a text or a list of parts")
    for number, part in enumerate(content):
        here = f"{place}[{number}]"
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            accepted = 'a part is an object with a type, such as {"type": "text", "text": "…"}'
            raise MessageError(here, found=f"is {short(part)}", accepted=accepted)
        field = TEXT_PARTS.get(part["type"])
        if field is not None and not (isinstance(part.get(field), str) or part.get(field, field) is None):
            found = "is not there" if field not in part else f"is {short(part[field])}"
            raise MessageError(f"{here}.{field}", found=found, accepted=f"a part of the type {part['type']} has a text")


def plain(value: Any, place: str, depth: int = 0) -> Any:
    """
    Copy a value as JSON would have it: nothing that a template gets has methods of its own, and nothing of it is the caller's.

    Raises:
        MessageError: It is of another kind, has a lone surrogate, or holds itself.
    """
    if depth > MAX_DEPTH:
        raise MessageError(place, found=f"is more than {MAX_DEPTH} levels deep", accepted="make it flatter")
    if isinstance(value, str):
        text = str.__str__(value)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            found = f"has a lone surrogate at {error.start}"
            raise MessageError(place, found=found, accepted="text is Unicode, which no UTF-8 can spell that in") from None
        return text
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise MessageError(place, found=f"has the key {key!r}", accepted="the keys of an object are texts")
        return {plain(key, place): plain(one, f"{place}.{key}", depth + 1) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one, f"{place}[{number}]", depth + 1) for number, one in enumerate(value)]
    raise MessageError(place, found=f"is a {type(value).__name__}", accepted="give texts, numbers, lists and objects, as in JSON")


def content_as_text(messages: list[Message]) -> list[Message]:
    """
    Write contents of text parts as one text, for templates that know only that.

    Raises:
        MessageError: A part is no text.
    """
    return [_as_text(message, place) for place, message in enumerate(messages)]


def _as_text(message: Message, place: int) -> Message:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    for number, part in enumerate(content):
        if part["type"] != "text":
            found = f"is of the type {part['type']!r}"
            accepted = "this model's chat template takes text alone"
            raise MessageError(f"messages[{place}].content[{number}]", found=found, accepted=accepted)
    return {**message, "content": "\n".join(part["text"] for part in content)}


def content_as_parts(messages: list[Message]) -> list[Message]:
    """Write contents that are texts as a part each, for templates that know only parts."""
    return [
        {**message, "content": [{"type": "text", "text": message["content"]}]}
        if isinstance(message.get("content"), str)
        else message
        for message in messages
    ]


def short(value: object) -> str:
    """Return a value as an error shows it."""
    shown = repr(value)
    return f"the {type(value).__name__} {shown if len(shown) <= 60 else shown[:60] + '…'}"
