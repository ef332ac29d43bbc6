"""`detok check --encode`: the certificate of an encoder, on the screen."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import typer
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ..errors import SourceError
from ..inspection import EncodeCertificate, EncodeDifference, check_encode
from ..tokenizers import Tokenizer
from .console import PipeConsole
from .options import checked
from .output import visible, write_json

__all__ = ["run"]

REAL = 4000
"""Characters of a real text that are compared at once; a difference is made small from there."""


def run(
    tokenizer: Tokenizer,
    *,
    source: str | None,
    texts: int,
    seed: int,
    files: list[str],
    text: str | None,
    as_json: bool,
    progress: Callable[[int], None],
) -> None:
    """Compare, show, and exit with 1 if there was a difference."""
    real = [piece for file in files for piece in _pieces(file)]
    if text is not None:
        texts, real = 0, [checked(text)]
    certificate = check_encode(tokenizer, texts=texts, real=real, seed=seed, progress=progress)
    if as_json:
        write_json(certificate.as_dict())
    else:
        _show(certificate, [] if source is None else [source])
    if not certificate.ok:
        raise typer.Exit(1)


def _pieces(file: str) -> list[str]:
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SourceError(file, found=f"cannot be read ({error.strerror})", accepted="give a file with text") from error
    return [text[begin : begin + REAL] for begin in range(0, len(text), REAL)]


def _show(certificate: EncodeCertificate, source: list[str]) -> None:
    c = certificate
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    real = f" and {c.real_texts:,} real ones" if c.real_texts else ""
    for name, value in [
        ("tokenizer", visible(c.source)),
        ("encoder", visible(c.encoder + (f", since {c.reason}" if c.reason else ""))),
        ("judge", f"encode of {c.library}"),
        ("tried", f"{c.texts:,} hostile texts{real}, {c.characters:,} characters, {c.comparisons:,} comparisons, seed {c.seed}"),
        ("library failed", f"on {c.library_failures:,} comparisons, which are not made" if c.library_failures else "never"),
        *([("not judged", visible(c.unjudged))] if c.unjudged else []),
        *([("versions", visible(c.of_versions))] if c.of_versions and c.differing else []),
        ("time", f"{c.seconds:.1f} s"),
    ]:
        facts.add_row(name, Text(value))
    verdict = f"{'✓' if c.ok else '✗'} {c.differing:,} differences{' of version' if c.of_versions else ''}"
    facts.add_row("result", Text(verdict, style="bold green" if c.ok else "bold red"))
    console = PipeConsole(width=None, highlight=False)
    console.print(Panel(facts, title="detok check --encode", border_style="green" if c.ok else "red"))
    for difference in c.differences:
        console.print(_describe(difference, source))


def _describe(difference: EncodeDifference, source: list[str]) -> Text:
    again = shlex.join(["detok", "check", *source, "--encode", "--text", difference.text])
    return Text.assemble(
        ("✗ encode", "bold red"),
        f", special tokens {'added' if difference.add_special_tokens else 'not added'}\n",
        f"  text      {difference.text!r}\n",
        f"  expected  {' '.join(map(str, difference.expected))}\n",
        f"  got       {visible(difference.error) or ' '.join(map(str, difference.got))}\n",
        f"  again     {visible(again)}\n",
    )
