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
from .core.request.batch import BatchDecoder, Row
from .core.request.channels import ChannelDelta
from .core.request.formats import TURN_FORMATS, ReasoningFormat, ToolFormat, TurnFormat
from .core.request.logprobs import Logprob, TokenLogprob, TopLogprob, chat_logprobs, completion_logprobs
from .core.request.options import RequestOptions
from .core.request.output import RequestOutput
from .core.request.request import RequestDecoder
from .core.request.segments import Special, Text
from .core.stream import TextStream
from .core.vocabulary import Piece, Vocabulary
from .data import EMBEDDED
from .errors import (
    ChatTemplateError,
    DetokError,
    DoubleBos,
    DuplicateRequest,
    EncoderBusy,
    EncoderClosed,
    EncodeUnsupported,
    EngineError,
    MessageError,
    MissingExtra,
    OptionError,
    PromptTooLong,
    RequestExpired,
    RequestFailed,
    RequestFinished,
    SnapshotError,
    SourceError,
    StopRegexTimeout,
    StreamFinished,
    TokenTypeError,
    UnknownDecoder,
    UnknownRequest,
    UnknownTokenId,
    UsageError,
    WireError,
    WorkerError,
    WorkerUnavailable,
)
from .prompts.bos import DoubleBosWarning
from .prompts.token_strings import TokenString

if TYPE_CHECKING:
    from .tokenizers import Tokenizer, load

__version__ = "0.1.0"

__all__ = [
    "EMBEDDED",
    "TURN_FORMATS",
    "BatchDecoder",
    "ChannelDelta",
    "ChatTemplateError",
    "DecodeOptions",
    "Decoder",
    "DetokError",
    "DoubleBos",
    "DoubleBosWarning",
    "DuplicateRequest",
    "EncodeUnsupported",
    "EncoderBusy",
    "EncoderClosed",
    "EngineError",
    "Logprob",
    "MessageError",
    "MissingExtra",
    "OptionError",
    "Piece",
    "PromptTooLong",
    "ReasoningFormat",
    "RequestDecoder",
    "RequestExpired",
    "RequestFailed",
    "RequestFinished",
    "RequestOptions",
    "RequestOutput",
    "Row",
    "SnapshotError",
    "SourceError",
    "Special",
    "StopRegexTimeout",
    "StreamFinished",
    "Text",
    "TextStream",
    "TokenLogprob",
    "TokenString",
    "TokenTypeError",
    "Tokenizer",
    "ToolFormat",
    "TopLogprob",
    "TurnFormat",
    "UnknownDecoder",
    "UnknownRequest",
    "UnknownTokenId",
    "UsageError",
    "Vocabulary",
    "WireError",
    "WorkerError",
    "WorkerUnavailable",
    "__version__",
    "chat_logprobs",
    "completion_logprobs",
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
