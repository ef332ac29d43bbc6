"""
The kinds of decoder, as values: one class for each decoder type of ``tokenizers`` and for each format beside them.

A decoder maps a list of tokens to a list of tokens; the text is the last list, joined. A class here says what its decoder does

* to one token: `OneToken.each`, or `FirstDiffers.first` and `rest`, or `BPEDecoder.inner` and `last`;
* to a text that was joined before: `over_text`.

`compiler` turns these into stages. A new decoder that looks at one token alone is a subclass of `OneToken` with its `each`, and
nothing else: without an `over_text` of its own, text that was joined before it is held to the end, which is always exact.

>>> Strip(" ", start=1, stop=0).each("  a ")
' a '
>>> Metaspace("▁", keep_first=False).first("▁Hi"), Metaspace("▁", keep_first=False).rest("▁there")
('Hi', ' there')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..utf8 import REPLACEMENT
from .cleanup import WORDPIECE_CLEANUP, clean_up
from .text_rules import CharRule, StripText, Substitute, TextStage, WhiteEnds

TextRule = Sequence[CharRule] | TextStage[Any] | Callable[[str], str]
"""
What a decoder is over joined text: rules over characters, which are compiled to a table; a stage; or a function over the whole
text, for which all of it is held to the end.
"""


@dataclass(frozen=True, slots=True)
class OneToken:
    """A decoder that looks at one token alone."""

    def each(self, token: str) -> str:
        """Return what one token becomes."""
        raise NotImplementedError

    def over_text(self) -> TextRule:
        """Return what the decoder is when the whole text is one token."""
        return self.each


@dataclass(frozen=True, slots=True)
class FirstDiffers:
    """A decoder that treats the first token unlike all others."""

    def first(self, token: str) -> str:
        """Return what the first token becomes."""
        raise NotImplementedError

    def rest(self, token: str) -> str:
        """Return what any other token becomes."""
        raise NotImplementedError

    def over_text(self) -> TextRule:
        """Return what the decoder is when the whole text is one token: the first."""
        return self.first


@dataclass(frozen=True, slots=True)
class ByteLevel:
    """Tokens are written in GPT-2's byte alphabet. The bytes of all tokens are one text; invalid ones become U+FFFD."""

    def over_text(self) -> TextRule:
        return lambda text: byte_level_bytes(text).decode(errors="replace")


@dataclass(frozen=True, slots=True)
class ByteFallback:
    """A token ``<0xHH>`` is a byte. A run of them is one text if it is valid UTF-8, else one U+FFFD for every byte of the run."""

    def over_text(self) -> TextRule:
        return _whole_byte_token


@dataclass(frozen=True, slots=True)
class Fuse:
    """All tokens become one."""

    def over_text(self) -> TextRule:
        return ()


@dataclass(frozen=True, slots=True)
class Strip(OneToken):
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

    def over_text(self) -> TextRule:
        return (StripText(self.content, self.start, self.stop),)


@dataclass(frozen=True, slots=True)
class Replace(OneToken):
    """Each occurrence of a pattern in a token becomes ``content``, literally (no group references)."""

    pattern: str
    content: str
    regex: Callable[[str], str] | None = field(default=None, compare=False, repr=False)
    """For a regular expression: the replacement over one text, by the engine of the tokenizer's own library."""

    is_regex: bool = False

    def each(self, token: str) -> str:
        if not token:
            return token  # even a pattern that matches nothing: the library does not look into an empty token
        return token.replace(self.pattern, self.content) if self.regex is None else self.regex(token)

    def over_text(self) -> TextRule:
        return (Substitute(self.pattern, self.content),) if self.pattern and self.regex is None else self.each


@dataclass(frozen=True, slots=True)
class Metaspace(FirstDiffers):
    """``replacement`` is a space; in the first token it is nothing, at every place, unless ``keep_first``."""

    replacement: str
    keep_first: bool

    def first(self, token: str) -> str:
        return self.rest(token) if self.keep_first else token.replace(self.replacement, "")

    def rest(self, token: str) -> str:
        return token.replace(self.replacement, " ")


@dataclass(frozen=True, slots=True)
class WordPiece(FirstDiffers):
    """Every token but the first loses ``prefix``, or gets a space in front; then clean-up within each token."""

    prefix: str
    cleanup: bool

    def first(self, token: str) -> str:
        return clean_up(token, WORDPIECE_CLEANUP) if self.cleanup else token

    def rest(self, token: str) -> str:
        return self.first(token[len(self.prefix) :] if token.startswith(self.prefix) else f" {token}")

    def over_text(self) -> TextRule:
        return [Substitute(*pair) for pair in WORDPIECE_CLEANUP if self.cleanup]


