"""
Runs of byte-fallback tokens, exactly as the ByteFallback decoder of ``tokenizers`` decodes them: all bytes of a run or none.

A run of byte tokens is its text if all of it is valid UTF-8; one bad byte turns *every* byte of the run into U+FFFD. So while a
run is open and still valid, only the text that both futures begin with is certain (see `branches`):

    tokens           given out          why
    <0xE3>           nothing            あ, or U+FFFD
    <0x81> <0x82>    nothing            あ so far, but a bad byte may still come
    x                あ x               another token ends the run; it was valid

    <0xE3> <0x81>    nothing
    <0xFF>           U+FFFD x 3         the run is invalid, whatever follows
    <0x41>           U+FFFD             another byte of that run, though 41 is "A"

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
    """The bytes of an incomplete last character; b"" if there is none."""

    valid: Branch
    """The future in which the run ends valid: its characters."""

    invalid: Branch
    """
    The future in which it does not: one U+FFFD for each byte so far. If no character is incomplete, there is one more U+FFFD: the
    run can only become invalid by another byte.
    """


class Broken(NamedTuple):
    """The state in a byte run that is already invalid: every further byte of it is U+FFFD."""

    cursor: Cursor


State = Cursor | Run | Broken


class ByteRuns:
    """Joins runs of byte tokens. The state: a cursor between runs, `Run` in one that is still valid, else `Broken`."""

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
            # After complete characters `invalid` already has the U+FFFD of this byte.
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
        if token.startswith("<0x") and byte_of(token) is not None:
            return None
        return token if self._tail.is_empty else self._tail.alone(token)

    def resets(self, tokens: Sequence[str]) -> bool:
        return byte_of(tokens[0]) is None and self._tail.resets(tokens[0])

    def bytes_of(self, token: str) -> bytes:
        return byte_token(token) or token.encode()
