"""`detok formats`: what this installation can load, and what would bring the rest."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rich import box
from rich.table import Table

from ..tokenizers.formats import FORMATS, Format
from . import options as o
from .console import PipeConsole
from .output import write_json

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
    # The command stands once below: beside each row a narrow terminal would cut it off.
    caption = "The judge of `detok check` may be needed to encode, too. An extra is installed with: pip install 'detok\\[EXTRA]'"
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", caption=caption, caption_justify="left")
    for column in ("format", "judge", "loads", "extra"):
        table.add_column(column)
    for row in rows:
        judge = f"{row['library']} {row['version']}" if row["version"] else f"[yellow]{row['library']} is missing[/]"
        table.add_row(row["format"], judge, "[green]✓[/]" if row["loads"] else "[yellow]✗[/]", row["extra"])
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
        "version": installed,
        "loads": row.reads_itself or installed is not None,
        "since": row.since,
        "from": [kind for kind, there in (("file", row.file), ("object", row.objects)) if there],
    }
