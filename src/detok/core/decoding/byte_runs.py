"""
Runs of byte-fallback tokens, in the two modes.

Exact: as the ByteFallback decoder has them, all bytes of a run or none. Eager: each character as it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import NamedTuple

from ..utf8 import REPLACEMENT, decode_lossy, decode_per_byte, decode_strict, settles
from .branches import Branch, agree, behind_border
from .joiners import OPEN_RUN, Held, Pending, held_by_rules, held_pending
from .rules import byte_of
from .tail import Cursor, Tail

__all__ = ["Broken", "ByteRuns", "LossyRuns", "Run", "byte_token", "raw_bytes"]

Token = str | bytes
BytesIn = Callable[[Token], bytes | None]


class LossyRuns:
    """
    Runs of bytes, each character given out as it is complete; a token that is no bytes ends a run.

    Args:
        tail: The rules behind.
        bytes_in: The bytes that a token is, None if it is text.
        per_byte: Whether bad bytes are one U+FFFD each, or one a maximal subpart.
    """

    def __init__(self, tail: Tail, bytes_in: BytesIn, *, per_byte: bool = False) -> None:
        self._bytes_in = bytes_in
        self._per_byte = per_byte
        self._decode = decode_per_byte if per_byte else decode_lossy
        self.start = Pending(b"", tail.start)
        self.usual = Pending(b"", tail.usual)
        self._tail = tail

    def feed(self, state: Pending, token: Token) -> tuple[str, Pending]:
        data = self._bytes_in(token)
        if data is None:
            text, pending = self._replaced(state.bytes) + str(token), b""
        else:
            text, pending = self._decode(state.bytes, data)
        out, cursor = self._tail.feed(state.cursor, text)
        more, cursor = self._tail.expect(cursor, pending)
        return out + more, Pending(pending, cursor)

    def _replaced(self, pending: bytes) -> str:
        return REPLACEMENT * (len(pending) if self._per_byte else bool(pending))

    def finish(self, state: Pending) -> str:
        out, cursor = self._tail.feed(state.cursor, self._replaced(state.bytes))
        return out + self._tail.finish(cursor)

    def border(self, state: Pending, shown: str) -> Pending:
        return Pending(state.bytes, state.cursor.passing_over(shown))

    def held(self, state: Pending) -> Held:
        return held_pending(self._tail, state)

    def settles(self, tokens: Sequence[Token]) -> bool:
        if self._bytes_in(tokens[0]) is None:
            # What was open before it has ended.
            return self._tail.settles(str(tokens[0]))
        data = b"".join(takewhile(lambda data: data is not None, map(self._bytes_in, tokens)))  # type: ignore[arg-type]  # as it says
        text, _ = self._decode(b"", data)
        return settles(data) and self._tail.settles(text.replace(REPLACEMENT, ""))

    def bytes_of(self, token: Token) -> bytes:
        data = self._bytes_in(token)
        return str(token).encode() if data is None else data


class Run(NamedTuple):
    """An open byte run that is still valid."""

    pending: bytes
    valid: Branch
    """If the run ends valid: its characters."""

    invalid: Branch
    """If it does not: one U+FFFD for every byte, of which there is one more than now if no character is incomplete."""


class Broken(NamedTuple):
    """In a byte run that is already invalid: every byte of it is U+FFFD."""

    cursor: Cursor


class ByteRuns:
    """
    Runs of byte tokens, exactly as the ByteFallback decoder has them: one bad byte makes a U+FFFD of every byte of the run.

    The state is a cursor between runs, `Run` in one that is still valid, `Broken` in one that is not.
    """

    def __init__(self, tail: Tail) -> None:
        self.start: Cursor | Run | Broken = tail.start
        self.usual: Cursor | Run | Broken = tail.usual
        self._tail = tail

    def feed(self, state: Cursor | Run | Broken, token: str) -> tuple[str, Cursor | Run | Broken]:
        byte = byte_of(token)
        if byte is not None:
            return self._feed_byte(state, byte)
        rest, cursor = self._end_run(state)
        out, cursor = self._tail.feed(cursor, token)
        return rest + out, cursor

    def _feed_byte(self, state: Cursor | Run | Broken, byte: int) -> tuple[str, Run | Broken]:
        if isinstance(state, Broken):
            out, cursor = self._tail.feed(state.cursor, REPLACEMENT)
            return out, Broken(cursor)
        run = state if isinstance(state, Run) else Run(b"", Branch(state), self._one_more(Branch(state)))
        decoded = decode_strict(run.pending, bytes([byte]))
        if decoded is None:
            # After complete characters the byte that breaks the run was expected in it already.
            broken = self._one_more(run.invalid) if run.pending else run.invalid
            return broken.rest(), Broken(broken.cursor)
        text, pending = decoded
        out, cursor = self._tail.feed(run.valid.cursor, text)
        more, cursor = self._tail.expect(cursor, pending)
        invalid = run.invalid
        for _ in range((not pending) + bool(run.pending)):
            invalid = self._one_more(invalid)
        agreed, valid, invalid = agree(run.valid.then(cursor, out + more), invalid)
        return agreed, Run(pending, valid, invalid)

    def _one_more(self, branch: Branch) -> Branch:
        out, cursor = self._tail.feed(branch.cursor, REPLACEMENT)
        return branch.then(cursor, out)

    def _end_run(self, state: Cursor | Run | Broken) -> tuple[str, Cursor]:
        if isinstance(state, Run):
            branch = state.invalid if state.pending else state.valid
            return branch.rest(), branch.cursor
        return "", state.cursor if isinstance(state, Broken) else state

    def finish(self, state: Cursor | Run | Broken) -> str:
        rest, cursor = self._end_run(state)
        return rest + self._tail.finish(cursor)

    def border(self, state: Cursor | Run | Broken, shown: str) -> Cursor | Run | Broken:
        if isinstance(state, Run):
            valid = Branch.ahead_of(*behind_border(state.valid.rest(), state.valid.cursor, shown, self._tail))
            invalid = Branch.ahead_of(*behind_border(state.invalid.rest(), state.invalid.cursor, shown, self._tail))
            return Run(state.pending, valid, invalid)
        if isinstance(state, Broken):
            return Broken(state.cursor.passing_over(shown))
        return state.passing_over(shown)

    def held(self, state: Cursor | Run | Broken) -> Held:
        if isinstance(state, Run):
            text = state.valid.rest() + self._tail.finish(state.valid.cursor)
            return text.encode() + state.pending, OPEN_RUN
        return held_by_rules(self.finish(state))

    def settles(self, tokens: Sequence[str]) -> bool:
        return byte_of(tokens[0]) is None and self._tail.settles(tokens[0])

    def bytes_of(self, token: str) -> bytes:
        return byte_token(token) or token.encode()


def byte_token(token: Token) -> bytes | None:
    """The byte that a token ``<0xHH>`` is."""
    byte = byte_of(str(token))
    return None if byte is None else bytes([byte])


def raw_bytes(token: Token) -> bytes | None:
    """The bytes of a token that is bytes."""
    return token if isinstance(token, bytes) else None
