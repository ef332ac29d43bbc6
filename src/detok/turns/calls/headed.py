"""
Calls whose name stands between delimiters, with JSON arguments after it.

DeepSeek V3 writes `<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME`, a line of three backticks and "json", and the arguments;
V3.1 `<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{...}`; Kimi K2
`<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{...}`; Mistral, with the token `[ARGS]`,
`[TOOL_CALLS]NAME[ARGS]{...}`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .base import Call, Done, More, Piece, Types, after_call
from .heads import Heads
from .json_text import JsonAt, read_json

__all__ = ["HeadedCalls"]

_NUMBER = re.compile(r"(.+):\d+\Z")


@dataclass(frozen=True, slots=True)
class HeadedCalls:
    """
    The grammar.

    Args:
        opens: Delimiters that open calls, or a section of them.
        heads: What a call begins with.
        next_heads: What the next one of a section begins with.
        closes: Delimiters after a call.
        last: Those of them that close the section.
        numbered: The name is a part of the call's id: `functions.NAME:0`.
        marks: Other literals of the heads, which may be special tokens.
    """

    opens: tuple[str, ...]
    heads: Heads
    next_heads: Heads
    closes: tuple[str, ...]
    last: tuple[str, ...]
    numbered: bool = False
    bare: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    def head(self, text: str, memo: None, *, follows: bool) -> Call | More | Done | None:
        """See `Grammar`."""
        found = after_call(text, self.closes, self.last, self.next_heads.call) if follows else self.heads.call(text)
        if not isinstance(found, Call):
            return found
        if self.numbered:
            number = _NUMBER.match(found.name)
            found = found._replace(name=number[1] if number else found.name, call_id=found.name)
        return found._replace(state=JsonAt())

    def arguments(self, state: JsonAt, text: str, types: Types, *, ends: bool) -> Piece:
        """See `Grammar`."""
        return read_json(state, text, self.closes, ends=ends)
