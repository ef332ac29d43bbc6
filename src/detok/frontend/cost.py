"""
What detokenizing costs on this machine, and up to which batch it hides behind the GPU.

While the GPU works on the next step, the processor has the time of a step for the rows of the last one: it is hidden as long as
rows a step times seconds a row is less. So one constant decides, and it is measured here, with the tokenizer in question, on the
real path: a whole `OutputProcessor` with a consumer for each request, and an engine that costs nothing.
"""

from __future__ import annotations

import asyncio
import gc
import pickle
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from statistics import median
from time import perf_counter, process_time

from ..core.request.batch import BatchDecoder
from ..core.request.options import RequestOptions
from ..data import sample
from ..engines.base import EngineOutput, EngineRequest
from ..errors import EncodeUnsupported
from ..tokenizers import Tokenizer
from .processor import OutputProcessor

__all__ = ["Costs", "PreparedEngine", "Setting", "measure"]

INTERVALS = (4, 16)
STEPS = 96
ROUNDS = 3
# A stop string that does not come, as most requests have one.
STOP = "\n\nQuestion:"


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to set a frontend up."""

    name: str
    seconds_a_row: float
    """Of the busiest process: what is hidden behind the GPU or not."""

    def seconds_a_step(self, batch: int) -> float:
        """What a step of so many rows takes."""
        return batch * self.seconds_a_row

    def largest_batch(self, step_seconds: float) -> int:
        """B*: up to so many rows a step are hidden."""
        return int(step_seconds / self.seconds_a_row + 1e-9)


@dataclass(frozen=True, slots=True)
class Costs:
    """
    Seconds a row, measured.

    >>> costs = Costs(decode=4e-7, serve={1: 4e-6, 4: 2e-6}, message=2e-7)
    >>> [(setting.name, setting.largest_batch(4.5e-3)) for setting in costs.settings()][:2]
    [('in process', 1125), ('stream_interval=4', 2250)]
    """

    decode: float
    """Of `BatchDecoder.step` alone."""

    serve: dict[int, float]
    """By `stream_interval`: of the whole processor, up to the consumer's hands."""

    message: float
    """Of packing and unpacking a row, once each way."""

    def settings(self, workers: Sequence[int] = (1, 2, 4)) -> list[Setting]:
        """
        Return what could be set up, and what each would cost.

        A detokenizer process takes the decoding out of this one and adds two messages a row to both. Its workers share theirs;
        what is left here, handing outputs to consumers, they cannot share.
        """
        settings = [Setting("in process", self.serve[1])]
        settings += [Setting(f"stream_interval={n}", seconds) for n, seconds in self.serve.items() if n > 1]
        here = max(0.0, self.serve[1] - self.decode) + 2 * self.message
        for count in workers:
            there = (self.decode + 2 * self.message) / count
            settings.append(Setting(f"{count} detokenizer process{'es' if count > 1 else ''}", max(here, there)))
        return settings


def measure(tokenizer: Tokenizer, *, batch: int = 256, rounds: int = ROUNDS) -> Costs:
    """
    Measure what a row costs here, in steps of `batch` rows. It takes some seconds.

    Args:
        tokenizer: Which one. Its ids are those of a text in many scripts, or any of its own if it has no encoder.
        batch: Rows a step.
        rounds: Of which the medians are taken.
    """
    columns = _columns(_ids(tokenizer), batch)
    # Once before, so that what a server remembers after its first minute is remembered.
    _decode_seconds(tokenizer, columns)
    decode = median(_decode_seconds(tokenizer, columns) for _ in range(rounds))
    serve = {
        interval: median(asyncio.run(_serve_seconds(tokenizer, columns, interval)) for _ in range(rounds))
        for interval in (1, *INTERVALS)
    }
    return Costs(decode, serve, median(_message_seconds(columns) for _ in range(rounds)))


def _ids(tokenizer: Tokenizer) -> list[int]:
    try:
        ids = tokenizer.encode(sample("mixed"), add_special_tokens=False)
    except EncodeUnsupported:
        ids = []
    ends = set(tokenizer.eos_token_ids)
    return [one for one in ids or random.Random(0).choices(tokenizer.ids, k=2000) if one not in ends]


