"""
Rules over tokens that are still apart: lists of tokens in, lists of tokens out.

A stage holds no state of its own; a state is a plain value that goes in and comes out, so that one stage serves any number of
streams and a stream can be kept, copied and sent as a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .rules import byte_of
from .texts import append
from .utf8 import REPLACEMENT, decode_lossy, decode_strict

__all__ = ["EachToken", "FirstToken", "LastToken", "LeadingSpace", "Repeats", "Runs", "State", "TokenStage"]

State = object
Token = Any
"""Text; or bytes, where a vocabulary has bytes (only `LeadingSpace` meets these)."""

Tokens = tuple[Token, ...]


class TokenStage(Protocol):
    """One rule over tokens."""

    start: State
    usual: State
    """The state that most tokens leave as it is."""

    def feed(self, state: State, token: Token) -> tuple[Tokens, State]:
        """Take one token and return the tokens that are certain now, and the next state."""
        ...

    def finish(self, state: State) -> Tokens:
        """Return the tokens that were held for the end."""
        ...

    def middle(self, token: Token) -> Tokens:
        """Return what a token gives that is neither the first nor the last, nor equal to its neighbours."""
        ...

    def forgets(self, token: Token) -> bool:
        """Whether what follows this token, which is not the first, does not depend on those before it."""
        ...


class EachToken:
    """A rule that looks at one token alone."""

    start: State = None
    usual: State = None

    def __init__(self, each: Callable[[str], str]) -> None:
        self._each = each

    def feed(self, state: State, token: Token) -> tuple[Tokens, State]:
        return (self._each(token),), None

    def finish(self, state: State) -> Tokens:
        return ()

    def middle(self, token: Token) -> Tokens:
        return (self._each(token),)

    def forgets(self, token: Token) -> bool:
        return True


class FirstToken:
    """A rule that treats the first token differently. The state: whether there was one."""

    start: State = False
    usual: State = True

    def __init__(self, first: Callable[[str], str], rest: Callable[[str], str]) -> None:
        self._first, self._rest = first, rest

    def feed(self, state: State, token: Token) -> tuple[Tokens, State]:
        return ((self._rest if state else self._first)(token),), True

    def finish(self, state: State) -> Tokens:
        return ()

    def middle(self, token: Token) -> Tokens:
        return (self._rest(token),)

    def forgets(self, token: Token) -> bool:
        return True


class LastToken:
    """A rule that treats the last token differently, before other rules over tokens: one token is held. The state: that token."""

    start: State = None
    usual: State = None

    def __init__(self, inner: Callable[[str], str], last: Callable[[str], str]) -> None:
        self._inner, self._last = inner, last

    def feed(self, state: State, token: Token) -> tuple[Tokens, State]:
        return (() if state is None else (self._inner(str(state)),)), token

    def finish(self, state: State) -> Tokens:
        return () if state is None else (self._last(str(state)),)

    def middle(self, token: Token) -> Tokens:
        return (self._inner(token),)

    def forgets(self, token: Token) -> bool:
        return False


class Repeats:
    """A token equal to the one before it vanishes, and so does one that a rule makes empty (CTC). The state: the token before."""

    start: State = None
    usual: State = None

    def __init__(self, each: Callable[[str], str]) -> None:
        self._each = each

    def feed(self, state: State, token: Token) -> tuple[Tokens, State]:
        if token == state:
            return (), state
        text = self._each(token)
        return ((text,) if text else ()), token

    def finish(self, state: State) -> Tokens:
        return ()

    def middle(self, token: Token) -> Tokens:
        text = self._each(token)
        return (text,) if text else ()

    def forgets(self, token: Token) -> bool:
        return True


class LeadingSpace:
    """
    While there is no text yet, a piece loses one leading ``▁``; all others are spaces (SentencePiece). The state: is there text?

    Args:
        strips: Whether anything is lost at all.
        every: Whether every piece loses one until there is text, or only the first that has one.
    """

    start: State = False
    usual: State = True

    def __init__(self, *, strips: bool, every: bool) -> None:
        self._strips, self._every = strips, every

    def feed(self, state: State, token: Token) -> tuple[Tokens, State]:
        if isinstance(token, bytes):
            return (token,), True
        lost = self._strips and not state and token.startswith("▁")
        text = token[lost:].replace("▁", " ")
        return (text,), state or bool(text) or (lost and not self._every)

    def finish(self, state: State) -> Tokens:
        return ()

    def middle(self, token: Token) -> Tokens:
        return (token if isinstance(token, bytes) else token.replace("▁", " "),)

    def forgets(self, token: Token) -> bool:
        return isinstance(token, str) and bool(token.strip("▁"))


class Runs:
    """
    Runs of byte tokens before other rules over tokens: a run that is still valid is held whole.

    The state: None between runs, True in a run that is already invalid, else (incomplete bytes, text so far in pieces, number
    of bytes). In eager mode the text of a run is given out a character a token, and only bad bytes are U+FFFD.
    """

    start: State = None
    usual: State = None

    def __init__(self, *, eager: bool) -> None:
        self._eager = eager

    def feed(self, state: State, token: Token) -> tuple[Tokens, State]:
        byte = byte_of(token)
        if byte is None:
            return (*self.finish(state), token), None
        if state is True:
            return (REPLACEMENT,), True
        pending, pieces, count = _open_run(state)
        if self._eager:
            text, pending = decode_lossy(pending, bytes([byte]))
            return tuple(text), ((pending, (), 0) if pending else None)
        decoded = decode_strict(pending, bytes([byte]))
        if decoded is None:
            return (REPLACEMENT,) * (count + 1), True
        text, pending = decoded
        return (), (pending, append(pieces, text), count + 1)

    def finish(self, state: State) -> Tokens:
        if state is None or state is True:
            return ()
        pending, pieces, count = _open_run(state)
        if self._eager:
            return (REPLACEMENT,)
        return (REPLACEMENT,) * count if pending else ("".join(pieces),)

    def middle(self, token: Token) -> Tokens:
        return (token,)

    def forgets(self, token: Token) -> bool:
        return False


def _open_run(state: State) -> tuple[bytes, tuple[str, ...], int]:
    if state is None:
        return b"", (), 0
    return state  # type: ignore[return-value]  # the stage's own states are the only ones that come back
