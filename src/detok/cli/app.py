"""The `detok` command: its subcommands, and what an error or a closed pipe becomes."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..errors import DetokError
from . import channels, check, cost, decode, drift, encode, formats, serve, stream, template, top, trace, worker
from .output import one_line

__all__ = ["app"]


class Commands(TyperGroup):
    """The subcommands. What detok raises on purpose becomes one line on standard error and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        """Run a subcommand."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Whoever reads has seen enough (`| head`); what is still buffered must not complain at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except (DetokError, OSError) as error:
            typer.echo(f"detok: {one_line(str(error))}", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    name="detok",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # The panels of rich cut long option names off on a terminal of 80 columns.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 all is well, 1 `check` found a difference, 2 wrong usage or input.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"detok {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """
    Streams of LLM token ids into exactly the right text.

    A TOKENIZER is a file or directory of any format that `detok formats` lists, or a name on the Hugging Face hub. Without it, a
    small one that comes with detok is used, so that everything can be tried at once.
    """


for module in (stream, decode, encode, template, trace, serve, check, drift, cost, formats, channels, worker, top):
    app.command(module.__name__.rpartition(".")[2], epilog=module.EXAMPLES)(module.command)
