"""
Rules over tokens that are still apart: one token in, the tokens that are certain out.

A stage has no state of its own: a state is a plain value that goes in and comes out. So one stage serves any number of streams,
and a stream can be kept, copied and sent as a value. "First token" as an example, where only the first loses its space:

>>> stage = FirstToken(str.lstrip, lambda token: token)
>>> first, state = stage.feed(stage.start, " a")
>>> second, state = stage.feed(state, " b")
>>> first, second
(('a',), (' b',))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from ..utf8 import REPLACEMENT, decode_lossy, decode_strict
from .rules import byte_of
from .texts import append

State = TypeVar("State")
Token = str | bytes
"""Text; or bytes, in a vocabulary of bytes."""

# A rule for one token. Its argument is text or bytes, depending on the vocabulary; a rule is used with one of the two only.
AnyToken = Any
"""A token where only the rule knows whether it is text or bytes."""

EachRule = Callable[[AnyToken], AnyToken]


class TokenStage(Generic[State]):
    """One rule over tokens. The methods here are those of a rule that gives each token at once and has no state."""

    def __init__(self, start: State, idle: State) -> None:
        self.start = start
        self.idle = idle
        """The state after an ordinary token in the middle of a text; most tokens do not change it."""

    def feed(self, state: State, token: AnyToken) -> tuple[tuple[Token, ...], State]:
        """Take one token and return the tokens that are certain now, and the next state."""
        return self.middle(token), state

    def idle_rule(self) -> EachRule | None:
        """Return what becomes of a token at the idle state, if that is always one token and the state stays."""
        return None

    def finish(self, state: State) -> tuple[Token, ...]:
        """Return the tokens that are still held, as they are at the end."""
        return ()

    def middle(self, token: AnyToken) -> tuple[Token, ...]:
        """Return the tokens that ``token`` becomes if it is neither the first nor the last, nor equal to its neighbours."""
        return (token,)

    def without_space(self, state: State) -> State:
        """Return ``state``, changed so that the next token gets no space in front (`spaces_between_special_tokens`)."""
        return state

    def resets(self, token: AnyToken) -> bool:
        """Whether the state after ``token``, which is not the first token, does not depend on the tokens before it."""
        return True


class EachToken(TokenStage[None]):
    """A rule that looks at one token alone."""

    def __init__(self, each: EachRule) -> None:
        super().__init__(None, None)
        self.each = each

    def then(self, stage: EachToken | FirstToken) -> EachToken | FirstToken:
        """Return both stages as one."""
        if isinstance(stage, FirstToken):
            return FirstToken(_both(self.each, stage.first), _both(self.each, stage.rest), spaces=stage.spaces)
        return EachToken(_both(self.each, stage.each))

    def idle_rule(self) -> EachRule:
        return self.each

    def middle(self, token: Token) -> tuple[Token, ...]:
        return (self.each(token),)


class FirstToken(TokenStage[bool]):
    """
    A rule that treats the first token differently. The state: whether there was a token.

    Args:
        first, rest: The rule for the first token, and for all others.
        spaces: Whether the difference is a space in front of each token after the first.
    """

    def __init__(self, first: EachRule, rest: EachRule, *, spaces: bool = False) -> None:
        super().__init__(False, True)
        self.first, self.rest, self.spaces = first, rest, spaces

    def then(self, stage: EachToken | FirstToken) -> FirstToken:
        """Return both stages as one. Each gives one token for one token, so the first token is the first for both."""
        if isinstance(stage, FirstToken):
            spaces = self.spaces or stage.spaces
            return FirstToken(_both(self.first, stage.first), _both(self.rest, stage.rest), spaces=spaces)
        return FirstToken(_both(self.first, stage.each), _both(self.rest, stage.each), spaces=self.spaces)

    def feed(self, state: bool, token: Token) -> tuple[tuple[Token, ...], bool]:
        return ((self.rest if state else self.first)(token),), True

    def idle_rule(self) -> EachRule:
        return self.rest

    def middle(self, token: Token) -> tuple[Token, ...]:
        return (self.rest(token),)

    def without_space(self, state: bool) -> bool:
        return False if self.spaces else state


class LastToken(TokenStage[str | None]):
    """A rule that treats the last token differently, if other rules over tokens follow. The state: the token that is held."""

    def __init__(self, inner: Callable[[str], str], last: Callable[[str], str]) -> None:
        super().__init__(None, None)
        self._inner, self._last = inner, last

    def feed(self, state: str | None, token: str) -> tuple[tuple[Token, ...], str]:
        return (() if state is None else (self._inner(state),)), token

    def finish(self, state: str | None) -> tuple[Token, ...]:
        return () if state is None else (self._last(state),)

    def middle(self, token: str) -> tuple[Token, ...]:
        return (self._inner(token),)

    def resets(self, token: str) -> bool:
        return False


class Repeats(TokenStage[str | None]):
    """A token equal to the one before is left out, and so is one that a rule makes empty (CTC). The state: the token before."""

    def __init__(self, each: Callable[[str], str]) -> None:
        super().__init__(None, None)
        self._each = each

    def feed(self, state: str | None, token: str) -> tuple[tuple[Token, ...], str | None]:
        return (() if token == state else self.middle(token)), token

    def middle(self, token: str) -> tuple[Token, ...]:
        text = self._each(token)
        return (text,) if text else ()


class LeadingSpace(TokenStage[bool]):
    """
    While there is no text yet, a piece loses one leading ``▁``; every other ``▁`` is a space (SentencePiece).

    The state: whether there is text.

    Args:
        strips: Whether pieces lose a ``▁`` at all.
        every: Whether every piece loses one until there is text, or only the first piece that has one.
        surfaces: Pieces that are written as another text, literally.
    """

    def __init__(self, *, strips: bool, every: bool, surfaces: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(False, True)
        self._strips, self._every, self._surfaces = strips, every, surfaces

    def feed(self, state: bool, token: Token) -> tuple[tuple[Token, ...], bool]:
        if isinstance(token, bytes):
            return (token,), True
        loses = self._strips and not state and token.startswith("▁")
        text = self._shown(token, token[1:] if loses else token)
        # A piece "▁" that lost its ``▁`` is no text yet; but unless every piece loses one, the stripping is over.
        return (text,), state or bool(text) or (loses and not self._every)

    def _shown(self, token: str, rest: str) -> str:
        surface = self._surfaces.get(token)
        return rest.replace("▁", " ") if surface is None else surface

    def middle(self, token: Token) -> tuple[Token, ...]:
        return (token if isinstance(token, bytes) else self._shown(token, token),)

    def resets(self, token: Token) -> bool:
        return isinstance(token, bytes) or bool(self._surfaces.get(token, token.strip("▁")))


HeldRun = tuple[bytes, tuple[str, ...], int]
"""An open byte run: the bytes of an incomplete last character, the characters before it in pieces, the number of bytes in all."""

NO_RUN: HeldRun = (b"", (), 0)
BROKEN: HeldRun = (b"", (), -1)
"""A run that is already invalid: every further byte of it is U+FFFD."""


class HeldRuns(TokenStage[HeldRun]):
    """
    Runs of byte tokens (ByteFallback), if other rules over tokens follow: those need whole tokens. So a valid run becomes one
    token when it ends, and an invalid run a token U+FFFD for each byte. Without such rules `byte_runs.ByteRuns` is used, which
    gives text earlier.

    Args:
        eager: Give each character as a token once it is complete; then only invalid bytes become U+FFFD.
    """

    def __init__(self, *, eager: bool) -> None:
        super().__init__(NO_RUN, NO_RUN)
        self._eager = eager

    def feed(self, state: HeldRun, token: str) -> tuple[tuple[Token, ...], HeldRun]:
        byte = byte_of(token)
        if byte is None:
            return (*self.finish(state), token), NO_RUN
        if state == BROKEN:
            return (REPLACEMENT,), BROKEN
        pending, pieces, count = state
        if self._eager:
            text, pending = decode_lossy(pending, bytes([byte]))
            return tuple(text), (pending, (), 0)
        decoded = decode_strict(pending, bytes([byte]))
        if decoded is None:
            return (REPLACEMENT,) * (count + 1), BROKEN
        text, pending = decoded
        return (), (pending, append(pieces, text), count + 1)

    def finish(self, state: HeldRun) -> tuple[Token, ...]:
        pending, pieces, count = state
        if pending:
            return (REPLACEMENT,) * (1 if self._eager else count)
        return ("".join(pieces),) if pieces else ()

    def resets(self, token: str) -> bool:
        return False


def _both(first: EachRule, second: EachRule) -> EachRule:
    return lambda token: second(first(token))
