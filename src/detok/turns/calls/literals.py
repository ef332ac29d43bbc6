"""
Calls whose arguments are literals that are no JSON, which come out as JSON while they are read.

Llama writes Python: `[f(city="Rome", n=1), g()]`. Gemma writes `call:f{city:<|"|>Rome<|"|>,n:1}`, and FunctionGemma the same with
`<escape>` around strings. Strings come out character by character, numbers as they are spelt where that is JSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from .base import Call, Done, More, Piece, Types, after_call, delimiter_at, json_string, space_end
from .heads import Heads

__all__ = ["LiteralAt", "LiteralCalls"]

# A word or a number that is longer ends the call.
MAX_WORD = 1 << 8
MAX_DEPTH = 1 << 8

_OPENED = {"{": "{", "[": "[", "(": "["}
_KEYED, _MAP, _LIST, _TUPLE = "k", "d", "l", "t"
_CLOSES_JSON = {_KEYED: "}", _MAP: "}", _LIST: "]", _TUPLE: "]"}
_WORDS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_PYTHON_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_HALF_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?\Z")
_KEY = {sign: re.compile(rf"""([^\s"'{{}}\[\](),<>{sign}]*)\s*""") for sign in "=:"}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0", "\n": "", "\\": "\\"}


class LiteralAt(NamedTuple):
    """Where the reading of literals stands."""

    stack: str
    """The brackets that are open: "k" of a call or an object with bare keys, "d" of a dict, "l" and "t" of a list and a tuple;
    in upper case once they have an item."""
    stage: str = "item"
    """"item" (or the end), "separator" (after a key), "value", "next" (a comma or the end), "string"."""
    quote: str = ""
    """What the string ends at."""
    is_key: bool = False
    """Whether the string is the key of a dict."""


