"""
Check that mypyc accepts the modules of core, so that they can be compiled: it writes C for them, which nobody compiles here.

    python -m scripts.check_mypyc [--list]

All modules of `detok.core` are checked but for those in `INTERPRETED`, each with its reason. mypyc works on a copy in a scratch
directory, so nothing is left in the tree. Exit code 1 says that mypyc refused something; its message names file and line.

That mypyc accepts a module does not say that it does the same when compiled: a test of compiled code is another matter.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

__all__ = ["INTERPRETED", "check", "hot_modules", "main"]

SOURCE = Path(__file__).resolve().parents[1] / "src"

INTERPRETED: dict[str, str] = {}
"""Modules of core that stay interpreted, each with the reason: ``"detok.core.snapshot": "its classes are found by name"``."""

# The public entrance, as a setup.py calls it. It prints what it refuses, and exits with 1.
WRITE_C = 'import sys; from mypyc.build import mypycify; mypycify(["--ignore-missing-imports", *sys.argv[1:]], target_dir="c")'


def hot_modules(source: Path = SOURCE, interpreted: Collection[str] = INTERPRETED) -> list[str]:
    """
    Return the names of all modules of core that are to be compiled, sorted.

    Raises:
        ValueError: One that is declared interpreted is not there.
    """
    paths = sorted((source / "detok" / "core").rglob("*.py"))
    names = [".".join(path.relative_to(source).with_suffix("").parts) for path in paths if path.name != "__init__.py"]
    if gone := sorted({*interpreted} - {*names}):
        raise ValueError(f"INTERPRETED has {', '.join(gone)}, and core has no module of that name; take it out of the list")
    return [name for name in names if name not in interpreted]


def check(names: Sequence[str], source: Path = SOURCE) -> str:
    """
    Let mypyc write C for some modules.

    Args:
        names: Of modules in the package `detok`.
        source: The folder with that package.

    Returns:
        What mypyc refused, a line each; "" if it took them all.
    """
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(source / "detok", Path(scratch, "detok"), ignore=shutil.ignore_patterns("__pycache__"))
        paths = [f"{name.replace('.', '/')}.py" for name in names]
        command = [sys.executable, "-c", WRITE_C, *paths]
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
        if done.returncode == 0 and not any(Path(scratch, "c").rglob("*.c")):
            return f"mypyc wrote no C, and did not say why: {done.stdout}{done.stderr}"
    if done.returncode == 0:
        return ""
    # It also warns of what it compiles to slower code, which is no refusal.
    lines = [line for line in (done.stdout + done.stderr).splitlines() if ": warning:" not in line]
    return "\n".join(lines) or f"mypyc ended with {done.returncode}"


def main(argv: Sequence[str] | None = None) -> int:
    """Check, and say what was refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="only list the modules that are checked")
    options = parser.parse_args(argv)
    names = hot_modules()
    if options.list:
        print("\n".join(names))
        return 0
    refused = check(names)
    if refused:
        advice = "mypyc refuses core; mend these lines, or declare the module in INTERPRETED with the reason:"
        print(f"{advice}\n{refused}", file=sys.stderr)
        return 1
    print(f"mypyc accepts {len(names)} modules of core; {len(INTERPRETED)} stay interpreted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
