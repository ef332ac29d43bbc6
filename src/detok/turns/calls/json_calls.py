"""
Calls that are JSON objects with a name and arguments: `{"name": "f", "arguments": {"a": 1}}`.

So they are written by Hermes, Qwen 2.5 and 3, Granite, Mistral up to its tokenizer v7, and Llama 3; and this is what an engine
is made to write when a call is forced. One opening delimiter may hold one object, several, or a list of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from .base import Call, Done, More, Piece, Types, delimiter_at, space_end
from .json_text import EMPTY, JsonAt, read_json

__all__ = ["EnvelopeAt", "JsonCalls"]

NAME = "name"
ARGUMENTS = ("arguments", "parameters")
# Without a delimiter in front of it an object is an answer, unless it begins as calls do.
BARE_KEYS = frozenset((NAME, *ARGUMENTS, "type", "id"))

# White space after which the end of an object is still awaited with all of it in hand.
MAX_SPACE = 64


class EnvelopeAt(NamedTuple):
    """Where the reading of an object stands that holds a call."""

    stage: str = "begin"
    """"begin", "key", "colon", "value", "comma"; and what is read: "in_key", "name", "arguments", "other"."""
    place: int = 0
    """Characters that were looked at."""
    begin: int = 0
    """Where the key or the value begins that is read."""
    key: str = ""
    value: JsonAt = JsonAt()
    name: str = ""
    known: tuple[int, int] = (0, 0)
    """Where arguments stand that come before the name."""
    listed: bool = False
    """Whether the object is in a list."""
    begun: bool = False
    """Whether its call was begun: then name and arguments are read already."""


@dataclass(frozen=True, slots=True)
class JsonCalls:
    """
    The grammar.

    Args:
        opens: Delimiters that open calls.
        closes: Delimiters after a call, each of which closes what was opened.
        bare: What may begin a call without a delimiter.
    """

    opens: tuple[str, ...]
    closes: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    @property
    def last(self) -> tuple[str, ...]:
        """Each of the delimiters closes all that is open."""
        return self.closes

    def head(self, text: str, memo: EnvelopeAt | None, *, follows: bool) -> Call | More | Done | None:
        """See `Grammar`."""
        at = memo
        if at is None:
            opening = "" if follows else max((one for one in self.opens if text.startswith(one)), key=len, default="")
            at = EnvelopeAt(place=len(opening))
        if at.stage == "begin":
            begun = self._begin(text, at, follows)
            if not isinstance(begun, EnvelopeAt):
                return begun
            at = begun
        at = self._walk(text, at, ends=False, is_bare=not follows and text[:1] in self.bare)
        match at.stage:
            case "call":
                return self._call(text, at)
            case "none":
                return None
            case _:
                return More(at)

    def _begin(self, text: str, at: EnvelopeAt, follows: bool) -> EnvelopeAt | More | Done | None:
        """Look for the object, past what stands between objects; or for what closes them."""
        place, listed = at.place, at.listed
        while True:
            place = space_end(text, place)
            found = delimiter_at(text, place, self.closes)
            if found:
                return Done(place + len(found), last=True) if follows else None
            if place == len(text) or found == "":
                return More(at._replace(place=place, listed=listed))
            char = text[place]
            place += 1
            if char == "{":
                return at._replace(stage="key", place=place, listed=listed)
            if char == "]" and follows and listed:
                # The list ends, and with it the calls, if nothing else closes them.
                return Done(place, last=not self.closes)
            if char == "[" and not follows and not listed:
                listed = True
            elif not (char in ",;" and follows):
                return None

    def _walk(self, text: str, at: EnvelopeAt, *, ends: bool, is_bare: bool = False) -> EnvelopeAt:
        """Read on to where a call begins ("call"), the object ends ("end") or cannot go on ("none"), or the text is used up."""
        while at.stage not in ("call", "end", "none"):
            place = at.place if at.stage in ("in_key", "name", "arguments", "other") else space_end(text, at.place)
            if place == len(text):
                # White space may belong to what follows a broken object.
                return at if place - at.place < MAX_SPACE and not ends else at._replace(place=place)
            before, at = at, self._step(text, at._replace(place=place), ends, is_bare)
            if at.stage == "none":
                return at._replace(place=before.place)
            if at.stage == before.stage and at.place == before.place:
                return at
        return at

    def _step(self, text: str, at: EnvelopeAt, ends: bool, is_bare: bool) -> EnvelopeAt:
        char = text[at.place]
        match at.stage:
            case "key":
                if char == '"':
                    return at._replace(stage="in_key", begin=at.place, value=JsonAt())
                return self._close(at) if char == "}" else at._replace(stage="none")
            case "colon":
                return at._replace(stage="value", place=at.place + 1) if char == ":" else at._replace(stage="none")
            case "value":
                return self._value(char, at)
            case "comma":
                if char == ",":
                    return at._replace(stage="key", place=at.place + 1)
                return self._close(at) if char == "}" else at._replace(stage="none")
        piece = read_json(at.value, text[at.place :], self.closes, ends=ends)
        if piece.state is not None:
            return at._replace(place=at.place + piece.used, value=piece.state)
        return self._read(text, at._replace(place=at.place + piece.used), is_bare)

    def _close(self, at: EnvelopeAt) -> EnvelopeAt:
        """The object ends: without arguments, if there were none."""
        stage = "end" if at.begun else "call" if at.name else "none"
        return at._replace(stage=stage, place=at.place + 1, begun=at.begun or not at.known[1])

    def _value(self, char: str, at: EnvelopeAt) -> EnvelopeAt:
        at = at._replace(begin=at.place, value=JsonAt())
        if char in ",}]":
            return at._replace(stage="none")
        if not at.begun and at.key == NAME and not at.name:
            return at._replace(stage="name" if char == '"' else "none")
        if not at.begun and at.key in ARGUMENTS and not at.known[1]:
            return at._replace(stage="call" if at.name else "arguments")
        return at._replace(stage="other")

    def _read(self, text: str, at: EnvelopeAt, is_bare: bool) -> EnvelopeAt:
        """A key or a value was read: see what it is."""
        match at.stage:
            case "in_key":
                key = "" if at.begun else _text_of(text[at.begin : at.place])
                may = not is_bare or key in BARE_KEYS
                return at._replace(stage="colon" if may else "none", key=key)
            case "name":
                name = _text_of(text[at.begin : at.place])
                # Arguments that are known make it a call as soon as it has a name.
                return at._replace(stage="none" if not name else "call" if at.known[1] else "comma", name=name)
            case "arguments":
                return at._replace(stage="call" if at.name else "comma", known=(at.begin, at.place))
        return at._replace(stage="comma")

    def _call(self, text: str, at: EnvelopeAt) -> Call:
        """The call that begins here: before its arguments, after them, or without any."""
        after = EnvelopeAt(listed=at.listed)
        if at.known[1]:
            known = read_json(JsonAt(), text[slice(*at.known)], self.closes, ends=True).text
            return Call(at.name, at.place, EnvelopeAt("comma", begun=True), known, after=after)
        if at.begun:
            return Call(at.name, at.place, EnvelopeAt("end", begun=True), EMPTY, after=after)
        return Call(at.name, at.place, EnvelopeAt("begun", begun=True), after=after)

    def arguments(self, state: EnvelopeAt, text: str, types: Types, *, ends: bool) -> Piece:
        """See `Grammar`. What the object has besides name and arguments is read over."""
        out, used = "", 0
        if state.stage == "begun":
            piece = read_json(state.value, text, self.closes, ends=ends)
            if piece.state is not None:
                return Piece(state._replace(value=piece.state), piece.text, piece.used)
            out, used = piece.text, piece.used
            state = EnvelopeAt("comma", begun=True)
        at = self._walk(text[used:], state._replace(place=0), ends=ends)
        if ends or at.stage in ("end", "none"):
            return Piece(None, out, used + at.place)
        return Piece(at._replace(place=0, begin=0), out, used + at.place)


def _text_of(quoted: str) -> str:
    """The text of a JSON string; "" if it has none that can be written."""
    try:
        text: Any = json.loads(quoted, strict=False)
        text.encode()
    except (ValueError, AttributeError):
        return ""
    return str(text)
