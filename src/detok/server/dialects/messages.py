"""
``POST /v1/messages``: Anthropic's Messages, as its official client sends and reads them.

Tested in tests/server/test_dialects.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec

from ...core.request.output import RequestOutput
from ...errors import MessageError
from ..chat import ChatShape
from ..errors import Refused
from ..generation import Generation
from ..schema import ChatBody, Integer
from .blocks import Block, Blocks, Step
from .named_events import named_event

__all__ = ["CountBody", "MessagesBody", "MessagesShape", "as_chat", "as_messages", "refusal_body"]

Blocked = str | list[dict[str, Any]]
Choice = dict[str, Any]

ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


class CountBody(msgspec.Struct, kw_only=True):
    """``POST /v1/messages/count_tokens``."""

    model: str | None = None
    messages: list[dict[str, Any]]
    system: Blocked | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Choice | None = None
    thinking: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None
    chat_template_kwargs: dict[str, Any] | None = None


class MessagesBody(CountBody, kw_only=True):
    """``POST /v1/messages``."""

    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)]
    stream: bool | None = None
    stop_sequences: list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: Integer | None = None
    cache_salt: str | None = None


def as_chat(body: CountBody) -> ChatBody:
    """
    Return the same as a chat completion.

    Raises:
        MessageError: A block cannot be told to a model that reads text, or is malformed.
    """
    chat = ChatBody(
        messages=[*_system(body.system), *_messages(body.messages)],
        model=body.model,
        tools=[_tool(tool, f"tools[{place}]") for place, tool in enumerate(body.tools or ())] or None,
        chat_template_kwargs=body.chat_template_kwargs,
        tool_choice=_choice(body.tool_choice),
    )
    thinking = (body.thinking or {}).get("type")
    # A budget is not kept to: what says how much a model thinks is its template.
    if thinking not in (None, "enabled", "adaptive", "disabled"):
        raise MessageError("thinking.type", found=f"is {thinking!r}", accepted="it is enabled, adaptive or disabled")
    if thinking == "enabled":
        chat.chat_template_kwargs = {"enable_thinking": True, **(body.chat_template_kwargs or {})}
    config = body.output_config or {}
    chat.reasoning_effort = "none" if thinking == "disabled" else config.get("effort")
    if wanted := config.get("format"):
        chat.response_format = {"type": "json_schema", "json_schema": {"name": "output", "schema": wanted.get("schema")}}
    if isinstance(body, MessagesBody):
        chat.max_tokens, chat.stream, chat.stop = body.max_tokens, body.stream, body.stop_sequences
        chat.temperature, chat.top_p, chat.top_k, chat.cache_salt = body.temperature, body.top_p, body.top_k, body.cache_salt
    return chat


def _choice(choice: Choice | None) -> str | dict[str, Any] | None:
    match choice:
        case None:
            return None
        case {"type": "auto" | "none" as kind}:
            return str(kind)
        case {"type": "any"}:
            return "required"
        case {"type": "tool", "name": str(name)}:
            return {"type": "function", "function": {"name": name}}
    raise MessageError("tool_choice", found=f"is {choice!r}", accepted="its type is auto, any, none, or tool with a name")


def _system(system: Blocked | None) -> list[dict[str, Any]]:
    if not system:
        return []
    return [{"role": "system", "content": _text(system, "system")}]


def _text(content: Any, place: str) -> str:
    """The text of blocks of text, one behind another as vLLM has it."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise MessageError(place, found=f"is a {type(content).__name__}", accepted="it is a text or a list of blocks")
    return "".join(_block_text(block, f"{place}[{number}]") for number, block in enumerate(content))


def _block_text(block: Any, place: str) -> str:
    if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
        return str(block["text"])
    kind = block.get("type") if isinstance(block, dict) else type(block).__name__
    accepted = "a block of the type text with a text is what this model reads"
    raise MessageError(place, found=f"is of the type {kind!r}", accepted=accepted)


def _messages(messages: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for number, message in enumerate(messages):
        place = f"messages[{number}]"
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant", "system"):
            raise MessageError(f"{place}.role", found=f"is {role!r}", accepted="it is user or assistant")
        if isinstance(content, str):
            yield {"role": role, "content": content}
        elif not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
            raise MessageError(f"{place}.content", found="is no text", accepted="it is a text or a list of blocks")
        elif role == "assistant":
            yield _assistant(content, f"{place}.content")
        else:
            yield from _user(role, content, f"{place}.content")


def _user(role: str, blocks: list[dict[str, Any]], place: str) -> Iterator[dict[str, Any]]:
    """The results of tools, which stand right after the calls, then what else is said."""
    said = []
    for number, block in enumerate(blocks):
        here = f"{place}[{number}]"
        if block.get("type") == "tool_result" and role == "user":
            if not isinstance(block.get("tool_use_id"), str):
                raise MessageError(f"{here}.tool_use_id", found="is no text", accepted="it names the call that this answers")
            content = _text(block.get("content") or "", f"{here}.content")
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": content}
        else:
            said.append({"type": "text", "text": _block_text(block, here)})
    if said:
        yield {"role": role, "content": said}


def _assistant(blocks: list[dict[str, Any]], place: str) -> dict[str, Any]:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for number, block in enumerate(blocks):
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "thinking", "thinking": str(text)}:
                thoughts.append(text)
            case {"type": "redacted_thinking"}:
                pass  # for the eyes of another server alone
            case {"type": "tool_use", "id": str(call_id), "name": str(name)}:
                arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
                calls.append({"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}})
            case _:
                accepted = "an assistant has blocks of the types text, thinking and tool_use"
                raise MessageError(f"{place}[{number}]", found=f"is of the type {block.get('type')!r}", accepted=accepted)
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts)}
    if thoughts:
        message["reasoning_content"] = "\n".join(thoughts)
    return {**message, "tool_calls": calls} if calls else message


