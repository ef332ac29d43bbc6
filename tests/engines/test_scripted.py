"""The embedded engines: what they give, in which steps and batches, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

import detok
from detok.core.request.logprobs import Logprob
from detok.engines import echo, scripted
from detok.engines.base import Engine, EngineOutput, EngineRequest
from detok.engines.echo import EchoEngine
from detok.engines.replay import ReplayEngine
from detok.engines.scripted import ScriptedEngine, ScriptStep

Batches = list[list[EngineOutput]]


def run(
    engine: ScriptedEngine,
    requests: Mapping[str, Sequence[int]],
    *,
    sampling: Mapping[str, Any] | None = None,
    after: Callable[[ScriptedEngine, Batches], Any] | None = None,
) -> Batches:
    """Run requests to their end, and return all batches; `after` may do something behind each."""

    async def main() -> Batches:
        batches: Batches = []
        left = set(requests)
        for name, prompt_ids in requests.items():
            await engine.submit(EngineRequest(request_id=name, prompt_ids=prompt_ids, sampling=sampling or {}))
        async for outputs in engine.outputs():
            batches.append(outputs)
            if after is not None:
                left -= set(await after(engine, batches) or ())
            left -= {one.request_id for one in outputs if one.finish_reason is not None}
            if not left:
                await engine.close()
        return batches

    return asyncio.run(main())


def given(batches: Batches, name: str) -> list[tuple[list[int], str | None]]:
    """What a request got: ids and finish reason of each step."""
    return [(list(one.token_ids), one.finish_reason) for outputs in batches for one in outputs if one.request_id == name]


def test_echo_gives_the_prompt_back() -> None:
    """One id a step, for all requests together; a prompt without ids ends at once."""
    batches = run(EchoEngine(), {"a": [1, 2, 3], "b": [4], "c": []})
    assert [[one.request_id for one in outputs] for outputs in batches] == [["a", "b", "c"], ["a"], ["a"]]
    assert given(batches, "a") == [([1], None), ([2], None), ([3], "stop")]
    assert given(batches, "b") == [([4], "stop")]
    assert given(batches, "c") == [([], "stop")]


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, [([1, 2], None)]),
        (2, [([1, 2], "length")]),
        (3, [([1, 2], None), ([3], "length")]),
        (5, [([1, 2], None), ([3, 4], None), ([5], "stop")]),
        (9, [([1, 2], None), ([3, 4], None), ([5], "stop")]),
    ],
)
def test_max_tokens_ends_with_length(most: int, expected: list[tuple[list[int], str | None]]) -> None:
    """Only if something is left out."""
    expected = [([1], "length")] if most == 1 else expected
    assert given(run(EchoEngine(step_tokens=2), {"a": [1, 2, 3, 4, 5]}, sampling={"max_tokens": most}), "a") == expected


def test_echo_of_a_long_prompt_makes_no_more_than_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are made for one id more, which tells that something is left out."""
    made: list[int] = []

    def counted(ids: Sequence[int]) -> list[ScriptStep]:
        made.append(len(ids))
        return scripted.one_by_one(ids)

    monkeypatch.setattr(echo, "one_by_one", counted)
    batches = run(EchoEngine(), {"a": range(180_000)}, sampling={"max_tokens": 2})
    assert given(batches, "a") == [([0], None), ([1], "length")]
    assert made == [3]


@pytest.mark.parametrize("sizes", [2, (1, 3), (4,), 10])
def test_step_tokens_take_turns(sizes: Any) -> None:
    """Steps of speculative decoding have the sizes that were asked for, one after another, and no empty end."""
    steps = given(run(EchoEngine(step_tokens=sizes), {"a": [*range(8)]}), "a")
    assert [token_id for ids, _ in steps for token_id in ids] == [*range(8)]
    turns = [sizes] if isinstance(sizes, int) else [*sizes]
    assert [len(ids) for ids, _ in steps[:-1]] == (turns * 8)[: len(steps) - 1]
    assert [reason for _, reason in steps] == [None] * (len(steps) - 1) + ["stop"]
    assert steps[-1][0]


def test_requests_beyond_the_batch_wait_their_turn() -> None:
    """At most so many in a step, first come first served, and one begins as soon as another ends."""
    batches = run(EchoEngine(max_batch=2), {"a": [1], "b": [2, 3], "c": [4, 5]})
    assert [[one.request_id for one in outputs] for outputs in batches] == [["a", "b"], ["b", "c"], ["c"]]


def test_abort_of_running_and_waiting_requests() -> None:
    """They get nothing any more; ids that are not there do no harm."""

    async def after(engine: ScriptedEngine, batches: Batches) -> list[str]:
        if len(batches) == 1:
            await engine.abort(["a", "c", "nobody"])
        return ["a", "c"]

    batches = run(EchoEngine(max_batch=2), {"a": [1, 2, 3], "b": [4, 5, 6], "c": [7]}, after=after)
    assert [[one.request_id for one in outputs] for outputs in batches] == [["a", "b"], ["b"], ["b"]]


