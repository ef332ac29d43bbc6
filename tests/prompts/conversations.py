"""Random conversations as clients send them, and what vLLM's Python front makes of one, in words of our own."""

from __future__ import annotations

import json
import random
from typing import Any

__all__ = ["TOOLS", "as_vllm", "conversation"]

Chat = list[dict[str, Any]]

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": []}

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "What it does",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": [],
            },
        },
    }
    for name in ("get_weather", "book")
]

WORDS = ("Hello", "東京 🦜", "  two\nlines ", "a < b && c", "{braces}", "Zoë's", "1.0", "", "</think>", "x" * 40)
ARGUMENTS = (
    '{"city": "東京"}',
    '{"days":3,"city":"a \\"b\\"\\n"}',
    "{}",
    "",
    None,
    "{broken",
    "[1, 2]",
    "42",
    "null",
    {"city": "Zürich"},
    '{"a": {"b": [1, 2.5, true, null]}, "days": 1e3}',
    '{"a": 1, "a": 2}',
)


def _texts(chance: random.Random) -> Any:
    """A content that says something."""
    said = chance.choice(WORDS[:7])
    if chance.random() < 0.3:
        kinds = ("text", "input_text", "text")
        return [{"type": chance.choice(kinds), "text": chance.choice(WORDS)} for _ in range(chance.randint(1, 3))]
    return said


def _turn_with_calls(chance: random.Random, ids: list[str]) -> Chat:
    message: dict[str, Any] = {"role": "assistant"}
    match chance.randrange(4):
        case 0:
            message["content"] = None
        case 1:
            message["content"] = chance.choice(["", "Let me see."])
        case 2:
            message["content"] = []
    if chance.random() < 0.3:
        message[chance.choice(["reasoning", "reasoning_content"])] = "I think so"
    calls: Chat = []
    for _ in range(chance.randint(1, 2)):
        ids.append(chance.choice([f"call_{len(ids):024x}", f"chatcmpl-tool-{len(ids)}", f"{len(ids):09d}"]))
        function = {"name": chance.choice(["get_weather", "book"]), "arguments": chance.choice(ARGUMENTS)}
        calls.append({"id": ids[-1], "type": "function", "function": function})
    message["tool_calls"] = calls
    results: Chat = []
    for call in calls:
        content = chance.choice(
            ["21", '{"degrees": 21}', "", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], None]
        )
        results.append({"role": "tool", "tool_call_id": call["id"], "content": content})
    return [message, *results]


def conversation(seed: int, *, calls: bool = True, instructions: bool = True) -> Chat:
    """A conversation whose roles alternate where templates want them to."""
    chance = random.Random(seed)
    chat: Chat = []
    ids: list[str] = []
    if instructions and chance.random() < 0.6:
        chat.append({"role": "system", "content": _texts(chance)})
        if chance.random() < 0.3:
            chat.append({"role": chance.choice(["system", "developer"]), "content": _texts(chance)})
    for _ in range(chance.randint(1, 3)):
        chat.append({"role": "user", "content": _texts(chance)})
        if calls and chance.random() < 0.6:
            chat += _turn_with_calls(chance, ids)
        answer: dict[str, Any] = {"role": "assistant", "content": chance.choice(["Yes", "No \n", "", None])}
        answer |= chance.choice(
            [{}, {"tool_calls": []}, {"tool_calls": None}, {"refusal": None, "audio": None}, {"reasoning": "hm"}]
        )
        if chance.random() < 0.1:
            del answer["content"]
        chat.append(answer)
    return [*chat, {"role": "user", "content": _texts(chance)}]


def as_vllm(chat: Chat, template: str, *, parts: bool) -> Chat:
    """
    What the Python front of vLLM gives to the template, with the names of results, which it leaves out.

    Args:
        chat: As a client sent it.
        template: Its source tells which roles it knows.
        parts: Whether it takes contents of parts.
    """
    names = {call["id"]: call["function"]["name"] for message in chat for call in message.get("tool_calls") or ()}
    made: Chat = []
    for message in chat:
        one: dict[str, Any] = {"role": message["role"], "content": _content(message, parts)}
        if message.get("tool_calls"):
            one["tool_calls"] = [_call(call) for call in message["tool_calls"]]
        reasoning = message.get("reasoning") or message.get("reasoning_content")
        if reasoning:
            one |= {"reasoning": reasoning, "reasoning_content": reasoning}
        if message["role"] == "tool":
            one |= {"tool_call_id": message["tool_call_id"], "name": names[message["tool_call_id"]]}
        made.append(one)
    renamed = '"developer"' not in template and "'developer'" not in template and any(one["role"] == "developer" for one in made)
    return joined(made) if renamed else made


def joined(chat: Chat) -> Chat:
    """All instructions as one, at the beginning."""
    instructions = [one for one in chat if one["role"] in ("system", "developer")]
    if not instructions or instructions == chat[:1]:
        return chat
    texts = [
        one["content"] if isinstance(one["content"], str) else "\n".join(p["text"] for p in one["content"])
        for one in instructions
    ]
    first = {"role": "system", "content": "\n\n".join(filter(None, texts))}
    return [first, *(one for one in chat if one not in instructions)]


def _content(message: dict[str, Any], parts: bool) -> Any:
    content = message.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if parts and message["role"] != "tool":
        return [{"type": "text", "text": part["text"]} for part in content]
    return "\n".join(part["text"] for part in content)


def _call(call: dict[str, Any]) -> dict[str, Any]:
    given = call["function"]["arguments"]
    try:
        arguments = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        arguments = {}
    return {**call, "function": {**call["function"], "arguments": arguments if isinstance(arguments, dict) else {}}}
