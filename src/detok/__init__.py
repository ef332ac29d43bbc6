"""
detok: streams of token ids into exactly the right text.

>>> import detok
>>> tokenizer = detok.load(detok.EMBEDDED)
>>> stream = tokenizer.stream()
>>> [stream.step(token_id) for token_id in tokenizer.encode("Hi 🦜!")] + [stream.finish()]
['H', 'i', ' ', '🦜', '!', '']
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
"""True for type checkers, as `typing.TYPE_CHECKING`; to import that module costs half as much as Python's start."""

if TYPE_CHECKING:
    from .core.decoder import Decoder
    from .core.options import DecodeOptions
    from .core.request.batch import BatchDecoder, Row
    from .core.request.logprobs import Logprob, TokenLogprob, TopLogprob
    from .core.request.options import RequestOptions
    from .core.request.output import RequestOutput
    from .core.request.request import RequestDecoder
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
    from .logprob_shapes import chat_logprobs, completion_logprobs
    from .prompts.bos import DoubleBosWarning
    from .prompts.token_strings import TokenString
    from .tokenizers import Tokenizer, load
    from .turns.channels import ChannelDelta
    from .turns.formats import TURN_FORMATS, ReasoningFormat, ToolFormat, TurnFormat
    from .turns.segments import Special, Text

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

# `import detok` loads none of these: a name is imported when it is first asked for, and so is what it needs.
_NAMES = {
    ".core.decoder": ("Decoder",),
    ".core.options": ("DecodeOptions",),
    ".core.request.batch": ("BatchDecoder", "Row"),
    ".turns.channels": ("ChannelDelta",),
    ".turns.formats": ("TURN_FORMATS", "ReasoningFormat", "ToolFormat", "TurnFormat"),
    ".core.request.logprobs": ("Logprob", "TokenLogprob", "TopLogprob"),
    ".logprob_shapes": ("chat_logprobs", "completion_logprobs"),
    ".core.request.options": ("RequestOptions",),
    ".core.request.output": ("RequestOutput",),
    ".core.request.request": ("RequestDecoder",),
    ".turns.segments": ("Special", "Text"),
    ".core.stream": ("TextStream",),
    ".core.vocabulary": ("Piece", "Vocabulary"),
    ".data": ("EMBEDDED",),
    ".errors": (
        "ChatTemplateError",
        "DetokError",
        "DoubleBos",
        "DuplicateRequest",
        "EncoderBusy",
        "EncoderClosed",
        "EncodeUnsupported",
        "EngineError",
        "MessageError",
        "MissingExtra",
        "OptionError",
        "PromptTooLong",
        "RequestExpired",
        "RequestFailed",
        "RequestFinished",
        "SnapshotError",
        "SourceError",
        "StopRegexTimeout",
        "StreamFinished",
        "TokenTypeError",
        "UnknownDecoder",
        "UnknownRequest",
        "UnknownTokenId",
        "UsageError",
        "WireError",
        "WorkerError",
        "WorkerUnavailable",
    ),
    ".prompts.bos": ("DoubleBosWarning",),
    ".prompts.token_strings": ("TokenString",),
    ".tokenizers": ("Tokenizer", "load"),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
_PACKAGES = ("core", "data", "engines", "errors", "frontend", "inspection", "prompts", "server", "tokenizers")

if not TYPE_CHECKING:  # type checkers read the imports above, and so they know which names do not exist

    def __getattr__(name):
        if name in _PACKAGES:
            return import_module(f".{name}", __name__)
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_MODULE_OF[name], __name__), name)
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
