"""
List the modules that have no test file of their name.

    python -m scripts.check_tests_mirror [--core]

``src/detok/core/request/stops.py`` is tested by ``tests/core/request/test_stops.py``. Outside core, a module's docstring may name
the file that covers it instead: ``Tested in tests/server/test_endpoints.py.``; that file has to be there. With ``--core`` only
core is looked at. An ``__init__.py`` without a function or a class of its own needs no test. Exit code 1 says what is missing.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["main", "missing"]

ROOT = Path(__file__).resolve().parents[1]

NAMED = re.compile(r"\btests/[\w/]+/test_\w+\.py")


def missing(root: Path = ROOT, *, core: bool = False) -> list[str]:
    """
    Return what is wrong, a line for each module.

    Args:
        root: The folder with ``src`` and ``tests``.
        core: Only modules of core, whose tests have their name.
    """
    package = root / "src" / "detok"
    return [problem for path in _modules(package / "core" if core else package) if (problem := _problem(path, root, package))]


def _modules(folder: Path) -> Iterator[Path]:
    """All modules that have something to test."""
    for path in sorted(folder.rglob("*.py")):
        if path.name != "__init__.py" or _defines(path):
            yield path


def _defines(path: Path) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in tree.body)


def _problem(path: Path, root: Path, package: Path) -> str:
    """What is wrong with a module; "" if its test is there."""
    place = path.relative_to(package)
    # A package is tested beside its folder: prompts/__init__.py by tests/prompts/test_prompts.py.
    name = place.parent.name or "detok" if place.name == "__init__.py" else place.stem.strip("_")
    mirror = Path("tests", *place.parent.parts, f"test_{name}.py")
    if (root / mirror).is_file():
        return ""
    module = path.relative_to(root)
    if place.parts[0] != "core":
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        named = NAMED.findall(docstring)
        if gone := [one for one in named if not (root / one).is_file()]:
            return f"{module}: its docstring names {gone[0]}, which is not there"
        if named:
            return ""
    return f"{module}: there is no {mirror}"


def main(argv: Sequence[str] | None = None) -> int:
    """Print what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", action="store_true", help="only core, by name alone")
    options = parser.parse_args(argv)
    found = missing(core=options.core)
    print("\n".join(found) if found else "every module has its test")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
