"""
Where tokens become one text: four ways to join, over states that are plain values.

Where the future decides what a token is (an open byte run may yet be valid or not, a token may yet be the last), a joiner goes
both ways at once: each way is a branch with a cursor of its own in the tail, and what both branches agree on is certain.
That is exact, since each branch alone gives everything out at the earliest moment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from .rules import byte_of
from .tail import Cursor, Tail
from .texts import append, common_prefix
from .utf8 import REPLACEMENT, decode_lossy, decode_strict, settles

__all__ = ["ByteRuns", "Bytes", "Concatenation", "Held", "Joiner", "LastPiece", "LossyRuns"]

Held = tuple[str | bytes, str]
"""What is held, for display, and why: one of the reasons that the documentation lists."""

NOTHING: Held = ("", "")
INCOMPLETE = "incomplete character"
OPEN_RUN = "open byte run"
LAST_TOKEN = "may be the last token"
TEXT_RULE = "a rule over the text"


class Joiner(Protocol):
    """Joins tokens into one text and runs it through the tail."""

    start: Any
    usual: Any
    """The state in which nothing is held."""

    def feed(self, state: Any, token: str, /) -> tuple[str, Any]:
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

    def settles(self, token: str, /) -> bool:
        """Whether the state after ``token`` is the same whatever came before it."""
        ...

    def bytes_of(self, token: str, /) -> bytes:
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
        return _held_by_rules(self._tail.finish(cursor))

    def settles(self, token: str) -> bool:
        return self._tail.settles(token)

    def bytes_of(self, token: str) -> bytes:
        return token.encode()


class Pending(NamedTuple):
    """The bytes of an incomplete character, and the cursor before it."""

    bytes: bytes
    cursor: Cursor


class Bytes:
    """All tokens are bytes of one text (ByteLevel)."""

    def __init__(self, tail: Tail, to_bytes: Callable[[str], bytes]) -> None:
        self.start = Pending(b"", tail.start)
        self.usual = Pending(b"", tail.usual)
        self._tail = tail
        self._to_bytes = to_bytes

    def feed(self, state: Pending, token: str) -> tuple[str, Pending]:
        text, pending = decode_lossy(state.bytes, self._to_bytes(token))
        out, cursor = self._tail.feed(state.cursor, text)
        more, cursor = self._tail.expect(cursor, pending)
        return out + more, Pending(pending, cursor)

    def finish(self, state: Pending) -> str:
        return _finish_pending(self._tail, state)

    def border(self, state: Pending, shown: str) -> Pending:
        return Pending(state.bytes, state.cursor.passing_over(shown))

    def held(self, state: Pending) -> Held:
        return _held_pending(self._tail, state)

    def settles(self, token: str) -> bool:
        data = self._to_bytes(token)
        text, _ = decode_lossy(b"", data)
        return settles(data) and self._tail.settles(text.replace(REPLACEMENT, ""))

    def bytes_of(self, token: str) -> bytes:
        return self._to_bytes(token)


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
        return _finish_pending(self._tail, state)

    def border(self, state: Pending, shown: str) -> Pending:
        return Pending(state.bytes, state.cursor.passing_over(shown))

    def held(self, state: Pending) -> Held:
        return _held_pending(self._tail, state)

    def settles(self, token: str) -> bool:
        return byte_of(token) is None and self._tail.settles(token)

    def bytes_of(self, token: str) -> bytes:
        return _byte_token_bytes(token)


def _byte_token_bytes(token: str) -> bytes:
    byte = byte_of(token)
    return token.encode() if byte is None else bytes([byte])


def _finish_pending(tail: Tail, state: Pending) -> str:
    out, cursor = tail.feed(state.cursor, REPLACEMENT if state.bytes else "")
    return out + tail.finish(cursor)


def _held_pending(tail: Tail, state: Pending) -> Held:
    held = tail.finish(state.cursor)
    return (held.encode() + state.bytes, INCOMPLETE) if state.bytes else _held_by_rules(held)


class Branch(NamedTuple):
    """One of two futures: the cursor in it, and the text that it would give, in pieces, of which ``out`` characters are out."""

    cursor: Cursor
    ahead: tuple[str, ...] = ()
    out: int = 0

    def rest(self) -> str:
        return "".join(self.ahead)[self.out :]

    @classmethod
    def ahead_of(cls, text: str, cursor: Cursor) -> Branch:
        return cls(cursor, append((), text))

    def then(self, cursor: Cursor, text: str) -> Branch:
        return Branch(cursor, append(self.ahead, text), self.out)


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
        agreed, valid, invalid = _agree(run.valid.then(cursor, out + more), run.invalid.then(invalid_cursor, refuted))
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
            valid = Branch.ahead_of(*_behind_border(state.valid.rest(), state.valid.cursor, shown, self._tail))
            invalid = Branch.ahead_of(*_behind_border(state.invalid.rest(), state.invalid.cursor, shown, self._tail))
            return Run(state.pending, valid, invalid)
        if isinstance(state, Broken):
            return Broken(state.cursor.passing_over(shown))
        return state.passing_over(shown)

    def held(self, state: Cursor | Run | Broken) -> Held:
        if isinstance(state, Run):
            text = state.valid.rest() + self._tail.finish(state.valid.cursor)
            return text.encode() + state.pending, OPEN_RUN
        return _held_by_rules(self.finish(state))

    def settles(self, token: str) -> bool:
        return byte_of(token) is None and self._tail.settles(token)

    def bytes_of(self, token: str) -> bytes:
        return _byte_token_bytes(token)


def _behind_border(ahead: str, cursor: Cursor, shown: str, tail: Tail) -> tuple[str, Cursor]:
    """
    One of two futures behind the border of a prompt: what it still has ahead, and its cursor.

    Where the future begins with what the prompt alone shows, exactly that is passed over, so that prompt and stream together are
    the one-shot decode. Where it does not, the prompt's own part of it is left out: no text of a prompt comes out.
    """
    if ahead.startswith(shown):
        return ahead[len(shown) :], cursor
    if shown.startswith(ahead):
        return "", cursor.passing_over(shown[len(ahead) :])
    return "", cursor.passing_over(tail.finish(cursor))


def _agree(one: Branch, two: Branch) -> tuple[str, Branch, Branch]:
    """What two branches both give next, and the branches behind it. Once they differ this takes no time."""
    agreed = ""
    while one.ahead and two.ahead:
        first, second = one.ahead[0], two.ahead[0]
        if first[one.out] != second[two.out]:
            break
        length = min(len(first) - one.out, len(second) - two.out)
        common = common_prefix([first[one.out : one.out + length], second[two.out : two.out + length]])
        agreed += common
        one, two = _give_out(one, len(common)), _give_out(two, len(common))
    return agreed, one, two


def _give_out(branch: Branch, length: int) -> Branch:
    """Count characters as out; pieces that are out altogether are dropped, so that this too is O(1) amortised."""
    out = branch.out + length
    if out < len(branch.ahead[0]):
        return branch._replace(out=out)
    return Branch(branch.cursor, branch.ahead[1:])


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
        rest, cursor = _behind_border(state.inner, state.cursor, shown, self._tail)
        return Undecided(cursor, rest, "")

    def held(self, state: Undecided) -> Held:
        return (state.inner or state.last, LAST_TOKEN) if state.inner or state.last else NOTHING

    def settles(self, token: str) -> bool:
        return self._tail.settles(self._inner(token))

    def bytes_of(self, token: str) -> bytes:
        return self._inner(token).encode()


def _held_by_rules(text: str) -> Held:
    return (text, TEXT_RULE) if text else NOTHING
