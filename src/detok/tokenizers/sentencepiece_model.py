"""
What a SentencePiece model says beside its pieces, read from its protobuf without a protobuf library.

Field numbers and defaults are those of sentencepiece_model.proto. A processor writes its message canonically: pieces first, and
of each specification one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

__all__ = ["ModelSettings", "fault_of", "read_settings", "with_controls_shown"]

PIECES, TRAINER_SPEC, NORMALIZER_SPEC, DENORMALIZER_SPEC = 1, 2, 3, 5
UNK_SURFACE = 44
PRECOMPILED_CHARSMAP, ADD_DUMMY_PREFIX, REMOVE_EXTRA_WHITESPACES = 2, 3, 4

DEFAULT_UNK_SURFACE = " ⁇ ".encode()
USER_DEFINED = b"\x18\x04"
"""Field 3 of a piece, its type, with the value 4. Of several the last counts."""

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
MAX_VARINT_BYTES = 10

Field = tuple[int, int | bytes]


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What decoding depends on."""

    add_dummy_prefix: bool
    remove_extra_whitespaces: bool
    unk_surface: str
    denormalizer: bytes
    """The NormalizerSpec of the denormalizer, b"" if there is none."""


def read_settings(model: bytes) -> ModelSettings:
    """
    Read the settings of a ModelProto as a processor serializes it.

    Raises:
        ValueError: It is damaged.
    """
    specs = {number: value for number, value in _fields(model[_end_of_pieces(model) :]) if isinstance(value, bytes)}
    trainer = dict(_fields(specs.get(TRAINER_SPEC, b"")))
    normalizer = dict(_fields(specs.get(NORMALIZER_SPEC, b"")))
    denormalizer = specs.get(DENORMALIZER_SPEC, b"")
    surface = trainer.get(UNK_SURFACE, DEFAULT_UNK_SURFACE)
    if not isinstance(surface, bytes):
        raise ValueError("unk_surface is a number")
    return ModelSettings(
        add_dummy_prefix=bool(normalizer.get(ADD_DUMMY_PREFIX, 1)),
        remove_extra_whitespaces=bool(normalizer.get(REMOVE_EXTRA_WHITESPACES, 1)),
        unk_surface=surface.decode(),
        denormalizer=denormalizer if dict(_fields(denormalizer)).get(PRECOMPILED_CHARSMAP) else b"",
    )


def with_controls_shown(model: bytes, controls: Collection[int]) -> bytes:
    """Return the model with its control pieces made user-defined ones, which are shown when they are decoded."""
    out = []
    for place, (number, value) in enumerate(_fields(model)):
        if number == PIECES and isinstance(value, bytes):
            piece = value + USER_DEFINED if place in controls else value
            out.append(b"\x0a" + _varint(len(piece)) + piece)
        elif isinstance(value, bytes):
            out.append(_varint(number << 3 | LENGTH) + _varint(len(value)) + value)
    return b"".join(out)


def fault_of(model: bytes) -> str:
    """Return why these bytes are no protobuf message, "" if they are one."""
    try:
        for _ in _fields(model):
            pass
    except ValueError as error:
        return str(error)
    return ""


def _end_of_pieces(model: bytes) -> int:
    """Where the pieces end, or the first that is longer than 127 bytes begins. Most of a model is skipped so, quickly."""
    at, end = 0, len(model) - 1
    while at < end and model[at] == PIECES << 3 | LENGTH and model[at + 1] < 0x80:
        at += 2 + model[at + 1]
    return at


def _fields(message: bytes) -> Iterator[Field]:
    """The fields of a message: numbers of every width as int, and what has a length as bytes."""
    at, end = 0, len(message)
    while at < end:
        tag, at = _read_varint(message, at)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, at = _read_varint(message, at)
            yield number, value
            continue
        if kind == LENGTH:
            length, at = _read_varint(message, at)
        elif kind in (FIXED32, FIXED64):
            length = 4 if kind == FIXED32 else 8
        else:
            raise ValueError(f"a field of wire type {kind}")
        if length > end - at:
            raise ValueError("a field is longer than what it is in")
        data, at = message[at : at + length], at + length
        yield number, data if kind == LENGTH else int.from_bytes(data, "little")


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(message[at : at + MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("a number without an end")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
