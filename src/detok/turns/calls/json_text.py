"""
A JSON value, read while it is written.

An object or a list comes out as it is written: numbers, order of keys and spaces are untouched. Only control characters inside a
string, which JSON forbids and models write, are escaped. A value that is a string of JSON (`"{\\"a\\": 1}"`) comes out without
its quotes and escapes. Whatever is written, all of it comes out, and the value ends where its brackets do.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from .base import Piece, delimiter_at, first_characters, json_string, space_end

__all__ = ["EMPTY", "JsonAt", "read_json"]

EMPTY = "{}"
"""The arguments of a call without any."""

# Brackets open at once whose kind is remembered. What is nested more deeply is only counted.
MAX_DEPTH = 256
# A number or a word that is longer than this is given out before it has ended.
MAX_WORD = 256

_INSIDE = re.compile(r'[^"\\\x00-\x1f]+')
_STRING = re.compile(r'[^"\\]+')
_WORD = re.compile(r"[^\s,\]}]+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_LOW_HALF = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_HALF_PAIR = re.compile(r"(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?\Z")
_PLAIN_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CLOSED_BY = {"}": "{", "]": "["}


class JsonAt(NamedTuple):
    """Where the reading of a value stands."""

    kind: str = ""
    """"nested" (an object or a list), "string" or "word"; "" before the first character."""
    stack: str = ""
    """The brackets that are open."""
    deeper: int = 0
    """How many are open beyond `MAX_DEPTH`."""
    quoted: bool = False
    """Whether it stands inside a string of an object or a list."""
    given: bool = False
    """Whether something of a string or a word came out."""


def read_json(at: JsonAt, text: str, ends_at: tuple[str, ...] = (), *, ends: bool = False) -> Piece:
    """
    Take text, and return what of it is JSON of the value.

    Args:
        at: Where the last piece of the value ended.
        text: What was not used then, and more.
        ends_at: Delimiters that end the value where they cannot be part of it: outside of strings.
        ends: Nothing comes after this text.

    >>> read_json(JsonAt(), '{"a": [1.50, "]"]} b')
    Piece(state=None, text='{"a": [1.50, "]"]}', used=18)
    """
    used = 0
    if not at.kind:
        used = space_end(text)
        found = delimiter_at(text, used, ends_at)
        if used == len(text) or (found == "" and not ends):
            return Piece(None, EMPTY, used) if ends else Piece(at, "", used)
        first = text[used]
        if found or first in "}],":
            return Piece(None, EMPTY, used)
        at = at._replace(kind="nested" if first in "{[" else "string" if first == '"' else "word")
        used += at.kind == "string"
    match at.kind:
        case "nested":
            return _nested(at, text, used, ends_at, ends)
        case "string":
            return _string(at, text, used, ends)
        case _:
            return _word(at, text, used, ends_at, ends)


@lru_cache(maxsize=64)
def _outside(ends_at: tuple[str, ...]) -> re.Pattern[str]:
    """What says nothing outside of strings: no quote, no bracket, no beginning of a delimiter."""
    return re.compile(r'[^"{}\[\]' + re.escape(first_characters(ends_at)) + "]+")


def _nested(at: JsonAt, text: str, place: int, ends_at: tuple[str, ...], ends: bool) -> Piece:
    outside = _outside(ends_at)
    out: list[str] = []
    stack, deeper, quoted = at.stack, at.deeper, at.quoted
    while place < len(text):
        if run := (_INSIDE if quoted else outside).match(text, place):
            out.append(run.group())
            place = run.end()
            continue
        char = text[place]
        if quoted:
            width = 2 if char == "\\" else 1
            if place + width > len(text) and not ends:
                break
            out.append(_inside(text[place : place + width]))
            quoted = char != '"'
            place = min(place + width, len(text))
            continue
        found = delimiter_at(text, place, ends_at)
        if found:
            return Piece(None, "".join(out), place)
        if found == "" and not ends:
            break
        out.append(char)
        place += 1
        quoted = char == '"'
        stack, deeper = _bracket(stack, deeper, char)
        if char in "}]" and not stack:
            return Piece(None, "".join(out), place)
    return Piece(None if ends else JsonAt("nested", stack, deeper, quoted), "".join(out), place)


def _inside(written: str) -> str:
    """One character inside a string, or a backslash with the next: a control character comes out as its escape."""
    last = written[-1]
    escape = json_string(last) if last < " " else last
    return "\\" + escape.removeprefix("\\") if len(written) == 2 and last != "\\" else written[:-1] + escape


def _bracket(stack: str, deeper: int, char: str) -> tuple[str, int]:
    """Open or close one. One that closes an outer bracket closes those inside; one that closes none changes nothing."""
    if char in "{[":
        return (stack + char, deeper) if len(stack) < MAX_DEPTH else (stack, deeper + 1)
    if char in "}]":
        if deeper:
            return stack, deeper - 1
        opened = stack.rfind(_CLOSED_BY[char])
        if opened >= 0:
            return stack[:opened], 0
    return stack, deeper


def _string(at: JsonAt, text: str, place: int, ends: bool) -> Piece:
    """A string whose content is the JSON."""
    out: list[str] = []
    while place < len(text):
        if run := _STRING.match(text, place):
            out.append(run.group())
            place = run.end()
        elif text[place] == '"':
            return Piece(None, "".join(out) or ("" if at.given else EMPTY), place + 1)
        elif (found := _unescaped(text, place, ends)) is not None:
            shown, place = found
            out.append(shown)
        else:
            break
    shown = "".join(out)
    return Piece(None if ends else at._replace(given=at.given or bool(shown)), shown, place)


def _unescaped(text: str, place: int, ends: bool) -> tuple[str, int] | None:
    """The character that an escape stands for, and where the escape ends; None if more of it may come."""
    found = None if not ends and _HALF_ESCAPE.match(text, place) else _ESCAPE.match(text, place)
    if found is None:
        return (text[place:], len(text)) if ends else None
    if found[1] is None:
        return _PLAIN_ESCAPES.get(text[place + 1], found[0]), found.end()
    code = int(found[1], 16)
    if 0xD800 <= code < 0xDC00:
        if not ends and _HALF_PAIR.match(text, found.end()):
            return None
        if low := _LOW_HALF.match(text, found.end()):
            return chr(0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00), low.end()
    # Half a character is none, and no text can carry it: it stays as it is written.
    return (found[0] if 0xD800 <= code < 0xE000 else chr(code)), found.end()


def _word(at: JsonAt, text: str, place: int, ends_at: tuple[str, ...], ends: bool) -> Piece:
    """A number, true, false, null, or what is none of these. `null` is no arguments."""
    end = place
    while end < len(text) and end - place < MAX_WORD:
        found = delimiter_at(text, end, ends_at)
        if found or _WORD.match(text, end) is None:
            return Piece(None, _whole(text[place:end], at.given), end)
        if found == "" and not ends:
            break
        end += 1
    if end - place == MAX_WORD:
        return Piece(at._replace(given=True), text[place:end], end)
    if ends:
        return Piece(None, _whole(text[place:], at.given), len(text))
    return Piece(at._replace(kind=at.kind if at.given else ""), "", place)


def _whole(word: str, given: bool) -> str:
    return EMPTY if word == "null" and not given else word
