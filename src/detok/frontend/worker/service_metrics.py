"""What a worker counts."""

from __future__ import annotations

from collections.abc import Callable

from ..metrics import ROW_SECONDS, STEP_SECONDS, Registry

__all__ = ["ServiceMetrics"]


class ServiceMetrics:
    """
    Args:
        states, sessions, holding: How many there are now.
        restarts: How often the process was started before.
    """

    def __init__(
        self, *, states: Callable[[], int], sessions: Callable[[], int], holding: Callable[[], int], restarts: int
    ) -> None:
        registry = self._registry = Registry()
        self.steps = registry.counter("detok_worker_steps_total", "Steps that were taken.")
        self.rows = registry.counter("detok_worker_rows_total", "Rows in these steps.")
        self.tokens = registry.counter("detok_worker_tokens_total", "Token ids in these rows.")
        self.opened = registry.counter("detok_worker_opened_total", "Requests that were opened, anew or to go on.")
        self.replayed = registry.counter("detok_worker_replayed_rows_total", "Rows that were fed again to requests that go on.")
        self.evicted = registry.counter("detok_worker_evicted_total", "Requests that were handed back to their clients.")
        self.expired = registry.counter("detok_worker_expired_total", "Requests for which nothing came for too long.")
        self.errors = registry.counter("detok_worker_errors_total", "Requests and rows that ended with an error.")
        self.repeated = registry.counter("detok_worker_repeated_total", "Steps that came again.")
        self.refused = registry.counter("detok_worker_refused_total", "Messages that were refused.")
        registry.gauge("detok_worker_open_requests", "Requests that are kept.", states)
        registry.gauge("detok_worker_sessions", "Clients.", sessions)
        registry.gauge("detok_worker_holding_requests", "Requests that hold something back.", holding)
        registry.gauge("detok_worker_restarts", "How often the process was started before.", lambda: restarts)
        self._step_seconds = registry.histogram("detok_worker_step_seconds", "Time of a step, messages included.", STEP_SECONDS)
        self._row_seconds = registry.histogram("detok_worker_row_seconds", "Its part for each row.", ROW_SECONDS)

    def about_process(self, cpu_seconds: Callable[[], float], resident_bytes: Callable[[], float]) -> None:
        """Say what the process takes too, by the names that Prometheus has for it."""
        self._registry.gauge("process_cpu_seconds_total", "Processor time used.", cpu_seconds)
        self._registry.gauge("process_resident_memory_bytes", "Memory.", resident_bytes)

    def took(self, seconds: float, rows: int) -> None:
        """A step took so long."""
        self._step_seconds.observe(seconds)
        if rows:
            self._row_seconds.observe(seconds / rows, rows)

    def text(self) -> str:
        """Return all of it in the text form of Prometheus."""
        return self._registry.text()
