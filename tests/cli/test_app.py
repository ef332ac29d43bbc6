"""The command as a whole: version, help, and what is missing."""

from __future__ import annotations

import inspect
import os
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import detok.cli
from detok.cli.app import COMMANDS
from detok.cli.output import one_line, visible
from tests.cli.support import ids_text, run

WITH_EXAMPLES = [name for name in COMMANDS if name not in ("template", "serve", "formats")]


def test_version_is_that_of_the_package() -> None:
    """One line."""
    assert run("--version").stdout == f"detok {detok.__version__}\n"


def test_help_lists_the_commands() -> None:
    """Each with a line that is not cut off."""
    shown = run("--help").stdout
    assert all(f"  {name}  " in shown for name in COMMANDS)
    assert "..." not in shown.partition("Commands:")[2]


def test_commands_are_the_modules_that_have_one() -> None:
    """Each module with a `command` is in the table, beside the first line of what its own help says."""
    modules = [import_module(f"detok.cli.{name}") for _, name, _ in pkgutil.iter_modules(detok.cli.__path__)]
    docs = {module.__name__.rpartition(".")[2]: module.command.__doc__ for module in modules if hasattr(module, "command")}
    assert {name: inspect.cleandoc(doc).partition("\n\n")[0] for name, doc in docs.items()} == COMMANDS


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_help_of_a_command_has_examples(name: str) -> None:
    """A line an example, of which none is broken on a terminal of 80 columns."""
    shown = run(name, "--help").stdout
    examples = shown.partition("Examples:\n")[2].strip().splitlines()
    assert len(examples) >= 3
    assert all(f"detok {name}" in line for line in examples)
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(("library", "argument"), [("typer", "--version"), ("rich", "formats")])
def test_missing_library_is_named_with_its_extra(library: str, argument: str, tmp_path: Path) -> None:
    """Without a library of the command line, what needs it says what to install; no traceback."""
    (tmp_path / f"{library}.py").write_text(f"raise ModuleNotFoundError('no {library}', name='{library}')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "detok", argument]
    done = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'detok[cli]'" in done.stderr
    assert library in done.stderr
    assert done.stderr.count("\n") == 1


def test_commands_that_draw_nothing_need_no_rich(tmp_path: Path) -> None:
    """Ids to text and back are plain."""
    (tmp_path / "rich.py").write_text("raise ModuleNotFoundError('no rich', name='rich')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "detok", "decode", "--ids", ids_text("Hi 🦜")]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hi 🦜".encode(), b"")


def test_error_inside_is_no_missing_library(tmp_path: Path) -> None:
    """Any other import that fails is a bug, and looks like one."""
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('no x', name='x')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "detok", "--version"]
    done = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
    assert "Traceback" in done.stderr


def test_visible_text_cannot_harm_a_terminal() -> None:
    """Controls and marks of direction are escaped, letters of all scripts are not, and a lone mark has something to stand on."""
    assert visible("a é 한 🦜") == "a é 한 🦜"
    assert visible("\x1b[1m\x9b\u202e\u200d") == "\\x1b[1m\\x9b\\u202e\\u200d"
    assert visible("a\u200d ", space="␣", keep="\u200d") == "a\u200d␣"
    assert visible("\u0301") == "◌\u0301"
    assert visible("") == ""
    assert one_line("a\n b\x00") == "a b\\x00"
