"""`detok top`: what workers and servers do, live in the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.live import Live
from rich.table import Table

from ..errors import DetokError
from .console import PipeConsole
from .output import one_line, write, write_json

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """\b
Examples:
  detok top                                  the worker at ipc:///tmp/detok
  detok top ipc:///tmp/a.0 ipc:///tmp/a.1    two workers
  detok top http://127.0.0.1:8000/metrics    a server
  detok top --prometheus                     metrics as text, for a scraper
"""

Samples = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a process said, and when; or why it said nothing."""

    at: float
    samples: Samples
    problem: str = ""

    def get(self, name: str) -> float | None:
        """A sample, whatever prefix says what kind of process it is of."""
        return next(
            (self.samples[full] for full in (f"detok_worker_{name}", f"detok_{name}", name) if full in self.samples), None
        )


def _now(name: str, form: str = ",.0f", scale: float = 1.0) -> Callable[[Reading, Reading], str]:
    def show(before: Reading, after: Reading) -> str:
        value = after.get(name)
        return "–" if value is None else format(value * scale, form)

    return show


def _rate(name: str, form: str = ",.0f", scale: float = 1.0) -> Callable[[Reading, Reading], str]:
    def show(before: Reading, after: Reading) -> str:
        first, last = before.get(name), after.get(name)
        if first is None or last is None or after.at <= before.at:
            return "–"
        # A process that was started again counts from zero.
        return format(max(0.0, last - first) / (after.at - before.at) * scale, form)

    return show


def _mean(name: str, form: str, scale: float) -> Callable[[Reading, Reading], str]:
    def show(before: Reading, after: Reading) -> str:
        parts = [reading.get(f"{name}_{part}") for part in ("sum", "count") for reading in (before, after)]
        if None in parts:
            return "–"
        seconds, count = (parts[1] or 0) - (parts[0] or 0), (parts[3] or 0) - (parts[2] or 0)
        return format(seconds / count * scale, form) if count > 0 else "–"

    return show


COLUMNS: Mapping[str, Callable[[Reading, Reading], str]] = {
    "open": _now("open_requests"),
    "rows/s": _rate("rows_total"),
    "tokens/s": _rate("tokens_total"),
    "µs/row": _mean("row_seconds", ".2f", 1e6),
    "ms/step": _mean("step_seconds", ".2f", 1e3),
    "CPU": _rate("process_cpu_seconds_total", ".0f", 100),
    "MB": _now("process_resident_memory_bytes", ",.0f", 1e-6),
    "holding": _now("holding_requests"),
    "held": _now("held_tokens"),
    "queue": _now("waiting_rows"),
    "waiting": _now("waiting_outputs"),
    "coalesced": _now("coalesced_outputs_total"),
    "aborts": _now("aborts_total"),
    "evicted": _now("evicted_total"),
    "replayed": _now("replayed_rows_total"),
    "errors": _now("errors_total"),
    "restarts": _now("restarts"),
}


def command(
    endpoints: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ENDPOINT...",
            help="Of workers (ipc:// or tcp://), or the URL of a page of metrics.",
            show_default="ipc:///tmp/detok",
        ),
    ] = None,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
    timeout: Annotated[float, typer.Option(min=0.1, help="So many seconds to wait for an answer.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Look twice, show it, and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write a line of JSON a look, with every sample.")] = False,
    prometheus: Annotated[bool, typer.Option("--prometheus", help="Write the metrics once, as Prometheus reads them.")] = False,
) -> None:
    """
    Show live what workers and servers do.

    Rows and tokens a second, the time of a row, what is held, handed back and fed again, and what went wrong.
    Needs detok[worker].
    """
    places = endpoints or ["ipc:///tmp/detok"]
    if prometheus:
        from ..frontend.worker.scrape import scrape

        for place in places:
            write(scrape(place, timeout))
        return
    if as_json:
        while True:
            write_json({place: _look(place, timeout).samples for place in places})
            if once:
                return
            time.sleep(interval)
    # Into a file the table goes as wide as it is; rich would squeeze it into 80 columns.
    console = PipeConsole(width=None if sys.stdout.isatty() else 1000)
    before = [_look(place, timeout) for place in places]
    time.sleep(interval)
    if once:
        console.print(_table(places, before, [_look(place, timeout) for place in places]))
        return
    try:
        with Live(console=console, auto_refresh=False) as live:
            while True:
                after = [_look(place, timeout) for place in places]
                live.update(_table(places, before, after), refresh=True)
                before = after
                time.sleep(interval)
    except KeyboardInterrupt:
        return


def _look(place: str, timeout: float) -> Reading:
    from ..frontend.worker.scrape import samples, scrape

    try:
        text = scrape(place, timeout)
    except DetokError as error:
        return Reading(time.monotonic(), {}, one_line(str(error)))
    return Reading(time.monotonic(), samples(text))


def _table(places: Sequence[str], before: Sequence[Reading], after: Sequence[Reading]) -> Table:
    """A row for each process; columns that none of them has are left out."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    cells = {name: [show(*pair) for pair in zip(before, after, strict=True)] for name, show in COLUMNS.items()}
    shown = [name for name, values in cells.items() if set(values) != {"–"}]
    for name in shown:
        table.add_column(name, justify="right")
    for index, place in enumerate(places):
        table.add_row(place, *(cells[name][index] for name in shown))
        if after[index].problem:
            table.add_row(after[index].problem)
    return table
