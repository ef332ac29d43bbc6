"""`detok check --against`: two tokenizers compared, on the screen."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import typer
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ..inspection import Comparison, Disagreement, compare
from ..tokenizers import Tokenizer
from . import options as o
from .console import PipeConsole
from .output import visible, write_json

__all__ = ["run"]

FINGERPRINT = re.compile(r"[0-9a-f]{16,128}")


def run(tokenizer: Tokenizer, other: str, *, lists: int, seed: int, as_json: bool, progress: Callable[[int], None]) -> None:
    """
    Compare, show, and exit with 1 if they disagree.

    Args:
        tokenizer: The one.
        other: What `detok.load` takes; or a fingerprint, which can show that both are equal, and nothing else.
    """
    if FINGERPRINT.fullmatch(other) and not Path(other).exists():
        _by_fingerprint(tokenizer, other, as_json=as_json)
        return
    found = compare(tokenizer, o.open_tokenizer(other), lists=lists, seed=seed, progress=progress)
    if as_json:
        write_json(found.as_dict())
    else:
        _show(found)
    if not found.ok:
        raise typer.Exit(1)


def _by_fingerprint(tokenizer: Tokenizer, other: str, *, as_json: bool) -> None:
    equal = tokenizer.fingerprint == other
    said = "equal" if equal else "not shown equal"
    if as_json:
        write_json({"ok": equal, "result": said, "fingerprints": [tokenizer.fingerprint, other]})
    else:
        typer.echo(said)
        if not equal:
            typer.echo(
                f"{visible(tokenizer.source)} has {tokenizer.fingerprint}; give the other tokenizer to see what differs",
                err=True,
            )
    if not equal:
        raise typer.Exit(1)


def _show(found: Comparison) -> None:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in [
        ("one", visible(found.one)),
        ("", found.fingerprints[0]),
        ("other", visible(found.other)),
        ("", found.fingerprints[1]),
        ("tried", f"{found.lists:,} id lists, {found.texts:,} texts, {found.comparisons:,} comparisons, seed {found.seed}"),
        *(("not compared", visible(why)) for why in found.not_compared),
        *((cause, f"{count:,} differences") for cause, count in found.causes.items()),
        ("time", f"{found.seconds:.1f} s"),
    ]:
        facts.add_row(name, Text(value))
    verdict = "✓ no difference found" if found.ok else f"✗ they disagree by {', '.join(found.causes)}"
    facts.add_row("result", Text(verdict, style="bold green" if found.ok else "bold red"))
    console = PipeConsole(width=None, highlight=False)
    console.print(Panel(facts, title="detok check --against", border_style="green" if found.ok else "red"))
    for one in found.disagreements:
        console.print(_describe(one))


def _describe(found: Disagreement) -> Text:
    return Text.assemble(
        (f"✗ {found.cause}", "bold red"),
        f", {found.kind}{', ' + found.options if found.options else ''}\n",
        f"  {'what' if found.kind == 'fact' else 'given':<8}{visible(found.given)}\n",
        f"  one     {visible(found.one)}\n",
        f"  other   {visible(found.other)}\n",
    )
