"""`detok encode`: text to ids, by the tokenizer's own library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError
from . import options as o
from .ids import InputError
from .output import write, write_json

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """\b
Examples:
  detok encode "Hello 🦜"             with detok's tokenizer
  detok encode llama3/ "Hello 🦜"     with another
  detok encode llama3/ < README.md    a text from a pipe, to its last line end
"""


def command(
    tokenizer: o.TokenizerSource = None,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text; without it, it is read from a pipe.", show_default=False)
    ] = None,
    add_special_tokens: Annotated[
        bool,
        typer.Option("--add-special-tokens/--no-special-tokens", help="With or without the tokens that the template adds."),
    ] = True,
    as_json: o.AsJson = False,
) -> None:
    """
    Write the token ids of a text.

    A single argument is the text, unless there is a file or directory of that name: then it is the tokenizer.
    """
    if text is None and tokenizer is not None and not _is_there(tokenizer):
        tokenizer, text = None, tokenizer
    if text is None:
        text = _piped_text()
    ids = o.open_tokenizer(tokenizer).encode(o.checked(text), add_special_tokens=add_special_tokens)
    if as_json:
        write_json({"ids": ids})
    else:
        write(" ".join(map(str, ids)) + "\n")


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # longer than any path, or with a NUL: a text
        return False


def _piped_text() -> str:
    if not o.is_piped():
        raise UsageError("there is no text; give it as an argument or through a pipe")
    data = b"".join(o.read_chunks(sys.stdin.buffer))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = len(data[data.rfind(b"\n", 0, error.start) + 1 : error.start].decode()) + 1
        found = f"the byte {data[error.start]:#04x} is no UTF-8"
        raise InputError("standard input", line=line, column=column, problem=found) from None
