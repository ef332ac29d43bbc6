"""A trace as a table that can be read in ten seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..core.request.output import RequestOutput
from ..inspection import TraceRow, summary
from .output import JOINERS, visible

__all__ = ["picture"]

# Longer pieces are cut, so that one odd token does not squeeze the whole table.
MAX_TEXT = 14
MAX_BYTES = 5
# On a terminal that is narrower than this the bytes and the longer words are left out, so that no row wraps.
WIDE = 100


def picture(rows: Sequence[TraceRow], name: str, strategy: str | None = None, *, width: int) -> RenderableType:
    """
    Return the table of a trace, with the whole texts below it.

    Args:
        rows: As `trace` returns them.
        name: The tokenizer's.
        strategy: What is compared in them; by default it is a naive decode.
        width: Of what it is shown on, in columns.
    """
    narrow = width < WIDE
    other = "decode([id])" if strategy is None else strategy
    what = "is each id alone" if strategy is None else "is another way to stream"
    title = Text.assemble(
        (f"{len(rows) - 1} tokens of {visible(name)}, one at a time\n", "bold"),
        (f"detok is what a stream gives out, {other} {what}. ✗ is broken.", "dim"),
    )
    table = Table(
        box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="", padding=(0, 1, 0, 0), header_style="bold"
    )
    table.add_column("id", style="cyan", no_wrap=True)
    table.add_column("piece", no_wrap=True)
    if not narrow:
        table.add_column("bytes", style="dim", no_wrap=True)
    table.add_column("held back", style="yellow", no_wrap=narrow)
    table.add_column("detok", style="green", no_wrap=True)
    table.add_column(Text(other), no_wrap=narrow)
    for row in rows:
        number, piece, data, *rest = _cells(row, narrow=narrow)
        table.add_row(number, piece, *([] if narrow else [data]), *rest)
    return Group(table, _texts(rows) if strategy is None else _compared_texts(rows, strategy))


def _cells(row: TraceRow, *, narrow: bool) -> list[Text]:
    if row.token_id is None:
        return [Text("finish", style="dim"), Text(""), Text(""), Text(""), _text(row.text), _other(row, narrow=narrow)]
    return [
        Text(str(row.token_id)),
        Text("no such id", style="dim") if row.piece is None else Text(_short(visible(row.piece)), style=_kind(row)),
        Text(_hex(row.bytes)),
        _held(row, narrow=narrow),
        _text(row.text),
        _other(row, narrow=narrow),
    ]


def _other(row: TraceRow, *, narrow: bool) -> Text:
    """What is compared with the stream."""
    fault = row.fault if row.compared is None else row.deviation
    text = _text(row.naive if row.compared is None else row.compared)
    if fault == "late":
        return text.append("… late", style="dim")
    return text.append("  ").append("✗" if narrow else f"✗ {fault}", style="bold red") if fault else text


def _kind(row: TraceRow) -> str:
    return "magenta" if row.special or row.added else ""


def _held(row: TraceRow, *, narrow: bool) -> Text:
    if row.end is not None:
        return Text(_short(_reason(row.end)), style="bold")
    if not row.held_because:
        return Text("")
    held = _hex(row.held) if isinstance(row.held, bytes) else _short(visible(row.held, space="␣"))
    return Text.assemble(f"{held}, ", (_briefly(row.held_because) if narrow else row.held_because, "dim"))


def _briefly(why: str) -> str:
    return "stop?" if why.endswith("a stop") else why.partition(" ")[0]


def _reason(end: RequestOutput) -> str:
    """What ended a request, as short as it can be said."""
    return f"{end.finish_reason}" if end.stop_reason is None else f"{end.finish_reason} {end.stop_reason!r}"


def _text(text: str) -> Text:
    shown = Text(_short(visible(text, space="␣")))
    shown.highlight_regex("\ufffd", "bold red")
    return shown


def _texts(rows: Sequence[TraceRow]) -> Text:
    """The right text over the naive one, and what went wrong."""
    whole = summary(rows)
    right, naive = (Text(visible(text, keep=JOINERS)) for text in (whole.right, whole.naive))
    naive.highlight_regex("\ufffd", "bold red")
    faults = Counter(row.fault for row in rows if row.fault)
    if not faults:
        verdict = Text("✓ no faults: decoding these ids one at a time happens to be right", style="green")
    else:
        kinds = ", ".join(f"{count} × {fault}" for fault, count in faults.most_common())
        verdict = Text(f"✗ {whole.faults} of {len(rows) - 1} tokens wrong: {kinds}", style="bold red")
    shown = [Text.assemble(("right  ", "bold green"), right), Text.assemble(("naive  ", "bold red"), naive), verdict]
    return Text("\n").join(shown if whole.end is None else [*shown, _end(whole.end)])


def _end(end: RequestOutput) -> Text:
    """Where the text ends, and in which token."""
    if end.stop_reason is None and end.finish_reason == "stop":
        return Text("no stop came", style="dim")
    where = f"token {end.tokens_kept} completes it, the text has {end.text_end} characters"
    return Text.assemble((f"■ {_reason(end)}", "bold"), f": {where}")


def _compared_texts(rows: Sequence[TraceRow], strategy: str) -> Text:
    """The right text over that of a strategy, and whether they are the same."""
    whole = summary(rows)
    right, other = (Text(visible(text, keep=JOINERS)) for text in (whole.right, whole.compared or ""))
    late = f"late after {whole.late} of {len(rows) - 1} tokens"
    if whole.right == whole.compared:
        verdict = Text(f"✓ the same text, {late}", style="green")
    else:
        verdict = Text(f"✗ not the same text; {late}", style="bold red")
    width = max(len(strategy), len("right"))
    return Text("\n").join(
        [
            Text.assemble((f"{'right':<{width}}  ", "bold green"), right),
            Text.assemble((f"{strategy:<{width}}  ", "bold"), other),
            verdict,
        ]
    )


def _hex(data: bytes) -> str:
    return data.hex(" ") if len(data) <= MAX_BYTES else f"{data[: MAX_BYTES - 1].hex(' ')} …"


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
