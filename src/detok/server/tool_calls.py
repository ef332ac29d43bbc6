"""
Channels to the fields of a chat message: `content`, `reasoning_content` and `tool_calls`.

What a call is, core decides; here it only gets its frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from ..turns.channels import CONTENT, REASONING, TOOL, ChannelDelta

__all__ = ["MessageDeltas", "whole_message"]

Delta = dict[str, Any]

FIELDS = {CONTENT: "content", REASONING: "reasoning_content"}


class MessageDeltas:
    """
    The deltas of one choice's message.

    Args:
        parallel: Whether calls after the first are given.
        reasoning: Whether reasoning is given.
    """

    def __init__(self, *, parallel: bool = True, reasoning: bool = True) -> None:
        self._parallel = parallel
        self._reasoning = reasoning
        self._part = -1
        """The last call that was begun."""
        self.calls = 0
        """Number of calls that were given."""
        self.reasoning_tokens = 0
        """Number of tokens of reasoning, given or not."""

    def feed(self, deltas: Sequence[ChannelDelta]) -> list[Delta]:
        """Return the deltas that are certain now, in order."""
        made: list[Delta] = []
        for delta in deltas:
            if delta.channel == TOOL:
                made += self._call(delta)
            elif delta.channel == REASONING:
                self.reasoning_tokens += delta.tokens
                if self._reasoning:
                    made.append({FIELDS[REASONING]: delta.text})
            else:
                made.append({FIELDS[CONTENT]: delta.text})
        return made

    def _call(self, delta: ChannelDelta) -> list[Delta]:
        is_new = delta.part != self._part
        self._part = delta.part
        if is_new:
            self.calls += 1
        index = self.calls - 1
        if index and not self._parallel:
            return []
        if is_new:
            function = {"name": delta.name, "arguments": delta.text}
            call_id = delta.call_id or f"call_{uuid4().hex[:24]}"
            return [{"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}]
        if not delta.text:
            return []
        return [{"tool_calls": [{"index": index, "function": {"arguments": delta.text}}]}]


def whole_message(deltas: Sequence[Delta]) -> dict[str, Any]:
    """Return the message that these deltas make."""
    message: dict[str, Any] = {"role": "assistant", "content": None, "reasoning_content": None, "tool_calls": []}
    for delta in deltas:
        for field in FIELDS.values():
            if field in delta:
                message[field] = (message[field] or "") + delta[field]
        for call in delta.get("tool_calls", ()):
            if "id" in call:
                message["tool_calls"].append({key: value for key, value in call.items() if key != "index"})
            else:
                message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    if not message["tool_calls"]:
        del message["tool_calls"]
        message["content"] = message["content"] or ""
    return message
