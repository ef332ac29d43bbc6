"""`detok formats`: what this installation can load, and what would bring the rest."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rich import box
from rich.table import Table

from ..tokenizers.formats import FORMATS, Format
from . import options as o
from .output import PipeConsole, write_json

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """\b
Examples:
  detok formats                                        a table
  detok formats --json                                 for machines
"""


def command(as_json: o.AsJson = False) -> None:
    """
    Show what can be loaded here, and which extra brings the rest.
    """
    rows = [_facts(row) for row in FORMATS]
    if as_json:
        write_json(rows)
        return
    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    for column in ("format", "judged by", "here"):
        table.add_column(column)
    for row in rows:
        here = f"[green]✓[/] {row['version']}" if row["installed"] else f"[yellow]✗[/] pip install 'detok\\[{row['extra']}]'"
        table.add_row(row["format"], row["library"], here)
    PipeConsole().print(table)


def _facts(row: Format) -> dict[str, Any]:
    try:
        installed = version(row.library)
    except PackageNotFoundError:
        installed = None
    return {
        "format": row.name,
        "library": row.library,
        "extra": row.extra,
        "installed": installed is not None,
        "version": installed,
        "from": [kind for kind, there in (("file", row.file), ("object", row.objects)) if there],
    }
