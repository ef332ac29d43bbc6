"""
Joiners: they make one text of the tokens.

`OneAfterAnother` joins text and bytes, `LastPiece` has a rule for the last token, and `byte_runs.ByteRuns` joins byte-fallback
tokens. A joiner has no state of its own: a state is a plain value that goes in and comes out. The bytes of a character that is
split over tokens wait in it; the euro sign E2 82 AC as an example:

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
from .rules import byte_level_bytes, byte_level_text, byte_of
from .stages import AnyToken, Token
from .tail import Cursor, Tail
from .texts import common_prefix

State = TypeVar("State")

Held = tuple[str | bytes, str]
"""The text or bytes that are held, for display, and the reason: one of those below, which docs/guide.md lists."""

NOTHING: Held = ("", "")
INCOMPLETE = "incomplete character"
OPEN_RUN = "open byte run"
LAST_TOKEN = "may be the last token"
TEXT_RULE = "a rule over the text"


class Joiner(Protocol[State]):
    """Joins tokens into one text and runs it through the tail. Tokens are text, or bytes if the vocabulary has bytes."""

    start: State
    idle: State
    """The state in which nothing is held."""

    def feed(self, state: State, token: AnyToken, /) -> tuple[str, State]:
        """Take one token and return the text that is certain now, and the next state."""

    def finish(self, state: State, /) -> str:
        """Return the rest of the text."""

    def border(self, state: State, shown: str, /) -> State:
        """
        Return the state at which a stream begins after a prompt: none of the prompt's text comes out of it.

        Args:
            state: The state after the last token of the prompt.
            shown: The text that `finish` gives at that state. The decode of the prompt alone ends with it.
        """

    def held(self, state: State, /) -> Held:
        """Return the text or bytes that are held, and the reason."""

    def alone(self, token: AnyToken, /) -> str | None:
        """Return the text of a token that leads from the idle state back to it; None if it does not, or if that is not plain."""

    def resets(self, tokens: Sequence[AnyToken], /) -> bool:
        """Whether the state after these tokens, one or more, does not depend on the tokens before them."""

    def bytes_of(self, token: AnyToken, /) -> bytes:
        """Return the exact bytes of a token in the middle of a text (law 10). Its neighbours do not count."""


class Pending(NamedTuple):
    """A text that may end in an incomplete character."""

    bytes: bytes
    """The bytes of the incomplete character; b"" if there is none."""

    cursor: Cursor
    """The cursor of the text before it."""


BytesIn = Callable[[AnyToken], bytes | None]


def _no_bytes(token: Token) -> None:
    return None


Invalid = Literal["subpart", "byte", "nothing"]
"""Invalid bytes become one U+FFFD for each maximal subpart (Unicode 3.9), one U+FFFD for each byte, or nothing."""

_DECODE = {"subpart": decode_lossy, "byte": decode_per_byte, "nothing": decode_ignoring}


class OneAfterAnother:
    """
    Joins tokens one after another. If they are bytes, each character comes out once it is complete; a token that is text ends an
    incomplete character.

    Args:
        tail: The rules over joined text.
        bytes_in: Gives the bytes of a token, or None for a token that is text. By default all tokens are text.
        invalid: What invalid bytes become.
    """

    def __init__(self, tail: Tail, bytes_in: BytesIn = _no_bytes, invalid: Invalid = "subpart") -> None:
        self.start = Pending(b"", tail.start)
        self.idle = Pending(b"", tail.idle)
        self._tail = tail
        self._bytes_in = bytes_in
        self._invalid = invalid
        self._decode = _DECODE[invalid]
        self._has_no_rules = tail.is_empty
        # Called for each id that occurs for the first time, so the most frequent kind has a shorter way.
        is_byte_level = bytes_in is byte_level_bytes and tail.is_empty
        self.alone: Callable[[Any], str | None] = byte_level_text if is_byte_level else self._alone

    def feed(self, state: Pending, token: Token) -> tuple[str, Pending]:
        data = self._bytes_in(token)
        if data is None:
            text, pending = self._replaced(state.bytes) + str(token), b""
        else:
            text, pending = self._decode(state.bytes, data)
        out, cursor = self._tail.feed(state.cursor, text)
        if self._invalid != "nothing":
            # With "nothing" an incomplete character may be left out, and then any character may come next.
            more, cursor = self._tail.expect(cursor, pending)
            out += more
        return out, Pending(pending, cursor)

    def _replaced(self, pending: bytes) -> str:
        """Return the text that an incomplete character becomes if it is never completed."""
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

    def _alone(self, token: Token) -> str | None:
        data = self._bytes_in(token)
        try:
            text = str(token) if data is None else data.decode()
        except UnicodeDecodeError:
            return None
        return text if self._has_no_rules else self._tail.alone(text)

    def resets(self, tokens: Sequence[Token]) -> bool:
        if self._bytes_in(tokens[0]) is None:
            return self._tail.resets(str(tokens[0]))  # a token that is text ends an incomplete character
        data = b"".join(takewhile(lambda data: data is not None, map(self._bytes_in, tokens)))  # type: ignore[arg-type]  # as it says
        text, _ = self._decode(b"", data)
        # U+FFFD is taken out, since whether the first bytes become one depends on the bytes before them.
        return resets(data) and self._tail.resets(text.replace(REPLACEMENT, ""))

    def bytes_of(self, token: Token) -> bytes:
        data = self._bytes_in(token)
        return str(token).encode() if data is None else data


def byte_token(token: Token) -> bytes | None:
    """Return the byte of a token ``<0xHH>``; None for any other token."""
    byte = byte_of(str(token))
    return None if byte is None else bytes([byte])


def raw_bytes(token: Token) -> bytes | None:
    """Return the bytes of a token that is bytes; None for text."""
    return token if isinstance(token, bytes) else None


def held_by_rules(text: str) -> Held:
    return (text, TEXT_RULE) if text else NOTHING


class MayBeLast(NamedTuple):
    """The state after a token that may be the last."""

    cursor: Cursor
    """The cursor if it is not the last."""

    inner: str
    """The text that comes out next if it is not."""

    last: str
    """The text that comes out if it is."""


class LastPiece:
    """
    Joins tokens one after another, and treats the last one differently (BPEDecoder).

    It follows both futures of a token, and the text that both begin with comes out. With the suffix ``</w>`` as an example: of
    ``low</w>`` the text "low" is certain, and a space follows if it is not the last token.
    """

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
        """The prompt ends, so its last token is not the last of the text. A space that only this adds belongs to the stream."""
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
