"""What the loaders of byte vocabularies and of SentencePiece share: files, libraries, pieces of bytes, text as UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..core.vocabulary import Piece
from ..errors import MissingExtra, OptionError, SourceError

__all__ = [
    "MAX_ID",
    "Added",
    "ByteVocabulary",
    "Once",
    "added_pieces",
    "byte_piece",
    "is_panic",
    "library",
    "read_file",
    "refuse_byte_order_mark",
    "utf8",
    "with_version",
]

# The libraries keep ids in 32 bits. Nothing here is as long as the range of ids: a large one costs no more than a small one.
MAX_ID = (1 << 32) - 1

Added = tuple[int, str, bool]
"""An added token: its id, its text, whether it is special."""


# The largest vocabularies take 40 MB. What is read whole has to fit into memory a few times over.
MAX_FILE = 1 << 29


class ByteVocabulary:
    """
    A table of tokens that are bytes, and added tokens beside them.

    Args:
        tokens: The bytes of each id.
        added: The piece of each id of the added vocabulary.
    """

    def __init__(self, tokens: Mapping[int, bytes], added: Mapping[int, Piece]) -> None:
        self._tokens = tokens
        self._added = added

    def piece(self, token_id: int) -> Piece | None:
        """The piece behind ``token_id``, or None."""
        added = self._added.get(token_id)
        if added is not None:
            return added
        data = self._tokens.get(token_id)
        return None if data is None else byte_piece(data)

    def __len__(self) -> int:
        return len(self._tokens) + len(self._added.keys() - self._tokens.keys())

    def ids(self) -> Iterable[int]:
        """All ids, ascending."""
        return sorted({*self._tokens, *self._added})

    def added_ids(self) -> Iterable[int]:
        """The ids of the added vocabulary, ascending."""
        return sorted(self._added)


class Once:
    """
    What a function makes, made at the first call and kept: a library's own object, say, which takes long and may never be needed.

    It can be pickled if the function and its arguments can; what was made is made again.
    """

    def __init__(self, make: Callable[..., Any], *args: Any) -> None:
        self._make, self._args = make, args
        self._made: list[Any] = []

    def __call__(self) -> Any:
        if not self._made:
            self._made.append(self._make(*self._args))
        return self._made[0]

    @classmethod
    def given(cls, value: Any) -> Once:
        """What is made already."""
        return cls(_same, value)

    def __reduce__(self) -> tuple[object, ...]:
        return Once, (self._make, *self._args)


def _same(value: Any) -> Any:
    return value


def byte_piece(data: bytes) -> Piece:
    """The piece that is ``data``; its text, for display, shows what is no UTF-8 as ``\\xHH``."""
    return Piece(data.decode(errors="backslashreplace"), data=data)


def added_pieces(tokens: Mapping[int, bytes], added: Iterable[Added]) -> dict[int, Piece] | str:
    """
    Return the pieces of added tokens by their ids; or, as a text, what is wrong with them.

    Args:
        tokens: The tokens beside which they stand; an added token may be one of these, but no other.
    """
    pieces: dict[int, Piece] = {}
    texts: set[str] = set()
    for token_id, text, special in added:
        if not isinstance(text, str) or not text or type(token_id) is not int or not 0 <= token_id <= MAX_ID:
            return f"an added token is a text and an id from 0 to {MAX_ID}, not {text!r} and {token_id!r}"
        try:
            data = text.encode()
        except UnicodeEncodeError:
            return f"the added token {text!r} has a lone surrogate, which no UTF-8 can spell"
        other = pieces[token_id].text if token_id in pieces else tokens.get(token_id, data)
        if other != data or text in texts:
            return f"an id is for one token, and a token has one id: {text!r} with the id {token_id}, which is {other!r}"
        texts.add(text)
        pieces[token_id] = Piece(text, special=special, added=True, data=data)
    return pieces


def read_file(path: Path, accepted: str) -> bytes:
    """
    Return the content of a file.

    Raises:
        SourceError: It cannot be read, or is empty.
    """
    try:
        if path.stat().st_size > MAX_FILE:
            found = f"has {path.stat().st_size:,} bytes"
            raise SourceError(path, found=found, accepted=f"no vocabulary has more than {MAX_FILE:,}; {accepted}")
        content = path.read_bytes()
    except OSError as error:
        raise SourceError(path, found=f"cannot be read ({error.strerror})", accepted=accepted) from error
    if not content:
        raise SourceError(path, found="the file is empty", accepted=accepted)
    return content


def refuse_byte_order_mark(data: bytes, source: object) -> None:
    """
    Refuse a file whose reader takes no byte order mark, by the name of what is wrong: else it would be some fault at byte 1.

    Raises:
        SourceError: It starts with one.
    """
    if data.startswith(codecs.BOM_UTF8):
        found = "starts with a byte order mark (EF BB BF), which its library does not read"
        raise SourceError(source, found=found, accepted="save it as UTF-8 without one")


def library(name: str, *, extra: str, purpose: str) -> Any:
    """
    Import a module of another library.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(name.partition(".")[0], extra=extra, purpose=purpose) from error


def is_panic(error: BaseException) -> bool:
    """Whether it is a panic in Rust (Strip on a token that is too short, say), which arrives as what is no `Exception`."""
    return type(error).__name__ == "PanicException"


def with_version(distribution: str) -> str:
    """The name of a library with the version that is installed, without importing it."""
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return f"{distribution}, which is not installed"


def utf8(text: object) -> bytes:
    """
    Return the UTF-8 of a text that is to be encoded.

    Raises:
        OptionError: It has a lone surrogate, or is no str.
    """
    try:
        return text.encode()  # type: ignore[attr-defined,no-any-return]  # whatever has no such method is refused here
    except (UnicodeEncodeError, AttributeError) as error:
        accepted = "it is a str without lone surrogates, which no UTF-8 can spell"
        raise OptionError(option="text", value=text, accepted=accepted) from error
