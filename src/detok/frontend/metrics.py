"""
Counts and times, and how Prometheus reads them.

These few classes instead of the library ``prometheus_client``: its counters take a lock and a registry that is global to the
process for each count, on a path where everything is on one thread already; and what is left to write, the text form, is a page.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["CONTENT_TYPE", "Counter", "FrontendMetrics", "Gauge", "Histogram", "Registry"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""What the text form is called in HTTP."""

# A row takes about a microsecond, a step of some hundred rows about a millisecond, a request some milliseconds in all.
ROW_SECONDS = (2e-7, 5e-7, 1e-6, 2e-6, 5e-6, 1e-5, 1e-4, 1e-3)
STEP_SECONDS = (1e-5, 1e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 0.1, 1.0)
REQUEST_SECONDS = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Counter:
    """A number that only grows."""

    name: str
    help: str
    labels: Labels = ()
    value: float = 0
    kind = "counter"

    def add(self, count: float = 1) -> None:
        """Count."""
        self.value += count

    def samples(self) -> Iterator[str]:
        """Its lines."""
        yield _sample(self.name, self.labels, self.value)


@dataclass(slots=True)
class Gauge:
    """A number that is asked for when it is read."""

    name: str
    help: str
    read: Callable[[], float]
    labels: Labels = ()
    kind = "gauge"

    def samples(self) -> Iterator[str]:
        """Its lines."""
        yield _sample(self.name, self.labels, self.read())


@dataclass(slots=True)
class Histogram:
    """How often numbers were how large."""

    name: str
    help: str
    bounds: Sequence[float]
    labels: Labels = ()
    count: int = 0
    sum: float = 0.0
    counts: list[int] = field(default_factory=list)
    kind = "histogram"

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float, times: int = 1) -> None:
        """Take a number, as often as it came."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.count += times
        self.sum += value * times

    def samples(self) -> Iterator[str]:
        """Its lines."""
        below = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            below += count
            yield _sample(f"{self.name}_bucket", (*self.labels, ("le", _number(bound))), below)
        yield _sample(f"{self.name}_sum", self.labels, self.sum)
        yield _sample(f"{self.name}_count", self.labels, self.count)


class Registry:
    """
    The metrics of one process or one part of it.

    >>> registry = Registry()
    >>> registry.counter("detok_restarts_total", "Workers started again.", worker="0").add(2)
    >>> print(registry.text(), end="")
    # HELP detok_restarts_total Workers started again.
    # TYPE detok_restarts_total counter
    detok_restarts_total{worker="0"} 2
    """

    def __init__(self) -> None:
        self._families: dict[str, list[Counter | Gauge | Histogram]] = {}

    def counter(self, name: str, help: str, **labels: str) -> Counter:
        """Make a counter; by convention its name ends in ``_total``."""
        made = Counter(name, help, _labels(labels))
        self._families.setdefault(name, []).append(made)
        return made

    def gauge(self, name: str, help: str, read: Callable[[], float], **labels: str) -> Gauge:
        """Make a gauge."""
        made = Gauge(name, help, read, _labels(labels))
        self._families.setdefault(name, []).append(made)
        return made

    def histogram(self, name: str, help: str, bounds: Sequence[float], **labels: str) -> Histogram:
        """Make a histogram with these upper bounds, ascending."""
        made = Histogram(name, help, bounds, _labels(labels))
        self._families.setdefault(name, []).append(made)
        return made

    def text(self) -> str:
        """Return all of it in the text form of Prometheus."""
        lines: list[str] = []
        for name, metrics in self._families.items():
            lines += [f"# HELP {name} {_escaped(metrics[0].help)}", f"# TYPE {name} {metrics[0].kind}"]
            lines += [sample for metric in metrics for sample in metric.samples()]
        return "\n".join([*lines, ""])


class FrontendMetrics:
    """
    What an `OutputProcessor` counts.

    Args:
        registry: Where the metrics are; one of their own if None.
        labels: That all of them have, where several processors share a registry.
    """

    def __init__(self, registry: Registry | None = None, **labels: str) -> None:
        self.registry = registry = Registry() if registry is None else registry
        self.labels = labels

        def counter(name: str, help: str) -> Counter:
            return registry.counter(name, help, **labels)

        def seconds(name: str, help: str, bounds: Sequence[float]) -> Histogram:
            return registry.histogram(name, help, bounds, **labels)

        self.rows = counter("detok_rows_total", "Rows of engine steps that were decoded.")
        self.tokens = counter("detok_tokens_total", "Token ids in these rows.")
        self.ignored_rows = counter("detok_ignored_rows_total", "Rows of requests that had ended here already.")
        self.outputs = counter("detok_outputs_total", "Outputs that were due.")
        self.coalesced = counter("detok_coalesced_outputs_total", "Outputs that were joined to one that waited.")
        self.aborts = counter("detok_aborts_total", "Requests that the engine was told to abort.")
        self.failed_aborts = counter("detok_failed_aborts_total", "Aborts that the engine did not take.")
        self.errors = counter("detok_errors_total", "Requests that ended with an error.")
        self.step_seconds = seconds("detok_step_seconds", "Time of decoding one slice of a step.", STEP_SECONDS)
        self.row_seconds = seconds("detok_row_seconds", "Its part for each row.", ROW_SECONDS)
        self.request_seconds = seconds(
            "detok_request_seconds", "Time of decoding that a request took in all its rows.", REQUEST_SECONDS
        )

    def watch(
        self,
        *,
        open_requests: Callable[[], float],
        held_tokens: Callable[[], float],
        waiting_rows: Callable[[], float],
        waiting_outputs: Callable[[], float],
    ) -> None:
        """Add what is asked for whenever the metrics are read."""

        def gauge(name: str, help: str, read: Callable[[], float]) -> None:
            self.registry.gauge(name, help, read, **self.labels)

        gauge("detok_open_requests", "Requests that are open now.", open_requests)
        gauge("detok_held_tokens", "Tokens since text last came out, of requests that hold some now.", held_tokens)
        gauge("detok_waiting_rows", "Rows of the engine's step that are not decoded yet.", waiting_rows)
        gauge("detok_waiting_outputs", "Requests with an output that its consumer has not read.", waiting_outputs)

    def time_slice(self, rows: int, seconds: float) -> None:
        """Count so many rows that were decoded together, and what that took."""
        self.rows.add(rows)
        self.step_seconds.observe(seconds)
        self.row_seconds.observe(seconds / rows, rows)

    def text(self) -> str:
        """Return all of it in the text form of Prometheus."""
        return self.registry.text()


def _labels(labels: Mapping[str, str]) -> Labels:
    return tuple(labels.items())


def _sample(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text, quote=True)}"' for label, text in labels)
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _escaped(text: str, *, quote: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)
