"""
Where tokens become one text, over states that are plain values: one after another, as bytes, or with a rule for the last one.

Runs of byte tokens have a module of their own, `byte_runs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ..utf8 import REPLACEMENT, decode_ignoring, decode_lossy, settles
from .branches import behind_border
from .tail import Cursor, Tail
from .texts import common_prefix

__all__ = ["Bytes", "Concatenation", "Held", "Joiner", "LastPiece", "Pending", "Undecided", "ValidBytes"]

Held = tuple[str | bytes, str]
"""What is held, for display, and why: one of the reasons that the documentation lists."""

NOTHING: Held = ("", "")
INCOMPLETE = "incomplete character"
OPEN_RUN = "open byte run"
LAST_TOKEN = "may be the last token"
TEXT_RULE = "a rule over the text"


class Joiner(Protocol):
    """Joins tokens into one text and runs it through the tail. Tokens are text, or bytes where the vocabulary has bytes."""

    start: Any
    usual: Any
    """The state in which nothing is held."""

    def feed(self, state: Any, token: Any, /) -> tuple[str, Any]:
        """Take one token and return the text that is certain now, and the next state."""
        ...

    def finish(self, state: Any, /) -> str:
        """Return the rest of the text."""
        ...

    def border(self, state: Any, shown: str, /) -> Any:
        """
        Return the state behind the end of a prompt, of which no text comes out any more.

        Args:
            shown: What would come out if the prompt were all there is.
        """
        ...

    def held(self, state: Any, /) -> Held:
        """Return what is held, and why."""
        ...

    def settles(self, tokens: Sequence[Any], /) -> bool:
        """Whether the state after these tokens, at least one, is the same whatever came before them."""
        ...

    def bytes_of(self, token: Any, /) -> bytes:
        """Return the exact bytes that a token is, neither first nor last and whatever its neighbours make of them."""
        ...


class Concatenation:
    """Tokens one after another. The state is the cursor."""

    def __init__(self, tail: Tail) -> None:
        self.start = tail.start
        self.usual = tail.usual
        self._tail = tail

    def feed(self, cursor: Cursor, token: str) -> tuple[str, Cursor]:
        return self._tail.feed(cursor, token)

    def finish(self, cursor: Cursor) -> str:
        return self._tail.finish(cursor)

    def border(self, cursor: Cursor, shown: str) -> Cursor:
        return cursor.passing_over(shown)

    def held(self, cursor: Cursor) -> Held:
        return held_by_rules(self._tail.finish(cursor))

    def settles(self, tokens: Sequence[str]) -> bool:
        return self._tail.settles("".join(tokens))

    def bytes_of(self, token: str) -> bytes:
        return token.encode()


class Pending(NamedTuple):
    """The bytes of an incomplete character, and the cursor before it."""

    bytes: bytes
    cursor: Cursor


def finish_pending(tail: Tail, state: Pending) -> str:
    out, cursor = tail.feed(state.cursor, REPLACEMENT if state.bytes else "")
    return out + tail.finish(cursor)


def held_pending(tail: Tail, state: Pending) -> Held:
    held = tail.finish(state.cursor)
    return (held.encode() + state.bytes, INCOMPLETE) if state.bytes else held_by_rules(held)


def held_by_rules(text: str) -> Held:
    return (text, TEXT_RULE) if text else NOTHING


class Bytes:
    """
    All tokens are bytes of one text.

    Args:
        tail: The rules behind.
        to_bytes: The bytes that a token is.
    """

    def __init__(self, tail: Tail, to_bytes: Callable[[Any], bytes]) -> None:
        self.start = Pending(b"", tail.start)
        self.usual = Pending(b"", tail.usual)
        self._tail = tail
        self._to_bytes = to_bytes

    def feed(self, state: Pending, token: Any) -> tuple[str, Pending]:
        text, pending = decode_lossy(state.bytes, self._to_bytes(token))
        out, cursor = self._tail.feed(state.cursor, text)
        more, cursor = self._tail.expect(cursor, pending)
        return out + more, Pending(pending, cursor)

    def finish(self, state: Pending) -> str:
        return finish_pending(self._tail, state)

    def border(self, state: Pending, shown: str) -> Pending:
        return Pending(state.bytes, state.cursor.passing_over(shown))

    def held(self, state: Pending) -> Held:
        return held_pending(self._tail, state)

    def settles(self, tokens: Sequence[Any]) -> bool:
        data = b"".join(map(self._to_bytes, tokens))
        text, _ = decode_lossy(b"", data)
        return settles(data) and self._tail.settles(text.replace(REPLACEMENT, ""))

    def bytes_of(self, token: Any) -> bytes:
        return self._to_bytes(token)


class ValidBytes(Bytes):
    """The same, but bytes that belong to no character vanish (Python's error handler "ignore")."""

    def feed(self, state: Pending, token: Any) -> tuple[str, Pending]:
        # Nothing can be expected of an incomplete character: it may vanish, and any other may come.
        text, pending = decode_ignoring(state.bytes, self._to_bytes(token))
        out, cursor = self._tail.feed(state.cursor, text)
        return out, Pending(pending, cursor)

    def finish(self, state: Pending) -> str:
        return self._tail.finish(state.cursor)


class Undecided(NamedTuple):
    """After a token that may be the last: what comes out if it is, and if it is not."""

    cursor: Cursor
    """The cursor if it is not the last."""

    inner: str
    last: str


class LastPiece:
    """Tokens one after another, the last of them written differently (BPEDecoder)."""

    def __init__(self, tail: Tail, inner: Callable[[str], str], last: Callable[[str], str]) -> None:
        self.start = Undecided(tail.start, "", tail.finish(tail.start))
        self.usual = Undecided(tail.usual, "", "")
        self._tail = tail
        self._inner, self._last = inner, last

    def feed(self, state: Undecided, token: str) -> tuple[str, Undecided]:
        inner, cursor = self._tail.feed(state.cursor, self._inner(token))
        last, end = self._tail.feed(state.cursor, self._last(token))
        last += self._tail.finish(end)
        common = common_prefix([inner, last])
        return state.inner + common, Undecided(cursor, inner[len(common) :], last[len(common) :])

    def finish(self, state: Undecided) -> str:
        return state.last

    def border(self, state: Undecided, shown: str) -> Undecided:
        """A space that the prompt's last token has only before another is the stream's."""
        rest, cursor = behind_border(state.inner, state.cursor, shown, self._tail)
        return Undecided(cursor, rest, "")

    def held(self, state: Undecided) -> Held:
        return (state.inner or state.last, LAST_TOKEN) if state.inner or state.last else NOTHING

    def settles(self, tokens: Sequence[str]) -> bool:
        return self._tail.settles("".join(map(self._inner, tokens)))

    def bytes_of(self, token: str) -> bytes:
        return self._inner(token).encode()
