"""vLLM's engine core as an engine: what a real core sent, through a fake client of it."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import sys
from collections import deque
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detok
from detok import Logprob
from detok.engines.base import EngineOutput
from detok.engines.opening import model_of, open_engine
from detok.engines.vllm_core import Refusal, VllmCoreEngine
from detok.errors import DuplicateRequest, EngineError, MissingExtra, OptionError, TokenTypeError
from detok.frontend.metrics import FrontendMetrics, Registry
from detok.frontend.processor import OutputProcessor
from tests.engines.support import RECORDINGS, became, ids_of, request, until_ended
from tests.engines.test_http import run

Row = dict[str, Any]


def row(request_id: str, *token_ids: int, **more: Any) -> Row:
    """A row of a step, as `scripts.record_vllm_core` writes it."""
    none = dict.fromkeys(("new_logprobs", "new_prompt_logprobs_tensors", "finish_reason", "stop_reason", "num_prompt_tokens"))
    return {**none, "request_id": request_id, "new_token_ids": [*token_ids], "events": [], **more}


def step(*rows: Row, stats: dict[str, Any] | None = None, engine_index: int = 0) -> Any:
    """A step as vLLM's client gives it: objects, and arrays in them."""

    def arrays(found: Any) -> Any:
        return None if found is None else (*(np.array(part) for part in found), None)

    outputs = []
    for one in rows:
        made = SimpleNamespace(**one)
        made.new_logprobs, made.new_prompt_logprobs_tensors = map(
            arrays, (one["new_logprobs"], one["new_prompt_logprobs_tensors"])
        )
        made.events = [SimpleNamespace(type=kind) for kind in one["events"]]
        prompt = one["num_prompt_tokens"]
        made.prefill_stats = None
        if prompt is not None:
            made.prefill_stats = SimpleNamespace(num_prompt_tokens=prompt, num_cached_tokens=one.get("num_cached_tokens"))
        outputs.append(made)
    return SimpleNamespace(engine_index=engine_index, outputs=outputs, scheduler_stats=_nested(stats))


def _nested(value: Any) -> Any:
    return SimpleNamespace(**{name: _nested(one) for name, one in value.items()}) if isinstance(value, dict) else value


class FakeCore:
    """A core that gives the steps that it is told to, and remembers what it was asked."""

    model = "tiny"
    max_model_len = 4096

    def __init__(self, steps: Iterable[Any] = ()) -> None:
        self.steps: deque[Any] = deque(steps)
        self.changed = asyncio.Event()
        self.added: list[tuple[str, list[int], dict[str, Any]]] = []
        self.aborted: list[list[str]] = []
        self.dead = False
        self.ended = False
        self.making = asyncio.Event()
        self.making.set()
        self.refuses: Exception | None = None
        self.fails: Exception | None = None

    async def make(self, request_id: str, prompt: list[int], sampling: dict[str, Any]) -> Any:
        """Take it as it is."""
        await self.making.wait()
        if self.refuses is not None:
            raise self.refuses
        return request_id, prompt, sampling

    async def add(self, request: Any) -> None:
        """Remember it."""
        if self.fails is not None:
            raise self.fails
        self.added.append(request)

    async def step(self) -> Any:
        """Give the next step; of an exception, raise it."""
        while not self.steps:
            if self.ended:
                raise RuntimeError("EngineCore encountered an issue.")
            await self.changed.wait()
            self.changed.clear()
        found = self.steps.popleft()
        if isinstance(found, Exception):
            raise found
        return found

    def give(self, *steps: Any) -> None:
        """Have more steps."""
        self.steps += steps
        self.changed.set()

    async def abort(self, request_ids: list[str]) -> None:
        """Remember them."""
        self.aborted.append(request_ids)

    def shutdown(self) -> None:
        """End: called in a thread."""
        self.ended = self.dead = True


def replayed(name: str) -> tuple[FakeCore, VllmCoreEngine]:
    """A core that gives a recording."""
    lines = (RECORDINGS / name).read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    core = FakeCore(step(*one["outputs"], stats=one["scheduler_stats"], engine_index=one["engine_index"]) for one in found)
    return core, VllmCoreEngine(core)


