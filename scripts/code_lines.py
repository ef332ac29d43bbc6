"""
Count what the code is made of, by layer: code lines, comment lines, functions, and how many times the word ``Any`` stands there.

    python -m scripts.code_lines [FOLDER ...] [--json]

A code line has code on it: blank lines, comments and docstrings (all strings that are a statement of their own) do not count.
A comment line is nothing but a comment; comments after code are not counted. ``Any`` counts where it is a name in the code,
its import included. Without a folder it is ``src/detok``, and a layer is a folder or module in it.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

__all__ = ["Count", "by_layer", "count", "main"]

ROOT = Path(__file__).resolve().parents[1]
DEFAULT = ROOT / "src" / "detok"

LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
"""Tokens that are no code."""


@dataclass(frozen=True, slots=True)
class Count:
    """What one file, or several, have."""

    files: int = 0
    code: int = 0
    comments: int = 0
    functions: int = 0
    any: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


def count(source: str) -> Count:
    """
    Count one file.

    Raises:
        SyntaxError: It is not Python.

    >>> count('import typing  # for Any\\n\\n# why\\ndef f(x: typing.Any):\\n    "What."\\n    return x\\n')
    Count(files=1, code=3, comments=1, functions=1, any=1)
    """
    tree = ast.parse(source)
    tokens = [*tokenize.generate_tokens(io.StringIO(source).readline)]
    code: set[int] = set()
    for token in tokens:
        if token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    code -= _docstring_lines(tree)
    return Count(
        files=1,
        code=len(code),
        comments=sum(token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip() for token in tokens),
        functions=sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(tree)),
        any=sum(token.type == tokenize.NAME and token.string == "Any" for token in tokens),
    )


def _docstring_lines(tree: ast.Module) -> set[int]:
    """The lines of all strings that are statements: docstrings, and those that stand under an attribute."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def by_layer(folder: Path) -> dict[str, Count]:
    """Count each folder and each module that stands in a folder, with all that is below; sorted, the largest first."""
    counts: dict[str, Count] = {}
    for path in _python_files(folder):
        first, *below = path.relative_to(folder).parts
        layer = f"{first}/" if below else first
        counts[layer] = counts.get(layer, Count()) + count(path.read_text(encoding="utf-8"))
    return dict(sorted(counts.items(), key=lambda item: -item[1].code))


def _python_files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table for each folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="what to count (default: src/detok)")
    parser.add_argument("--json", action="store_true", help="write JSON, and nothing else")
    options = parser.parse_args(argv)
    folders = options.folders or [DEFAULT]
    if missing := [str(folder) for folder in folders if not folder.is_dir()]:
        parser.error(f"there is no folder {', '.join(missing)}")
    found = {str(folder): by_layer(folder) for folder in folders}
    if options.json:
        print(json.dumps({name: {layer: asdict(one) for layer, one in counts.items()} for name, counts in found.items()}))
    else:
        for name, counts in found.items():
            print("\n".join(_table(name, counts)))
    return 0


def _table(name: str, counts: Mapping[str, Count]) -> Iterable[str]:
    total = sum(counts.values(), Count())
    columns = ("files", "code", "comments", "functions", "Any", "functions per 100 lines", "comments per line")
    yield "  ".join([f"{name:28}", *columns])
    for layer, one in [*counts.items(), ("total", total)]:
        numbers = [one.files, one.code, one.comments, one.functions, one.any]
        lines = one.code or 1
        ratios = [f"{100 * one.functions / lines:.1f}", f"{one.comments / lines:.2f}"]
        cells = [f"{number:,}" for number in numbers] + ratios
        yield "  ".join([f"{layer:28}", *(cell.rjust(len(column)) for cell, column in zip(cells, columns, strict=True))])


if __name__ == "__main__":
    sys.exit(main())