def _tool(tool: dict[str, Any], place: str) -> dict[str, Any]:
    if tool.get("type") not in (None, "custom"):
        accepted = "it is custom, or left out: the client runs its tools itself, and nothing runs here"
        raise MessageError(f"{place}.type", found=f"is {tool['type']!r}", accepted=accepted)
    schema = tool.get("input_schema")
    if not isinstance(tool.get("name"), str) or not isinstance(schema, dict):
        raise MessageError(place, found="has no name or no input_schema", accepted="it has both, and a description")
    about = {"description": tool["description"]} if tool.get("description") is not None else {}
    return {"type": "function", "function": {"name": tool["name"], **about, "parameters": {"type": "object", **schema}}}


def as_messages(generation: Generation) -> Generation:
    """Return a chat whose answer has the shape of Anthropic's."""
    assert isinstance(generation.shape, ChatShape)
    generation.shape = MessagesShape(generation, generation.shape)
    return generation


class MessagesShape:
    """A chat's outputs as Anthropic's messages."""

    def __init__(self, generation: Generation, chat: ChatShape) -> None:
        self._chat = chat
        self._blocks = Blocks()
        self._beside: dict[str, Any] = {}
        self._begun = False
        self._head = {
            "id": f"msg_{generation.asked.id.partition('-')[2]}",
            "type": "message",
            "role": "assistant",
            "model": generation.asked.model.name,
        }

    def chunk(self, index: int, output: RequestOutput) -> bytes:
        """Return the events of an output."""
        events = []
        if not self._begun:
            self._begun = True
            empty: dict[str, Any] = {
                **self._head,
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": self._usage(),
            }
            events.append(named_event({"type": "message_start", "message": empty}))
        deltas, beside = self._chat.told(index, output)
        events += [named_event(one) for step in self._blocks.feed(deltas, ends=output.finished) for one in _events(step)]
        if output.finished:
            self._beside = beside
        return b"".join(events)

    def last(self) -> bytes:
        """Return why it ended, and the end."""
        ended = {"type": "message_delta", "delta": _stop(self._beside), "usage": self._usage()}
        return named_event(ended) + named_event({"type": "message_stop"})

    def failed(self, error: Refused) -> bytes:
        """Return the event of a failure."""
        return named_event(refusal_body(error))

    def answer(self, outputs: Sequence[RequestOutput]) -> dict[str, Any]:
        """Return the whole message."""
        (output,) = outputs
        deltas, beside = self._chat.told(0, output)
        self._blocks.feed(deltas, ends=True)
        content = [_content(block, whole=True) for block in self._blocks.all]
        return {**self._head, "content": content, **_stop(beside), "usage": self._usage()}

    def usage(self) -> dict[str, Any]:
        """Count tokens, for the log."""
        return self._chat.usage()

    def _usage(self) -> dict[str, int]:
        counted = self._chat.usage()
        usage = {"input_tokens": counted["prompt_tokens"], "output_tokens": counted["completion_tokens"]}
        if "prompt_tokens_details" in counted:
            # Anthropic counts these apart.
            cached = counted["prompt_tokens_details"]["cached_tokens"]
            usage |= {"input_tokens": usage["input_tokens"] - cached, "cache_read_input_tokens": cached}
        return usage


def _content(block: Block, *, whole: bool) -> dict[str, Any]:
    text = block.text if whole else ""
    match block.kind:
        case "reasoning":
            return {"type": "thinking", "thinking": text, "signature": ""}
        case "text":
            return {"type": "text", "text": text}
        case "call":
            return {"type": "tool_use", "id": block.call_id, "name": block.name, "input": _object(text)}


def _object(arguments: str) -> Any:
    """What a call is given. One that was cut off has no object, and is not for running: the message says max_tokens."""
    try:
        found = json.loads(arguments or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _events(step: Step) -> list[dict[str, Any]]:
    block = step.block
    match step.what:
        case "opens":
            return [{"type": "content_block_start", "index": block.index, "content_block": _content(block, whole=False)}]
        case "grows":
            field, kind = {
                "reasoning": ("thinking", "thinking_delta"),
                "text": ("text", "text_delta"),
                "call": ("partial_json", "input_json_delta"),
            }[block.kind]
            return [{"type": "content_block_delta", "index": block.index, "delta": {"type": kind, field: step.text}}]
        case "closes":
            return [{"type": "content_block_stop", "index": block.index}]


def _stop(beside: dict[str, Any]) -> dict[str, Any]:
    """Why a message ended, in Anthropic's words."""
    reason, matched = beside.get("finish_reason"), beside.get("stop_reason")
    if reason == "length":
        return {"stop_reason": "max_tokens", "stop_sequence": None}
    if reason == "tool_calls":
        return {"stop_reason": "tool_use", "stop_sequence": None}
    if isinstance(matched, str):
        return {"stop_reason": "stop_sequence", "stop_sequence": matched}
    return {"stop_reason": "end_turn", "stop_sequence": None}


def refusal_body(error: Refused) -> dict[str, Any]:
    """Return an error as Anthropic's clients read it; `param` is there for those who look."""
    kind = ERRORS.get(error.status) or ("invalid_request_error" if error.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": error.message, "param": error.param, "code": error.code}}
