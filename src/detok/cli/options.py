"""Arguments and options that several commands have, each defined once, and what becomes of them."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from ..data import EMBEDDED
from ..errors import SourceError, UsageError
from ..tokenizers import Tokenizer, load
from .ids import Item, Step, read_ids

if TYPE_CHECKING:
    from ..inspection import strategies

__all__ = [
    "AsJson",
    "ByteFallback",
    "CleanUp",
    "File",
    "Ids",
    "NoSpacesBetweenSpecials",
    "PromptIds",
    "SkipSpecials",
    "Strategy",
    "StrategyChoice",
    "TokenizerSource",
    "UnknownIds",
    "checked",
    "decode_options",
    "flat",
    "given_ids",
    "ids_of",
    "is_piped",
    "open_tokenizer",
    "read_chunks",
    "value",
]


class UnknownIdsChoice(StrEnum):
    """`DecodeOptions.unknown_ids`."""

    SKIP = "skip"
    ERROR = "error"
    REPLACE = "replace"


class ByteFallbackChoice(StrEnum):
    """`DecodeOptions.byte_fallback`."""

    EXACT = "exact"
    EAGER = "eager"


class StrategyChoice(StrEnum):
    """`inspection.strategies.Strategy`."""

    EXACT = "exact"
    WINDOW = "window"
    PRINTABLE = "window+printable"
    DECODESTREAM = "decodestream"


TokenizerSource = Annotated[
    str | None,
    typer.Argument(
        metavar="TOKENIZER",
        help="A tokenizer's file or directory (`detok formats`), tiktoken:NAME, or a hub name; without it, detok's own.",
        show_default=False,
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Option(
        "--ids", "-i", metavar="IDS", help='Token ids: "1 2 3", 1,2,3 or "[1, 2, 3]"; may be repeated.', show_default=False
    ),
]
File = Annotated[
    str | None,
    typer.Option(
        "--file",
        "-f",
        metavar="PATH",
        help="Read ids from a file, - for standard input: integers, or JSON lines that are arrays or have token_ids.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for machines, and nothing else.")]
PromptIds = Annotated[
    list[str] | None,
    typer.Option(
        "--prompt-ids", metavar="IDS", help="What stands before: context only, its text does not come out.", show_default=False
    ),
]

_PANEL = "Decoding"
SkipSpecials = Annotated[
    bool,
    typer.Option(
        "--skip-special-tokens/--keep-special-tokens", help="Leave special tokens out, or write them.", rich_help_panel=_PANEL
    ),
]
CleanUp = Annotated[
    bool | None,
    typer.Option(
        "--clean-up/--no-clean-up",
        help="Take away spaces before punctuation, as transformers does.",
        show_default="as the tokenizer's configuration says",
        rich_help_panel=_PANEL,
    ),
]
UnknownIds = Annotated[
    UnknownIdsChoice,
    typer.Option("--unknown-ids", help="An id without a token: nothing, an error, or U+FFFD.", rich_help_panel=_PANEL),
]
ByteFallback = Annotated[
    ByteFallbackChoice,
    typer.Option(
        "--byte-fallback", help="Byte runs: as the library decodes them, or each character at once.", rich_help_panel=_PANEL
    ),
]
Strategy = Annotated[
    StrategyChoice | None,
    typer.Option(
        "--strategy",
        help="How to stream: by compiled rules, or for comparison by the windows of vLLM or SGLang, or by DecodeStream.",
        show_default="exact, but window for tokenizers known only by their own code",
        rich_help_panel=_PANEL,
    ),
]
NoSpacesBetweenSpecials = Annotated[
    bool,
    typer.Option(
        "--no-spaces-between-special-tokens",
        help="Write neighbouring added tokens without a space, as vLLM does; with --keep-special-tokens.",
        rich_help_panel=_PANEL,
    ),
]


def open_tokenizer(source: str | None) -> Tokenizer:
    """Load what was named, or the embedded tokenizer. Errors as `load`."""
    return load(EMBEDDED if source is None else source)


def decode_options(
    skip_special_tokens: bool,
    clean_up: bool | None,
    unknown_ids: UnknownIdsChoice,
    byte_fallback: ByteFallbackChoice,
    no_spaces_between_special_tokens: bool,
) -> dict[str, Any]:
    """Return the flags as the keywords of ``tokenizer.stream``."""
    return {
        "skip_special_tokens": skip_special_tokens,
        "clean_up_tokenization_spaces": clean_up,
        "unknown_ids": unknown_ids.value,
        "byte_fallback": byte_fallback.value,
        "spaces_between_special_tokens": False if no_spaces_between_special_tokens else None,
    }


def value(choice: StrategyChoice | None) -> strategies.Strategy | None:
    """Return a choice as `inspection.strategies` takes it."""
    return None if choice is None else choice.value


def given_ids(ids: list[str] | None, file: str | None, *, reads_pipe: bool, with_logprobs: bool = False) -> Iterator[Item] | None:
    """
    Return the ids that were given, to be read as they come; None if there are none.

    Args:
        ids: The values of ``--ids``.
        file: The value of ``--file``.
        reads_pipe: Whether a pipe on standard input counts without ``--file -``.
        with_logprobs: As `read_ids` takes it.

    Raises:
        UsageError: Both were given.
        SourceError: The file cannot be opened.
        InputError: While they are read.
    """
    if ids and file is not None:
        raise UsageError("ids come from --ids or from --file, not from both")
    if ids:
        chunks, name = iter(["\n".join(ids).encode("utf-8", "replace")]), "--ids"
    elif file == "-" or (file is None and reads_pipe and is_piped()):
        chunks, name = read_chunks(sys.stdin.buffer), "standard input"
    elif file is not None:
        chunks, name = _read_file(file), file
    else:
        return None
    return read_ids(chunks, name, with_logprobs=with_logprobs)


def ids_of(values: list[str] | None, option: str) -> list[int]:
    """Return the ids of a repeatable option. Errors as `given_ids`."""
    items = read_ids(["\n".join(values or ()).encode("utf-8", "replace")], option)
    return flat(items)


def flat(items: Iterator[Item]) -> list[int]:
    """Return all ids, whatever step they came in."""
    return [token_id for item in items for token_id in (item.ids if isinstance(item, Step) else [item])]


def checked(text: str) -> str:
    """Return the text of an argument; raise `UsageError` if the shell gave bytes that are no UTF-8, which no tokenizer takes."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the text is no UTF-8 at character {error.start + 1}") from None
    return text


def is_piped() -> bool:
    """Whether something is led into standard input: a pipe, a file, a socket. A terminal is not, and neither is /dev/null."""
    if sys.stdin is None:
        return False
    try:
        return not stat.S_ISCHR(os.fstat(sys.stdin.fileno()).st_mode)
    except OSError:  # no file at all: something that a program put there to be read
        return True


def read_chunks(stream: BinaryIO) -> Iterator[bytes]:
    """Give bytes as soon as they are there: a read returns what has come, and does not wait for more."""
    read = getattr(stream, "read1", stream.read)
    while chunk := read(1 << 16):
        yield chunk


def _read_file(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            yield from read_chunks(file)
    except OSError as error:
        raise SourceError(
            path, found=f"cannot be read ({error.strerror})", accepted="give a file with token ids, or -"
        ) from error
