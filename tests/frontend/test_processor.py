"""The processor: what consumers get, what the engine is told, and that nobody waits for what will not come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

import detok
from detok.data import sample
from detok.engines.echo import EchoEngine
from detok.engines.replay import ReplayEngine
from detok.frontend import aborts
from detok.frontend.processor import OutputProcessor
from tests.frontend.manual import ManualEngine, row

TOKENIZER = detok.load(detok.EMBEDDED)
Outputs = AsyncGenerator[detok.RequestOutput, None]


def ids_of(text: str) -> list[int]:
    """The ids of a text."""
    return TOKENIZER.encode(text, add_special_tokens=False)


def with_engine(
    test: Callable[[ManualEngine, OutputProcessor], Coroutine[Any, Any, None]],
) -> Callable[[], None]:
    """Run a test on an event loop of its own, with an engine by hand; a test that hangs fails."""

    @wraps(test)
    def run() -> None:
        async def main() -> None:
            engine = ManualEngine()
            async with asyncio.timeout(20), OutputProcessor(TOKENIZER, engine) as frontend:
                await test(engine, frontend)

        asyncio.run(main())

    del run.__wrapped__  # pytest would take its arguments for fixtures
    return run


async def read(outputs: Outputs) -> list[detok.RequestOutput]:
    """All outputs of a request."""
    return [output async for output in outputs]


def text_of(outputs: list[detok.RequestOutput]) -> str:
    """Their text."""
    return "".join(output.text for output in outputs)


async def until(condition: Callable[[], bool]) -> None:
    """Let others run until something is so."""
    while not condition():
        await asyncio.sleep(0)


async def begun(engine: ManualEngine, *outputs: Awaitable[Any]) -> tuple[list[asyncio.Task[Any]], list[str]]:
    """Start consumers one after another, and return their tasks and the ids that the engine knows them by."""
    tasks = []
    before = len(engine.submitted)
    for number, one in enumerate(outputs, 1):
        tasks.append(asyncio.ensure_future(one))
        await engine.arrived(before + number)
    return tasks, (await engine.arrived(0))[before:]


@pytest.mark.parametrize("chunk_size", [1, 3, 128])
@pytest.mark.parametrize("step_tokens", [1, (1, 4, 2)])
def test_text_is_the_one_shot_decode(chunk_size: int, step_tokens: Any) -> None:
    """Twenty requests at once, each its own text, ids and end, whatever the slices and steps."""

    async def main() -> None:
        texts = [sample("mixed")[number * 7 :][:120] for number in range(20)]
        engine = EchoEngine(step_tokens=step_tokens, max_batch=7)
        async with OutputProcessor(TOKENIZER, engine, chunk_size=chunk_size) as frontend:
            found = await asyncio.gather(*(read(frontend.generate(ids_of(text))) for text in texts))
        assert list(map(text_of, found)) == texts
        for text, outputs in zip(texts, found, strict=True):
            assert [token_id for output in outputs for token_id in output.token_ids] == ids_of(text)
            assert [output.finish_reason for output in outputs] == [None] * (len(outputs) - 1) + ["stop"]
        assert frontend.metrics.aborts.value == 0

    asyncio.run(main())


def test_prompt_may_be_a_text() -> None:
    """It is what `tokenizer.encode` makes of it, and context for what follows."""

    @with_engine
    async def test(engine: ManualEngine, frontend: OutputProcessor) -> None:
        outputs = frontend.generate(
            "Look: 🦜", sampling={"seed": 1}, options=detok.RequestOptions(max_tokens=9), request_id="mine"
        )
        (reading,), (name,) = await begun(engine, read(outputs))
        (request,) = engine.submitted
        assert request.prompt_ids == TOKENIZER.encode("Look: 🦜")
        assert request.sampling == {"seed": 1, "max_tokens": 9}
        assert name.startswith("mine")
        engine.give(row(name, *ids_of("!"), finish_reason="length"))
        assert text_of(await reading) == "!"

    test()


def test_character_that_the_prompt_began_is_completed() -> None:
    """Law 5 through the whole frontend."""

    async def main() -> str:
        parrot = ids_of("🦜")
        async with OutputProcessor(TOKENIZER, ReplayEngine([parrot[1:]])) as frontend:
            return text_of(await read(frontend.generate(ids_of("Look: ") + parrot[:1])))

    assert asyncio.run(main()) == "🦜"


@with_engine
async def test_stop_in_text_ends_at_once_and_aborts_once(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """What the engine sends later is ignored, in the same batch and in later ones; the neighbour goes on."""
    asked = detok.RequestOptions(stop="END")
    (reading, other), (name, neighbour) = await begun(
        engine, read(frontend.generate([1], options=asked)), read(frontend.generate([1]))
    )
    engine.give(row(name, *ids_of("a END b")), row(name, *ids_of("late")), row(neighbour, *ids_of("x")))
    outputs = await reading
    assert (text_of(outputs), outputs[-1].finish_reason, outputs[-1].stop_reason) == ("a ", "stop", "END")
    await until(lambda: bool(engine.aborted))
    engine.give(row(name, *ids_of("later")), row(neighbour, *ids_of("y")))
    engine.give(row(name, finish_reason="abort"), row(neighbour, *ids_of("z"), finish_reason="stop"))
    assert text_of(await other) == "xyz"
    assert engine.aborted == [name]
    assert frontend.metrics.ignored_rows.value == 3


@with_engine
async def test_stop_in_the_last_step_aborts_nothing(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """The engine had ended by itself."""
    (reading,), (name,) = await begun(engine, read(frontend.generate([1], options=detok.RequestOptions(stop="END"))))
    engine.give(row(name, *ids_of("a END"), finish_reason="length"))
    assert (await reading)[-1].stop_reason == "END"
    await frontend.close()
    assert engine.aborted == []


@with_engine
async def test_limit_of_the_options_aborts(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """An engine that does not know `max_tokens` is stopped."""
    (reading,), (name,) = await begun(engine, read(frontend.generate([1], options=detok.RequestOptions(max_tokens=2))))
    engine.give(row(name, *ids_of("a b c")))
    outputs = await reading
    assert (outputs[-1].finish_reason, outputs[-1].tokens_kept) == ("length", 2)
    await until(lambda: engine.aborted == [name])


@pytest.mark.parametrize("way", ["closed", "cancelled", "left"])
def test_consumer_that_goes_away_aborts_once(way: str) -> None:
    """Its generator is closed, its task cancelled, or it just leaves the loop; the neighbour goes on."""

    @with_engine
    async def test(engine: ManualEngine, frontend: OutputProcessor) -> None:
        outputs = frontend.generate([1])

        async def leave() -> None:
            # Nobody closes this one but the end of its life.
            async for _ in frontend.generate([1]):
                break

        reading = asyncio.ensure_future(leave() if way == "left" else anext(outputs))
        (other,), (name, neighbour) = await begun(engine, read(frontend.generate([1])))
        if way == "cancelled":
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        else:
            engine.give(row(name, *ids_of("a")))
            await reading
            await outputs.aclose()
        await until(lambda: bool(engine.aborted))
        engine.give(row(name, *ids_of("b")), row(neighbour, *ids_of("c"), finish_reason="stop"))
        assert text_of(await other) == "c"
        await frontend.close()
        assert engine.aborted == [name]
        assert frontend.metrics.aborts.value == 1

    test()


@with_engine
async def test_consumer_that_leaves_behind_the_end_aborts_nothing(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """The last output waits unread, so there is nothing to abort."""
    outputs = frontend.generate([1])
    (reading,), (name,) = await begun(engine, anext(outputs))
    engine.give(row(name, *ids_of("a")))
    await reading
    engine.give(row(name, *ids_of("b"), finish_reason="stop"))
    await until(lambda: frontend.metrics.rows.value == 2)
    await outputs.aclose()
    await frontend.close()
    assert engine.aborted == []


@pytest.mark.parametrize("kind", ["delta", "cumulative", "final"])
def test_slow_consumer_gets_all_in_one(kind: Any) -> None:
    """While it sleeps, one output waits for it, whatever came; nothing is lost, and the last one says the end."""

    @with_engine
    async def test(engine: ManualEngine, frontend: OutputProcessor) -> None:
        text = sample("mixed")[:300]
        ids = ids_of(text)
        outputs = frontend.generate([1], options=detok.RequestOptions(output=kind))
        (reading,), (name,) = await begun(engine, anext(outputs))
        engine.give(row(name, ids[0]))
        await until(lambda: frontend.metrics.rows.value == 1)
        first = [] if kind == "final" else [await reading]
        for token_id in ids[1:-1]:
            engine.give(row(name, token_id))
        engine.give(row(name, ids[-1], finish_reason="stop"))
        await until(lambda: frontend.metrics.rows.value == len(ids))
        rest = [await reading] if kind == "final" else await read(outputs)
        assert len(rest) == 1
        assert text_of(first + rest if kind == "delta" else rest) == text
        assert (first + rest if kind == "delta" else rest)[-1].finish_reason == "stop"
        assert [token_id for one in (first + rest if kind == "delta" else rest) for token_id in one.token_ids] == ids
        assert frontend.metrics.coalesced.value == (0 if kind == "final" else frontend.metrics.outputs.value - 2)

    test()


@with_engine
async def test_stream_interval_is_kept(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """An output with the first token, then with every third, and at the end."""
    outputs = frontend.generate([1], options=detok.RequestOptions(stream_interval=3))
    found: list[detok.RequestOutput] = []

    async def consume() -> None:
        found.extend([output async for output in outputs])

    (reading,), (name,) = await begun(engine, consume())
    ids = ids_of("abcdefg hijklmn")
    for place, token_id in enumerate(ids):
        engine.give(row(name, token_id, finish_reason="stop" if place == len(ids) - 1 else None))
        await until(lambda place=place: frontend.metrics.rows.value == place + 1)  # type: ignore[misc]  # mypy on lambdas
        await asyncio.sleep(0)
    await reading
    sizes = [len(output.token_ids) for output in found]
    assert sizes[:-1] == [1] + [3] * (len(sizes) - 2)
    assert text_of(found) == TOKENIZER.decode(ids)


@with_engine
async def test_bad_row_ends_its_request_alone(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """With an error output, and an abort for the engine, which knows nothing of it; later rows are ignored."""
    (bad, good), (name, neighbour) = await begun(engine, read(frontend.generate([1])), read(frontend.generate([1])))
    engine.give(row(name, *ids_of("a")), row(neighbour, *ids_of("b")))
    engine.give(row(name, 1.5), row(neighbour, *ids_of("c"), finish_reason="stop"))  # type: ignore[arg-type]  # the point
    last = (await bad)[-1]
    assert (last.finish_reason, type(last.error)) == ("error", detok.TokenTypeError)
    assert text_of(await good) == "bc"
    await until(lambda: engine.aborted == [name])
    assert frontend.metrics.errors.value == 1


@with_engine
async def test_error_of_the_engine_for_one_request_stays_there(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """It comes in the engine's words, behind all that was held, and is no abort."""
    (bad, good), (name, neighbour) = await begun(engine, read(frontend.generate([1])), read(frontend.generate([1])))
    engine.give(row(name, ids_of("🦜")[0], finish_reason="error", error="out of memory"), row(neighbour, *ids_of("b")))
    engine.give(row(neighbour, *ids_of("c"), finish_reason="stop"))
    (last,) = await bad
    assert (last.text, last.finish_reason, str(last.error)) == ("�", "error", "the engine failed: out of memory")
    assert text_of(await good) == "bc"
    await frontend.close()
    assert engine.aborted == []


