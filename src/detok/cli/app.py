"""The `detok` command: its subcommands, and what an error or a closed pipe becomes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..errors import DetokError, MissingExtra
from .output import one_line

__all__ = ["COMMANDS", "app"]

COMMANDS = {
    "stream": "Write the text of token ids as it becomes certain.",
    "decode": "Write the text of token ids, all at once.",
    "encode": "Write the token ids of a text, or of a chat.",
    "template": "Render a chat, and show which ids are special.",
    "trace": "Show token by token what comes out, and why not earlier.",
    "serve": "Serve OpenAI's API in front of an engine that speaks ids.",
    "check": "Compare a tokenizer with its own library: a certificate.",
    "drift": "Show where stored conversations lose their own ids.",
    "cost": "Measure what detokenizing costs against an engine's step.",
    "formats": "Show what can be loaded here, and which extra brings the rest.",
    "channels": "List the formats in which models write reasoning and tool calls, for --channels.",
    "worker": "Detokenize for other programs, in processes of their own.",
    "top": "Show live what workers and servers do.",
}
"""Each subcommand with its line of `detok --help`. Its module has the same name, and is imported when it is called."""


class Commands(TyperGroup):
    """The subcommands. What detok raises on purpose becomes one line on standard error and exit code 2."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _Imported()

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, in the order of the help."""
        return [*COMMANDS]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of subcommands for the help, without importing one."""
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])

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


# The panels of rich cut long option names off on a terminal of 80 columns.
_PLAIN: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}

app = typer.Typer(
    name="detok",
    cls=Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 all is well, 1 `check` found a difference, 2 wrong usage or input, 3 the engine of `serve` died.",
    **_PLAIN,
)


class _Imported(Mapping[str, Any]):
    """The subcommands by name; each is imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        """
        Import a subcommand.

        Raises:
            KeyError: There is none of that name.
            MissingExtra: It draws, and rich is not installed.
        """
        if name not in COMMANDS:
            raise KeyError(name)
        # Without PyTorch, transformers says on stderr that there are no models. No command needs one.
        os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
        try:
            module = import_module(f".{name}", __package__)
        except ImportError as error:
            if (error.name or "").partition(".")[0] != "rich":
                raise
            raise MissingExtra("rich", extra="cli", purpose=f"`detok {name}`") from None
        alone = typer.Typer(**_PLAIN)
        alone.command(name, epilog=module.EXAMPLES)(module.command)
        return typer.main.get_command(alone)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


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
