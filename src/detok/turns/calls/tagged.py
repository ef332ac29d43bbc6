"""
Calls whose arguments are tags, one a parameter, which say the value but not its type.

Qwen3-Coder writes `<function=NAME><parameter=KEY>VALUE</parameter></function>`, GLM
`NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>`, MiniMax `<invoke name="NAME"><parameter
name="KEY">VALUE</parameter></invoke>`.

A value is a string, which comes out character by character, unless the tool's schema allows other types. Then it is held until
it has ended: what is JSON of one of these types comes out as it is spelt (`1e5` stays `1e5`), and else it is a string too.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .base import MAX_NAME, Call, Done, More, Piece, Types, after_call, delimiter_at, json_string, space_end
from .heads import Heads
from .json_text import JsonAt, read_json

__all__ = ["TaggedAt", "TaggedCalls", "typed_value"]

# A value of other types than a string that is longer is not held any more: an object or a list comes out as it is written, and
# what
# is none of these as a string.
MAX_NESTED = 1 << 12
MAX_SCALAR = 1 << 8
MAX_SPACE = 64

_KEY_QUOTES = "\"' "


class TaggedAt(NamedTuple):
    """Where the reading of parameters stands."""

    stage: str = "between"
    """"between" parameters; in a "string", a value that is "held", one that is "nested" and too long for that, or its "rest"."""
    begun: int = 0
    """Number of parameters that were begun."""
    key: str = ""
    value: JsonAt = JsonAt()


@dataclass(frozen=True, slots=True)
class TaggedCalls:
    """
    The grammar.

    Args:
        opens: Delimiters that open calls, or a section of them.
        heads: What a call begins with.
        next_heads: What the next one of a section begins with.
        key: What stands before the name of a parameter.
        key_ends: What stands between it and the value, with white space between these.
        value_ends: What stands after the value.
        ends: What stands after the last parameter.
        closes: Delimiters after a call.
        last: Those of them that close the section.
        lines: A value is on lines of its own: one line end at its beginning and one at its end are no part of it.
    """

    opens: tuple[str, ...]
    heads: Heads
    next_heads: Heads
    key: str
    key_ends: tuple[str, ...]
    value_ends: str
    ends: str
    closes: tuple[str, ...]
    last: tuple[str, ...]
    lines: bool = False
    bare: tuple[str, ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        """All its literals, any of which may be a special token."""
        return (self.key, *self.key_ends, self.value_ends, self.ends)

    def head(self, text: str, memo: None, *, follows: bool) -> Call | More | Done | None:
        """See `Grammar`."""
        found = after_call(text, self.closes, self.last, self.next_heads.call) if follows else self.heads.call(text)
        return found._replace(state=TaggedAt()) if isinstance(found, Call) else found

    def arguments(self, state: TaggedAt, text: str, types: Types, *, ends: bool) -> Piece:
        """See `Grammar`. Between parameters, what is none ends the call."""
        out: list[str] = []
        used = 0
        at: TaggedAt | None = state
        while at is not None:
            piece = (
                self._between(at, text[used:], types, ends)
                if at.stage == "between"
                else self._value(at, text[used:], types, ends)
            )
            out.append(piece.text)
            used += piece.used
            stands = piece.used == 0 and piece.state is not None and piece.state.stage == at.stage
            at = piece.state
            if stands:
                break
        return Piece(at, "".join(out), used)

    def _between(self, at: TaggedAt, text: str, types: Types, ends: bool) -> Piece:
        place = space_end(text)
        found = delimiter_at(text, place, (self.key, self.ends))
        closing = "}" if at.begun else "{}"
        if found == self.ends:
            # A delimiter that closes everything is looked at after the call.
            return Piece(None, closing, place + (0 if found in self.last else len(found)))
        if not found:
            may_go_on = found == "" or (place == len(text) and place <= MAX_SPACE)
            if may_go_on and not ends:
                return Piece(at, "", 0)
            # What is cut off stays so. What is no parameter ends the call.
            return Piece(None, "", place * (place == len(text))) if may_go_on else Piece(None, closing, 0)
        key = self._key(text, place + len(found))
        if key is None:
            return Piece(None, "", 0) if ends else Piece(at, "", 0)
        name, end = key
        return self._begin(at, name, text, end, types, ends) if name else Piece(None, closing, 0)

    def _key(self, text: str, begin: int) -> tuple[str, int] | None:
        """The name of a parameter and where its value begins; "" if there is none, None if it is not whole."""
        first = text.find(self.key_ends[0], begin)
        if first < 0:
            return None if len(text) - begin < MAX_NAME + len(self.key_ends[0]) else ("", 0)
        name, place = text[begin:first].strip(_KEY_QUOTES), first + len(self.key_ends[0])
        for one in self.key_ends[1:]:
            space = space_end(text, place)
            found = delimiter_at(text, space, (one,))
            if space - place > MAX_SPACE or (found is None and space < len(text)):
                return "", 0
            if not found:
                return None
            place = space + len(found)
        return (name if first - begin < MAX_NAME else ""), place

    def _begin(self, at: TaggedAt, name: str, text: str, place: int, types: Types, ends: bool) -> Piece:
        if self.lines:
            if place == len(text) and not ends:
                return Piece(at, "", 0)
            place += text.startswith("\n", place)
        shown = f'{", " if at.begun else "{"}"{json_string(name)}": '
        is_text = set(types.get(name) or ("string",)) == {"string"}
        return Piece(TaggedAt("string" if is_text else "held", at.begun + 1, name), shown + '"' * is_text, place)

    def _value(self, at: TaggedAt, text: str, types: Types, ends: bool) -> Piece:
        marks = (f"\n{self.value_ends}", self.value_ends) if self.lines else (self.value_ends,)
        end, used, is_whole = _until(text, marks, ends)
        after = at._replace(stage="between", value=JsonAt())
        match at.stage:
            case "string":
                shown = json_string(text[:end])
                return Piece(after if is_whole else None if ends else at, shown + '"' * is_whole, used)
            case "nested":
                piece = read_json(at.value, text[:end], ends=is_whole or ends)
                if piece.state is None and piece.used < end:
                    return Piece(at._replace(stage="rest"), piece.text, piece.used)
                state = after if is_whole else None if ends else at._replace(value=piece.state or JsonAt())
                return Piece(state, piece.text, used if is_whole else piece.used)
            case "rest":
                return Piece(after if is_whole else None if ends else at, "".join(text[:end].split()), used)
        return self._held(at, text[:end], used, types.get(at.key) or (), is_whole=is_whole, ends=ends)

    def _held(self, at: TaggedAt, value: str, used: int, types: Sequence[str], *, is_whole: bool, ends: bool) -> Piece:
        """A value that may have another type than a string."""
        first = value.lstrip()[:1]
        if first and not any(first in _FIRST[one] for one in types if one in _FIRST):
            return Piece(at._replace(stage="string"), '"', 0)
        is_nested = first in ("{", "[")
        if len(value) > (MAX_NESTED if is_nested else MAX_SCALAR):
            return Piece(at._replace(stage="nested" if is_nested else "string"), "" if is_nested else '"', 0)
        if not (is_whole or ends):
            return Piece(at, "", 0)
        return Piece(at._replace(stage="between") if is_whole else None, typed_value(value, types), used)


def _until(text: str, marks: Sequence[str], ends: bool) -> tuple[int, int, bool]:
    """Where a value ends, where what is after its end begins, and whether it does end: else all but a beginning of its end is
    taken."""
    found = [(place, one) for one in marks if (place := text.find(one)) >= 0]
    if found:
        place, one = min(found)
        return place, place + len(one), True
    if ends:
        return len(text), len(text), False
    held = next(
        (n for n in range(min(len(text), len(marks[0]) - 1), 0, -1) if any(one.startswith(text[-n:]) for one in marks)), 0
    )
    return len(text) - held, len(text) - held, False


_DIGITS = "-0123456789"
_FIRST = {"null": "nN", "integer": _DIGITS, "number": _DIGITS, "boolean": "tTfF", "object": "{", "array": "["}
"""What a value of a type begins with."""

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WHOLE = re.compile(r"-?(?:0|[1-9]\d*)")


def typed_value(text: str, types: Sequence[str]) -> str:
    """
    Return a value as JSON of one of these types, in the order of vLLM: null, number, boolean, object or array, and else a string.

    >>> typed_value("1.50", ["number"]), typed_value("x", ["integer"]), typed_value("True", ["boolean", "string"])
    ('1.50', '"x"', 'true')
    """
    stripped = text.strip()
    lower = stripped.lower()
    if "null" in types and lower in ("null", "none"):
        return "null"
    if "integer" in types and _WHOLE.fullmatch(stripped):
        return stripped
    if "number" in types and _NUMBER.fullmatch(stripped) and math.isfinite(float(stripped)):
        return stripped
    if "boolean" in types and lower in ("true", "false"):
        return lower
    if not {"object", "array"}.isdisjoint(types) and stripped[:1] in ("{", "["):
        read = read_json(JsonAt(), stripped, ends=True)
        if read.used == len(stripped) and _is_json(read.text):
            return read.text
    return f'"{json_string(text)}"'


def _is_json(text: str) -> bool:
    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return False
    return True
