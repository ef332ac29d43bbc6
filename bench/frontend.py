"""
Many requests at once, in one process: a row of a step, by the ways of vLLM, SGLang and detok; how it grows with the batch and
with what a request asks for; memory of an open request; and how long the event loop is blocked by a large step.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import process_time
from typing import Any

import detok
from detok.frontend.cost import PreparedEngine
from detok.frontend.cost import measure as measure_costs
from detok.frontend.processor import OutputProcessor

from .bounds import bytes_each
from .harness import Row, Section, Spread, alternate, apart, main, seconds
from .rows import Batches, DecodeStreamRows, Feeds, RowPeer, SGLangRows, VLLMRows, feeding
from .texts import hugging_face, ids_of, nine_scripts, path_of

__all__ = ["blocks", "growth", "kinds", "measure", "memory", "rows", "serving"]

BATCH = 256
STEPS = 64
STOP = ("\n\nQuestion:",)
JUDGE = "DecodeStream"
OURS = "BatchDecoder"
VOCABULARIES = ("llama3", "qwen3", "gptoss", "mistral-v1", "gemma3")


def measure(rounds: int) -> Iterator[Section]:
    """Yield all sections of this file."""
    yield rows(rounds)
    yield growth(rounds)
    yield kinds(rounds)
    yield memory()
    yield serving()
    yield blocks(rounds)


def rows(rounds: int) -> Section:
    """A row of a step, of each way."""
    made = [apart(_rows, vocabulary, rounds) for vocabulary in VOCABULARIES]
    columns = ("", JUDGE, "vLLM's way", "SGLang's way", "feed", OURS)
    notes = [
        f"Nanoseconds a row, {BATCH} requests in nine scripts, one stop string; in brackets, times {JUDGE}.",
        f"{JUDGE}: its step in a loop over the rows, no stop and no output. SGLang's way: by transformers' batch_decode.",
        "≠: texts are not the one-shot decode, nor the beginning of it.",
    ]
    return Section("A row of many requests", columns, made, notes)


def _rows(vocabulary: str, rounds: int) -> Row:
    tokenizer, library = detok.load(path_of(vocabulary)), hugging_face(vocabulary)
    options = detok.RequestOptions(stop=STOP)
    peers: dict[str, RowPeer] = {
        JUDGE: DecodeStreamRows(library),
        "vLLM's way": VLLMRows(library, STOP),
        "SGLang's way": SGLangRows(batch_decode(vocabulary)),
        "feed": Feeds(tokenizer, options),
        OURS: Batches(tokenizer, lambda _: options),
    }
    return _compared(vocabulary, peers, columns_of(vocabulary, BATCH), rounds, library)


def growth(rounds: int) -> Section:
    """A row, by how many there are."""
    made = [apart(_growth, batch, rounds) for batch in (16, 64, 256, 1024)]
    return Section("Growth with the batch", ("", JUDGE, OURS), made, ["llama3, nine scripts, one stop string. 1.00x: linear."])


def _growth(batch: int, rounds: int) -> Row:
    tokenizer, library = detok.load(path_of("llama3")), hugging_face("llama3")
    options = detok.RequestOptions(stop=STOP)
    peers: dict[str, RowPeer] = {JUDGE: DecodeStreamRows(library), OURS: Batches(tokenizer, lambda _: options)}
    return _compared(f"{batch:,} rows", peers, columns_of("llama3", batch), rounds, library)


KINDS: dict[str, Callable[[int], detok.RequestOptions]] = {
    "no stop": lambda row: detok.RequestOptions(),
    "one stop string": lambda row: detok.RequestOptions(stop=STOP),
    "another stop string each": lambda row: detok.RequestOptions(stop=f"\n\nQuestion {row}:"),
    "1,000 stop strings": lambda row: detok.RequestOptions(stop=[f"\n\nQuestion {number}:" for number in range(1000)]),
    "max_tokens": lambda row: detok.RequestOptions(stop=STOP, max_tokens=1000 + row),
    "stream_interval=16": lambda row: detok.RequestOptions(stop=STOP, stream_interval=16),
    'output="final"': lambda row: detok.RequestOptions(stop=STOP, output="final"),
    "a stop pattern": lambda row: detok.RequestOptions(stop_regex=r"\n\nQuestion \d+:", stop_regex_timeout=10),
    "segments": lambda row: detok.RequestOptions(stop=STOP, segments=True),
    "logprobs": lambda row: detok.RequestOptions(stop=STOP),
}


def kinds(rounds: int) -> Section:
    """A row, by what the requests ask for."""
    made = [apart(_kind, name, rounds) for name in KINDS]
    return Section("What requests ask for", ("", JUDGE, OURS), made, [f"llama3, {BATCH} requests in nine scripts."])


def _kind(name: str, rounds: int) -> Row:
    tokenizer, library = detok.load(path_of("llama3")), hugging_face("llama3")
    # Options are made once: what they cost is opening a request, and not a row of it.
    options = [KINDS[name](row) for row in range(BATCH)]
    ours = Batches(tokenizer, options.__getitem__, logprobs=name == "logprobs")
    return _compared(name, {JUDGE: DecodeStreamRows(library), OURS: ours}, columns_of("llama3", BATCH), rounds, library)


def memory() -> Section:
    """Bytes of one more open request."""
    tokenizer = detok.load(path_of("llama3"))
    options = detok.RequestOptions(stop=STOP)
    count, made = 65_536, []
    for name, tokens in (("just opened", 0), ("after 100 tokens", 100)):
        batch = detok.BatchDecoder(tokenizer)
        ids = ids_of("llama3", nine_scripts())[:tokens]
        numbers = iter(range(count + 1))

        def opened(batch: detok.BatchDecoder = batch, ids: Sequence[int] = ids, numbers: Iterator[int] = numbers) -> None:
            number = next(numbers)
            batch.open(number, (), options)
            for token_id in ids:
                batch.step([(number, [token_id], None, None, None)])

        traced = bytes_each(opened, count)
        record = {"requests": count, "case": name, "bytes_traced": traced}
        made.append(Row([name, f"{traced:.0f}", f"{traced * count / 1e6:.0f} MB"], record))
    return Section("Bytes of an open request", ("", "each", f"{count:,} of them"), made, ["tracemalloc, in a `BatchDecoder`."])


def serving() -> Section:
    """A row through the whole `OutputProcessor`, to the hands of a consumer on the event loop."""
    costs = measure_costs(detok.load(path_of("llama3")), batch=BATCH)
    made = [Row(["decoding alone", seconds(costs.decode)], {"seconds": costs.decode})]
    for interval, taken in costs.serve.items():
        made.append(Row([f"served, stream_interval={interval}", seconds(taken)], {"interval": interval, "seconds": taken}))
    return Section("A row that is served", ("", "a row"), made, [f"llama3, {BATCH} requests, one stop string: `detok cost`."])


def blocks(rounds: int) -> Section:
    """The longest time for which the event loop serves nobody else, under steps of 1,024 rows."""
    made = []
    for name, chunk_size in (("slices of 128", 128), ("in one", 1 << 20)):
        longest = Spread.of(asyncio.run(_longest_block(chunk_size)) for _ in range(rounds))
        made.append(Row([name, seconds(longest.median), seconds(longest.high)], {"case": name, "seconds": longest.record()}))
    notes = [
        "llama3, 1,024 requests in nine scripts, whose consumers read all outputs; a heartbeat that runs as often as it can."
    ]
    return Section("The longest block of the event loop", ("", "median", "worst round"), made, notes)


async def _longest_block(chunk_size: int) -> float:
    tokenizer, count = detok.load(path_of("llama3")), 1024
    engine = PreparedEngine(columns_of("llama3", count))
    options = detok.RequestOptions(stop=STOP)
    longest = 0.0

    async def consume() -> None:
        async for _ in frontend.generate([1], options=options):
            pass

    async def beat() -> None:
        nonlocal longest
        while True:
            before = process_time()
            await asyncio.sleep(0)
            longest = max(longest, process_time() - before)

    async with OutputProcessor(tokenizer, engine, chunk_size=chunk_size) as frontend:
        # The first time fills what the second one finds.
        for _ in range(2):
            readers = [asyncio.create_task(consume()) for _ in range(count)]
            await engine.all_here.wait()
            batches = engine.batches()
            # Without the last step, in which all requests end at once.
            gc.collect()
            gc.disable()
            engine.go(batches[:-1])
            longest, heart = 0.0, asyncio.create_task(beat())
            before = frontend.metrics.rows.value
            while frontend.metrics.rows.value < before + (STEPS - 1) * count:
                await asyncio.sleep(0)
            heart.cancel()
            gc.enable()
            engine.go(batches[-1:])
            await asyncio.gather(*readers)
    return longest


def columns_of(vocabulary: str, batch: int) -> list[list[int]]:
    """The id of each request for each step: nine scripts, each request at another place of them."""
    ids = ids_of(vocabulary, nine_scripts())
    starts = [row * len(ids) // batch for row in range(batch)]
    return [[ids[(start + step) % len(ids)] for start in starts] for step in range(STEPS)]


def batch_decode(vocabulary: str) -> Callable[[list[list[int]]], list[str]]:
    """What SGLang calls."""
    import transformers

    make: Any = transformers.PreTrainedTokenizerFast
    made = make(tokenizer_file=path_of(vocabulary))
    return partial(made.batch_decode, skip_special_tokens=True, clean_up_tokenization_spaces=False)


def _compared(name: str, peers: dict[str, RowPeer], columns: list[list[int]], rounds: int, library: Any) -> Row:
    """Let each peer read all once off the clock, which fills tables and shows faults, and then in turns."""
    truth = [library.decode(list(ids), skip_special_tokens=True) for ids in zip(*columns, strict=True)]
    # What is held at the end is no fault: only detok has a `finish` here.
    read = {peer_name: peer.texts(columns) for peer_name, peer in peers.items()}
    wrong = [one for one, texts in read.items() if not all(map(str.startswith, truth, texts))]
    steps = {peer_name: peer.steps(columns) for peer_name, peer in peers.items()}
    count = len(columns[0])
    # Once more: the first time fills what the second one finds.
    for peer_name, peer in peers.items():
        feeding(peer, steps[peer_name], count)()
    taken = alternate({one: partial(feeding, peer, steps[one], count) for one, peer in peers.items()}, rounds)
    record: dict[str, Any] = {"case": name, "rows": count, "steps": len(columns), "wrong": wrong, "ways": {}}
    cells = [name]
    for peer_name, found in taken.items():
        each = Spread.of(second / len(columns) / count * 1e9 for second in found)
        ratio = Spread.of(one / other for one, other in zip(found, taken[JUDGE], strict=True))
        record["ways"][peer_name] = {"nanoseconds_a_row": each.record(), "ratio": ratio.record()}
        cell = f"{each.median:.0f}" + ("" if peer_name == JUDGE else f" ({ratio.median:.2f}x)")
        cells.append(f"≠ {cell}" if peer_name in wrong else cell)
    return Row(cells, record)


if __name__ == "__main__":
    sys.exit(main([measure], __doc__))
