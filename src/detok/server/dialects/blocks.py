"""
The deltas of a message as blocks that open, grow and close: what OpenAI calls output items, and Anthropic content blocks.

Tested in tests/server/test_dialects.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

__all__ = ["Block", "Blocks", "Step"]

Kind = Literal["reasoning", "text", "call"]


@dataclass(slots=True, kw_only=True)
class Block:
    """A part of an answer: what was thought, what was said, or a call."""

    kind: Kind
    index: int
    id: str
    text: str = ""
    """So far; of a call its arguments."""
    name: str = ""
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to a block."""

    what: Literal["opens", "grows", "closes"]
    block: Block
    text: str = ""
    """With which it grows."""


class Blocks:
    """The blocks of one answer, in order; one is open at a time."""

    def __init__(self) -> None:
        self.all: list[Block] = []
        self._open: Block | None = None

    def feed(self, deltas: Sequence[dict[str, Any]], *, ends: bool = False) -> list[Step]:
        """
        Return what deltas of a chat message do.

        Args:
            deltas: As chat completions have them.
            ends: Nothing comes after them.
        """
        steps: list[Step] = []
        for delta in deltas:
            if delta.get("reasoning_content"):
                steps += self._grown("reasoning", delta["reasoning_content"])
            if delta.get("content"):
                steps += self._grown("text", delta["content"])
            for call in delta.get("tool_calls") or ():
                if "id" in call:
                    steps += self._opened("call", name=call["function"]["name"], call_id=call["id"])
                steps += self._grown("call", call["function"].get("arguments") or "")
        return [*steps, *self._closed()] if ends else steps

    def _grown(self, kind: Kind, text: str) -> list[Step]:
        steps = self._opened(kind) if self._open is None or self._open.kind != kind else []
        if not text or self._open is None:
            return steps
        self._open.text += text
        return [*steps, Step("grows", self._open, text)]

    def _opened(self, kind: Kind, **more: str) -> list[Step]:
        closing = self._closed()
        self._open = Block(kind=kind, index=len(self.all), id=uuid4().hex[:24], **more)
        self.all.append(self._open)
        return [*closing, Step("opens", self._open)]

    def _closed(self) -> list[Step]:
        block, self._open = self._open, None
        return [] if block is None else [Step("closes", block)]
