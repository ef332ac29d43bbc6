"""`detok top`: what it shows of workers and pages, and of those that are not there."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from detok.cli.top import COLUMNS, Reading
from detok.frontend.metrics import FrontendMetrics
from detok.frontend.worker.client import DetokenizerClient
from tests.cli.support import EMBEDDED, run
from tests.support.workers import endpoint, threaded


@pytest.fixture
def place() -> Iterator[str]:
    """A worker that has taken three rows of two requests."""
    with endpoint() as found, threaded(EMBEDDED, found), DetokenizerClient(found) as client:
        client.open("a")
        client.open("b")
        client.step([("a", [300], None, None, None), ("b", [300], None, None, None)])
        client.step([("a", [301], None, None, None)])
        yield found


def test_once_shows_a_worker(place: str) -> None:
    """A row for each worker, under the names of what is shown."""
    result = run("top", place, "--once", "--interval", "0.1")
    assert result.exit_code == 0
    head, row = result.stdout.splitlines()[:2]
    assert head.split()[:2] == ["open", "rows/s"]
    assert row.split()[:2] == [place, "2"]


def test_json_has_every_sample(place: str) -> None:
    """A line of JSON with the samples of each process by its endpoint."""
    result = run("top", place, "--once", "--json")
    samples = json.loads(result.stdout)[place]
    assert samples["detok_worker_rows_total"] == 3
    assert samples["detok_worker_row_seconds_count"] == 3


def test_prometheus_text_is_passed_on(place: str) -> None:
    """The worker's own text, with types and help."""
    result = run("top", place, "--prometheus")
    assert "# TYPE detok_worker_rows_total counter\ndetok_worker_rows_total 3\n" in result.stdout


def test_worker_that_is_not_there_is_said() -> None:
    """A table says it in its row, and goes on; a scraper gets an error."""
    with endpoint() as nobody:
        shown = run("top", nobody, "--once", "--interval", "0.1", "--timeout", "0.1")
        assert shown.exit_code == 0
        assert "no answer" in shown.stdout
        assert run("top", nobody, "--prometheus", "--timeout", "0.1").exit_code == 2
    assert run("top", "nonsense", "--prometheus").stderr.startswith("detok: the worker at nonsense: it is no endpoint")


def test_page_of_metrics_is_read() -> None:
    """A server's page is shown like a worker, with the columns that it has."""
    metrics = FrontendMetrics()
    metrics.rows.add(5)
    metrics.coalesced.add(2)

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(metrics.text().encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/metrics"
            samples = json.loads(run("top", url, "--once", "--json").stdout)[url]
            assert (samples["detok_rows_total"], samples["detok_coalesced_outputs_total"]) == (5, 2)
            assert "coalesced" in run("top", url, "--once", "--interval", "0.1").stdout
        finally:
            server.shutdown()
            thread.join()
    assert "cannot be read" in run("top", url, "--prometheus").stderr


def test_columns_are_of_two_readings() -> None:
    """Rates and means are of what happened between two looks; what is not there is a dash; a restart is no negative rate."""
    before = Reading(
        10.0, {"detok_worker_rows_total": 100, "detok_worker_row_seconds_sum": 1.0, "detok_worker_row_seconds_count": 100}
    )
    after = Reading(
        12.0, {"detok_worker_rows_total": 500, "detok_worker_row_seconds_sum": 1.0004, "detok_worker_row_seconds_count": 500}
    )
    assert COLUMNS["rows/s"](before, after) == "200"
    assert COLUMNS["µs/row"](before, after) == "1.00"
    assert COLUMNS["rows/s"](after, Reading(14.0, before.samples)) == "0"
    assert COLUMNS["tokens/s"](before, after) == COLUMNS["evicted"](before, after) == "–"
    assert COLUMNS["µs/row"](after, Reading(14.0, after.samples)) == "–"
