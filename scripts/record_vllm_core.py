"""
Record what vLLM's engine core sends, for the tests of the engine `vllm-core`.

Use, with a Python that has vLLM: ``python -m scripts.record_vllm_core MODEL FILE [NAME=VALUE ...]``, with vLLM's engine arguments
as JSON. Each line of the file is what detok reads of one `EngineCoreOutputs`. A tiny model with random weights is the best one.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from detok.engines.base import EngineRequest
from detok.engines.vllm_core import VllmCoreEngine
from detok.engines.vllm_core_client import VllmCore

REQUESTS: dict[str, dict[str, Any]] = {
    "plain": {"max_tokens": 5, "temperature": 1.0, "seed": 1, "ignore_eos": True},
    "logprobs": {"max_tokens": 4, "logprobs": 2, "temperature": 0.0},
    "own-logprob": {"max_tokens": 2, "logprobs": 0, "temperature": 0.0},
    "prompt-logprobs": {"max_tokens": 2, "prompt_logprobs": 1, "temperature": 0.0},
    "forbidden": {"max_tokens": 2, "logprobs": 3, "allowed_token_ids": [5, 6], "temperature": 1.0, "seed": 3},
    "stop-id": {"max_tokens": 50, "allowed_token_ids": [5, 6], "stop_token_ids": [6], "temperature": 1.0, "seed": 2},
    "choice": {"max_tokens": 20, "structured_outputs": {"choice": ["yes", "no"]}, "temperature": 0.0},
    "repeated": {"max_tokens": 30, "allowed_token_ids": [5], "temperature": 0.0, "ignore_eos": True},
    "urgent": {"max_tokens": 2, "priority": -1, "cache_salt": "salt", "temperature": 0.0, "ignore_eos": True},
    "long": {"max_tokens": 2000, "temperature": 1.0, "seed": 4, "ignore_eos": True},
}


def plain(step: Any) -> dict[str, Any]:
    """Return what of a step is read, as JSON."""
    stats = step.scheduler_stats
    return {"engine_index": step.engine_index, "outputs": [_row(row) for row in step.outputs], "scheduler_stats": _stats(stats)}


def _row(row: Any) -> dict[str, Any]:
    def arrays(found: Any) -> Any:
        return None if found is None else [part.tolist() for part in found[:3]]

    return {
        "request_id": row.request_id,
        "new_token_ids": list(row.new_token_ids),
        "new_logprobs": arrays(row.new_logprobs),
        "new_prompt_logprobs_tensors": arrays(row.new_prompt_logprobs_tensors),
        "finish_reason": None if row.finish_reason is None else int(row.finish_reason),
        "stop_reason": row.stop_reason,
        "events": [int(event.type) for event in row.events or ()],
        "num_prompt_tokens": None if row.prefill_stats is None else row.prefill_stats.num_prompt_tokens,
        "num_cached_tokens": None if row.prefill_stats is None else row.prefill_stats.num_cached_tokens,
    }


def _stats(stats: Any) -> dict[str, Any] | None:
    if stats is None:
        return None
    cache, spec = stats.prefix_cache_stats, stats.spec_decoding_stats
    own = ("num_running_reqs", "num_waiting_reqs", "num_skipped_waiting_reqs", "kv_cache_usage")
    drafts = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")
    return {
        **{name: getattr(stats, name) for name in own},
        "prefix_cache_stats": None if cache is None else {name: getattr(cache, name) for name in ("queries", "hits")},
        "spec_decoding_stats": None if spec is None else {name: getattr(spec, name) for name in drafts},
    }


async def main(core: VllmCore, path: Path) -> None:
    """Run the requests, one of them until it is aborted."""
    engine = VllmCoreEngine(core)
    lines: list[str] = []
    take = core.step

    async def step() -> Any:
        found = await take()
        lines.append(json.dumps(plain(found)))
        return found

    core.step = step  # type: ignore[method-assign]
    ended: list[str] = []

    async def read() -> None:
        async for batch in engine.outputs():
            ended.extend(output.request_id for output in batch if output.finish_reason is not None)

    reading = asyncio.create_task(read())
    for name, sampling in REQUESTS.items():
        await engine.submit(EngineRequest(request_id=name, prompt_ids=[1, 2, 3, 5, 5, 5, 5], sampling=sampling))
    while len(ended) < len(REQUESTS) - 1:
        await asyncio.sleep(0.01)
    await engine.abort(["long"])
    await asyncio.sleep(1)
    await engine.close()
    await reading
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{path}: {len(lines)} steps; ended: {', '.join(ended)}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    options = {name: json.loads(value) for name, _, value in (each.partition("=") for each in sys.argv[3:])}
    asyncio.run(main(VllmCore(sys.argv[1], options), Path(sys.argv[2])))
