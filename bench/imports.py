"""
What it costs to start: `import detok` and `detok --help`, in processes of their own, against `python -c pass`.

With ``--against SRC`` the same is measured with another checkout's ``src``, alternating, and the ratio to it is shown.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import detok

from .harness import Row, Section, Spread, main, seconds

__all__ = ["COMMANDS", "imports", "measure"]

COMMANDS: Mapping[str, Sequence[str]] = {
    "python -c pass": ["-c", "pass"],
    "import detok": ["-c", "import detok"],
    "detok --help": ["-m", "detok", "--help"],
    "detok.load(EMBEDDED), a stream": ["-c", "import detok; detok.load(detok.EMBEDDED).stream()"],
}
"""What is started. The last one shows that what is not imported at once is not paid for twice later."""

HERE = Path(detok.__file__).parents[1]


def measure(rounds: int, against: Path | None = None) -> Iterator[Section]:
    """Yield the sections: with byte code, as Python writes it after the first start, and without, as in many containers."""
    yield imports(rounds, against, byte_code=True)
    yield imports(rounds, against, byte_code=False)


def imports(rounds: int, against: Path | None, *, byte_code: bool) -> Section:
    """CPU time of a process, user and system together."""
    sources = [HERE] if against is None else [HERE, against.resolve()]
    with tempfile.TemporaryDirectory() as folder:
        environments = [
            _environment(source, Path(folder, str(place)) if byte_code else None) for place, source in enumerate(sources)
        ]
        taken: dict[tuple[int, str], list[float]] = {(place, name): [] for place in range(len(sources)) for name in COMMANDS}
        # The first round fills the caches of files and of byte code.
        for count in range(rounds + 1):
            for name, arguments in COMMANDS.items():
                for place, environment in enumerate(environments):
                    cpu = _cpu_seconds(arguments, environment)
                    if count:
                        taken[place, name].append(cpu)
    bare = Spread.of(taken[0, "python -c pass"])
    rows = []
    for name in COMMANDS:
        times = [Spread.of(taken[place, name]) for place in range(len(sources))]
        cells = [name, seconds(times[0].median), f"{times[0].median / bare.median:.1f}x"]
        record = {
            "command": name,
            "byte_code": byte_code,
            "seconds": times[0].record(),
            "to_bare_python": times[0].median / bare.median,
        }
        if against is not None:
            ratio = Spread.of(ours / theirs for ours, theirs in zip(taken[0, name], taken[1, name], strict=True))
            cells += [seconds(times[1].median), f"{ratio.median:.2f}x"]
            record |= {"against_seconds": times[1].record(), "ratio": ratio.record()}
        rows.append(Row(cells, record))
    columns = ("", "CPU time", "to python -c pass", *(() if against is None else ("the other's", "ratio")))
    notes = [f"Medians of {rounds} processes each, user and system time together, one after another in turn."]
    return Section(f"Starting, {'with' if byte_code else 'without'} byte code on disk", columns, rows, notes)


def _environment(source: Path, byte_code: Path | None) -> dict[str, str]:
    environment = {**os.environ, "PYTHONPATH": str(source)}
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
        environment.pop(name, None)
    return environment | ({"PYTHONDONTWRITEBYTECODE": "1"} if byte_code is None else {"PYTHONPYCACHEPREFIX": str(byte_code)})


def _cpu_seconds(arguments: Sequence[str], environment: Mapping[str, str]) -> float:
    """The CPU time of a process of its own; raise `RuntimeError` if it fails."""
    nowhere = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(sys.executable, [sys.executable, *arguments], environment, file_actions=nowhere)
    _, status, usage = os.wait4(process, 0)
    if status:
        raise RuntimeError(f"{arguments} ended with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--against", type=Path, metavar="SRC", help="the `src` of another checkout")
    options, others = parser.parse_known_args()
    sys.exit(main([partial(measure, against=options.against)], __doc__, others))
