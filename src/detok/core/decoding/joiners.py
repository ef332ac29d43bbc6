"""
Where tokens become one text: one after another, as bytes, or with a rule for the last one.

Runs of byte tokens have a module of their own, `byte_runs`. A joiner holds no state: a state is a plain value that goes in and
comes out. Bytes of a character that is split over tokens wait in it:

>>> from detok.core.decoding.tail import Tail
>>> joiner = OneAfterAnother(Tail([]), lambda token: token)
>>> first, state = joiner.feed(joiner.start, b"a\\xe2\\x82")
>>> second, state = joiner.feed(state, b"\\xac!")
>>> first, second
('a', '€!')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from ..utf8 import REPLACEMENT, decode_ignoring, decode_lossy, decode_per_byte, resets
from .branches import past_border
from .rules import byte_of
from .stages import Token
from .tail import Cursor, Tail
from .texts import common_prefix

State = TypeVar("State")

Held = tuple[str | bytes, str]
"""What is held, for display, and why: one of the reasons below, which the documentation lists."""

NOTHING: Held = ("", "")
INCOMPLETE = "incomplete character"
OPEN_RUN = "open byte run"
LAST_TOKEN = "may be the last token"
TEXT_RULE = "a rule over the text"


class Joiner(Protocol[State]):
    """Joins tokens into one text and runs it through the tail. Tokens are text, or bytes where the vocabulary has bytes."""

    start: State
    idle: State
    """The state in which nothing is held."""

    def feed(self, state: State, token: Any, /) -> tuple[str, State]:
        """Take one token and return the text that is certain now, and the next state."""

    def finish(self, state: State, /) -> str:
        """Return the rest of the text."""

    def border(self, state: State, shown: str, /) -> State:
        """
        Return the state after the end of a prompt, of which no text comes out any more.

        Args:
            shown: What would come out if the prompt were all there is.
        """

    def held(self, state: State, /) -> Held:
        """Return what is held, and why."""

    def alone(self, token: Any, /) -> str | None:
        """Return the text of a token that leads from the idle state back to it; None if it does not, or if the tail has rules."""

    def resets(self, tokens: Sequence[Any], /) -> bool:
        """Whether the state after these tokens, at least one, is the same whatever came before them."""

    def bytes_of(self, token: Any, /) -> bytes:
        """Return the exact bytes that a token is, neither first nor last and whatever its neighbours make of them."""


class Pending(NamedTuple):
    """Where bytes stand."""

    bytes: bytes
    """Those of an incomplete character."""

    cursor: Cursor
    """The place before it."""


BytesIn = Callable[[Any], bytes | None]


def _no_bytes(token: Token) -> None:
    return None


Invalid = Literal["subpart", "byte", "nothing"]
"""What bytes that belong to no character become: one U+FFFD a maximal subpart (Unicode 3.9), one U+FFFD a byte, or nothing."""

_DECODE = {"subpart": decode_lossy, "byte": decode_per_byte, "nothing": decode_ignoring}


class OneAfterAnother:
    """
    Tokens are joined one after another. Where they are bytes, each character is given out as it is complete; a token that is text
    ends an incomplete character.

    Args:
        tail: The rules over joined text.
        bytes_in: The bytes that a token is; None if it is text, as all are by default.
        invalid: What invalid bytes become.
    """

    def __init__(self, tail: Tail, bytes_in: BytesIn = _no_bytes, invalid: Invalid = "subpart") -> None:
        self.start = Pending(b"", tail.start)
        self.idle = Pending(b"", tail.idle)
        self._tail = tail
        self._bytes_in = bytes_in
        self._invalid = invalid
        self._decode = _DECODE[invalid]

    def feed(self, state: Pending, token: Token) -> tuple[str, Pending]:
        data = self._bytes_in(token)
        if data is None:
            text, pending = self._replaced(state.bytes) + str(token), b""
        else:
            text, pending = self._decode(state.bytes, data)
        out, cursor = self._tail.feed(state.cursor, text)
        if self._invalid != "nothing":
            # Else nothing can be expected of an incomplete character: it may vanish, and any other may come.
            more, cursor = self._tail.expect(cursor, pending)
            out += more
        return out, Pending(pending, cursor)

    def _replaced(self, pending: bytes) -> str:
        """Return what an incomplete character becomes that is never completed."""
        if not pending or self._invalid == "nothing":
            return ""
        return REPLACEMENT * (len(pending) if self._invalid == "byte" else 1)

    def finish(self, state: Pending) -> str:
        out, cursor = self._tail.feed(state.cursor, self._replaced(state.bytes))
        return out + self._tail.finish(cursor)

    def border(self, state: Pending, shown: str) -> Pending:
        return Pending(state.bytes, state.cursor.passing_over(shown))

    def held(self, state: Pending) -> Held:
        held = self._tail.finish(state.cursor)
        return (held.encode() + state.bytes, INCOMPLETE) if state.bytes else held_by_rules(held)

    def alone(self, token: Token) -> str | None:
        if not self._tail.is_empty:
            return None
        data = self._bytes_in(token)
        if data is None:
            return str(token)
        text, pending = self._decode(b"", data)
        return None if pending else text

    def resets(self, tokens: Sequence[Token]) -> bool:
        if self._bytes_in(tokens[0]) is None:
            return self._tail.resets(str(tokens[0]))  # what was open before it has ended
        data = b"".join(takewhile(lambda data: data is not None, map(self._bytes_in, tokens)))  # type: ignore[arg-type]  # as it says
        text, _ = self._decode(b"", data)
        return resets(data) and self._tail.resets(text.replace(REPLACEMENT, ""))

    def bytes_of(self, token: Token) -> bytes:
        data = self._bytes_in(token)
        return str(token).encode() if data is None else data


def byte_token(token: Token) -> bytes | None:
    """Return the byte that a token ``<0xHH>`` is; None for any other token."""
    byte = byte_of(str(token))
    return None if byte is None else bytes([byte])


def raw_bytes(token: Token) -> bytes | None:
    """Return the bytes of a token that is bytes; None for text."""
    return token if isinstance(token, bytes) else None


def held_by_rules(text: str) -> Held:
    return (text, TEXT_RULE) if text else NOTHING


class MayBeLast(NamedTuple):
    """After a token that may be the last."""

    cursor: Cursor
    """The place if it is not the last."""

    inner: str
    """What comes out next if it is not."""

    last: str
    """What comes out if it is."""


class LastPiece:
    """Tokens one after another, the last of them written differently (BPEDecoder)."""

    def __init__(self, tail: Tail, inner: Callable[[str], str], last: Callable[[str], str]) -> None:
        self.start = MayBeLast(tail.start, "", tail.finish(tail.start))
        self.idle = MayBeLast(tail.idle, "", "")
        self._tail = tail
        self._inner, self._last = inner, last

    def feed(self, state: MayBeLast, token: str) -> tuple[str, MayBeLast]:
        inner, cursor = self._tail.feed(state.cursor, self._inner(token))
        last, end = self._tail.feed(state.cursor, self._last(token))
        last += self._tail.finish(end)
        common = common_prefix([inner, last])
        return state.inner + common, MayBeLast(cursor, inner[len(common) :], last[len(common) :])

    def finish(self, state: MayBeLast) -> str:
        return state.last

    def border(self, state: MayBeLast, shown: str) -> MayBeLast:
        """A space that the prompt's last token has only before another is the stream's."""
        inner = past_border(state.inner, state.cursor, shown, self._tail)
        return MayBeLast(inner.cursor, inner.rest, "")

    def held(self, state: MayBeLast) -> Held:
        return (state.inner or state.last, LAST_TOKEN) if state.inner or state.last else NOTHING

    def alone(self, token: str) -> str | None:
        inner = self._inner(token)
        return inner if self._tail.is_empty and inner == self._last(token) else None

    def resets(self, tokens: Sequence[str]) -> bool:
        return self._tail.resets("".join(map(self._inner, tokens)))

    def bytes_of(self, token: str) -> bytes:
        return self._inner(token).encode()