@pytest.mark.parametrize("failure", [ConnectionError("gone"), detok.EngineError("it is away"), None])
def test_engine_that_fails_ends_every_request(failure: Exception | None) -> None:
    """Each with an error output and what it held; nobody hangs, now or later."""

    @with_engine
    async def test(engine: ManualEngine, frontend: OutputProcessor) -> None:
        tasks, (one, _) = await begun(engine, read(frontend.generate([1])), read(frontend.generate([1])))
        engine.give(row(one, ids_of("🦜")[0]))
        engine.break_down(failure)
        found = await asyncio.gather(*tasks)
        assert [text_of(outputs) for outputs in found] == ["�", ""]
        errors = [outputs[-1].error for outputs in found]
        assert [outputs[-1].finish_reason for outputs in found] == ["error", "error"]
        said = {ConnectionError: "ConnectionError: gone", detok.EngineError: "it is away"}.get(type(failure), "its outputs ended")
        assert [str(error) for error in errors] == [f"the engine failed: {said}"] * 2
        with pytest.raises(detok.EngineError, match=said):
            await anext(frontend.generate([1]))
        assert frontend.metrics.errors.value == 2

    test()


@with_engine
async def test_engine_whose_outputs_are_cancelled_has_failed(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """It waits for a task of its own, and somebody cancelled that: nobody waits for what will not come."""
    (reading,), _ = await begun(engine, read(frontend.generate([1])))
    engine.break_down(asyncio.CancelledError())
    (last,) = await reading
    assert (last.finish_reason, str(last.error)) == ("error", "the engine failed: its outputs were cancelled")
    with pytest.raises(detok.EngineError, match="cancelled"):
        await anext(frontend.generate([1]))


@with_engine
async def test_request_that_the_engine_refuses_raises(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """What the engine raised, as it was; there is nothing to abort, and others go on."""
    engine.refuses = ValueError("no such model")
    with pytest.raises(ValueError, match="no such model"):
        await anext(frontend.generate([1]))
    engine.refuses = None
    (reading,), names = await begun(engine, read(frontend.generate([1])))
    engine.give(row(names[-1], *ids_of("a"), finish_reason="stop"))
    assert text_of(await reading) == "a"
    await frontend.close()
    assert engine.aborted == []


@with_engine
async def test_consumer_cancelled_while_the_engine_takes_its_request(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """Nobody knows whether the engine has it, so it is aborted."""
    engine.hangs = asyncio.Event()
    (reading,), (name,) = await begun(engine, anext(frontend.generate([1])))
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    engine.hangs.set()
    await until(lambda: engine.aborted == [name])


@with_engine
async def test_outputs_that_come_before_submit_returns_are_not_lost(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """An engine may be that fast."""
    engine.hangs = asyncio.Event()
    (reading,), (name,) = await begun(engine, read(frontend.generate([1])))
    engine.give(row(name, *ids_of("a"), finish_reason="stop"))
    await until(lambda: frontend.metrics.rows.value == 1)
    engine.hangs.set()
    assert text_of(await reading) == "a"


def test_abort_that_the_engine_does_not_take_hurts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """It hangs or raises: counted, and the frontend goes on."""
    monkeypatch.setattr(aborts, "ABORT_SECONDS", 0.01)

    @with_engine
    async def test(engine: ManualEngine, frontend: OutputProcessor) -> None:
        for number, breaks in enumerate([True, False], 1):
            (reading,), names = await begun(engine, read(frontend.generate([1], options=detok.RequestOptions(stop="END"))))
            engine.refuses = OSError("gone") if breaks else None
            engine.hangs = None if breaks else asyncio.Event()
            engine.give(row(names[-1], *ids_of("END")))
            await reading
            await until(lambda number=number: frontend.metrics.failed_aborts.value == number)  # type: ignore[misc]
            engine.refuses = engine.hangs = None

    test()


@with_engine
async def test_abort_that_is_cancelled_within_the_engine_is_a_failed_one(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """The next ones are sent all the same, and the engine is closed."""
    for number in (1, 2):
        (reading,), names = await begun(engine, read(frontend.generate([1], options=detok.RequestOptions(stop="END"))))
        engine.refuses = asyncio.CancelledError()
        engine.give(row(names[-1], *ids_of("END")))
        await reading
        await until(lambda number=number: frontend.metrics.failed_aborts.value == number)  # type: ignore[misc]
        engine.refuses = None
    (_,), (*_, last) = await begun(engine, read(frontend.generate([1])))
    engine.refuses = asyncio.CancelledError()
    await frontend.close()
    assert (len(engine.aborted), engine.aborted[-1], engine.closed) == (3, last, 1)


@with_engine
async def test_close_that_is_cancelled_is_finished_by_the_next(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """The abort that it waited for goes on; one that comes at the same time waits for the first."""
    (reading,), names = await begun(engine, read(frontend.generate([1])))
    engine.hangs = asyncio.Event()
    first = asyncio.create_task(frontend.close())
    await until(lambda: engine.aborted == names)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    second, third = (asyncio.create_task(frontend.close()) for _ in range(2))
    for _ in range(9):
        await asyncio.sleep(0)
    assert (first.cancelled(), second.done(), third.done(), engine.closed) == (True, False, False, 0)
    engine.hangs.set()
    await asyncio.gather(second, third)
    assert (engine.aborted, engine.closed) == (names, 1)
    assert (await reading)[-1].finish_reason == "abort"


@with_engine
async def test_close_ends_every_request_with_abort(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """What was held comes out, the engine is told and closed, and a second close does no harm."""
    (reading,), (name,) = await begun(engine, read(frontend.generate([1])))
    engine.give(row(name, ids_of("🦜")[0]))
    await until(lambda: frontend.metrics.rows.value == 1)
    await frontend.close()
    (*_, last) = await reading
    assert (last.text, last.finish_reason, last.error) == ("�", "abort", None)
    assert (engine.aborted, engine.closed) == ([name], 1)
    await frontend.close()
    assert engine.closed == 1
    with pytest.raises(detok.EngineError, match="closed"):
        await anext(frontend.generate([1]))


@with_engine
async def test_close_ends_even_a_request_that_cannot_end(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """Whatever breaks in it: its consumer gets an end, and nothing hangs."""

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    (reading,), (name,) = await begun(engine, read(frontend.generate([1])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(detok.RequestDecoder, "finish", broken)
        await frontend.close()
    (last,) = await reading
    assert (last.finish_reason, engine.aborted) == ("abort", [name])


@with_engine
async def test_batch_of_requests_that_have_all_ended_is_ignored(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """Nothing is decoded, and the next batch is."""
    (reading,), (name,) = await begun(engine, read(frontend.generate([1])))
    engine.give(row("of another time", *ids_of("x")))
    engine.give(row(name, *ids_of("y"), finish_reason="stop"))
    assert text_of(await reading) == "y"
    assert (frontend.metrics.ignored_rows.value, frontend.metrics.rows.value) == (1, 1)


@with_engine
async def test_same_request_id_twice_is_two_requests(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """A name may come again, and late rows of the first are not the second's."""
    tasks, (one, two) = await begun(
        engine, read(frontend.generate([1], request_id="a")), read(frontend.generate([1], request_id="a"))
    )
    engine.give(row(one, *ids_of("x"), finish_reason="stop"), row(two, *ids_of("y"), finish_reason="stop"))
    assert [text_of(await task) for task in tasks] == ["x", "y"]


@with_engine
async def test_bad_prompt_raises_and_the_engine_never_hears_of_it(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """The field and the place are named."""
    with pytest.raises(detok.TokenTypeError, match=r"prompt\[1\]"):
        await anext(frontend.generate([1, 1.5]))  # type: ignore[list-item]  # the point
    assert engine.submitted == []


def test_others_have_their_turn_between_slices() -> None:
    """A batch of 1,024 in slices of 128 lets the event loop go round eight times; in one slice, once."""

    def turns(chunk_size: int) -> list[int]:
        """How many rows were done at each turn that somebody else had during the batch."""
        seen: list[int] = []

        async def main() -> None:
            engine = ManualEngine()
            async with asyncio.timeout(20), OutputProcessor(TOKENIZER, engine, chunk_size=chunk_size) as frontend:
                tasks, names = await begun(engine, *(read(frontend.generate([1])) for _ in range(1024)))
                engine.give(*(row(name, *ids_of("a"), finish_reason="stop") for name in names))
                while frontend.metrics.rows.value < 1024:
                    done = int(frontend.metrics.rows.value)
                    if done and done not in seen:
                        seen.append(done)
                    await asyncio.sleep(0)
                await asyncio.gather(*tasks)

        asyncio.run(main())
        return seen

    assert turns(128) == [128, 256, 384, 512, 640, 768, 896]
    assert turns(1024) == []


@pytest.mark.parametrize("chunk_size", [0, -1, True, 1.5, "all"])
def test_bad_chunk_size_is_named(chunk_size: Any) -> None:
    """With its value."""
    with pytest.raises(detok.OptionError, match="chunk_size="):
        OutputProcessor(TOKENIZER, EchoEngine(), chunk_size=chunk_size)


@with_engine
async def test_metrics_tell_what_is_going_on(engine: ManualEngine, frontend: OutputProcessor) -> None:
    """Open requests, held tokens, waiting outputs, rows and tokens, at the moment they are read."""

    def value(name: str) -> float:
        line = next(line for line in frontend.metrics.text().splitlines() if line.startswith(name + " "))
        return float(line.split()[1])

    first, second = frontend.generate([1]), frontend.generate([1])
    (one, two), names = await begun(engine, anext(first), anext(second))
    parrot = ids_of("🦜")
    engine.give(row(names[0], *ids_of("a")), row(names[1], *ids_of("a")))
    await one
    await two
    engine.give(row(names[0], parrot[0]), row(names[1], *ids_of("b")))
    await until(lambda: value("detok_rows_total") == 4)
    assert value("detok_open_requests") == 2
    assert value("detok_held_tokens") == 1
    assert value("detok_waiting_outputs") == 2
    assert value("detok_waiting_rows") == 0
    assert value("detok_tokens_total") == 4
    assert value("detok_row_seconds_count") == 4
    assert value("detok_request_seconds_count") == 0
    await first.aclose()
    await second.aclose()
    assert value("detok_open_requests") == 0
    assert value("detok_aborts_total") == 2
    assert value("detok_request_seconds_count") == 2


def test_text_prompt_begins_with_one_bos(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text goes the way of prompts, on which two BOS become one, and not that of texts."""
    monkeypatch.setattr(type(TOKENIZER), "encode_prompt", lambda self, text: [1, *self.encode(text)])

    async def main() -> None:
        engine = ManualEngine()
        async with asyncio.timeout(20), OutputProcessor(TOKENIZER, engine) as frontend:
            waiting = asyncio.ensure_future(anext(frontend.generate("Hi")))
            await until(lambda: bool(engine.submitted))
            waiting.cancel()
            assert engine.submitted[0].prompt_ids == [1, *TOKENIZER.encode("Hi")]

    asyncio.run(main())
