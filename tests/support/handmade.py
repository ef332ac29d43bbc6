"""Small tokenizers made by hand: one for each decoder of `tokenizers`, and for rows of them, with vocabularies chosen to hurt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import tokenizers

import detok
from detok.core.decoding.rules import byte_level_bytes

Json = Mapping[str, Any]


def make(
    decoder: Json | None,
    tokens: Iterable[str],
    *,
    special: Iterable[str] = (),
    added: Iterable[str] = (),
    model: str = "WordLevel",
    holes: Iterable[int] = (),
    normalizer: Json | None = None,
) -> tokenizers.Tokenizer:
    """
    Make a tokenizer of the library's own.

    Args:
        decoder: The decoder's JSON.
        tokens: The vocabulary; the place is the id, less the holes before it.
        special, added: Those of the tokens that are special, or added without being special.
        holes: Ids that no token gets.
    """
    empty = set(holes)
    free = (token_id for token_id in range(1 << 20) if token_id not in empty)
    vocabulary = {token: next(free) for token in dict.fromkeys(tokens)}
    special, added = list(special), list(added)
    content: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": vocabulary[token],
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": token in special,
            }
            for token in sorted({*special, *added}, key=vocabulary.__getitem__)
        ],
        "normalizer": normalizer,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": decoder,
        "model": _model(model, vocabulary),
    }
    return tokenizers.Tokenizer.from_str(json.dumps(content))


def _model(kind: str, vocabulary: Mapping[str, int]) -> dict[str, Any]:
    unknown = next(iter(vocabulary))
    if kind == "BPE":
        return {"type": "BPE", "vocab": vocabulary, "merges": []}
    return {"type": "WordLevel", "vocab": vocabulary, "unk_token": unknown}


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
FALLBACK = {"type": "ByteFallback"}
FUSE = {"type": "Fuse"}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
WORDPIECE = {"type": "WordPiece", "prefix": "##", "cleanup": True}
BPE = {"type": "BPEDecoder", "suffix": "</w>"}
CTC = {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True}


def strip(start: int, stop: int, content: str = " ") -> Json:
    """A Strip decoder."""
    return {"type": "Strip", "content": content, "start": start, "stop": stop}


def replace(pattern: str, content: str, *, regex: bool = False) -> Json:
    """A Replace decoder."""
    return {"type": "Replace", "pattern": {"Regex" if regex else "String": pattern}, "content": content}


def sequence(*decoders: Json) -> Json:
    """A Sequence decoder."""
    return {"type": "Sequence", "decoders": list(decoders)}


UNDERSCORE = replace("▁", " ")


def byte_tokens(data: bytes) -> list[str]:
    """Byte-fallback tokens."""
    return [f"<0x{byte:02X}>" for byte in data]


def byte_level_tokens(*pieces: bytes) -> list[str]:
    """Tokens in GPT-2's byte alphabet, spelled by the library's own pre-tokenizer alphabet order."""
    alphabet = {byte_level_bytes(chr(code)): chr(code) for code in range(0x21, 0x144) if len(byte_level_bytes(chr(code))) == 1}
    return ["".join(alphabet[bytes([byte])] for byte in piece) for piece in pieces]


@cache
def _handmade() -> dict[str, tuple[Json | None, Sequence[str]]]:
    bytes_and_text = (*byte_tokens(b"\xe3\x81\x82\xffA "), "▁", "x", "�")
    literal = (*byte_tokens(b"\xef\xbf\xbd\xffA"), "x")
    level = tuple(byte_level_tokens(b"\xe3", b"\x81", b"\x82x", b"\xff", b"A", b" ", b"."))
    spaces = ("▁", "▁a", "b▁", "c", "▁▁")
    return {
        "ByteLevel": (BYTE_LEVEL, (*level, "café", "☃")),
        "ByteLevel 4": (BYTE_LEVEL, tuple(byte_level_tokens(b"\xf0", b"\x9f", b"\x98", b"\x80", b"\xed", b"\xa0", b"x"))),
        "ByteLevel in a Sequence": (sequence(replace("☃", "Ġ"), BYTE_LEVEL), (*level, "☃")),
        "ByteLevel, Strip": (sequence(BYTE_LEVEL, strip(1, 0)), level),
        "ByteFallback": (FALLBACK, bytes_and_text),
        "ByteFallback of U+FFFD": (FALLBACK, literal),
        "Mistral": (sequence(UNDERSCORE, FALLBACK, FUSE, strip(1, 0)), bytes_and_text),
        "Mistral of U+FFFD": (sequence(UNDERSCORE, FALLBACK, FUSE, strip(1, 0)), (*literal, "<0x20>")),
        "Gemma": (sequence(UNDERSCORE, FALLBACK, FUSE), bytes_and_text),
        "ByteFallback, Replace U+FFFD": (sequence(FALLBACK, FUSE, replace("�", "?")), literal),
        "ByteFallback, Replace two U+FFFD": (sequence(FALLBACK, FUSE, replace("��", "A")), literal),
        "Strip of tokens": (strip(1, 0), (" ", "  a", " b ", "c")),
        "Strip of tokens at the end": (strip(0, 2), ("  ", "a   ", " b ", "c")),
        "Replace": (replace("ab", "X"), ("ab", "a", "b", "aab")),
        "Replace by a regular expression": (replace("a+", "X", regex=True), ("ab", "a", "b", "aab")),
        "Fuse, Replace": (sequence(FUSE, replace("aab", "X")), ("aab", "a", "b", "ba")),
        "Fuse, Replace by what begins alike": (sequence(FUSE, replace("abab", "abX")), ("a", "b", "ab", "c")),
        "Fuse, two Replaces": (sequence(FUSE, replace("ab", "c"), replace("cc", "ab")), ("a", "b", "c")),
        "Metaspace": (METASPACE, spaces),
        "Metaspace first": ({**METASPACE, "prepend_scheme": "first"}, spaces),
        "Metaspace never": ({**METASPACE, "prepend_scheme": "never"}, spaces),
        "Metaspace, old form": ({"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}, spaces),
        "WordPiece": (WORDPIECE, ("a", "##b", ".", "n't", "do not", "##")),
        "WordPiece without clean-up": ({**WORDPIECE, "cleanup": False, "prefix": "@"}, ("a", "@b", ".", "@")),
        "Fuse, WordPiece": (sequence(FUSE, WORDPIECE), ("a", " ", ".", "'", "n't", "do not", "s")),
        "BPEDecoder": (BPE, ("a</w>", "b", "</w>", "c</w>d</w>", "</w> ")),
        "CTC": (CTC, ("a", "<pad>", "|", ".", "b|", "")),
        "CTC without clean-up": ({**CTC, "cleanup": False}, ("a", "<pad>", "|", "a<pad>b")),
        "CTC, Metaspace": (sequence({**CTC, "cleanup": False}, METASPACE), ("a", "<pad>", "▁a", "▁")),
        "Fuse, CTC": (sequence(FUSE, CTC), ("<pad>", "<pad", ">", "|", " ", "'", "s")),
        "no decoder": (None, ("a", "b", "", " ")),
        "an empty Sequence": (sequence(), ("a", "b", "")),
    }


HANDMADE = tuple(_handmade())
"""The names of the tokenizers that give every character at the first possible moment."""

STRIPPED: dict[str, tuple[Json | None, Sequence[str]]] = {
    "ByteLevel": (BYTE_LEVEL, tuple(byte_level_tokens(b"\xe3", b"\x81", b"\x82x", b"\xff", b"A", b" ", b"  "))),
    "ByteFallback": (sequence(FALLBACK, FUSE), (*byte_tokens(b"\xe3\x81\x82 "), " x", " ", "  ")),
    "Fuse": (FUSE, (" ", "  b", "b ", "b", "  ")),
    "BPEDecoder": (sequence(BPE, FUSE), ("a</w>", "</w>", " ", "b")),
}
"""Decoders without the Strip that a test puts behind them: the library panics where a text is shorter than Strip reaches."""

CLEANED: dict[str, tuple[Json | None, Sequence[str]]] = {
    "ByteLevel": (BYTE_LEVEL, tuple(byte_level_tokens(b"\xe3", b"\x81", b" ", b".", b"'", b"s x", b"\xff"))),
    "ByteFallback": (sequence(UNDERSCORE, FALLBACK, FUSE, strip(1, 0)), (*byte_tokens(b"\xe3\x81\x82 "), "▁'", "▁s", ".")),
    "Metaspace": (METASPACE, ("▁", "▁a", "▁n", "'t", "'", "s", ".")),
    "WordPiece": (WORDPIECE, ("a", "##n", "##'", "'", "t", "s", "##.")),
    "BPEDecoder": (BPE, ("a</w>", "</w>", "'</w>", "'t", "s", "n", "'")),
    "no decoder": (None, ("a", "", "'", "s", ".", "!", "n't")),
}
"""
Vocabularies for the clean-up of `transformers` over the whole text, with all that its patterns can be made of.

