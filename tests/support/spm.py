"""SentencePiece models made by hand: a protobuf message written field by field, so that every kind of piece can stand in it."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import sentencepiece

UNIGRAM, BPE = 1, 2
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
BYTES = [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]


def model(
    pieces: Iterable[tuple[str, int]],
    *,
    add_dummy_prefix: bool | None = None,
    remove_extra_whitespaces: bool | None = None,
    unk_surface: str | None = None,
    denormalizer: bytes = b"",
    model_type: int = BPE,
) -> bytes:
    """Return a model without a normalizer. What is None is left out, so that the library's default holds."""
    pieces = list(pieces)
    out = [field(1, field(1, text.encode()) + b"\x15" + bytes(4) + field(3, kind)) for text, kind in pieces]
    trainer = [field(3, model_type), field(35, int(any(kind == BYTE for _, kind in pieces)))]
    trainer += [field(44, unk_surface.encode())] if unk_surface is not None else []
    normalizer = [field(1, b"identity")]
    normalizer += [field(3, int(add_dummy_prefix))] if add_dummy_prefix is not None else []
    normalizer += [field(4, int(remove_extra_whitespaces))] if remove_extra_whitespaces is not None else []
    out += [field(2, b"".join(trainer)), field(3, b"".join(normalizer))]
    return b"".join([*out, field(5, denormalizer)] if denormalizer else out)


def field(number: int, value: int | bytes) -> bytes:
    """One field of a message."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@cache
def with_denormalizer() -> bytes:
    """A model that the library's trainer made, with a denormalizer: "a" becomes "A", and "bc" becomes "XYZ"."""
    text = ["the quick brown fox jumps over the lazy dog", "abc bcd cab bca", "hello world foo bar"] * 20
    out = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder, "rules.tsv")
        rules.write_text("0061\t0041\n0062 0063\t0058 0059 005A\n")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text),
            model_writer=out,
            vocab_size=60,
            hard_vocab_limit=False,
            denormalization_rule_tsv=str(rules),
            user_defined_symbols=["<x>", "▁y▁"],
            control_symbols=["<c>"],
            minloglevel=2,
        )
    return out.getvalue()
