"""`detok cost`: what detokenizing costs here, and up to which batch it hides behind the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ..errors import MissingExtra
from ..frontend.cost import Costs, Setting, measure
from . import options as o
from .console import PipeConsole
from .output import visible, write_json

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """\b
Examples:
  detok cost                                     256 rows, a step of 20 ms
  detok cost llama3/ --batch 256 --step-ms 4.5   a fast engine
  detok cost llama3/ --plot cost.png             the same for all batches
  detok cost llama3/ --json                      for machines
"""


def command(
    tokenizer: o.TokenizerSource = None,
    batch: Annotated[int, typer.Option(min=1, max=1 << 16, help="Requests that run at once: rows a step.")] = 256,
    step_ms: Annotated[float, typer.Option(min=1e-3, max=1e6, help="Milliseconds that the engine takes for a step.")] = 20.0,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Draw the costs over batches (needs matplotlib).")
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """
    Measure what detokenizing costs against an engine's step.

    What a row costs is measured on this machine with this tokenizer. While the GPU does a step, the rows of the last one are
    detokenized and handed to their readers. B* is the largest batch for which that is done in time; beyond it the GPU waits. HTTP
    and JSON come on top, and are not in it.
    """
    made = o.open_tokenizer(tokenizer)
    if plot is not None:
        _pyplot()
    costs = measure(made, batch=batch)
    settings, step = costs.settings(), step_ms / 1e3
    if as_json:
        write_json(_record(costs, settings, batch, step))
    else:
        _show(costs, settings, batch, step, visible(made.source))
    if plot is not None:
        _draw(settings, batch, step, plot)


def _record(costs: Costs, settings: Sequence[Setting], batch: int, step: float) -> dict[str, object]:
    return {
        "batch": batch,
        "step_seconds": step,
        "decode_seconds_a_row": costs.decode,
        "message_seconds_a_row": costs.message,
        "settings": [
            {
                "name": setting.name,
                "seconds_a_row": setting.seconds_a_row,
                "seconds_a_step": setting.seconds_a_step(batch),
                "share_of_step": setting.seconds_a_step(batch) / step,
                "largest_batch": setting.largest_batch(step),
            }
            for setting in settings
        ],
    }


def _show(costs: Costs, settings: Sequence[Setting], batch: int, step: float, source: str) -> None:
    table = Table(title=f"{source}: {batch:,} rows a step of {step * 1e3:g} ms")
    for column in ("", "µs a row", "ms a step", "of the step", "B*"):
        table.add_column(column, justify="right" if column else "left")
    for setting in settings:
        taken = setting.seconds_a_step(batch)
        cells = (f"{setting.seconds_a_row * 1e6:.2f}", f"{taken * 1e3:.2f}", f"{taken / step:.0%}")
        table.add_row(setting.name, *cells, f"{setting.largest_batch(step):,}", style="" if taken <= step else "red")
    console = PipeConsole(highlight=False)
    console.print(table)
    share = costs.decode / costs.serve[1]
    console.print(
        f"Of the {costs.serve[1] * 1e6:.2f} µs a row, decoding is {costs.decode * 1e6:.2f} ({share:.0%}); the rest hands"
    )
    console.print("the output to its reader. B*: up to so many rows a step detokenizing hides behind the GPU.")
    console.print("Detokenizer processes are reckoned from these, with messages as the standard library packs them.")


def _draw(settings: Sequence[Setting], batch: int, step: float, path: Path) -> None:
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(9, 5), layout="constrained")
    batches = [2**power for power in range(13)]
    for setting in settings:
        axes.loglog(batches, [setting.seconds_a_step(rows) * 1e3 for rows in batches], label=setting.name, base=2)
    axes.axhline(step * 1e3, color="black", linestyle="--", label="the engine's step")
    axes.axvline(batch, color="grey", linestyle=":", label=f"batch {batch}")
    axes.set_xlabel("rows a step")
    axes.set_ylabel("ms a step")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("matplotlib", extra="bench", purpose="a plot") from None
    matplotlib.use("agg")
    from matplotlib import pyplot

    return pyplot
