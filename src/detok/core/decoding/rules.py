"""
The kinds of decoder, as values: one class for each decoder type of ``tokenizers`` and for each format beside them.

A decoder maps a list of tokens to a list of tokens; the text is the last list, joined. A class here has one method for each place
where its decoder can be used:

* on tokens that are apart: `OneToken.each`, or `FirstDiffers.first` and `rest`, or `BPEDecoder.inner` and `last`;
* on a text that an earlier decoder joined: `over_text`.

`compiler` turns these into stages. A new decoder that looks at one token alone needs a subclass of `OneToken` with `each`, and
nothing else: by default `over_text` holds joined text to the end, which is slow to show text but always exact.

>>> Strip(" ", start=1, stop=0).each("  a ")
' a '
>>> Metaspace("▁", keep_first=False).first("▁Hi"), Metaspace("▁", keep_first=False).rest("▁there")
('Hi', ' there')
"""

from __future__ import annotations

import re
from _codecs import charmap_build
from codecs import charmap_decode, charmap_encode
from collections.abc import Callable
from dataclasses import dataclass, field

from ..utf8 import REPLACEMENT
from .cleanup import WORDPIECE_CLEANUP, clean_up
from .text_rules import AnyTextStage, CharRule, StripText, Substitute, WhiteEnds

TextRule = list[CharRule] | tuple[CharRule, ...] | AnyTextStage | Callable[[str], str]
"""
A decoder over joined text, in one of three forms: rules over characters, which `rewriter` compiles to a table; a stage; or a
function over the whole text, for which all text is held to the end.
"""


@dataclass(frozen=True, slots=True)
class OneToken:
    """A decoder that looks at one token alone."""

    def each(self, token: str) -> str:
        """Return the text that one token becomes."""
        raise NotImplementedError

    def over_text(self) -> TextRule:
        """Return the decoder for a list of one token, the joined text."""
        return self.each


@dataclass(frozen=True, slots=True)
class FirstDiffers:
    """A decoder that treats the first token unlike all others."""

    def first(self, token: str) -> str:
        """Return the text that the first token becomes."""
        raise NotImplementedError

    def rest(self, token: str) -> str:
        """Return the text that any other token becomes."""
        raise NotImplementedError

    def over_text(self) -> TextRule:
        """Return the decoder for a list of one token, the joined text. That token is the first."""
        return self.first


@dataclass(frozen=True, slots=True)
class ByteLevel:
    """Tokens are written in GPT-2's byte alphabet. The bytes of all tokens are one text; invalid ones become U+FFFD."""

    def over_text(self) -> TextRule:
        return lambda text: byte_level_bytes(text).decode(errors="replace")


@dataclass(frozen=True, slots=True)
class ByteFallback:
    """A token ``<0xHH>`` is a byte. A run of them is its text if all of it is valid UTF-8, else one U+FFFD for each byte."""

    def over_text(self) -> TextRule:
        return _whole_byte_token


@dataclass(frozen=True, slots=True)
class Fuse:
    """All tokens become one token."""

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
    """For a regular expression: replaces in one text, by the engine of the tokenizer's own library."""

    is_regex: bool = False

    def each(self, token: str) -> str:
        if not token:
            return token  # the library does not search in an empty token, not even for an empty pattern
        return token.replace(self.pattern, self.content) if self.regex is None else self.regex(token)

    def over_text(self) -> TextRule:
        return (Substitute(self.pattern, self.content),) if self.pattern and self.regex is None else self.each


@dataclass(frozen=True, slots=True)
class Metaspace(FirstDiffers):
    """Each ``replacement`` becomes a space. In the first token each is removed instead, unless ``keep_first``."""

    replacement: str
    keep_first: bool

    def first(self, token: str) -> str:
        return self.rest(token) if self.keep_first else token.replace(self.replacement, "")

    def rest(self, token: str) -> str:
        return token.replace(self.replacement, " ")


@dataclass(frozen=True, slots=True)
class WordPiece(FirstDiffers):
    """A token after the first loses ``prefix``, or gets a space if it has none. With ``cleanup`` each token is cleaned up."""

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
    """Each ``suffix`` becomes a space. In the last token each is removed instead."""

    suffix: str

    def inner(self, token: str) -> str:
        return token.replace(self.suffix, " ")

    def last(self, token: str) -> str:
        return token.replace(self.suffix, "")

    def over_text(self) -> TextRule:
        return self.last


@dataclass(frozen=True, slots=True)
class CTC:
    """
    Of equal neighbours one is kept, ``pad_token`` is removed, and tokens that are empty then are left out.

    With ``cleanup`` each token is cleaned up, and ``word_delimiter_token`` becomes a space.
    """

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

    With ``specials_split`` (Tekken) a special piece, even a skipped one, ends an incomplete character and is text of its own.
    With ``drops_first_space`` (llama.cpp) the first piece loses one leading space; a skipped special counts as the first piece.
    With ``drops_invalid`` (ByT5) bytes that belong to no character are left out.
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
    ``DecodeIds`` of SentencePiece: ``▁`` becomes a space, byte pieces become characters, and each invalid byte is one U+FFFD.

    Until there is text, pieces lose a leading ``▁``: only the first that has one with ``add_dummy_prefix``, every one with
    ``remove_extra_whitespaces``. The piece ``unknown`` is written as ``unknown_surface``, in which a ``▁`` stays.
    """

    add_dummy_prefix: bool
    remove_extra_whitespaces: bool
    unknown: str = ""
    unknown_surface: str = ""

    def over_text(self) -> TextRule:
        raise AssertionError("joined text has no pieces")


@dataclass(frozen=True, slots=True)
class Denormalizer(OneToken):
    """A function over the whole text that only the tokenizer's own library has (the denormalizer of SentencePiece)."""

    digest: str
    """A digest of the data that the function is made from: two rules are equal if their digests are."""

    apply: Callable[[str], str] = field(compare=False, repr=False)

    def each(self, token: str) -> str:
        return self.apply(token)


@dataclass(frozen=True, slots=True)
class StripEnds(OneToken):
    """White space at both ends of the text is removed, as by ``str.strip`` (CLIPTokenizer of transformers)."""

    def each(self, token: str) -> str:
        return token.strip()

    def over_text(self) -> TextRule:
        return WhiteEnds()


Rule = OneToken | FirstDiffers | BPEDecoder | CTC | ByteFallback | ByteLevel | RawBytes | SentencePiece | Fuse
"""Any kind of decoder. `compiler` has a case for each of these; mypy fails if one is missing."""


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
        return charmap_encode(token, "strict", _BYTES)[0]
    except UnicodeEncodeError:
        return token.encode()


def byte_level_text(token: str) -> str | None:
    """Return the text of `byte_level_bytes`; None if they are not valid UTF-8."""
    try:
        return charmap_encode(token, "strict", _BYTES)[0].decode()
    except UnicodeEncodeError:
        return token
    except UnicodeDecodeError:
        return None


def byte_level_spelling(text: str) -> str:
    """Return the token whose bytes are the UTF-8 of ``text``."""
    return charmap_decode(text.encode(), "strict", _ALPHABET)[0]


def _byte_alphabet() -> str:
    """
    Return GPT-2's alphabet: the character of each byte.

    Bytes that are visible in Latin-1 stand for themselves, the others are moved to U+0100 and on, in their order.
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in visible else next(hidden)) for byte in range(0x100))


_ALPHABET = _byte_alphabet()
# The codec of Python's own character maps does this in C: five times as fast as a dictionary.
_BYTES = charmap_build(_ALPHABET)
