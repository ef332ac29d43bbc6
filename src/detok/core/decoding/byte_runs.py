"""
Runs of byte-fallback tokens, exactly as the ByteFallback decoder of ``tokenizers`` has them: all bytes of a run or none.

A run of byte tokens is one text if all of it is valid UTF-8; one bad byte makes a U+FFFD of *every* byte of the run. So while a
run is open and still valid, nothing of it is certain but what both futures begin with (see `branches`):

    tokens           given out          why
    <0xE3>           nothing            あ, or U+FFFD
    <0x81> <0x82>    nothing            あ so far, but a bad byte may still come
    x                あ x               another token ends the run; it was valid

    <0xE3> <0x81>    nothing
    <0xFF>           U+FFFD x 3         the run is invalid, whatever follows
    <0x41>           U+FFFD             a byte of an invalid run, though it spells "A"

The eager mode (``byte_fallback="eager"``) is the joiner `joiners.OneAfterAnother`: each character comes out as it is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..utf8 import REPLACEMENT, decode_strict
from .branches import Branch, agree, past_border
from .joiners import OPEN_RUN, Held, byte_token, held_by_rules
from .rules import byte_of
from .tail import Cursor, Tail


class Run(NamedTuple):
    """An open byte run that is still valid."""

    pending: bytes
    """Those of an incomplete character."""

    valid: Branch
    """If the run ends valid: its characters."""

    invalid: Branch
    """If it does not: one U+FFFD for every byte; one more than there are now if no character is incomplete."""


class Broken(NamedTuple):
    """In a byte run that is already invalid: every byte of it is U+FFFD."""

    cursor: Cursor


State = Cursor | Run | Broken


class ByteRuns:
    """Runs of byte tokens. The state: a cursor between runs, `Run` in one that is still valid, `Broken` in one that is not."""

    def __init__(self, tail: Tail) -> None:
        self.start: State = tail.start
        self.idle: State = tail.idle
        self._tail = tail

    def feed(self, state: State, token: str) -> tuple[str, State]:
        byte = byte_of(token)
        if byte is not None:
            return self._feed_byte(state, byte)
        rest, cursor = self._end_run(state)
        out, cursor = self._tail.feed(cursor, token)
        return rest + out, cursor

    def _feed_byte(self, state: State, byte: int) -> tuple[str, State]:
        if isinstance(state, Broken):
            out, cursor = self._tail.feed(state.cursor, REPLACEMENT)
            return out, Broken(cursor)
        run = state if isinstance(state, Run) else Run(b"", Branch(state), self._one_more(Branch(state)))
        decoded = decode_strict(run.pending, bytes([byte]))
        if decoded is None:
            # After complete characters `invalid` has a U+FFFD for the byte that breaks the run already.
            broken = self._one_more(run.invalid) if run.pending else run.invalid
            return broken.rest, Broken(broken.cursor)
        text, pending = decoded
        out, cursor = self._tail.feed(run.valid.cursor, text)
        more, cursor = self._tail.expect(cursor, pending)
        invalid = run.invalid
        if run.pending:
            invalid = self._one_more(invalid)
        if not pending:
            invalid = self._one_more(invalid)
        agreed, valid, invalid = agree(run.valid.then(cursor, out + more), invalid)
        return agreed, Run(pending, valid, invalid)

    def _one_more(self, branch: Branch) -> Branch:
        out, cursor = self._tail.feed(branch.cursor, REPLACEMENT)
        return branch.then(cursor, out)

    def _end_run(self, state: State) -> tuple[str, Cursor]:
        if isinstance(state, Run):
            branch = state.invalid if state.pending else state.valid
            return branch.rest, branch.cursor
        return "", state.cursor if isinstance(state, Broken) else state

    def finish(self, state: State) -> str:
        rest, cursor = self._end_run(state)
        return rest + self._tail.finish(cursor)

    def border(self, state: State, shown: str) -> State:
        if isinstance(state, Run):
            valid, invalid = (past_border(one.rest, one.cursor, shown, self._tail) for one in (state.valid, state.invalid))
            return Run(state.pending, valid, invalid)
        if isinstance(state, Broken):
            return Broken(state.cursor.passing_over(shown))
        return state.passing_over(shown)

    def held(self, state: State) -> Held:
        if isinstance(state, Run):
            text = state.valid.rest + self._tail.finish(state.valid.cursor)
            return text.encode() + state.pending, OPEN_RUN
        return held_by_rules(self.finish(state))

    def alone(self, token: str) -> str | None:
        return token if self._tail.is_empty and byte_of(token) is None else None

    def resets(self, tokens: Sequence[str]) -> bool:
        return byte_of(tokens[0]) is None and self._tail.resets(tokens[0])

    def bytes_of(self, token: str) -> bytes:
        return byte_token(token) or token.encode()