def test_rate_is_kept_over_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of n ids is n / rate later than the one before, whatever the consumer took in between."""
    waits: list[float] = []
    now = [100.0]

    class Loop:
        def time(self) -> float:
            return now[0]

    async def sleep(seconds: float) -> None:
        waits.append(round(seconds, 6))
        now[0] += seconds

    async def after(engine: ScriptedEngine, batches: Batches) -> None:
        now[0] += 0.05 if len(batches) < 3 else 10

    monkeypatch.setattr(scripted, "sleep", sleep)
    monkeypatch.setattr(scripted, "get_running_loop", Loop)
    run(EchoEngine(rate=10, step_tokens=2), {"a": [*range(8)]}, after=after)
    assert waits[:4] == [0.0, 0.15, 0.15, 0.0]


def test_outputs_wait_for_requests_and_end_with_close() -> None:
    """Without anything to do they sleep; close wakes them."""

    async def main() -> int:
        engine = EchoEngine()
        reading = asyncio.create_task(_count(engine))
        # So that it finds nothing to do, and sleeps.
        for _ in range(5):
            await asyncio.sleep(0)
        await engine.submit(EngineRequest(request_id="a", prompt_ids=[1, 2]))
        while engine._running or engine._waiting:
            await asyncio.sleep(0)
        assert not reading.done()
        await engine.close()
        return await reading

    assert asyncio.run(main()) == 2


async def _count(engine: Engine) -> int:
    return len([outputs async for outputs in engine.outputs()])


def test_duplicate_request_is_refused() -> None:
    """Waiting or running."""

    async def main() -> None:
        engine = EchoEngine()
        request = EngineRequest(request_id="a", prompt_ids=[1, 2])
        await engine.submit(request)
        with pytest.raises(detok.DuplicateRequest):
            await engine.submit(request)
        await anext(aiter(engine.outputs()))
        with pytest.raises(detok.DuplicateRequest):
            await engine.submit(request)

    asyncio.run(main())


@pytest.mark.parametrize(
    "settings",
    [
        {"rate": 0},
        {"rate": -1.0},
        {"rate": True},
        {"rate": "fast"},
        {"max_batch": 0},
        {"step_tokens": 0},
        {"step_tokens": (1, 0)},
    ],
)
def test_bad_setting_is_named(settings: dict[str, Any]) -> None:
    """With its value."""
    ((option, _),) = settings.items()
    with pytest.raises(detok.OptionError, match=f"^{option}="):
        EchoEngine(**settings)


def test_bad_request_is_refused_before_it_begins() -> None:
    """A limit that is none, ids that are none."""

    async def main() -> None:
        engine = EchoEngine()
        for most in (0, -1, True, "9"):
            with pytest.raises(detok.OptionError, match=f"max_tokens={most!r}"):
                await engine.submit(EngineRequest(request_id="a", prompt_ids=[1], sampling={"max_tokens": most}))
        with pytest.raises(detok.OptionError, match="n=2"):
            await engine.submit(EngineRequest(request_id="a", prompt_ids=[1], sampling={"n": 2}))
        with pytest.raises(detok.TokenTypeError, match="prompt_ids"):
            await engine.submit(EngineRequest(request_id="a", prompt_ids=[1.5]))  # type: ignore[list-item]  # the point
        await engine.submit(EngineRequest(request_id="a", prompt_ids=[1]))
        await engine.close()
        with pytest.raises(detok.EngineError, match="closed"):
            await engine.submit(EngineRequest(request_id="b", prompt_ids=[1]))

    asyncio.run(main())


def test_abort_while_a_step_is_due_leaves_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """When `abort` returns, no output of the request comes: not even one that was on its way."""
    sleeping = asyncio.Event()

    async def main() -> list[list[str]]:
        release = asyncio.Event()

        async def sleep(seconds: float) -> None:
            sleeping.set()
            await release.wait()

        monkeypatch.setattr(scripted, "sleep", sleep)
        engine = EchoEngine(rate=1)
        for name in "ab":
            await engine.submit(EngineRequest(request_id=name, prompt_ids=[1, 2]))
        first = asyncio.ensure_future(anext(aiter(engine.outputs())))
        await sleeping.wait()
        await engine.abort(["a"])
        release.set()
        return [[one.request_id for one in await first]]

    assert asyncio.run(main()) == [["b"]]


def test_replay_goes_round() -> None:
    """Lists of ids and scripts, one after another and from the first again."""
    script = [ScriptStep((1, 2), (Logprob(-1.0), Logprob(-2.0))), ScriptStep((), None, "length")]
    batches = run(ReplayEngine([[7, 8], script]), {"a": [0], "b": [0], "c": [0]})
    assert given(batches, "a") == given(batches, "c") == [([7], None), ([8], "stop")]
    assert given(batches, "b") == [([1, 2], None), ([], "length")]
    assert [len(one.logprobs or ()) for outputs in batches for one in outputs if one.request_id == "b"] == [2, 0]


def test_replay_in_other_steps_keeps_logprobs_and_end() -> None:
    """Ids and their logprobs stay together, also when a limit cuts them."""
    script = [ScriptStep((1, 2, 3), (Logprob(-1.0), Logprob(-2.0), Logprob(-3.0))), ScriptStep((4,), (Logprob(-4.0),), "stop", 4)]
    (first,), (last,) = run(ReplayEngine([script], step_tokens=2), {"a": [0]}, sampling={"max_tokens": 3})
    assert (first.token_ids, first.logprobs) == ([1, 2], (Logprob(-1.0), Logprob(-2.0)))
    assert (last.token_ids, last.logprobs, last.finish_reason) == ([3], (Logprob(-3.0),), "length")
    (_,), (last,) = run(ReplayEngine([script], step_tokens=2), {"a": [0]})
    assert (last.token_ids, last.finish_reason, last.stop_reason) == ([3, 4], "stop", 4)


@pytest.mark.parametrize("recordings", [[], [[1.5]], [[ScriptStep((1,))]]])
def test_replay_of_what_is_no_recording_says_so(recordings: Any) -> None:
    """Nothing, no ids, and a script without an end."""
    with pytest.raises((detok.OptionError, detok.TokenTypeError), match="recordings"):
        ReplayEngine(recordings)
