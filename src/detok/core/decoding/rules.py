"""
What a decoder says, as values: one class for each decoder type of ``tokenizers``, with its rule for one token.

A decoder maps a list of tokens to a list of tokens; the text is the last list, joined. A rule that looks at one token alone
says so in ``each``, or in ``first`` and ``rest``, ``inner`` and ``last`` where the place counts. How a rule is streamed, and
what it becomes once the tokens are joined, is decided in `pipeline`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from .cleanup import WORDPIECE_CLEANUP, clean_up

__all__ = [
    "CTC",
    "BPEDecoder",
    "ByteFallback",
    "ByteLevel",
    "Denormalizer",
    "Fuse",
    "JoinWithSpaces",
    "Metaspace",
    "RawBytes",
    "Replace",
    "Rule",
    "SentencePiece",
    "Strip",
    "StripEnds",
    "WordPiece",
    "byte_level_bytes",
    "byte_level_spelling",
    "byte_of",
]


@dataclass(frozen=True, slots=True)
class ByteLevel:
    """Each token is written in the byte alphabet of GPT-2; the bytes of all of them are one text, decoded lossily."""


@dataclass(frozen=True, slots=True)
class ByteFallback:
    """A token ``<0xHH>`` is a byte. A run of them is one text if it is valid UTF-8, else one U+FFFD for every byte of the run."""


@dataclass(frozen=True, slots=True)
class Fuse:
    """All tokens become one."""


@dataclass(frozen=True, slots=True)
class Strip:
    """Each token loses up to ``start`` leading and ``stop`` trailing characters equal to ``content``."""

    content: str
    start: int
    stop: int

    def each(self, token: str) -> str:
        left = 0
        while left < min(self.start, len(token)) and token[left] == self.content:
            left += 1
        right = len(token)
        while right > max(left, len(token) - self.stop) and token[right - 1] == self.content:
            right -= 1
        return token[left:right]


@dataclass(frozen=True, slots=True)
class Replace:
    """Each occurrence of a pattern in a token becomes ``content``, to the letter (no group references)."""

    pattern: str
    content: str
    regex: Callable[[str], str] | None = field(default=None, compare=False, repr=False)
    """For a regular expression: the replacement over one text, by the engine of the tokenizer's own library."""

    is_regex: bool = False
    matches_nothing: bool = False
    """For a regular expression: whether it can match the empty string."""

    def each(self, token: str) -> str:
        if not token:
            return token  # even a pattern that matches nothing: the library does not look into an empty token
        return token.replace(self.pattern, self.content) if self.regex is None else self.regex(token)


@dataclass(frozen=True, slots=True)
class Metaspace:
    """``replacement`` is a space; in the first token it is nothing, at every place, unless ``keep_first``."""

    replacement: str
    keep_first: bool

    def first(self, token: str) -> str:
        return self.rest(token) if self.keep_first else token.replace(self.replacement, "")

    def rest(self, token: str) -> str:
        return token.replace(self.replacement, " ")


@dataclass(frozen=True, slots=True)
class WordPiece:
    """Every token but the first loses ``prefix``, or gets a space in front; then clean-up within each token."""

    prefix: str
    cleanup: bool

    def first(self, token: str) -> str:
        return clean_up(token, WORDPIECE_CLEANUP) if self.cleanup else token

    def rest(self, token: str) -> str:
        return self.first(token[len(self.prefix) :] if token.startswith(self.prefix) else f" {token}")


@dataclass(frozen=True, slots=True)
class BPEDecoder:
    """``suffix`` is a space, in the last token nothing."""

    suffix: str

    def inner(self, token: str) -> str:
        return token.replace(self.suffix, " ")

    def last(self, token: str) -> str:
        return token.replace(self.suffix, "")


