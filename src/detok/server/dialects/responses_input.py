"""
What ``POST /v1/responses`` is sent, as a chat.

Tested in tests/server/test_dialects.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...errors import MessageError, OptionError
from ..schema import ChatBody, Count, Integer

__all__ = ["ResponsesBody", "as_chat"]

Item = dict[str, Any]


class ResponsesBody(msgspec.Struct, kw_only=True):
    """``POST /v1/responses``."""

    input: str | list[Item]
    model: str | None = None
    instructions: str | None = None
    stream: bool | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    max_output_tokens: Count | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: Integer | None = None
    metadata: dict[str, str] | None = None
    parallel_tool_calls: bool | None = None
    store: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    cache_salt: str | None = None

    # What needs a store, or somebody who works when nobody waits.
    previous_response_id: str | None = None
    conversation: str | dict[str, Any] | None = None
    background: bool | None = None
    prompt: dict[str, Any] | None = None


STATELESS = {
    "previous_response_id": "this server keeps no answers: send the whole conversation as input",
    "conversation": "this server keeps no conversations: send the whole of it as input",
    "background": "this server answers while the client waits",
    "prompt": "this server keeps no prompts: send the text itself",
}


def as_chat(body: ResponsesBody) -> ChatBody:
    """
    Return the same as a chat completion.

    Raises:
        OptionError: It needs what a server would have to keep.
        MessageError: An item or a tool is none that a model here knows.
    """
    for field, accepted in STATELESS.items():
        if value := getattr(body, field):
            raise OptionError(option=field, value=value, accepted=accepted)
    instructions: list[Item] = [{"role": "system", "content": body.instructions}] if body.instructions else []
    return ChatBody(
        messages=[*instructions, *_messages(body.input)],
        model=body.model,
        stream=body.stream,
        tools=[_tool(tool, f"tools[{place}]") for place, tool in enumerate(body.tools or ())] or None,
        tool_choice=_choice(body.tool_choice),
        response_format=_format(body.text),
        reasoning_effort=(body.reasoning or {}).get("effort"),
        max_completion_tokens=body.max_output_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        chat_template_kwargs=body.chat_template_kwargs,
        cache_salt=body.cache_salt,
    )


def _choice(choice: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
    match choice:
        case {"type": "function", "name": str(name)}:
            return {"type": "function", "function": {"name": name}}
    return choice


def _format(text: dict[str, Any] | None) -> dict[str, Any] | None:
    wanted = (text or {}).get("format")
    match wanted:
        case {"type": "json_schema", **rest}:
            return {"type": "json_schema", "json_schema": rest}
        case None | dict():
            return wanted
    raise OptionError(option="text.format", value=wanted, accepted="it is an object with a type")


def _tool(tool: Item, place: str) -> Item:
    if tool.get("type") != "function":
        accepted = "it is function: the client runs its tools itself, and nothing runs here"
        raise MessageError(f"{place}.type", found=f"is {tool.get('type')!r}", accepted=accepted)
    if not isinstance(tool.get("name"), str):
        raise MessageError(place, found="has no name", accepted="it has name, description and parameters")
    kept = ("name", "description", "parameters", "strict")
    return {"type": "function", "function": {name: tool[name] for name in kept if tool.get(name) is not None}}


def _messages(given: str | Sequence[Item]) -> list[Item]:
    """Messages of items: what one turn thought, said and called is one of them."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    messages: list[Item] = []
    turn: Item | None = None
    """The assistant's, as long as items belong to it."""
    for number, item in enumerate(given):
        place = f"input[{number}]"
        kind = item.get("type") or ("message" if "role" in item else None)
        match kind:
            case "message" if item.get("role") != "assistant":
                turn = None
                messages.append({"role": item.get("role"), "content": _content(item.get("content"), f"{place}.content")})
            case "function_call_output":
                turn = None
                messages.append(_result(item, place))
            case "reasoning" | "message" | "function_call":
                if turn is None or not _goes_on(turn, kind):
                    turn = {"role": "assistant", "content": ""}
                    messages.append(turn)
                _add(turn, kind, item, place)
            case _:
                accepted = "it is message, reasoning, function_call or function_call_output"
                raise MessageError(f"{place}.type", found=f"is {kind!r}", accepted=accepted)
    return messages


def _goes_on(turn: Item, kind: str) -> bool:
    """Whether an item may belong to a turn: a model thinks, then says something, then calls."""
    if kind == "function_call":
        return True
    if kind == "message":
        return not turn["content"] and "tool_calls" not in turn
    return not turn["content"] and "tool_calls" not in turn and "reasoning_content" not in turn


def _add(turn: Item, kind: str, item: Item, place: str) -> None:
    match kind:
        case "message":
            turn["content"] = _content(item.get("content"), f"{place}.content")
        case "reasoning":
            parts = [*(item.get("content") or ()), *(() if item.get("content") else item.get("summary") or ())]
            text = "".join(part.get("text") or "" for part in parts if isinstance(part, dict))
            if text:  # encrypted, it says nothing to a model here
                turn["reasoning_content"] = text
        case _:
            if not isinstance(item.get("call_id"), str) or not isinstance(item.get("name"), str):
                raise MessageError(place, found="has no call_id or no name", accepted="a function_call has both")
            function = {"name": item["name"], "arguments": item.get("arguments")}
            turn.setdefault("tool_calls", []).append({"id": item["call_id"], "type": "function", "function": function})


def _result(item: Item, place: str) -> Item:
    if not isinstance(item.get("call_id"), str):
        raise MessageError(f"{place}.call_id", found="is no text", accepted="it names the call that this answers")
    return {"role": "tool", "tool_call_id": item["call_id"], "content": _content(item.get("output"), f"{place}.output")}


def _content(content: Any, place: str) -> Any:
    """A text, or parts of text: images and files are refused where they stand."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise MessageError(place, found=f"is a {type(content).__name__}", accepted="it is a text or a list of parts")
    for number, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in ("input_text", "output_text", "text", "refusal"):
            accepted = "a part of text is what this model reads"
            raise MessageError(f"{place}[{number}]", found=f"is of the type {kind!r}", accepted=accepted)
    return content
