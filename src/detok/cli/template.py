"""`detok template`: a chat as its template writes it, and which of its ids are special."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from ..tokenizers import Tokenizer
from . import chats as c
from . import options as o
from .console import PipeConsole
from .encode import given_text
from .output import visible, write, write_json

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """\b
Examples:
  detok template "Hello"                        one message of a user, by detok's tokenizer
  detok template qwen3/ < request.json          the body of a request: messages, tools …
  detok template llama3/ --safe "<|eot_id|>"    what a user spells stays text
  detok template llama3/ --text "Hi"            the rendered text alone
"""

PICTURE_WIDTH = 112


def command(
    tokenizer: o.TokenizerSource = None,
    chat: Annotated[
        str | None,
        typer.Argument(
            metavar="CHAT",
            help="A JSON list of messages, an object with messages, or the text of one; without it, from a pipe.",
            show_default=False,
        ),
    ] = None,
    chat_template: c.ChatTemplate = None,
    safe: c.Safe = False,
    double_bos: c.DoubleBos = c.DoubleBosChoice.FIX,
    text_only: Annotated[bool, typer.Option("--text", help="Write the rendered text, and nothing else.")] = False,
    as_json: o.AsJson = False,
) -> None:
    """
    Render a chat, and show which ids are special.

    A row is a special token with its id, or the text between two of them. "added" are tokens of the added vocabulary that are
    not special: a decode shows them.
    """
    tokenizer, text = given_text(tokenizer, chat)
    made = o.open_tokenizer(tokenizer)
    given = c.read_chat(o.checked(text), chat_template)
    if text_only:
        write(made.render_chat(given.messages, **given.options))
        return
    ids = made.encode_chat(given.messages, safe=safe, double_bos=double_bos.value, **given.options)
    if as_json:
        special = [token_id in made.special_ids for token_id in ids]
        write_json({"text": made.render_chat(given.messages, **given.options), "ids": ids, "special": special})
        return
    shown_on = PipeConsole(width=None if sys.stdout.isatty() else PICTURE_WIDTH)
    shown_on.print(_table(made, ids))


def _table(tokenizer: Tokenizer, ids: Sequence[int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="bold", title_justify="left", title_style="")
    special = sum(token_id in tokenizer.special_ids for token_id in ids)
    table.title = Text(f"{len(ids)} ids, {special} of them special", style="bold")
    table.add_column("id", style="cyan", no_wrap=True)
    table.add_column("kind", style="dim", no_wrap=True)
    table.add_column("text", overflow="fold")
    for run in _runs(tokenizer, ids):
        first = run[0]
        text = visible(b"".join(map(tokenizer.token_bytes, run)).decode(errors="replace"))
        if first in tokenizer.special_ids:
            table.add_row(str(first), "special", Text(text, style="bold magenta"))
        elif first in tokenizer.added_ids:
            table.add_row(str(first), "added", Text(text, style="yellow"))
        else:
            table.add_row("", f"{len(run)} tokens" if len(run) > 1 else "1 token", Text(text))
    return table


def _runs(tokenizer: Tokenizer, ids: Sequence[int]) -> Iterator[list[int]]:
    """Each added token by itself, and what stands between them."""
    for is_added, run in groupby(ids, tokenizer.added_ids.__contains__):
        if is_added:
            yield from ([token_id] for token_id in run)
        else:
            yield list(run)