Clean-up looks at characters, not at tokens: where tokens are joined with spaces an "n" could be given out before the next token,
which cannot be "'t" without a space; it is held all the same, so there is no "n" in that vocabulary.
"""

LATE: dict[str, tuple[Json | None, Sequence[str]]] = {
    "Fuse, Replace of nothing": (sequence(FUSE, replace("", "-")), ("a", "bc", "")),
    "Fuse, Metaspace": (sequence(FUSE, METASPACE), ("▁", "▁a", "b▁", "c", "▁▁")),
    "Fuse, BPEDecoder": (sequence(FUSE, BPE), ("a", "</w>", "</", "w>")),
    "Fuse, ByteFallback": (sequence(FUSE, FALLBACK), ("<0", "x", "4", "1>", "<", "F", "0")),
    "Fuse, regular expression": (sequence(FUSE, replace("a+b?", "X", regex=True)), ("a", "b", "aab", " ")),
    "Fuse, look-around": (sequence(FUSE, replace("(?<=b)a+", "X", regex=True)), ("a", "b", "aab", " ")),
    "Fuse, what matches nothing": (sequence(FUSE, replace("a*", "X", regex=True)), ("a", "b", "aab", "")),
    "Fuse, any character": (sequence(FUSE, replace("a.", "X", regex=True)), ("a", "b", "aab", "\n")),
    "Fuse, a class": (sequence(FUSE, replace(r"[\s.]+(?:!|\?)", "X", regex=True)), (" ", ".", "!?", "a", " .")),
    "ByteLevel, regular expression": (
        sequence(BYTE_LEVEL, replace(" {2,}", " ", regex=True)),
        byte_level_tokens(b" ", b"  ", b"a", b"\xe3", b"\x81\x82"),
    ),
    "Fuse, regular expression, Replace": (
        sequence(FUSE, replace("a+", "b", regex=True), replace("bb", "a")),
        ("a", "b", "aa", "c"),
    ),
    "Fuse, ByteLevel": (sequence(FUSE, BYTE_LEVEL), ("Ġ", "a", "Ã", "©", "☃")),
    "ByteFallback before others": (sequence(FALLBACK, METASPACE), (*byte_tokens(b"\xe3\x81\x82\xff"), "▁a", "▁")),
    "ByteFallback, ByteLevel": (sequence(FALLBACK, BYTE_LEVEL), ("<0xC3>", "<0x83>", "<0xC2>", "<0xA9>", "Ġ")),
    "BPEDecoder before others": (sequence(BPE, METASPACE), ("a</w>", "▁b", "</w>", "▁")),
    "BPEDecoder, CTC": (sequence(BPE, CTC), ("a</w>", "a", "<pad>", ".</w>")),
}
"""Right, but with text held longer than the laws would like; `description` says so."""


def handmade(name: str) -> tuple[tokenizers.Tokenizer, detok.Tokenizer]:
    """The library's tokenizer of that name, and ours of it."""
    decoder, tokens = {**_handmade(), **LATE}[name]
    library = make(decoder, tokens)
    return library, detok.load(library)


def stripped(name: str, start: int, stop: int) -> tuple[tokenizers.Tokenizer, detok.Tokenizer]:
    """The library's tokenizer for a name in `STRIPPED`, and ours with a Strip of spaces behind it."""
    decoder, tokens = STRIPPED[name]
    assert decoder is not None
    return make(decoder, tokens), detok.load(make(sequence(decoder, strip(start, stop)), tokens))


def cleaned(name: str) -> tuple[tokenizers.Tokenizer, detok.Tokenizer]:
    """The same for a name in `CLEANED`."""
    library = make(*CLEANED[name])
    return library, detok.load(library)
