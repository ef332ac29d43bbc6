"""What every benchmark needs: rounds that alternate, medians and their spread, the machine, and one report of it all."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

__all__ = ["Measure", "Prepare", "Row", "Section", "Spread", "again", "alternate", "apart", "main", "seconds"]

Prepare = Callable[[], Callable[[], object]]
"""Makes, outside the clock and anew for each round, what is then timed."""

Measure = Callable[[int], Iterable["Section"]]
"""Takes the number of rounds."""

Result = TypeVar("Result")

PACKAGES = ("detok", "tokenizers", "fastokens", "iree-tokenizer", "splintr-rs")
UNITS = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (0, "ns"))


@dataclass(frozen=True, slots=True)
class Spread:
    """Some numbers, one from each round."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, numbers: Iterable[float]) -> Spread:
        numbers = list(numbers)
        return cls(median(numbers), min(numbers), max(numbers))

    def record(self) -> dict[str, float]:
        return {"median": self.median, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True)
class Row:
    """One line: for people, and for programs."""

    cells: Sequence[str]
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Section:
    """One table, what has to be said about it, and how it is drawn."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    draw: Callable[[Any], None] | None = field(default=None, compare=False)
    """Draws it on a pair of matplotlib axes."""


def alternate(contestants: Mapping[str, Prepare], rounds: int) -> dict[str, list[float]]:
    """
    Return the seconds that each contestant took in each round.

    In a round each has one turn, so that a busy moment of the machine hits neighbours and not always the same one. The garbage
    collector waits for the end of the round.
    """
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        gc.collect()
        gc.disable()
        try:
            for name, prepare in contestants.items():
                taken[name].append(_turn(prepare))
        finally:
            gc.enable()
    return taken


def _turn(prepare: Prepare) -> float:
    """
    Return the seconds of one turn; what it made is thrown away off the clock.

    While other processes have the processor the clock stands still: they interrupt long turns more often than short ones, which
    on a busy machine made a ratio of 15 one of 27.
    """
    run = prepare()
    own, start = time.process_time(), time.perf_counter()
    made = run()
    taken, own = time.perf_counter() - start, time.process_time() - own
    del made, run
    return min(taken, own)


def again(run: Callable[..., object], *arguments: object) -> Prepare:
    """Return a contestant that needs nothing new for a round."""
    return lambda: partial(run, *arguments)


def apart(function: Callable[..., Result], *arguments: object) -> Result:
    """
    Return what `function` gives in a process of its own.

    Whoever allocates pays for the heap that others left: with gpt-oss, behind splintr-rs, `extend` took 400 ns an id instead of
    60, and iree-tokenizer 440 ns a token instead of 200.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def seconds(value: float) -> str:
    """
    Write a time with three digits that count.

    >>> seconds(2.81e-8), seconds(0.0004567)
    ('28.1 ns', '457 µs')
    """
    unit, name = next(each for each in UNITS if value >= each[0])
    number = value / (unit or 1e-9)
    return f"{number:.{max(0, 2 - len(str(int(number))) + 1)}f} {name}"


def main(measures: Sequence[Measure], description: str | None, argv: Sequence[str] | None = None) -> int:
    """Measure, print each table as it is there, and write what was asked for."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="rounds of which the medians are shown (default: 15)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw it there (needs matplotlib)")
    options = parser.parse_args(argv)
    about = _about(options.rounds)
    print("\n".join(f"{key.replace('_', ' ')}: {value}" for key, value in about.items()), end="\n\n")
    sections: list[Section] = []
    for measure in measures:
        for section in measure(options.rounds):
            _show(section)
            sections.append(section)
    about["load_after"] = _load()
    if max(about["load_before"], about["load_after"]) > (os.cpu_count() or 1):
        print("The machine was busy with other work; its caches were colder than they could be.")
    if options.json:
        content = {**about, "sections": [_record(section) for section in sections]}
        options.json.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        _plot(sections, options.plot)
    return 0


def _about(rounds: int) -> dict[str, Any]:
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": ", ".join(f"{name} {_version(name)}" for name in PACKAGES),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": rounds,
        "load_before": _load(),
    }


def _load() -> float:
    """How many processes wanted to run in the last minute; 0 where the system does not say."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or "unknown processor"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def _record(section: Section) -> dict[str, Any]:
    return {"title": section.title, "rows": [dict(row.record) for row in section.rows], "notes": list(section.notes)}


def _show(section: Section) -> None:
    """A table by rich if it is there, else in plain columns."""
    rows = [row.cells for row in section.rows]
    print(section.title)
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(map(len, column)) for column in zip(section.columns, *rows, strict=True)]
        for cells in (section.columns, *rows):
            print("  ".join([cells[0].ljust(widths[0]), *map(str.rjust, cells[1:], widths[1:])]).rstrip())
    else:
        table = Table()
        for place, column in enumerate(section.columns):
            table.add_column(column, justify="right" if place else "left")
        for cells in rows:
            table.add_row(*cells)
        # Into a file the table goes as wide as it is; rich would squeeze it into 80 columns.
        Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 1000).print(table)
    print(*(f"  {note}" for note in section.notes), sep="\n", end="\n\n", flush=True)


def _plot(sections: Sequence[Section], path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    drawn = [(section, section.draw) for section in sections if section.draw is not None]
    if not drawn:
        print("nothing here is drawn")
        return
    figure, axes = pyplot.subplots(len(drawn), figsize=(10, 5 * len(drawn)), squeeze=False, layout="constrained")
    for (section, draw), (one,) in zip(drawn, axes, strict=True):
        one.set_title(section.title)
        draw(one)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
