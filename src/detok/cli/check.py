"""`detok check`: the certificate, on the screen."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.panel import Panel
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from ..errors import UsageError
from ..inspection import Certificate, Difference, check
from . import check_against, check_encode
from . import options as o
from .console import PipeConsole
from .output import visible, write_json

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """\b
Examples:
  detok check llama3/                              1000 hostile lists
  detok check llama3/ --lists 10000 --seed 7       more, and others
  detok check llama3/ --ids "62904 102"            one list, in all splits
  detok check mistral/ --strategy window           how often windows err
  detok check llama3/ --encode --lists 100000      encode, not decode
  detok check llama3/ --encode --file README.md    over a text of yours
  detok check llama3/ --against tokenizer.json     why two services disagree
  detok check llama3/ --against 0a1b2c…            whether it is the same
  detok check llama3/ --json > certificate.json    for machines
"""


def command(
    tokenizer: o.TokenizerSource = None,
    lists: Annotated[int, typer.Option(min=1, help="How many hostile id lists, or texts, to try.")] = 1000,
    seed: Annotated[int, typer.Option(help="Decides all lists and all splits.")] = 0,
    ids: o.Ids = None,
    file: o.File = None,
    as_json: o.AsJson = False,
    strategy: o.Strategy = None,
    encode: Annotated[
        bool, typer.Option("--encode", help="Compare encode instead of decode; --file is a text then, and --ids makes no sense.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="OTHER",
            help="Compare with another tokenizer, or with a fingerprint, instead of the tokenizer's own library.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="With --encode, this one text.", show_default=False)
    ] = None,
) -> None:
    """
    Compare a tokenizer with its own library: a certificate.

    Hostile id lists, in several splits into steps, behind prompts, through snapshots, with special tokens and without: each must
    give what the library gives for the whole list. A difference is made as small as it can be, and the exit code is 1.

    With --strategy streams are made in that way, and the certificate says how often they went wrong.

    With --encode hostile texts are encoded, alone and in a batch: each must give the ids that the library's own encode gives.
    That judges a faster encoder (`detok[fast]`), which is taken where it is installed.

    With --against the same hostile ids, texts and chats go to two tokenizers. What differs is shown by its cause, and the exit
    code is 1. A fingerprint instead of a tokenizer answers "equal", or "not shown equal" with the exit code 1.

    A directory of Hugging Face's is judged by AutoTokenizer of transformers, where that is installed.
    """
    if against is not None:
        if encode or ids or file is not None or strategy or text is not None:
            raise UsageError("--against compares two tokenizers on ids and texts of its own; --lists and --seed go with it")
        made = o.open_tokenizer(tokenizer)
        with _progress(2 * lists, "hostile lists and texts") as progress:
            check_against.run(made, against, lists=lists, seed=seed, as_json=as_json, progress=progress)
        return
    if encode:
        if ids or strategy:
            raise UsageError("--ids and --strategy go with decode, not with --encode")
        made = o.open_tokenizer(tokenizer)
        files = [] if file is None else [file]
        with _progress(lists, "hostile texts") as progress:
            check_encode.run(
                made, source=tokenizer, texts=lists, seed=seed, files=files, text=text, as_json=as_json, progress=progress
            )
        return
    if text is not None:
        raise UsageError("--text goes with --encode")
    given = o.given_ids(ids, file, reads_pipe=False)
    made = o.open_tokenizer(tokenizer)
    one = None if given is None else o.flat(given)
    with _progress(lists, "hostile lists") as progress:
        certificate = check(made, lists=lists, seed=seed, ids=one, strategy=o.value(strategy), progress=progress)
    if as_json:
        write_json(certificate.as_dict())
    else:
        _show(certificate, [*([] if tokenizer is None else [tokenizer]), *([] if strategy is None else ["--strategy", strategy])])
    if not certificate.ok:
        raise typer.Exit(1)


@contextmanager
def _progress(total: int, what: str) -> Iterator[Callable[[int], None]]:
    console = PipeConsole(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


def _show(certificate: Certificate, source: list[str]) -> None:
    c = certificate
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in [
        ("tokenizer", visible(c.source)),
        ("", visible(c.tokenizer)),
        ("fingerprint", c.fingerprint),
        ("judge", f"decode of {c.library}"),
        ("strategy", c.strategy),
        ("tried", f"{c.lists:,} id lists, {c.splits:,} splits, {c.comparisons:,} comparisons, seed {c.seed}"),
        ("library failed", f"on {c.library_failures:,} lists, which are not compared" if c.library_failures else "never"),
        ("shared ids", _shared(c)),
        *([("not judged", visible(c.unjudged))] if c.unjudged else []),
        *(("suspicious", visible(note)) for note in c.notes),
        *([("versions", visible(c.of_versions))] if c.of_versions and c.differing else []),
        ("time", f"{c.seconds:.1f} s"),
    ]:
        facts.add_row(name, Text(value))
    often = f" in {c.differing_lists:,} lists, {c.differing / c.comparisons:.1%} of all comparisons" if c.differing else ""
    of = " of version" if c.of_versions else ""
    verdict = Text(f"{'✓' if c.ok else '✗'} {c.differing:,} differences{of}{often}", style="bold green" if c.ok else "bold red")
    facts.add_row("result", verdict)
    console = PipeConsole(width=None, highlight=False)
    console.print(Panel(facts, title="detok check", border_style="green" if c.ok else "red"))
    for difference in c.differences:
        console.print(_describe(difference, source))


def _shared(certificate: Certificate) -> str:
    shared = [f"{one.token_id} is both {one.first!r} and {one.second!r}" for one in certificate.shared_ids]
    return "none" if not shared else "; ".join([*shared[:3], *(["…"] if len(shared) > 3 else [])])


def _describe(difference: Difference, source: list[str]) -> Text:
    ids = " ".join(map(str, difference.ids))
    again = shlex.join(["detok", "check", *source, "--ids", ids])
    return Text.assemble(
        (f"✗ {difference.kind}", "bold red"),
        f", special tokens {'skipped' if difference.skip_special_tokens else 'kept'}, steps of {list(difference.steps)}\n",
        f"  ids       {ids}\n",
        f"  expected  {difference.expected!r}\n",
        f"  got       {difference.got!r}\n",
        f"  again     {again}\n",
    )