@dataclass(frozen=True, slots=True)
class LiteralCalls:
    """
    The grammar.

    Args:
        opens: Delimiters that open calls.
        bare: What may begin calls without a delimiter.
        heads: What a call begins with.
        next_heads: What the next one of a list begins with.
        separator: What stands between a key and its value.
        end: The bracket that ends a call's arguments.
        quotes: What strings begin and end with.
        escapes: Whether strings have Python's escapes.
        closes: Delimiters after a call.
        last: Those of them that close everything.
    """

    opens: tuple[str, ...]
    heads: Heads
    next_heads: Heads
    separator: str
    end: str
    quotes: tuple[str, ...]
    escapes: bool
    closes: tuple[str, ...]
    last: tuple[str, ...]
    bare: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    def head(self, text: str, memo: None, *, follows: bool) -> Call | More | Done | None:
        """See `Grammar`."""
        found = after_call(text, self.closes, self.last, self.next_heads.call) if follows else self.heads.call(text)
        return found._replace(state=LiteralAt(_KEYED), text="{") if isinstance(found, Call) else found

    def arguments(self, state: LiteralAt, text: str, types: Types, *, ends: bool) -> Piece:
        """See `Grammar`. Where the grammar is broken, the call ends, with its brackets closed."""
        out: list[str] = []
        used = 0
        at: LiteralAt | None = state
        while at is not None:
            if at.stage == "string":
                piece = self._string(at, text, used, ends)
            else:
                # White space at the end may belong to what is after the call.
                place = space_end(text, used)
                if place == len(text):
                    return Piece(None if ends else at, "".join(out), place if ends or place - used > MAX_WORD else used)
                piece = self._token(at, text, place, ends)
            if piece is None:
                return Piece(None if ends else at, "".join(out), used)
            at = piece.state
            out.append(piece.text)
            used = piece.used if piece.used >= 0 else used
        return Piece(at, "".join(out), used)

    def _token(self, at: LiteralAt, text: str, place: int, ends: bool) -> Piece | None:
        """Read what stands outside of strings; None if more has to come. ``used`` is a place in the text, -1 for none of it."""
        inner = at.stack[-1].lower()
        char = text[place]
        closing = {_KEYED: self.end, _MAP: "}", _LIST: "]", _TUPLE: ")"}[inner]
        if at.stage in ("item", "next") and char == closing:
            rest = at.stack[:-1]
            return Piece(LiteralAt(rest, "next") if rest else None, _CLOSES_JSON[inner], place + 1)
        if at.stage == "next":
            return Piece(at._replace(stage="item"), "", place + 1) if char == "," else self._broken(at)
        if at.stage == "separator":
            sign = self.separator if inner == _KEYED else ":"
            return Piece(at._replace(stage="value"), ": ", place + 1) if char == sign else self._broken(at)
        if at.stage == "item":
            return self._item(at, inner, text, place, ends)
        return self._value(at, text, place, ends)

    def _item(self, at: LiteralAt, inner: str, text: str, place: int, ends: bool) -> Piece | None:
        comma = ", " if at.stack[-1].isupper() else ""
        begun = at._replace(stack=at.stack[:-1] + at.stack[-1].upper())
        if inner in (_LIST, _TUPLE):
            piece = self._value(begun, text, place, ends)
        elif (quote := delimiter_at(text, place, self.quotes)) is not None:
            if quote == "" and not ends:
                return None
            key = begun._replace(stage="string", quote=quote or "", is_key=True)
            piece = Piece(key, '"', place + len(quote)) if quote else self._broken(at)
        elif inner == _KEYED:
            piece = self._bare_key(begun, text, place, ends)
        else:
            piece = self._broken(at)
        return piece if piece is None or piece.used < 0 else piece._replace(text=comma + piece.text)

    def _bare_key(self, at: LiteralAt, text: str, place: int, ends: bool) -> Piece | None:
        found = _KEY[self.separator].match(text, place)
        assert found is not None
        end = found.end()
        if end == len(text) and not ends and end - place < MAX_WORD:
            return None
        key = found[1]
        if not key or end - place >= MAX_WORD or not text.startswith(self.separator, end):
            return self._broken(at)
        return Piece(at._replace(stage="separator"), f'"{json_string(key)}"', end)

    def _value(self, at: LiteralAt, text: str, place: int, ends: bool) -> Piece | None:
        quote = delimiter_at(text, place, self.quotes)
        if quote == "" and not ends:
            return None
        if quote:
            if self.escapes and len(quote) == 1:
                # Three quotes are one, two are an empty string.
                if not ends and text[place:] in (quote, quote * 2):
                    return None
                quote *= 3 if text.startswith(quote * 3, place) else 1
            return Piece(at._replace(stage="string", quote=quote, is_key=False), '"', place + len(quote))
        char = text[place]
        if char in "{[" or (char == "(" and self.escapes):
            if len(at.stack) >= MAX_DEPTH:
                return self._broken(at)
            kind = _LIST if char == "[" else _TUPLE if char == "(" else _MAP if self.escapes else _KEYED
            return Piece(LiteralAt(at.stack + kind), _OPENED[char], place + 1)
        return self._word(at, text, place, ends)

    def _word(self, at: LiteralAt, text: str, place: int, ends: bool) -> Piece | None:
        end = place
        while end < len(text) and text[end] not in ",)]}" and delimiter_at(text, end, self.closes) is None:
            end += 1
        is_over = end < len(text) and delimiter_at(text, end, self.closes) != ""
        if end - place > MAX_WORD:
            return self._broken(at)
        if not is_over and not ends:
            return None
        word = text[place:end].strip()
        return Piece(at._replace(stage="next"), _json_word(word), end) if word else self._broken(at)

    def _string(self, at: LiteralAt, text: str, place: int, ends: bool) -> Piece | None:
        after = at._replace(stage="separator" if at.is_key else "next", quote="")
        out: list[str] = []
        while place < len(text):
            run = place
            while run < len(text) and text[run] != at.quote[0] and not (self.escapes and text[run] == "\\"):
                run += 1
            out.append(json_string(text[place:run]))
            place = run
            if place == len(text):
                break
            found = delimiter_at(text, place, (at.quote,))
            if found:
                return Piece(after, "".join(out) + '"', place + len(found))
            if found == "" and not ends:
                break
            if text[place] == "\\" and self.escapes:
                if not ends and _HALF_ESCAPE.match(text, place):
                    break
                shown, place = _unescaped(text, place)
                out.append(json_string(shown))
            else:
                out.append(json_string(text[place]))
                place += 1
        if ends and place == len(text):
            return Piece(None, "".join(out), place)
        return Piece(at, "".join(out), place) if out and "".join(out) else None

    def _broken(self, at: LiteralAt) -> Piece:
        """Close all brackets; what the text is is not for the call."""
        return Piece(None, "".join(_CLOSES_JSON[one.lower()] for one in reversed(at.stack)), -1)


def _unescaped(text: str, place: int) -> tuple[str, int]:
    """What a Python escape stands for; one that Python does not know is written as it is."""
    found = _PYTHON_ESCAPE.match(text, place)
    if found is None:
        return text[place], place + 1
    if found[4] is not None:
        return _ESCAPED.get(found[4], found[4] if found[4] in "\"'" else found[0]), found.end()
    code = int(found[1] or found[2] or found[3], 16)
    is_character = code < 0xD800 or 0xE000 <= code <= 0x10FFFF
    return (chr(code) if is_character else found[0]), found.end()


def _json_word(word: str) -> str:
    """A word as JSON: a constant, a number as it is spelt, a number that only Python knows, or else a string."""
    if word in _WORDS:
        return _WORDS[word]
    if _NUMBER.fullmatch(word):
        return word
    if re.fullmatch(r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)", word):
        digits = word.replace("_", "").removeprefix("+")
        sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
        whole, _, fraction = digits.partition(".")
        return f"{sign}{whole.lstrip('0') or '0'}" + (f".{fraction}" if fraction else "")
    return f'"{json_string(word)}"'