@dataclass(frozen=True, slots=True)
class CTC:
    """Equal neighbours are one; ``pad_token`` vanishes; with ``cleanup`` clean-up and delimiter to space; empty tokens vanish."""

    pad_token: str
    word_delimiter_token: str
    cleanup: bool

    def each(self, token: str) -> str:
        token = token.replace(self.pad_token, "")
        if self.cleanup:
            token = clean_up(token, WORDPIECE_CLEANUP).replace(self.word_delimiter_token, " ")
        return token


@dataclass(frozen=True, slots=True)
class JoinWithSpaces:
    """No decoder at all: the tokens are joined with one space."""

    def first(self, token: str) -> str:
        return token

    def rest(self, token: str) -> str:
        return f" {token}"


@dataclass(frozen=True, slots=True)
class RawBytes:
    """
    The pieces are bytes (tiktoken, RWKV); the bytes of all of them are one text, decoded lossily.

    With ``specials_split`` (Tekken) a special piece, skipped or not, ends what is incomplete, and is text of its own.
    With ``drops_first_space`` (llama.cpp) the first piece, a skipped special too, loses one leading space.
    With ``drops_invalid`` (ByT5) bytes that belong to no character vanish, instead of becoming U+FFFD.
    """

    specials_split: bool = False
    drops_first_space: bool = False
    drops_invalid: bool = False

    def first(self, piece: bytes) -> bytes:
        return piece.removeprefix(b" ")

    def rest(self, piece: bytes) -> bytes:
        return piece


@dataclass(frozen=True, slots=True)
class SentencePiece:
    """
    ``DecodeIds`` of SentencePiece: ``▁`` is a space, byte pieces come in runs that any other piece ends, one U+FFFD a bad byte.

    While there is no text yet, a piece loses one leading ``▁``: the first that has one with ``add_dummy_prefix``, every one with
    ``remove_extra_whitespaces``. The piece ``unknown`` is shown as ``unknown_surface``, in which a ``▁`` is no space.
    """

    add_dummy_prefix: bool
    remove_extra_whitespaces: bool
    unknown: str = ""
    unknown_surface: str = ""


@dataclass(frozen=True, slots=True)
class Denormalizer:
    """A function over the whole text, which only the tokenizer's own library knows (the denormalizer of SentencePiece)."""

    digest: str
    """Of what the library made it from."""

    each: Callable[[str], str] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StripEnds:
    """The whole text loses its white space at both ends, as ``str.strip`` has it (CLIPTokenizer of transformers)."""


Rule = (
    RawBytes
    | SentencePiece
    | Denormalizer
    | ByteLevel
    | ByteFallback
    | Fuse
    | Strip
    | StripEnds
    | Replace
    | Metaspace
    | WordPiece
    | BPEDecoder
    | CTC
    | JoinWithSpaces
)


def byte_of(token: str) -> int | None:
    """
    Return the value of a byte token, None for any other.

    Six characters ``<0xHH>``, hexadecimal in either case; a plus sign and one digit pass too, since Rust's number parser
    accepts them.
    """
    match = _BYTE_TOKEN(token)
    return None if match is None else int(match[1], 16)


_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2}|\+[0-9A-Fa-f])>").fullmatch


def byte_level_bytes(token: str) -> bytes:
    """Return the bytes of a token written in GPT-2's byte alphabet; a token with any other character is its own UTF-8."""
    try:
        return bytes([_BYTE_OF_CHARACTER[character] for character in token])
    except KeyError:
        return token.encode()


def byte_level_spelling(text: str) -> str:
    """Return the token whose bytes are the UTF-8 of ``text``."""
    return "".join(map(_CHARACTER_OF_BYTE.__getitem__, text.encode()))


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's alphabet: bytes that are visible in Latin-1 stand for themselves, the others are moved to U+0100 and on."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in visible}
    hidden = [byte for byte in range(0x100) if chr(byte) not in alphabet]
    alphabet.update({chr(0x100 + place): byte for place, byte in enumerate(hidden)})
    return alphabet


_BYTE_OF_CHARACTER = _byte_alphabet()
_CHARACTER_OF_BYTE = {byte: character for character, byte in _BYTE_OF_CHARACTER.items()}
