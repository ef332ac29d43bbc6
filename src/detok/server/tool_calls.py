"""
Channels to the fields of a chat message: `content`, `reasoning_content` and `tool_calls`.

A call whose header names the function (harmony) is passed on as it comes. One that is a JSON object with name and arguments
(hermes, qwen) is passed on when it is whole: before that nobody knows whether it is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from ..tokenizers import Tokenizer
from ..turns.channels import CONTENT, REASONING, TOOL, ChannelDelta, ChannelTable

__all__ = ["MessageDeltas", "table_behind", "whole_message"]

Delta = dict[str, Any]

FIELDS = {CONTENT: "content", REASONING: "reasoning_content"}

_RECIPIENT = re.compile(r"\bto=(?:functions\.)?([\w.-]+)")

TAIL = 8
"""So many ids of a prompt are looked at: a delimiter, split into what a small vocabulary has, and a line end."""


class MessageDeltas:
    """The deltas of one choice's message."""

    def __init__(self) -> None:
        self._part = -1
        """The part of the output that is open."""
        self._text = ""
        """Of a call that is not whole."""
        self._begun = -1
        """The part whose call was begun with its name."""
        self.calls = 0
        """So many were begun."""

    def feed(self, deltas: Sequence[ChannelDelta], *, ends: bool = False) -> list[Delta]:
        """
        Return the deltas that are certain now, in order.

        Args:
            deltas: Of an output.
            ends: It was the last one.
        """
        made: list[Delta] = []
        for delta in deltas:
            if delta.part != self._part:
                made += self._close()
                self._part = delta.part
            if delta.channel != TOOL:
                made.append({FIELDS.get(delta.channel, CONTENT): delta.text})
            elif found := _RECIPIENT.search(delta.header):
                made.append(self._passed_on(found[1], delta))
            else:
                self._text += delta.text
        return [*made, *self._close()] if ends else made

    def _passed_on(self, name: str, delta: ChannelDelta) -> Delta:
        if self._begun != delta.part:
            self._begun = delta.part
            return _call(self._number(), name, delta.text)
        return {"tool_calls": [{"index": self.calls - 1, "function": {"arguments": delta.text}}]}

    def _number(self) -> int:
        self.calls += 1
        return self.calls - 1

    def _close(self) -> list[Delta]:
        text, self._text = self._text, ""
        if not text.strip():
            return []
        try:
            call = json.loads(text)
            name, arguments = call["name"], call.get("arguments", call.get("parameters", {}))
            written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            # What is no call is at least to be seen; also what is nested too deeply to be one.
            return [{"content": text}]
        if not isinstance(name, str):
            return [{"content": text}]
        return [_call(self._number(), name, written)]


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


def table_behind(table: ChannelTable, tokenizer: Tokenizer, prompt: Sequence[int]) -> ChannelTable:
    """Return the table for what follows a prompt: one that ends in ``<think>`` has opened the reasoning itself."""
    tail = tokenizer.decode(prompt[-TAIL:], skip_special_tokens=False).rstrip()
    for delimiter in table.delimiters[table.start]:
        is_last = prompt[-1] == delimiter.at if isinstance(delimiter.at, int) else tail.endswith(delimiter.at)
        if is_last and not delimiter.routes:
            return table.starting_in(delimiter.to)
    return table


def _call(index: int, name: str, arguments: str) -> Delta:
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": f"call_{uuid4().hex[:24]}", "type": "function", "function": function}]}