ASKED: dict[str, dict[str, Any]] = {
    "plain": {},
    "logprobs": {"logprobs": 2},
    "own-logprob": {"logprobs": 0},
    "prompt-logprobs": {"prompt_logprobs": 1},
    "forbidden": {"logprobs": 3},
    "stop-id": {"stop_token_ids": [6]},
    "choice": {},
    "repeated": {},
    "urgent": {"priority": -1, "cache_salt": "salt"},
}
"""The requests of `scripts.record_vllm_core` in its order, with what of their sampling is read here."""


async def outputs_of(name: str) -> tuple[FakeCore, VllmCoreEngine, dict[str, list[EngineOutput]]]:
    """Submit what was recorded, and read all of it."""
    core, engine = replayed(name)
    for one, sampling in ASKED.items():
        await engine.submit(request(one, **sampling))
    return core, engine, await until_ended(engine, ASKED)


def test_recorded_steps_give_each_request_its_outputs() -> None:
    """Ids in order, and how each ended: at its length, at a stop id, at the end of a choice."""

    async def main() -> None:
        _, _, outputs = await outputs_of("vllm-core.jsonl")
        lengths = {name: len(ids_of(found)) for name, found in outputs.items()}
        assert {name: lengths[name] for name in ("plain", "logprobs", "repeated", "urgent")} == {
            "plain": 5,
            "logprobs": 4,
            "repeated": 30,
            "urgent": 2,
        }
        last = {name: found[-1] for name, found in outputs.items()}
        assert {name: one.finish_reason for name, one in last.items()} == {
            **dict.fromkeys(ASKED, "length"),
            "stop-id": "stop",
            "choice": "stop",
        }
        assert (last["stop-id"].stop_reason, ids_of(outputs["stop-id"])[-1]) == (6, 6)
        assert ids_of(outputs["repeated"]) == [5] * 30
        assert all(one.error is None for one in last.values())

    run(main())


def test_recorded_logprobs_are_those_that_were_asked_for() -> None:
    """The core gives every request of a step as many alternatives as the one that asked for most."""

    async def main() -> None:
        _, _, outputs = await outputs_of("vllm-core.jsonl")
        assert all(output.logprobs is None for output in outputs["plain"] + outputs["prompt-logprobs"])
        for name, count in (("logprobs", 2), ("own-logprob", 0), ("forbidden", 3)):
            for output in outputs[name]:
                assert output.logprobs is not None
                assert len(output.logprobs) == len(output.token_ids)
                for one in output.logprobs:
                    assert isinstance(one, Logprob)
                    assert len(one.top) == count
                    assert one.logprob is not None
                    assert -9999 <= one.logprob < 0
        first = outputs["forbidden"][0].logprobs
        assert first is not None
        assert first[0] == Logprob(
            -11.761785507202148,
            126097,
            ((847, -11.761783599853516), (839, -11.761783599853516), (662, -11.761783599853516)),
        )

    run(main())


def test_recorded_logprobs_of_the_prompt_come_once() -> None:
    """From its second id on."""

    async def main() -> None:
        _, _, outputs = await outputs_of("vllm-core.jsonl")
        found = [output.prompt_logprobs for output in outputs["prompt-logprobs"] if output.prompt_logprobs is not None]
        assert [len(one) for one in found] == [6]
        assert found[0][0] == Logprob(-11.761785507202148, 120655, ((37, -11.761783599853516),))
        assert all(output.prompt_logprobs is None for name in ASKED if name != "prompt-logprobs" for output in outputs[name])

    run(main())


