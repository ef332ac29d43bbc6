"""`detok channels`: the turn formats, and which one a tokenizer's models write."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from ..prompts.turn_formats import detect_format
from ..turns.formats import FORMAT_MODELS, HARMONY, REASONING_PARSERS, TOOL_PARSERS, TURN_FORMATS
from . import options as o
from .console import PipeConsole
from .output import write, write_json

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """\b
Examples:
  detok channels                             a table
  detok channels --tokenizer qwen3/          which one "auto" takes, and why
  detok channels --json                      for machines
"""


def command(
    tokenizer: Annotated[
        str | None, typer.Option("--tokenizer", "-t", help="Say which format its models write.", show_default=False)
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """
    List the formats in which models write reasoning and tool calls, for --channels.
    """
    if tokenizer is not None:
        found = detect_format(o.open_tokenizer(tokenizer))
        write_json(found._asdict()) if as_json else write(f"{found.name or 'none'}: {found.because}\n")
        return
    rows = [_facts(name) for name in TURN_FORMATS]
    if as_json:
        write_json(rows)
        return
    caption = "--tool-call-parser and --reasoning-parser take vLLM's names. docs/turns.md says what each format looks like."
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", caption=caption, caption_justify="left")
    for column in ("name", "models", "vLLM's tool-call parsers", "vLLM's reasoning parsers"):
        table.add_column(column)
    for row in rows:
        table.add_row(row["name"], row["models"], *(", ".join(row[key]) for key in ("tool_call_parsers", "reasoning_parsers")))
    PipeConsole().print(table)


def _facts(name: str) -> dict[str, Any]:
    turn = TURN_FORMATS[name]
    is_harmony = name == HARMONY
    return {
        "name": name,
        "models": FORMAT_MODELS[name],
        "reasoning": is_harmony or turn.reasoning is not None,
        "tools": is_harmony or turn.tools is not None,
        "tool_call_parsers": [
            one for one, of in TOOL_PARSERS.items() if is_harmony == (of == HARMONY) and _same(of, name, "tools")
        ],
        "reasoning_parsers": [
            one for one, of in REASONING_PARSERS.items() if is_harmony == (of == HARMONY) and _same(of, name, "reasoning")
        ],
    }


def _same(of: str, name: str, half: str) -> bool:
    """Whether two formats have the same half."""
    own = getattr(TURN_FORMATS[name], half)
    return of == name or (own is not None and own == getattr(TURN_FORMATS[of], half))
