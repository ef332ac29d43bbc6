"""What vLLM's scheduler says of itself in each step, as metrics under vLLM's own names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["CoreStats", "MetricsRegistry"]


class MetricsRegistry(Protocol):
    """Where metrics are shown."""

    def counter(self, name: str, help: str, **labels: str) -> Any:
        """Make a counter, which has `add`."""
        ...

    def gauge(self, name: str, help: str, read: Callable[[], float], **labels: str) -> Any:
        """Make a gauge."""
        ...


# The names and meanings are those of vLLM 0.32 (vllm/v1/metrics/loggers.py and vllm/v1/spec_decode/metrics.py).
GAUGES = {
    "num_requests_running": "Requests in model execution batches.",
    "num_requests_waiting": "Requests that wait to be scheduled.",
    "kv_cache_usage_perc": "Part of the KV cache that is used; 1 is all of it.",
}
COUNTERS = {
    "prompt_tokens": "Tokens of prompts that were processed.",
    "generation_tokens": "Tokens that were generated.",
    "prefix_cache_queries": "Tokens of prompts that were looked for in the prefix cache.",
    "prefix_cache_hits": "Tokens of prompts that were found there.",
    "num_preemptions": "Times that a request was preempted.",
    "spec_decode_num_drafts": "Drafts of speculative decoding.",
    "spec_decode_num_draft_tokens": "Tokens in them.",
    "spec_decode_num_accepted_tokens": "Tokens of them that were accepted.",
}

# vLLM's EngineCoreEventType.PREEMPTED.
_PREEMPTED = 3


class CoreStats:
    """The statistics of all engine cores behind one client: of data-parallel ones each has an `engine` of its own."""

    def __init__(self) -> None:
        self._engines: dict[int, _Engine] = {}
        self._watching: list[tuple[MetricsRegistry, dict[str, str]]] = []

    def watch(self, registry: MetricsRegistry, **labels: str) -> None:
        """Show them in a registry, from zero on."""
        self._watching.append((registry, labels))
        for index in [*self._engines] or [0]:
            self._engine(index).show(registry, {**labels, "engine": str(index)})

    def take(self, step: Any) -> None:
        """Take what a step says."""
        engine = self._engine(step.engine_index)
        if step.outputs:
            engine.take_rows(step.outputs)
        if step.scheduler_stats is not None:
            engine.take_scheduler(step.scheduler_stats)

    def _engine(self, index: int) -> _Engine:
        engine = self._engines.get(index)
        if engine is None:
            engine = self._engines[index] = _Engine()
            if index:
                for registry, labels in self._watching:
                    engine.show(registry, {**labels, "engine": str(index)})
        return engine


class _Engine:
    def __init__(self) -> None:
        self.gauges: dict[str, float] = dict.fromkeys(GAUGES, 0)
        self.counts: dict[str, float] = dict.fromkeys(COUNTERS, 0)
        self._counters: list[tuple[str, Any]] = []

    def show(self, registry: MetricsRegistry, labels: dict[str, str]) -> None:
        for name, help in GAUGES.items():
            registry.gauge(f"vllm:{name}", help, lambda name=name: self.gauges[name], **labels)  # type: ignore[misc]
        for name, help in COUNTERS.items():
            counter = registry.counter(f"vllm:{name}_total", help, **labels)
            counter.add(self.counts[name])
            self._counters.append((name, counter))

    def take_rows(self, rows: Any) -> None:
        generated = prompts = preemptions = 0
        for row in rows:
            generated += len(row.new_token_ids)
            if row.prefill_stats is not None:
                prompts += row.prefill_stats.num_prompt_tokens
            if row.events:
                preemptions += sum(event.type == _PREEMPTED for event in row.events)
        self._add(generation_tokens=generated, prompt_tokens=prompts, num_preemptions=preemptions)

    def take_scheduler(self, stats: Any) -> None:
        self.gauges["num_requests_running"] = stats.num_running_reqs
        self.gauges["num_requests_waiting"] = stats.num_waiting_reqs + stats.num_skipped_waiting_reqs
        self.gauges["kv_cache_usage_perc"] = stats.kv_cache_usage
        cache, spec = stats.prefix_cache_stats, stats.spec_decoding_stats
        if cache is not None and cache.queries:
            self._add(prefix_cache_queries=cache.queries, prefix_cache_hits=cache.hits)
        if spec is not None:
            self._add(
                spec_decode_num_drafts=spec.num_drafts,
                spec_decode_num_draft_tokens=spec.num_draft_tokens,
                spec_decode_num_accepted_tokens=spec.num_accepted_tokens,
            )

    def _add(self, **counts: float) -> None:
        for name, count in counts.items():
            self.counts[name] += count
        for name, counter in self._counters:
            if counts.get(name):
                counter.add(counts[name])