def _columns(ids: Sequence[int], batch: int) -> list[list[int]]:
    """A column of ids for each step: each request is at another place of the text."""
    starts = [row * len(ids) // batch for row in range(batch)]
    return [[ids[(start + step) % len(ids)] for start in starts] for step in range(STEPS)]


def _decode_seconds(tokenizer: Tokenizer, columns: Sequence[Sequence[int]]) -> float:
    decoder = BatchDecoder(tokenizer)
    options = RequestOptions(stop=STOP)
    names = [str(row) for row in range(len(columns[0]))]
    steps = [list(zip(names, [[one] for one in ids], repeat(None), repeat(None), repeat(None), strict=False)) for ids in columns]
    for turn in ("first", "again"):
        for name in names:
            if turn == "again":
                decoder.release(name)
            decoder.open(name, (), options)
        with _Clock() as clock:
            for rows in steps:
                decoder.step(rows)
    return clock.seconds / (len(columns) * len(names))


async def _serve_seconds(tokenizer: Tokenizer, columns: Sequence[Sequence[int]], interval: int) -> float:
    engine = PreparedEngine(columns)
    options = RequestOptions(stop=STOP, stream_interval=interval)
    async with OutputProcessor(tokenizer, engine) as frontend:

        async def consume() -> None:
            async for _ in frontend.generate([1], options=options):
                pass

        # The first time round is not counted.
        for _ in range(2):
            readers = [asyncio.create_task(consume()) for _ in columns[0]]
            await engine.all_here.wait()
            batches = engine.batches()
            with _Clock() as clock:
                engine.go(batches)
                await asyncio.gather(*readers)
    return clock.seconds / (len(columns) * len(columns[0]))


def _message_seconds(columns: Sequence[Sequence[int]]) -> float:
    """What a row takes in a message, one way; of the standard library, which is near what msgpack takes."""
    steps = [[(str(row), [one]) for row, one in enumerate(ids)] for ids in columns]
    with _Clock() as clock:
        for rows in steps:
            pickle.loads(pickle.dumps(rows))
    return clock.seconds / (len(columns) * len(columns[0]))


class PreparedEngine:
    """An engine that costs nothing while the clock runs: its batches are made before."""

    def __init__(self, columns: Sequence[Sequence[int]]) -> None:
        self._columns = columns
        self._names: list[str] = []
        self._ready: asyncio.Queue[list[list[EngineOutput]]] = asyncio.Queue()
        self.all_here = asyncio.Event()

    async def submit(self, request: EngineRequest) -> None:
        self._names.append(request.request_id)
        if len(self._names) == len(self._columns[0]):
            self.all_here.set()

    def batches(self) -> list[list[EngineOutput]]:
        """Make the batches of the requests that are here, and be ready for the next ones."""
        names, self._names = self._names, []
        self.all_here.clear()
        ends = [*repeat(None, len(self._columns) - 1), "length"]
        return [
            [
                EngineOutput(request_id=name, token_ids=[one], finish_reason="length" if end else None)
                for name, one in zip(names, ids, strict=True)
            ]
            for ids, end in zip(self._columns, ends, strict=True)
        ]

    def go(self, batches: list[list[EngineOutput]]) -> None:
        """Let them be read."""
        self._ready.put_nowait(batches)

    async def outputs(self) -> AsyncIterator[list[EngineOutput]]:
        while True:
            for outputs in await self._ready.get():
                yield outputs

    async def abort(self, request_ids: Sequence[str]) -> None:
        pass

    async def close(self) -> None:
        pass


class _Clock:
    """Measures what is inside, without the garbage collector. It stands still while other processes have the processor."""

    seconds = 0.0

    def __enter__(self) -> _Clock:
        gc.collect()
        gc.disable()
        self._start = perf_counter(), process_time()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = min(perf_counter() - self._start[0], process_time() - self._start[1])
        gc.enable()
