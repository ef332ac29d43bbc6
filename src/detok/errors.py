"""Every error that detok raises on purpose; anything else that comes out is a bug of ours.

The tree keeps the caller's faults (`UsageError` and its children) apart from faults of the data that was handed in
(`SourceError`, `SnapshotError`). A wrong type is a `TokenTypeError`, which is also a `TypeError`.
"""

from __future__ import annotations

__all__ = [
    "DetokError",
    "EncodeUnsupported",
    "MissingExtra",
    "OptionError",
    "SnapshotError",
    "SourceError",
    "StreamFinished",
    "TokenTypeError",
    "UnknownDecoder",
    "UnknownTokenId",
    "UsageError",
]


class DetokError(Exception):
    """The root of the tree."""


class UsageError(DetokError):
    """The caller asked for something that cannot be."""


class OptionError(UsageError, ValueError):
    """An option has a value that it cannot have."""

    def __init__(self, *, option: str, value: object, accepted: str) -> None:
        super().__init__(option, value, accepted)
        self.option, self.value, self.accepted = option, value, accepted

    def __str__(self) -> str:
        return f"{self.option}={self.value!r} is not possible; {self.accepted}"


class TokenTypeError(UsageError, TypeError):
    """Something that is no integer stood where a token id belongs."""

    def __init__(self, value: object, *, where: str = "token_ids", position: int = 0) -> None:
        super().__init__(value, where, position)
        self.value, self.where, self.position = value, where, position

    def __str__(self) -> str:
        kind = type(self.value).__name__
        return f"{self.where}[{self.position}] is the {kind} {self.value!r}; a token id is an integer (int or numpy integer)"


class UnknownTokenId(UsageError, LookupError):
    """The tokenizer has no such id, and the caller asked to be told (`unknown_ids="error"`)."""

    def __init__(self, token_id: int, *, position: int | None = None, known: str = "") -> None:
        super().__init__(token_id, position, known)
        self.token_id, self.position, self.known = token_id, position, known

    def __str__(self) -> str:
        where = "" if self.position is None else f" at position {self.position}"
        known = f" ({self.known})" if self.known else ""
        return f"the tokenizer has no id {self.token_id}{where}{known}; the stream is as it was before it"


class StreamFinished(UsageError):
    """`finish()` was called; a finished stream takes no more ids."""

    def __str__(self) -> str:
        return "the stream is finished and takes no more ids; open a new one with tokenizer.stream()"


class SourceError(DetokError, ValueError):
    """What was to be loaded is no tokenizer that detok can read."""

    def __init__(self, source: object, *, found: str, accepted: str) -> None:
        super().__init__(source, found, accepted)
        self.source, self.found, self.accepted = source, found, accepted

    def __str__(self) -> str:
        return f"{self.source}: {self.found}; {self.accepted}"


class UnknownDecoder(SourceError):
    """A decoder of a type that detok does not know, so that its text could only be guessed."""

    def __init__(self, source: object, *, decoder: object) -> None:
        super().__init__(source, found=f"unknown decoder type {decoder!r}", accepted=_DECODERS)
        self.decoder = decoder

    def __reduce__(self) -> tuple[object, ...]:
        return _unknown_decoder, (self.source, self.decoder)


def _unknown_decoder(source: object, decoder: object) -> UnknownDecoder:
    return UnknownDecoder(source, decoder=decoder)


_DECODERS = "known are ByteLevel, ByteFallback, Fuse, Strip, Replace, Metaspace, WordPiece, BPEDecoder, CTC, Sequence and null"


class SnapshotError(DetokError, ValueError):
    """A snapshot that does not belong here, is of another version, or was changed on its way."""


class EncodeUnsupported(DetokError, NotImplementedError):
    """This kind of tokenizer can be decoded here, but not encoded."""

    def __init__(self, kind: str, *, instead: str) -> None:
        super().__init__(kind, instead)
        self.kind, self.instead = kind, instead

    def __str__(self) -> str:
        return f"detok has no encoder for {self.kind}; {self.instead}"


class MissingExtra(DetokError, ImportError):
    """A library is needed that this installation does not have."""

    def __init__(self, library: str, *, extra: str, purpose: str) -> None:
        super().__init__(library, extra, purpose)
        self.library, self.extra, self.purpose = library, extra, purpose

    def __str__(self) -> str:
        return f"{self.purpose} needs the library {self.library!r}; install it with: pip install 'detok[{self.extra}]'"
