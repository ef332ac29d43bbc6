"""`detok encode`: text to ids, by the tokenizer's own library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError
from . import chats as c
from . import options as o
from .ids import InputError
from .output import write, write_json

__all__ = ["EXAMPLES", "command", "given_text"]

EXAMPLES = """\b
Examples:
  detok encode "Hello 🦜"             with detok's tokenizer
  detok encode llama3/ "Hello 🦜"     with another
  detok encode llama3/ < README.md    a text from a pipe, to its last line end
  detok encode llama3/ --chat '[{"role": "user", "content": "Hi"}]'
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
    chat: Annotated[
        bool, typer.Option("--chat", help="The text is a chat: a JSON list of messages, or an object with messages.")
    ] = False,
    chat_template: c.ChatTemplate = None,
    safe: c.Safe = False,
    double_bos: c.DoubleBos = c.DoubleBosChoice.FIX,
) -> None:
    """
    Write the token ids of a text, or of a chat.

    A single argument is the text, unless there is a file or directory of that name: then it is the tokenizer. A prompt has one
    BOS at most, whatever it begins with; a chat has those special tokens that its template writes.
    """
    tokenizer, text = given_text(tokenizer, text)
    made = o.open_tokenizer(tokenizer)
    if chat:
        given = c.read_chat(o.checked(text), chat_template)
        ids = made.encode_chat(given.messages, safe=safe, double_bos=double_bos.value, **given.options)
    elif chat_template is not None or safe:
        raise UsageError("--chat-template and --safe are for chats; give --chat")
    else:
        ids = made.encode_prompt(o.checked(text), add_special_tokens, double_bos=double_bos.value)
    if as_json:
        write_json({"ids": ids})
    else:
        write(" ".join(map(str, ids)) + "\n")


def given_text(tokenizer: str | None, text: str | None) -> tuple[str | None, str]:
    """Return the tokenizer and the text that are meant: a single argument is a text, unless something of that name is there."""
    if text is None and tokenizer is not None and not _is_there(tokenizer):
        tokenizer, text = None, tokenizer
    return tokenizer, _piped_text() if text is None else text


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
