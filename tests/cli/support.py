"""Commands run in this process, and as processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from typer.testing import CliRunner, Result

import detok
from detok.cli.app import app

__all__ = ["EMBEDDED", "detok_process", "ids_text", "run"]

EMBEDDED = detok.load(detok.EMBEDDED)


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    """Run a command in this process; what it raises and does not mean to raise is raised here."""
    result = CliRunner().invoke(app, list(arguments), input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def detok_process(*arguments: str) -> subprocess.Popen[bytes]:
    """Start the command with pipes at all ends."""
    command: Sequence[str] = [sys.executable, "-m", "detok", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ids_text(text: str) -> str:
    """The ids of a text by the embedded tokenizer, as the command line takes them."""
    return " ".join(map(str, EMBEDDED.encode(text)))
