"""
Rules over tokens that are still apart: lists of tokens in, lists of tokens out.

A stage holds no state of its own; a state is a plain value that goes in and comes out, so that one stage serves any number of
streams and a stream can be kept, copied and sent as a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from ..utf8 import REPLACEMENT, decode_lossy, decode_strict
from .rules import byte_of
from .texts import append

__all__ = ["EachToken", "FirstToken", "LastToken", "LeadingSpace", "Repeats", "Runs", "State", "TokenStage"]

State = object
Token = Any
"""Text; or bytes, where a vocabulary has bytes (only `FirstToken` and `LeadingSpace` meet these)."""

Tokens = tuple[Token, ...]


class TokenStage(Protocol):
    """One rule over tokens."""

    start: State = None
    usual: State = None
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

    def beside(self, state: State) -> State:
        """Return the state in which the next token gets no space in front, else like this one."""
        return state

    def forgets(self, token: Token) -> bool:
        """Whether what follows this token, which is not the first, does not depend on those before it."""
        ...


class EachToken(TokenStage):
    """A rule that looks at one token alone."""

    start: State = None
    usual: State = None

    def __init__(self, each: Callable[[str], str]) -> None:
        self.each = each

    def then(self, stage: EachToken | FirstToken) -> EachToken | FirstToken:
        """Both stages as one."""
        if isinstance(stage, FirstToken):
            return FirstToken(_both(self.each, stage.first), _both(self.each, stage.rest), spaces=stage.spaces)
        return EachToken(_both(self.each, stage.each))

    def feed(self, state: State, token: Token) -> tuple[Tokens, State]:
        return (self.each(token),), None

    def finish(self, state: State) -> Tokens:
        return ()

    def middle(self, token: Token) -> Tokens:
        return (self.each(token),)

    def forgets(self, token: Token) -> bool:
        return True


class FirstToken(TokenStage):
    """
    A rule that treats the first token differently. The state: whether there was one.

    Args:
        first, rest: The rule for the first token, and for all others.
        spaces: Whether the difference is a space in front of all but the first.
    """

    start: State = False
    usual: State = True

    def __init__(self, first: Callable[[Token], Token], rest: Callable[[Token], Token], *, spaces: bool = False) -> None:
        self.first, self.rest, self.spaces = first, rest, spaces

    def then(self, stage: EachToken | FirstToken) -> FirstToken:
        """Both stages as one: each gives one token for each, so that the first of one is the first of the other."""
        if isinstance(stage, FirstToken):
            spaces = self.spaces or stage.spaces
            return FirstToken(_both(self.first, stage.first), _both(self.rest, stage.rest), spaces=spaces)
        return FirstToken(_both(self.first, stage.each), _both(self.rest, stage.each), spaces=self.spaces)

    def beside(self, state: State) -> State:
        return False if self.spaces else state

    def feed(self, state: State, token: Token) -> tuple[Tokens, State]:
        return ((self.rest if state else self.first)(token),), True

    def finish(self, state: State) -> Tokens:
        return ()

    def middle(self, token: Token) -> Tokens:
        return (self.rest(token),)

    def forgets(self, token: Token) -> bool:
        return True


class LastToken(TokenStage):
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


class Repeats(TokenStage):
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


class LeadingSpace(TokenStage):
    """
    While there is no text yet, a piece loses one leading ``▁``; all others are spaces (SentencePiece). The state: is there text?

    Args:
        strips: Whether anything is lost at all.
        every: Whether every piece loses one until there is text, or only the first that has one.
        surfaces: Pieces that are shown as something else, to the letter.
    """

    start: State = False
    usual: State = True

    def __init__(self, *, strips: bool, every: bool, surfaces: Mapping[str, str] = MappingProxyType({})) -> None:
        self._strips, self._every, self._surfaces = strips, every, surfaces

    def feed(self, state: State, token: Token) -> tuple[Tokens, State]:
        if isinstance(token, bytes):
            return (token,), True
        lost = self._strips and not state and token.startswith("▁")
        text = self._text(token, lost)
        return (text,), state or bool(text) or (lost and not self._every)

    def _text(self, token: str, lost: bool) -> str:
        surface = self._surfaces.get(token)
        return token[lost:].replace("▁", " ") if surface is None else surface

    def finish(self, state: State) -> Tokens:
        return ()

    def middle(self, token: Token) -> Tokens:
        return (token if isinstance(token, bytes) else self._text(token, False),)

    def forgets(self, token: Token) -> bool:
        if isinstance(token, bytes):
            return True
        return bool(self._surfaces.get(token, token.strip("▁")))


class Runs(TokenStage):
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


def _both(first: Callable[[Token], Token], second: Callable[[Token], Token]) -> Callable[[Token], Token]:
    return lambda token: second(first(token))
