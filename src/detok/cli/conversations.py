"""
Stored conversations out of a file or a pipe, a line of JSON each.

A line is an array of ids, or an object with them as ``token_ids``, behind those of ``prompt_token_ids`` if they are apart, as
vLLM writes them. An ``id`` or ``name`` names it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Container, Iterable, Iterator
from typing import Any, BinaryIO

from ..errors import SourceError, UsageError
from ..inspection import StoredConversation
from .ids import InputError
from .options import is_piped

__all__ = ["read_conversations", "stored_conversations"]

IDS = ("prompt_token_ids", "token_ids", "output_token_ids", "ids")
"""What may have ids, in the order in which they stand in the conversation."""

NAMES = ("id", "name", "request_id")

# As for ids elsewhere: some two million of them, far beyond any context.
MAX_LINE = 1 << 24


def stored_conversations(file: str | None, known: Container[int]) -> Iterator[StoredConversation]:
    """
    Read a file, or standard input for "-" and where something is piped in and no file is named.

    Args:
        file: It.
        known: The ids that the tokenizer has.

    Raises:
        UsageError: There is nothing to read.
        SourceError: The file cannot be read.
        InputError: A line is no conversation; after those before it.
    """
    if file == "-" or (file is None and is_piped()):
        yield from read_conversations(_lines(sys.stdin.buffer), "standard input", known)
    elif file is None:
        raise UsageError("there are no conversations; give a file of JSON lines, or a pipe")
    else:
        try:
            with open(file, "rb") as opened:
                yield from read_conversations(_lines(opened), file, known)
        except OSError as error:
            accepted = "give a file of JSON lines, or -"
            raise SourceError(file, found=f"cannot be read ({error.strerror})", accepted=accepted) from error


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    while line := stream.readline(MAX_LINE + 1):
        yield line


def read_conversations(lines: Iterable[bytes], source: str, known: Container[int]) -> Iterator[StoredConversation]:
    """Read lines; empty ones are skipped. Errors as `stored_conversations`."""
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            raise InputError(source, line=number, column=1, problem=f"a line has more than {MAX_LINE:,} bytes")
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(source, line=number, column=error.pos + 1, problem=f"no JSON ({error.msg})") from None
        except (ValueError, RecursionError) as error:
            raise InputError(source, line=number, column=1, problem=f"no JSON ({error})") from None
        problem, ids = _ids(value, known)
        if problem:
            raise InputError(source, line=number, column=1, problem=problem)
        name = next((str(value[key]) for key in NAMES if key in value), None) if isinstance(value, dict) else None
        yield StoredConversation(name or f"line {number}", ids)


def _ids(value: Any, known: Container[int]) -> tuple[str, tuple[int, ...]]:
    """What is wrong with a line, or its ids."""
    if isinstance(value, list):
        value = {"token_ids": value}
    if not isinstance(value, dict) or not any(key in value for key in IDS[1:]):
        return f"neither an array of ids, nor an object with {', '.join(map(repr, IDS[1:]))}", ()
    ids: list[int] = []
    for key in IDS:
        part = value.get(key)
        part = [] if part is None else part  # as vLLM writes what was not asked for
        if not isinstance(part, list) or not all(type(token_id) is int for token_id in part):
            return f"{key!r} is no array of integers", ()
        unknown = next((token_id for token_id in part if token_id not in known), None)
        if unknown is not None:
            return f"{key!r} has the id {unknown}, and the tokenizer has none of that number", ()
        ids += part
    return "", tuple(ids)
