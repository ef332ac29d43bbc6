"""The text form of the metrics, read by Prometheus's own parser."""

from __future__ import annotations

import math

import pytest
from prometheus_client.parser import text_string_to_metric_families

from detok.frontend.metrics import FrontendMetrics, Registry


def samples(registry: Registry) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What the parser reads."""
    families = text_string_to_metric_families(registry.text())
    return {(one.name, tuple(one.labels.items())): one.value for family in families for one in family.samples}


def test_counters_and_gauges_are_read_back() -> None:
    """With labels of any text; a gauge is asked at each reading."""
    registry = Registry()
    now = [1.5]
    registry.counter("a_total", "Counts \\ a\nthing.", where='x"\\\n🦜').add(3)
    registry.counter("a_total", "Counts.", where="other").add()
    registry.gauge("b", "Now.", lambda: now[0])
    found = samples(registry)
    assert found == {("a_total", (("where", 'x"\\\n🦜'),)): 3, ("a_total", (("where", "other"),)): 1, ("b", ()): 1.5}
    now[0] = 1e-9
    assert samples(registry)["b", ()] == 1e-9
    (family, _) = text_string_to_metric_families(registry.text())
    assert (family.name, family.type, family.documentation) == ("a", "counter", "Counts \\ a\nthing.")


def test_histogram_counts_at_and_below_each_bound() -> None:
    """A number at a bound is below it, one above all is in the last bucket; several of one number count as often."""
    registry = Registry()
    histogram = registry.histogram("h", "Times.", (0.1, 1.0), worker="1")
    for value, times in [(0.05, 1), (0.1, 2), (0.5, 1), (1.0, 1), (7.0, 3)]:
        histogram.observe(value, times)
    found = samples(registry)
    label = ("worker", "1")
    assert [found["h_bucket", (label, ("le", bound))] for bound in ("0.1", "1", "+Inf")] == [3, 5, 8]
    assert found["h_count", (label,)] == 8
    assert math.isclose(found["h_sum", (label,)], 0.05 + 0.2 + 0.5 + 1.0 + 21.0)


def test_frontend_metrics_are_all_readable() -> None:
    """Each has a help text and a type."""
    families = list(text_string_to_metric_families(FrontendMetrics().text()))
    assert len(families) == 11
    assert all(family.documentation and family.type in ("counter", "histogram") for family in families)


@pytest.mark.parametrize(("value", "written"), [(3.0, "3"), (0.25, "0.25"), (1e-7, "1e-07"), (2**60, str(2**60))])
def test_numbers_are_written_in_full(value: float, written: str) -> None:
    """No digit is lost."""
    registry = Registry()
    registry.counter("n_total", "N.").add(value)
    assert registry.text().endswith(f"n_total {written}\n")
