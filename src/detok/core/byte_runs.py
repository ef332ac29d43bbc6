"""
Runs of byte-fallback tokens, in the two modes.

Exact: as the ByteFallback decoder has them, all bytes of a run or none. Eager: each character as it is complete.
"""

from __future__ import annotations

from typing import NamedTuple

from .branches import Branch, agree, behind_border
from .joiners import OPEN_RUN, Held, Pending, finish_pending, held_by_rules, held_pending
from .rules import byte_of
from .tail import Cursor, Tail
from .utf8 import REPLACEMENT, decode_lossy, decode_strict

__all__ = ["Broken", "ByteRuns", "LossyRuns", "Run"]


class LossyRuns:
    """
    Runs of byte tokens, each character given out as it is complete, bad bytes one U+FFFD a maximal subpart (the eager mode).

    A token that is no byte ends a run.
    """

    def __init__(self, tail: Tail) -> None:
        self.start = Pending(b"", tail.start)
        self.usual = Pending(b"", tail.usual)
        self._tail = tail

    def feed(self, state: Pending, token: str) -> tuple[str, Pending]:
        byte = byte_of(token)
        if byte is None:
            text, pending = (REPLACEMENT if state.bytes else "") + token, b""
        else:
            text, pending = decode_lossy(state.bytes, bytes([byte]))
        out, cursor = self._tail.feed(state.cursor, text)
        more, cursor = self._tail.expect(cursor, pending)
        return out + more, Pending(pending, cursor)

    def finish(self, state: Pending) -> str:
        return finish_pending(self._tail, state)

    def border(self, state: Pending, shown: str) -> Pending:
        return Pending(state.bytes, state.cursor.passing_over(shown))

    def held(self, state: Pending) -> Held:
        return held_pending(self._tail, state)

    def settles(self, token: str) -> bool:
        return byte_of(token) is None and self._tail.settles(token)

    def bytes_of(self, token: str) -> bytes:
        return _byte_token_bytes(token)


class Run(NamedTuple):
    """An open byte run that is still valid."""

    pending: bytes
    valid: Branch
    """If the run ends valid: its characters."""

    invalid: Branch
    """If it does not: one U+FFFD for every byte."""


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
        run = state if isinstance(state, Run) else Run(b"", Branch(state), Branch(state))
        refuted, invalid_cursor = self._tail.feed(run.invalid.cursor, REPLACEMENT)
        decoded = decode_strict(run.pending, bytes([byte]))
        if decoded is None:
            return run.invalid.rest() + refuted, Broken(invalid_cursor)
        text, pending = decoded
        out, cursor = self._tail.feed(run.valid.cursor, text)
        more, cursor = self._tail.expect(cursor, pending)
        agreed, valid, invalid = agree(run.valid.then(cursor, out + more), run.invalid.then(invalid_cursor, refuted))
        return agreed, Run(pending, valid, invalid)

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

    def settles(self, token: str) -> bool:
        return byte_of(token) is None and self._tail.settles(token)

    def bytes_of(self, token: str) -> bytes:
        return _byte_token_bytes(token)


def _byte_token_bytes(token: str) -> bytes:
    byte = byte_of(token)
    return token.encode() if byte is None else bytes([byte])
