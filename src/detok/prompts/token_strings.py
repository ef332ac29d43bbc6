"""What each token of a prompt is, and where in the text it stands: `return_token_strs` of vLLM, with places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Place", "Token", "TokenString", "places", "token_strings"]

Place = tuple[int, int] | tuple[None, None]
"""Where a token begins and ends in a text; or that it is not known."""


@dataclass(frozen=True, slots=True)
class Token:
    """An id with its exact bytes."""

    token_id: int
    data: bytes
    special: bool = False


@dataclass(frozen=True, slots=True)
class TokenString:
    """A token of a prompt."""

    token_id: int
    text: str
    """As it reads: a marker of a leading space (``▁``, ``Ġ``) is a space, a part of a character U+FFFD."""

    bytes: bytes
    """Its exact bytes; those of all tokens of a text make the text, but for spaces that the tokenizer adds of itself."""

    special: bool
    start: int | None
    end: int | None
    """
    Its characters in the text: ``text[start:end]``. A token with a part of a character has all of that character, one that was
    added around the text none, ``start == end``. None where a normaliser changed the text, so that its bytes are not found in it,
    and the library does not tell either.
    """


def token_strings(tokens: Sequence[Token], places: Sequence[Place]) -> list[TokenString]:
    """Return each token with its text and place."""
    return [
        TokenString(token.token_id, token.data.decode(errors="replace"), token.data, token.special, *place)
        for token, place in zip(tokens, places, strict=True)
    ]


def places(text: str, tokens: Sequence[Token], *, before: int = 0, behind: int = 0) -> list[tuple[int, int]] | None:
    """
    Return where each token stands, in characters; None if the bytes of the tokens are not those of the text.

    Args:
        text: What was encoded.
        tokens: What came out.
        before, behind: How many of them at the two ends were added around the text.
    """
    data = text.encode()
    last = len(tokens) - behind
    at = 0
    borders: list[tuple[int, int]] = []
    for number, token in enumerate(tokens):
        start, end = (at, at) if number < before or number >= last else _next(data, at, token)
        if end < 0:
            return None
        borders.append((start, end))
        at = end
    if data[at:].strip():
        return None
    return _in_characters(data, borders)


def _next(data: bytes, at: int, token: Token) -> tuple[int, int]:
    """Where the bytes of a token stand from ``at`` on; -1 if they do not."""
    if data.startswith(token.data, at):
        return at, at + len(token.data)
    # A space that the tokenizer put in front of a word, as SentencePiece does at the beginning of a text.
    if token.data.startswith(b" ") and data.startswith(token.data[1:], at):
        return at, at + len(token.data) - 1
    # White space that the token swallows, or that a normaliser left out.
    here = at
    while data[here : here + 1].isspace():
        here += 1
    return (here, here + len(token.data)) if here > at and data.startswith(token.data, here) else (-1, -1)


def _in_characters(data: bytes, borders: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Byte places as places of characters, each border moved outwards to the next one."""
    if data.isascii():
        return list(borders)
    count = 0
    character_at = []
    for byte in data:
        count += byte & 0xC0 != 0x80
        character_at.append(count - 1)
    character_at.append(count)
    return [(character_at[start], character_at[start] if end == start else character_at[end - 1] + 1) for start, end in borders]
