"""
``POST /v1/responses``: OpenAI's Responses, stateless, as its official client and its Agents SDK send and read them.

Tested in tests/server/test_dialects.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.request.output import RequestOutput
from ..chat import ChatShape
from ..errors import Refused
from ..generation import Generation
from .blocks import Block, Blocks, Step
from .named_events import named_event
from .responses_input import ResponsesBody

__all__ = ["ResponsesShape", "as_responses"]

Event = dict[str, Any]

PREFIXES = {"reasoning": "rs", "text": "msg", "call": "fc"}


def as_responses(generation: Generation, body: ResponsesBody) -> Generation:
    """Return a chat whose answer has the shape of OpenAI's Responses."""
    assert isinstance(generation.shape, ChatShape)
    generation.shape = ResponsesShape(generation, generation.shape, body)
    return generation


class ResponsesShape:
    """A chat's outputs as a response with items."""

    def __init__(self, generation: Generation, chat: ChatShape, body: ResponsesBody) -> None:
        self._chat = chat
        self._blocks = Blocks()
        self._number = 0
        self._begun = False
        self._reason: str | None = None
        asked = generation.asked
        self._head = {
            "id": f"resp_{asked.id.partition('-')[2]}",
            "object": "response",
            "created_at": asked.created,
            "model": asked.model.name,
            "instructions": body.instructions,
            "metadata": body.metadata or {},
            "parallel_tool_calls": body.parallel_tool_calls is not False,
            "temperature": body.temperature,
            "top_p": body.top_p,
            "max_output_tokens": body.max_output_tokens,
            "tools": body.tools or [],
            "tool_choice": body.tool_choice or "auto",
            "text": body.text or {"format": {"type": "text"}},
            "reasoning": body.reasoning,
            "previous_response_id": None,
            "store": False,
            "truncation": "disabled",
        }

    def chunk(self, index: int, output: RequestOutput) -> bytes:
        """Return the events of an output."""
        events: list[Event] = []
        if not self._begun:
            self._begun = True
            events += [
                {"type": f"response.{what}", "response": self._response("in_progress")} for what in ("created", "in_progress")
            ]
        deltas, beside = self._chat.told(index, output)
        for step in self._blocks.feed(deltas, ends=output.finished):
            events += _events(step, self._status(beside if output.finished else {}))
        if output.finished:
            self._reason = beside["finish_reason"]
        return self._written(events)

    def last(self) -> bytes:
        """Return the whole response."""
        response = self._whole()
        return self._written([{"type": f"response.{response['status']}", "response": response}])

    def failed(self, error: Refused) -> bytes:
        """Return the event of a failure."""
        told = {"code": "server_error" if error.status >= 500 else str(error.code or error.type), "message": error.message}
        return self._written([{"type": "response.failed", "response": {**self._response("failed"), "error": told}}])

    def answer(self, outputs: Sequence[RequestOutput]) -> dict[str, Any]:
        """Return the whole response."""
        (output,) = outputs
        deltas, beside = self._chat.told(0, output)
        self._blocks.feed(deltas, ends=True)
        self._reason = beside["finish_reason"]
        return self._whole()

    def usage(self) -> dict[str, Any]:
        """Count tokens, for the log."""
        return self._chat.usage()

    def _written(self, events: Sequence[Event]) -> bytes:
        written = b""
        for one in events:
            written += named_event({**one, "sequence_number": self._number})
            self._number += 1
        return written

    def _status(self, beside: Event) -> str:
        return "incomplete" if beside.get("finish_reason") == "length" else "completed"

    def _whole(self) -> dict[str, Any]:
        status = self._status({"finish_reason": self._reason})
        last = len(self._blocks.all) - 1
        # Only what was cut off is not whole.
        items = [_item(one, status if one.index == last else "completed") for one in self._blocks.all]
        counted = self._chat.usage()
        usage = {
            "input_tokens": counted["prompt_tokens"],
            "input_tokens_details": counted.get("prompt_tokens_details", {"cached_tokens": 0}),
            "output_tokens": counted["completion_tokens"],
            "output_tokens_details": counted.get("completion_tokens_details", {"reasoning_tokens": 0}),
            "total_tokens": counted["total_tokens"],
        }
        return {**self._response(status), "output": items, "usage": usage}

    def _response(self, status: str) -> dict[str, Any]:
        details = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return {**self._head, "status": status, "error": None, "incomplete_details": details, "output": [], "usage": None}


def _item(block: Block, status: str) -> Event:
    item: Event = {"id": f"{PREFIXES[block.kind]}_{block.id}", "status": status}
    begun = status == "in_progress"
    match block.kind:
        case "reasoning":
            return {**item, "type": "reasoning", "summary": [], "content": [] if begun else [_part(block)]}
        case "text":
            return {**item, "type": "message", "role": "assistant", "content": [] if begun else [_part(block)]}
        case "call":
            arguments = "" if begun else block.text
            return {**item, "type": "function_call", "call_id": block.call_id, "name": block.name, "arguments": arguments}


def _part(block: Block, *, text: str | None = None) -> Event:
    told = block.text if text is None else text
    if block.kind == "reasoning":
        return {"type": "reasoning_text", "text": told}
    return {"type": "output_text", "text": told, "annotations": [], "logprobs": []}


def _events(step: Step, status: str) -> list[Event]:
    block = step.block
    item = _item(block, "in_progress")
    name = {"reasoning": "reasoning_text", "text": "output_text", "call": "function_call_arguments"}[block.kind]
    place: Event = {"item_id": item["id"], "output_index": block.index}
    part = {} if block.kind == "call" else {"content_index": 0}
    logprobs: Event = {"logprobs": []} if block.kind == "text" else {}
    match step.what:
        case "opens":
            events: list[Event] = [{"type": "response.output_item.added", "output_index": block.index, "item": item}]
            if part:
                events.append({"type": "response.content_part.added", **place, **part, "part": _part(block, text="")})
            return events
        case "grows":
            return [{"type": f"response.{name}.delta", **place, **part, "delta": step.text, **logprobs}]
        case "closes":
            whole = {"arguments": block.text, "name": block.name} if block.kind == "call" else {"text": block.text}
            done: list[Event] = [{"type": f"response.{name}.done", **place, **part, **whole, **logprobs}]
            if part:
                done.append({"type": "response.content_part.done", **place, **part, "part": _part(block)})
            return [*done, {"type": "response.output_item.done", "output_index": block.index, "item": _item(block, status)}]
