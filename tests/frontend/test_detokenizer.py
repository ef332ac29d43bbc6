"""An `OutputProcessor` whose text is made in a worker: the same outputs, whatever becomes of the worker."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence

import pytest

import detok
from detok.engines.base import EngineOutput
from detok.engines.replay import ReplayEngine
from detok.frontend.detokenizer import OutOfProcess
from detok.frontend.processor import OutputProcessor
from detok.frontend.worker.kept import Pace
from tests.frontend.manual import ManualEngine
from tests.support.workers import endpoint, threaded

TOKENIZER = detok.load(detok.EMBEDDED)
TEXTS = ("Zoë 🦜 한국 END of it", "no stop in here", "naïve")


@pytest.fixture
def place() -> Iterator[str]:
    """A place for a worker to listen."""
    with endpoint() as found:
        yield found


def ids_of(text: str) -> list[int]:
    """The ids of a text."""
    return TOKENIZER.encode(text, add_special_tokens=False)


async def texts_of(frontend: OutputProcessor) -> list[tuple[str, str | None, str | int | None]]:
    """Text and end of one request for each text, all at once."""

    async def one() -> tuple[str, str | None, str | int | None]:
        outputs = [output async for output in frontend.generate([1], options=detok.RequestOptions(stop="END"))]
        return "".join(output.text for output in outputs), outputs[-1].finish_reason, outputs[-1].stop_reason

    async with asyncio.timeout(30):
        return await asyncio.gather(*(one() for _ in TEXTS))


def test_text_is_that_of_this_process(place: str) -> None:
    """Several requests over one worker: outputs as without it, and it has none of them left."""

    async def main(detokenizer: OutOfProcess | None) -> Sequence[object]:
        engine = ReplayEngine([ids_of(text) for text in TEXTS], step_tokens=2)
        async with OutputProcessor(TOKENIZER, engine, detokenizer=detokenizer) as frontend:
            return await texts_of(frontend)

    with threaded(TOKENIZER, place):
        there = asyncio.run(main(OutOfProcess(place, TOKENIZER)))
    assert there == asyncio.run(main(None))
    assert there[0] == ("Zoë 🦜 한국 ", "stop", "END")


def test_worker_that_is_replaced_is_not_noticed(place: str) -> None:
    """It ends in the middle of a character, another begins in its place, and the request goes on."""
    ids = ids_of(TEXTS[0])

    async def main() -> str:
        engine = ManualEngine()
        detokenizer = OutOfProcess(place, TOKENIZER, pace=Pace(retry=0.02))
        async with asyncio.timeout(30), OutputProcessor(TOKENIZER, engine, detokenizer=detokenizer) as frontend:
            outputs = frontend.generate([1])
            text = ""
            for start in range(0, len(ids), 3):
                with threaded(TOKENIZER, place):
                    first = asyncio.ensure_future(anext(outputs)) if not start else None
                    while not engine.submitted:
                        await asyncio.sleep(0)
                    engine.give(EngineOutput(request_id=engine.submitted[0].request_id, token_ids=ids[start : start + 3]))
                    text += (await (first or anext(outputs))).text
            with threaded(TOKENIZER, place):
                engine.give(EngineOutput(request_id=engine.submitted[0].request_id, finish_reason="length"))
                return text + (await anext(outputs)).text

    assert asyncio.run(main()) == TEXTS[0]


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pyzmq there is an error that names the extra."""
    monkeypatch.setitem(sys.modules, "zmq", None)
    with pytest.raises(detok.MissingExtra, match=r"detok\[worker\]"):
        OutOfProcess("ipc:///tmp/nobody", TOKENIZER)


def test_request_that_a_worker_gives_up_ends_with_its_error(place: str) -> None:
    """Its consumer is told, the engine aborts it, and the request whose row brought it goes on."""

    async def main() -> None:
        engine = ManualEngine()
        detokenizer = OutOfProcess(place, TOKENIZER)
        async with asyncio.timeout(30), OutputProcessor(TOKENIZER, engine, detokenizer=detokenizer) as frontend:
            one, other = frontend.generate([1]), frontend.generate([1])
            waiting = [asyncio.ensure_future(anext(outputs)) for outputs in (one, other)]
            while len(engine.submitted) < 2:
                await asyncio.sleep(0)
            given_up, going_on = (request.request_id for request in engine.submitted)
            detokenizer._strays.append((given_up, _failed()))
            engine.give(EngineOutput(request_id=going_on, token_ids=ids_of("naïve"), finish_reason="length"))
            first, second = await asyncio.gather(*waiting)
            assert (first.finish_reason, str(first.error)) == ("error", "too late")
            assert second.text == "naïve"
            while not engine.aborted:
                await asyncio.sleep(0)
            assert engine.aborted == [given_up]

    def _failed() -> detok.RequestOutput:
        output = detok.RequestOutput()
        output.finish_reason, output.error = "error", RuntimeError("too late")
        return output

    with threaded(TOKENIZER, place):
        asyncio.run(main())