def test_recorded_speculation_gives_several_ids_in_a_step() -> None:
    """Text is none of a step's business: all ids come, in order, and the drafts are counted."""

    async def main() -> None:
        _, engine, outputs = await outputs_of("vllm-core-speculation.jsonl")
        lines = (RECORDINGS / "vllm-core-speculation.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [found for line in lines for found in json.loads(line)["outputs"] if found["request_id"] == "repeated-7"]
        sent = [token_id for found in rows for token_id in found["new_token_ids"]]
        assert (ids_of(outputs["repeated"]), len(sent)) == (sent, 30)
        assert max(len(output.token_ids) for output in outputs["repeated"]) == 4
        assert outputs["repeated"][-1].finish_reason == "length"
        registry = Registry()
        engine.watch(registry)
        accepted = next(line for line in registry.text().splitlines() if line.startswith("vllm:spec_decode_num_accepted"))
        assert float(accepted.rpartition(" ")[2]) > 0

    run(main())


def test_recorded_statistics_are_metrics_under_vllms_names() -> None:
    """What the scheduler says now, and sums of what it said."""

    async def main() -> None:
        core, engine = replayed("vllm-core.jsonl")
        registry = Registry()
        engine.watch(registry, model_name="m")
        assert 'vllm:num_requests_running{model_name="m",engine="0"} 0' in registry.text()
        for one, sampling in {**ASKED, "long": {}}.items():
            await engine.submit(request(one, **sampling))
        reading = asyncio.create_task(until_ended(engine, ["never", *ASKED, "long"]))
        await became(lambda: not core.steps)
        await asyncio.sleep(0)
        lines = dict(line.split(" ") for line in registry.text().splitlines() if not line.startswith("#"))
        recorded = [json.loads(line) for line in (RECORDINGS / "vllm-core.jsonl").read_text().splitlines()]
        rows = [found for one in recorded for found in one["outputs"]]
        labels = '{model_name="m",engine="0"}'
        assert float(lines[f"vllm:generation_tokens_total{labels}"]) == sum(len(one["new_token_ids"]) for one in rows)
        assert float(lines[f"vllm:prompt_tokens_total{labels}"]) == 7 * (len(ASKED) + 1)
        assert float(lines[f"vllm:prefix_cache_queries_total{labels}"]) > 0
        last = next(one["scheduler_stats"] for one in reversed(recorded) if one["scheduler_stats"])
        assert float(lines[f"vllm:num_requests_running{labels}"]) == last["num_running_reqs"]
        assert float(lines[f"vllm:kv_cache_usage_perc{labels}"]) == last["kv_cache_usage"]
        reading.cancel()

    run(main())


def test_statistics_of_several_cores_and_of_speculation() -> None:
    """Each core has its own label; what comes before somebody watches is not lost."""

    async def main() -> None:
        spec = {"num_drafts": 2, "num_draft_tokens": 6, "num_accepted_tokens": 4}
        stats = {
            "num_running_reqs": 3,
            "num_waiting_reqs": 4,
            "num_skipped_waiting_reqs": 1,
            "kv_cache_usage": 0.5,
            "prefix_cache_stats": {"queries": 10, "hits": 5},
            "spec_decoding_stats": spec,
        }
        core = FakeCore([step(row("x", events=[3]), stats=stats), step(stats=stats, engine_index=2), step(row("a-0", 1))])
        engine, registry = VllmCoreEngine(core), Registry()
        await engine.submit(request("a"))
        batches = engine.outputs()
        await anext(batches)
        engine.watch(registry)
        text = registry.text()
        for index in (0, 2):
            assert f'vllm:spec_decode_num_accepted_tokens_total{{engine="{index}"}} 4' in text
            assert f'vllm:num_requests_waiting{{engine="{index}"}} 5' in text
            assert f'vllm:prefix_cache_hits_total{{engine="{index}"}} 5' in text
        assert 'vllm:num_preemptions_total{engine="0"} 1' in text
        assert 'vllm:num_preemptions_total{engine="2"} 0' in text
        core.give(step(stats=stats, engine_index=3), step(stats=stats), step(row("a-0", 1)))
        await anext(batches)
        assert 'vllm:prefix_cache_hits_total{engine="3"} 5' in registry.text()
        assert 'vllm:prefix_cache_hits_total{engine="0"} 10' in registry.text()

    run(main())


@pytest.mark.parametrize(
    ("kind", "stop_reason", "expected"),
    [
        (0, None, ("stop", None, None)),
        (0, 7, ("stop", 7, None)),
        (1, None, ("length", None, None)),
        (2, None, ("abort", None, None)),
        (3, None, ("error", None, "the engine ended the request with an error")),
        (4, None, ("stop", "repetition", None)),
    ],
)
def test_reasons_of_the_core_are_detoks(kind: int, stop_reason: int | None, expected: tuple[Any, ...]) -> None:
    """All of vLLM's; several ids of one step, as speculation gives them, come before it."""

    async def main() -> None:
        core = FakeCore([step(row("a-0", 1, 2, 3)), step(row("a-0", 4, finish_reason=kind, stop_reason=stop_reason))])
        engine = VllmCoreEngine(core)
        await engine.submit(request())
        outputs = (await until_ended(engine, "a"))["a"]
        assert [output.token_ids for output in outputs] == [[1, 2, 3], [4]]
        assert (outputs[-1].finish_reason, outputs[-1].stop_reason, outputs[-1].error) == expected
        await engine.abort(["a"])
        assert core.aborted == []

    run(main())


def test_first_row_tells_what_of_the_prompt_was_cached() -> None:
    """Whether it says more than its ids, or not."""

    async def main() -> None:
        for more in ({}, {"finish_reason": 1}):
            first = row("a-0", 1, num_prompt_tokens=9, num_cached_tokens=6, **more)
            core = FakeCore([step(first), *([] if more else [step(row("a-0", 2, finish_reason=1))])])
            engine = VllmCoreEngine(core)
            await engine.submit(request())
            outputs = (await until_ended(engine, "a"))["a"]
            assert [output.cached_tokens for output in outputs] == [6, None][: len(outputs)]

    run(main())


def test_logprobs_that_json_has_not_are_the_least() -> None:
    """Minus infinity of a token that cannot be, and what is no number; all alternatives where all were asked for."""

    async def main() -> None:
        arrays = [[[1, 2, 3], [4, 5, 6]], [[-0.5, -math.inf, math.nan], [-math.inf, -1.0, -2.0]], [1, 9]]
        core = FakeCore([step(row("a-0", 1, 4, new_logprobs=arrays, finish_reason=1))])
        engine = VllmCoreEngine(core)
        await engine.submit(request(logprobs=-1))
        (output,) = (await until_ended(engine, "a"))["a"]
        assert output.logprobs == [
            Logprob(-0.5, 1, ((2, -9999.0), (3, -9999.0))),
            Logprob(-9999.0, 9, ((5, -1.0), (6, -2.0))),
        ]

    run(main())


def test_what_the_core_is_asked_is_ids_and_sampling() -> None:
    """Detok's own options stay here."""

    async def main() -> None:
        core = FakeCore()
        engine = VllmCoreEngine(core)
        sampling: dict[str, Any] = {
            "max_tokens": 5,
            "stop": ["x"],
            "n": 1,
            "seed": None,
            "priority": 3,
            "cache_salt": "s",
            "skip_special_tokens": True,
        }
        await engine.submit(request(prompt=(7, 8), **sampling))
        assert core.added == [("a-0", [7, 8], {"max_tokens": 5, "priority": 3, "cache_salt": "s"})]

    run(main())


def test_refusal_is_raised_at_submit_in_vllms_words() -> None:
    """With the parameter; the id is free again."""

    async def main() -> None:
        core = FakeCore()
        engine = VllmCoreEngine(core)
        core.refuses = Refusal("temperature must be non-negative, got -1.0.", param="temperature")
        with pytest.raises(EngineError) as caught:
            await engine.submit(request(temperature=-1))
        assert (caught.value.status, caught.value.param) == (400, "temperature")
        assert caught.value.message == "temperature must be non-negative, got -1.0."
        core.refuses = None
        await engine.submit(request())
        assert (len(core.added), core.aborted) == (1, [])

    run(main())


def test_what_cannot_be_is_refused_before_the_core_is_asked() -> None:
    """An id that runs, ids that are none, more than one choice."""

    async def main() -> None:
        core = FakeCore()
        engine = VllmCoreEngine(core)
        await engine.submit(request())
        with pytest.raises(DuplicateRequest):
            await engine.submit(request())
        with pytest.raises(TokenTypeError):
            await engine.submit(request("b", prompt=["x"]))  # type: ignore[list-item]
        with pytest.raises(OptionError):
            await engine.submit(request("b", n=2))
        assert len(core.added) == 1

    run(main())


def test_failure_at_submit_is_logged_and_hurts_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """The core, which may have the request, is told to stop it."""

    async def main() -> None:
        core = FakeCore()
        engine = VllmCoreEngine(core)
        core.fails = OSError("no more files")
        with pytest.raises(EngineError, match="log says why"):
            await engine.submit(request())
        assert core.aborted == [["a-0"]]
        core.fails = None
        await engine.submit(request())
        core.give(step(row("a-1", 1, finish_reason=1)))
        assert ids_of((await until_ended(engine, "a"))["a"]) == [1]

    with caplog.at_level(logging.ERROR, logger="detok.engines"):
        run(main())
    assert "no more files" in caplog.text


def test_abort_is_told_once_and_late_outputs_go_nowhere() -> None:
    """Neither to the request nor to the next one of the same id."""

    async def main() -> None:
        core = FakeCore()
        engine = VllmCoreEngine(core)
        await engine.submit(request())
        await engine.submit(request("b"))
        await engine.abort(["a", "a", "unknown"])
        await engine.abort(["a"])
        assert core.aborted == [["a-0"]]
        await engine.submit(request())
        core.give(step(row("a-0", 1), row("b-1", 2)), step(row("a-0", 3, finish_reason=2), row("a-2", 4, finish_reason=1)))
        batches = engine.outputs()
        assert [(one.request_id, one.token_ids) for one in await anext(batches)] == [("b", [2])]
        assert [(one.request_id, one.token_ids) for one in await anext(batches)] == [("a", [4])]

    run(main())


@pytest.mark.parametrize("cancelled", [False, True])
def test_abort_before_the_request_is_sent_sends_nothing(cancelled: bool) -> None:
    """As a client that goes away while a grammar is compiled; or whoever submits is cancelled."""

    async def main() -> None:
        core = FakeCore()
        core.making.clear()
        engine = VllmCoreEngine(core)
        submitted = asyncio.create_task(engine.submit(request()))
        await asyncio.sleep(0)
        if cancelled:
            submitted.cancel()
            with pytest.raises(asyncio.CancelledError):
                await submitted
        else:
            await engine.abort(["a"])
            core.making.set()
            await submitted
        assert (core.added, core.aborted) == ([], [])
        core.making.set()
        await engine.submit(request())
        assert len(core.added) == 1

    run(main())


def test_core_that_dies_ends_all_requests_with_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged; afterwards nothing can be submitted, and the engine says that it died."""

    async def main() -> None:
        core = FakeCore([step(row("a-0", 1)), RuntimeError("EngineCore encountered an issue.")])
        engine = VllmCoreEngine(core)
        assert engine.died is None
        for name in "ab":
            await engine.submit(request(name))
        outputs = await until_ended(engine, "ab")
        assert {name: (ids_of(found), found[-1].finish_reason, found[-1].error_status) for name, found in outputs.items()} == {
            "a": ([1], "error", 503),
            "b": ([], "error", 503),
        }
        assert outputs["a"][-1].error == engine.died == "the engine has died"
        with pytest.raises(EngineError, match="died"):
            await engine.submit(request("c"))
        await engine.close()

    with caplog.at_level(logging.ERROR, logger="detok.engines"):
        run(main())
    assert "EngineCore encountered an issue" in caplog.text


def test_row_that_cannot_be_read_ends_its_request_alone(caplog: pytest.LogCaptureFixture) -> None:
    """Of a version with other reasons, say: it is logged, the core is told to stop it, and others go on."""

    async def main() -> None:
        core = FakeCore(
            [
                step(row("a-0", 1), row("b-1", 2)),
                step(row("a-0", 3, finish_reason=77), row("b-1", 4)),
                step(row("a-0", 5), row("b-1", 6, finish_reason=1)),
            ]
        )
        engine = VllmCoreEngine(core)
        for name in "ab":
            await engine.submit(request(name))
        outputs = await until_ended(engine, "ab")
        assert (ids_of(outputs["a"]), outputs["a"][-1].error) == (
            [1],
            "an output of the engine cannot be read; detok's log says why",
        )
        assert (ids_of(outputs["b"]), outputs["b"][-1].finish_reason) == ([2, 4, 6], "length")
        assert core.aborted == [["a-0"]]
        assert engine.died is None

    with caplog.at_level(logging.ERROR, logger="detok.engines"):
        run(main())
    assert "IndexError" in caplog.text


def test_statistics_that_cannot_be_read_end_no_request(caplog: pytest.LogCaptureFixture) -> None:
    """It is said once."""

    async def main() -> None:
        odd = {"num_running": 3}
        core = FakeCore([step(row("a-0", 1), stats=odd), step(row("a-0", 2, finish_reason=1), stats=odd)])
        engine = VllmCoreEngine(core)
        await engine.submit(request())
        assert ids_of((await until_ended(engine, "a"))["a"]) == [1, 2]

    with caplog.at_level(logging.ERROR, logger="detok.engines"):
        run(main())
    assert caplog.text.count("statistics") == 1


def test_death_that_no_request_has_seen_is_known() -> None:
    """Vllm's client watches the process; one that was closed has not died."""

    async def main() -> None:
        core = FakeCore()
        engine = VllmCoreEngine(core)
        core.dead = True
        assert engine.died == "the engine has died"
        with pytest.raises(EngineError, match="died"):
            await engine.submit(request())
        other = VllmCoreEngine(FakeCore())
        await other.close()
        assert other.died is None

    run(main())


def test_close_aborts_all_and_ends_outputs() -> None:
    """A second close does nothing."""

    async def main() -> None:
        core = FakeCore()
        engine = VllmCoreEngine(core)
        await engine.submit(request())
        reading = asyncio.create_task(until_ended(engine, "a"))
        await asyncio.sleep(0)
        await engine.close()
        core.changed.set()
        await engine.close()
        assert await reading == {"a": []}
        assert (core.aborted, core.ended) == ([["a-0"]], True)
        with pytest.raises(EngineError, match="closed"):
            await engine.submit(request())

    run(main())


def test_frontend_makes_text_of_what_a_core_gives() -> None:
    """A stop in the text aborts at the core, once; its statistics are among the frontend's metrics."""

    async def main() -> None:
        tokenizer = detok.load(detok.EMBEDDED)
        core = FakeCore()
        metrics = FrontendMetrics(model="m")
        async with OutputProcessor(tokenizer, VllmCoreEngine(core), metrics=metrics) as frontend:
            generated = frontend.generate([1], options=detok.RequestOptions(stop="END"), request_id="r")
            first = asyncio.ensure_future(anext(generated))
            await became(lambda: core.added)
            name = core.added[0][0]
            core.give(*(step(row(name, token_id)) for token_id in tokenizer.encode("Hi 🦜 END more", add_special_tokens=False)))
            texts = [(await first).text] + [output.text async for output in generated]
            assert "".join(texts) == "Hi 🦜 "
            await became(lambda: core.aborted)
            assert core.aborted == [[name]]
        assert 'vllm:generation_tokens_total{model_name="m",engine="0"}' in metrics.text()

    run(main())


def test_model_of_the_name_is_whose_tokenizer_is_taken() -> None:
    """Of the engines that have one in their name."""
    assert model_of("vllm-core:a/b") == "a/b"
    assert model_of("vllm-core:") is None
    assert model_of("vllm:http://host") is None


@pytest.mark.parametrize("name", ["vllm-core", "vllm-core:"])
def test_name_without_a_model_is_refused(name: str) -> None:
    """Saying how it is written."""
    with pytest.raises(OptionError, match="vllm-core:MODEL"):
        open_engine(name)


def test_missing_vllm_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything else fails."""
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingExtra, match=r"detok\[vllm\]"):
        open_engine("vllm-core:tiny")
