"""`detok drift`: what stored conversations lose if their text is encoded again."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ..inspection import DriftReport, drift_report
from ..prompts.drift import DEFAULT_BLOCK_SIZE, Drift, DriftPlace
from . import options as o
from .console import PipeConsole
from .conversations import stored_conversations
from .output import visible, write_json

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """\b
Examples:
  detok drift llama3/ chats.jsonl                 a conversation a line
  detok drift llama3/ chats.jsonl --worst 10      more of the worst
  detok drift llama3/ chats.jsonl --block-size 64 another prefix cache
  my-log | detok drift llama3/ --json             for machines
"""

SHOWN = 5
"""So many places of a conversation are shown."""


def command(
    tokenizer: o.TokenizerSource = None,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="JSON lines: arrays of ids, or objects with token_ids; - for a pipe.", show_default=False
        ),
    ] = None,
    block_size: Annotated[int, typer.Option(min=1, help="Tokens in a block of the prefix cache.")] = DEFAULT_BLOCK_SIZE,
    worst: Annotated[int, typer.Option(min=0, help="How many conversations to show.")] = 3,
    as_json: o.AsJson = False,
) -> None:
    """
    Show where stored conversations lose their own ids.

    A client that keeps text, and encodes the whole conversation for each turn, sends other ids than the model wrote wherever the
    model split a word in its own way. From there on the server's prefix cache is lost.

    A single argument that ends in .jsonl is the file.
    """
    if file is None and tokenizer is not None and tokenizer.endswith((".jsonl", ".ndjson")):
        tokenizer, file = None, tokenizer
    made = o.open_tokenizer(tokenizer)
    report = drift_report(made, stored_conversations(file, frozenset(made.ids)), block_size=block_size, worst=worst)
    if as_json:
        write_json(report.as_dict())
    else:
        _show(report)


def _show(report: DriftReport) -> None:
    r = report
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    often = f", {r.drifting / r.conversations:.1%}" if r.conversations else ""
    lost = f", {r.lost_tokens / r.tokens:.1%}" if r.tokens else ""
    for name, value in [
        ("tokenizer", visible(r.source)),
        ("conversations", f"{r.conversations:,} of {r.tokens:,} tokens"),
        ("drifting", f"{r.drifting:,}{often}, in {r.places:,} places"),
        ("lost", f"{r.lost_tokens:,} tokens{lost}, in blocks of {r.block_size}"),
        ("most often", ", ".join(f"{text!r} {count:,}x" for text, count in r.common) or "nowhere"),
    ]:
        facts.add_row(name, Text(value))
    console = PipeConsole(width=None, highlight=False)
    console.print(Panel(facts, title="detok drift", border_style="red" if r.drifting else "green"))
    for name, drift in r.worst:
        console.print(_describe(name, drift))


def _describe(name: str, drift: Drift) -> Text:
    described = Text.assemble(
        (visible(name), "bold"),
        f": {drift.count:,} places, {drift.lost_tokens:,} of {drift.tokens:,} tokens lost from token {drift.first} on\n",
    )
    for place in drift.places[:SHOWN]:
        described.append_text(_place(place))
    if drift.count > SHOWN:
        described.append(f"  … and {drift.count - SHOWN:,} more\n", "dim")
    return described


def _place(place: DriftPlace) -> Text:
    return Text.assemble(
        (f"  {place.position:>7}  ", "dim"),
        (f"…{visible(place.before)}", "dim"),
        (visible(place.text), "bold red"),
        f"  {_ids(place.ids)} → {_ids(place.reencoded)}\n",
    )


def _ids(ids: tuple[int, ...]) -> str:
    return " ".join(map(str, ids[:8])) + (" …" if len(ids) > 8 else "") or "nothing"
