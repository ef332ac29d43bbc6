"""
detok: streams of token ids into exactly the right text.

>>> import detok
>>> tokenizer = detok.load(detok.EMBEDDED)
>>> stream = tokenizer.stream()
>>> [stream.step(token_id) for token_id in tokenizer.encode("Hi 🦜!")] + [stream.finish()]
['H', 'i', ' ', '🦜', '!', '']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .core.decoder import Decoder
from .core.options import DecodeOptions
from .core.stream import TextStream
from .core.vocabulary import Piece, Vocabulary
from .data import EMBEDDED
from .errors import (
    DetokError,
    EncoderBusy,
    EncoderClosed,
    EncodeUnsupported,
    MissingExtra,
    OptionError,
    PromptTooLong,
    SnapshotError,
    SourceError,
    StreamFinished,
    TokenTypeError,
    UnknownDecoder,
    UnknownTokenId,
    UsageError,
)

if TYPE_CHECKING:
    from .tokenizers import Tokenizer, load

__version__ = "0.1.0"

__all__ = [
    "EMBEDDED",
    "DecodeOptions",
    "Decoder",
    "DetokError",
    "EncodeUnsupported",
    "EncoderBusy",
    "EncoderClosed",
    "MissingExtra",
    "OptionError",
    "Piece",
    "PromptTooLong",
    "SnapshotError",
    "SourceError",
    "StreamFinished",
    "TextStream",
    "TokenTypeError",
    "Tokenizer",
    "UnknownDecoder",
    "UnknownTokenId",
    "UsageError",
    "Vocabulary",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    # What needs more than the core is imported when it is first asked for.
    if name in ("Tokenizer", "load"):
        from . import tokenizers

        return getattr(tokenizers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
