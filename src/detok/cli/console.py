"""The console of the commands that draw."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console

__all__ = ["PipeConsole"]


class PipeConsole(Console):
    """A console that leaves a closed pipe to the program, instead of ending it with a code that means something else here."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise on."""
        raise BrokenPipeError