@dataclass(frozen=True, slots=True)
class JoinWithSpaces(FirstDiffers):
    """No decoder at all: the tokens are joined with one space."""

    def first(self, token: str) -> str:
        return token

    def rest(self, token: str) -> str:
        return f" {token}"

    def over_text(self) -> TextRule:
        return ()


@dataclass(frozen=True, slots=True)
class BPEDecoder:
    """``suffix`` is a space, in the last token nothing."""

    suffix: str

    def inner(self, token: str) -> str:
        return token.replace(self.suffix, " ")

    def last(self, token: str) -> str:
        return token.replace(self.suffix, "")

    def over_text(self) -> TextRule:
        return self.last


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

    def over_text(self) -> TextRule:
        if not (self.pad_token and self.word_delimiter_token):
            return self.each
        rules = [(self.pad_token, "")]
        if self.cleanup:
            rules += [*WORDPIECE_CLEANUP, (self.word_delimiter_token, " ")]
        return [Substitute(*pair) for pair in rules]


@dataclass(frozen=True, slots=True)
class RawBytes:
    """
    The pieces are bytes (tiktoken, RWKV). The bytes of all pieces are one text; invalid ones become U+FFFD.

    With ``specials_split`` (Tekken) a special piece, skipped or not, ends an incomplete character and is text of its own.
    With ``drops_first_space`` (llama.cpp) the first piece, a skipped special too, loses one leading space.
    With ``drops_invalid`` (ByT5) bytes that belong to no character vanish instead of becoming U+FFFD.
    """

    specials_split: bool = False
    drops_first_space: bool = False
    drops_invalid: bool = False

    def first(self, piece: bytes) -> bytes:
        return piece.removeprefix(b" ")

    def rest(self, piece: bytes) -> bytes:
        return piece

    def over_text(self) -> TextRule:
        raise AssertionError("joined text has no pieces")


@dataclass(frozen=True, slots=True)
class SentencePiece:
    """
    ``DecodeIds`` of SentencePiece: ``▁`` is a space; byte pieces come in runs that any other piece ends; one U+FFFD a bad byte.

    While there is no text yet, a piece loses one leading ``▁``: the first that has one with ``add_dummy_prefix``, every one with
    ``remove_extra_whitespaces``. The piece ``unknown`` is shown as ``unknown_surface``, in which a ``▁`` is no space.
    """

    add_dummy_prefix: bool
    remove_extra_whitespaces: bool
    unknown: str = ""
    unknown_surface: str = ""

    def over_text(self) -> TextRule:
        raise AssertionError("joined text has no pieces")


@dataclass(frozen=True, slots=True)
class Denormalizer(OneToken):
    """A function over the whole text that only the tokenizer's own library knows (the denormalizer of SentencePiece)."""

    digest: str
    """Of what the library made it from."""

    apply: Callable[[str], str] = field(compare=False, repr=False)

    def each(self, token: str) -> str:
        return self.apply(token)


@dataclass(frozen=True, slots=True)
class StripEnds(OneToken):
    """The text loses its white space at both ends, as ``str.strip`` does it (CLIPTokenizer of transformers)."""

    def each(self, token: str) -> str:
        return token.strip()

    def over_text(self) -> TextRule:
        return WhiteEnds()


Rule = OneToken | FirstDiffers | BPEDecoder | CTC | ByteFallback | ByteLevel | RawBytes | SentencePiece | Fuse
"""Any kind of decoder. `compiler` has a case for each of these, and mypy fails where one is missing."""


def byte_of(token: str) -> int | None:
    """
    Return the value of a byte token, None for any other token.

    A byte token has six characters, ``<0xHH>``, hexadecimal in either case. A plus sign and one digit pass too, since Rust's
    number parser, which the ByteFallback decoder of ``tokenizers`` calls, accepts them.
    """
    match = _BYTE_TOKEN(token)
    return None if match is None else int(match[1], 16)


_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2}|\+[0-9A-Fa-f])>").fullmatch


def _whole_byte_token(text: str) -> str:
    byte = byte_of(text)
    if byte is None:
        return text
    return chr(byte) if byte < 0x80 else REPLACEMENT


def byte_level_bytes(token: str) -> bytes:
    """Return the bytes of a token written in GPT-2's byte alphabet; a token with any other character is its own UTF-8."""
    try:
        return bytes(map(_BYTE_OF_CHARACTER.__getitem__, token))
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
