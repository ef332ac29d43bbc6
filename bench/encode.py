"""Prompts to ids: one long prompt, many at once, a short one alone, a chat of many turns; against ``tokenizers`` as it comes."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from tokenizers import Tokenizer

import detok
from detok.prompts.microbatch import AsyncEncoder
from detok.prompts.transcript import Transcript

from .harness import Prepare, Row, Section, Spread, alternate, apart, main, seconds
from .texts import hugging_face, path_of, unseen

__all__ = ["batches", "chat", "concurrent", "lone", "measure", "one_prompt"]

TOKENS = 8000
AT_ONCE = 32
LONE = 20
CALLS = 200
TURNS = 50
BEAT = 0.001
LIBRARY = "tokenizers.encode"


def measure(rounds: int) -> Iterator[Section]:
    """Yield all sections of this file."""
    yield one_prompt(rounds)
    yield concurrent(rounds)
    yield lone(rounds)
    yield batches(rounds)
    yield chat(rounds)


def one_prompt(rounds: int) -> Section:
    """One prompt after another, each of them new to everybody."""
    rows = [apart(_one_prompt, vocabulary, rounds) for vocabulary in ("llama3", "qwen3", "gptoss", "gemma3", "mistral-v1")]
    notes = ["Microseconds a token, in brackets how many times as fast. Code and docstrings of Python's library, no text twice."]
    return Section(f"An unseen prompt of {TOKENS:,} tokens", ("", LIBRARY, "detok, tokenizers", "detok, fastokens"), rows, notes)


def _one_prompt(vocabulary: str, rounds: int) -> Row:
    library = hugging_face(vocabulary)
    encoders: dict[str, Callable[[str], list[int]]] = {LIBRARY: lambda text: list(library.encode(text).ids)}
    for name in ("tokenizers", "fastokens"):
        encoders[f"detok, {name}"] = detok.load(path_of(vocabulary), encoder=name).encode
    texts = unseen(vocabulary, TOKENS)
    for text in islice(texts, 3):  # until caches are as warm as those of a server
        _refuse_different(encoders, text)
    prompts = {name: list(found) for name, found in zip(encoders, [list(islice(texts, rounds))] * len(encoders), strict=True)}
    contestants: dict[str, Prepare] = {name: _next(encode, prompts[name]) for name, encode in encoders.items()}
    return _row(vocabulary, alternate(contestants, rounds), per=TOKENS, unit=1e-6)


def _next(encode: Callable[[str], list[int]], texts: list[str]) -> Prepare:
    return lambda: partial(encode, texts.pop())


def concurrent(rounds: int) -> Section:
    """Many prompts at once, with `tokenizers` alone and with fastokens, while a heart beats on the loop."""
    rows = [
        apart(_concurrent, vocabulary, encoder, list(WAYS), rounds)
        for vocabulary, encoder in (("llama3", "tokenizers"), ("gemma3", "tokenizers"), ("llama3", "fastokens"))
    ]
    notes = [
        "All prompts by tokenizers.encode, one after another on the loop, or by asyncio.to_thread; the last as detok does it.",
        f"The longest time for which a heart that beats every {BEAT * 1e3:.0f} ms stood still, median and highest of the rounds;",
        "in brackets the throughput as a ratio. The last column is a heart on a loop that has nothing else to do.",
    ]
    return Section(f"{AT_ONCE} prompts of {TOKENS:,} tokens at once", ("", *WAYS), rows, notes)


def _concurrent(vocabulary: str, encoder: Any, names: Sequence[str], rounds: int) -> Row:
    texts = unseen(vocabulary, TOKENS)
    tokenizer = detok.load(path_of(vocabulary), encoder=encoder)
    # A library for each way, since it keeps the words that it has met.
    libraries = {name: Tokenizer.from_file(path_of(vocabulary)) for name in names}
    prompts = [list(islice(texts, AT_ONCE)) for _ in range(rounds + 1)]
    left = {name: list(prompts) for name in names}
    stops: dict[str, list[float]] = {name: [] for name in names}

    def prepare(name: str) -> Callable[[], object]:
        work = WAYS[name](tokenizer.async_encoder(), libraries[name].encode, left[name].pop())
        return lambda: stops[name].append(asyncio.run(_with_a_heart(work)))

    for name in names:
        prepare(name)()
        stops[name].clear()
    taken = alternate({name: partial(prepare, name) for name in names}, rounds)
    worst = {name: Spread.of(found) for name, found in stops.items()}
    ratios = {name: _ratios(taken[names[0]], found) for name, found in taken.items()}
    cells = [f"{seconds(worst[name].median)}, {seconds(worst[name].high)} ({ratios[name].median:.1f}x)" for name in names[:-1]]
    cells.append(f"{seconds(worst[names[-1]].median)}, {seconds(worst[names[-1]].high)}")
    record = {
        "vocabulary": vocabulary,
        "encoder": encoder,
        "seconds": {name: Spread.of(found).record() for name, found in taken.items()},
        "ratio": {name: ratio.record() for name, ratio in ratios.items()},
        "longest_stop": {name: spread.record() for name, spread in worst.items()},
    }
    return Row([f"{vocabulary}, {encoder}", *cells], record)


async def _on_the_loop(encoder: AsyncEncoder, encode: Callable[[str], Any], prompts: Sequence[str]) -> None:
    for prompt in prompts:
        list(encode(prompt).ids)
        await asyncio.sleep(0)


async def _in_threads(encoder: AsyncEncoder, encode: Callable[[str], Any], prompts: Sequence[str]) -> None:
    await asyncio.gather(*(asyncio.to_thread(lambda prompt: list(encode(prompt).ids), prompt) for prompt in prompts))


async def _async_encoder(encoder: AsyncEncoder, encode: Callable[[str], Any], prompts: Sequence[str]) -> None:
    async with encoder:
        await asyncio.gather(*map(encoder.encode, prompts))


async def _nothing(encoder: AsyncEncoder, encode: Callable[[str], Any], prompts: Sequence[str]) -> None:
    """For so long as the others take: what the machine's other work does to a heart."""
    await asyncio.sleep(0.2)


WAYS = {"on the loop": _on_the_loop, "to_thread": _in_threads, "AsyncEncoder": _async_encoder, "nothing": _nothing}


async def _with_a_heart(work: Coroutine[Any, Any, None]) -> float:
    """Return the longest time for which the loop did not come round."""
    worst = 0.0

    async def beat() -> None:
        nonlocal worst
        while True:
            start = time.perf_counter()
            await asyncio.sleep(BEAT)
            worst = max(worst, time.perf_counter() - start - BEAT)

    heart = asyncio.create_task(beat())
    await asyncio.sleep(0)
    await work
    await asyncio.sleep(0)
    heart.cancel()
    return worst


def lone(rounds: int) -> Section:
    """A short prompt that comes alone."""
    rows = [apart(_lone, "llama3", encoder, rounds) for encoder in ("tokenizers", "fastokens")]
    notes = ["Microseconds a call, and what AsyncEncoder.encode takes beyond the library's own encode."]
    return Section(f"A lone prompt of {LONE} tokens", ("", LIBRARY, "await AsyncEncoder.encode", "more"), rows, notes)


def _lone(vocabulary: str, name: Any, rounds: int) -> Row:
    library = hugging_face(vocabulary)
    encoder = detok.load(path_of(vocabulary), encoder=name).async_encoder()
    texts = unseen(vocabulary, LONE)

    def by_library() -> Callable[[], object]:
        prompts = list(islice(texts, CALLS))
        return lambda: [library.encode(prompt).ids for prompt in prompts]

    def by_encoder() -> Callable[[], object]:
        prompts = list(islice(texts, CALLS))

        async def serve() -> None:
            for prompt in prompts:
                await encoder.encode(prompt)
                await asyncio.sleep(0)  # the next one comes in another turn of the loop

        return lambda: loop.run_until_complete(serve())

    loop = asyncio.new_event_loop()
    try:
        taken = alternate({LIBRARY: by_library, "AsyncEncoder": by_encoder}, rounds)
    finally:
        loop.close()
    found = {each: Spread.of(second / CALLS for second in times) for each, times in taken.items()}
    more = Spread.of((ours - theirs) / CALLS for theirs, ours in zip(*taken.values(), strict=True))
    record = {"vocabulary": vocabulary, "encoder": name, "seconds": {each: one.record() for each, one in found.items()}}
    cells = [f"{one.median * 1e6:.1f}" for one in found.values()]
    return Row([f"{vocabulary}, {name}", *cells, f"{more.median * 1e6:+.1f}"], {**record, "more": more.record()})


def batches(rounds: int) -> Section:
    """Whether it pays to let requests that wait go together."""
    rows = [
        apart(_batches, "llama3", encoder, length, count, rounds)
        for encoder in ("tokenizers", "fastokens")
        for length, count in ((TOKENS, AT_ONCE), (500, 128), (100, 512), (20, 512))
    ]
    notes = [
        "Milliseconds for all, in brackets how many times as fast as each for itself.",
        "By default a batch has 32 requests, but not more bytes than take some 4 ms; the last column has no such limit.",
    ]
    columns = ("", "each for itself", "by default", "32, of any size")
    return Section("Batches of requests that come at once", columns, rows, notes)


def _batches(vocabulary: str, name: Any, length: int, count: int, rounds: int) -> Row:
    tokenizer = detok.load(path_of(vocabulary), encoder=name)
    texts = unseen(vocabulary, length)
    ways = {"each for itself": {"max_batch_size": 1}, "by default": {}, "32, of any size": {"max_batch_bytes": 1 << 40}}

    def prepare(options: Mapping[str, int]) -> Callable[[], object]:
        prompts = list(islice(texts, count))
        encoder = tokenizer.async_encoder(**options)
        return lambda: asyncio.run(_async_encoder(encoder, tokenizer.encode, prompts))

    prepare({})()
    taken = alternate({way: partial(prepare, options) for way, options in ways.items()}, rounds)
    return _row(f"{vocabulary}, {name}, {count} x {length:,} tokens", taken, per=1, unit=1e-3)


def chat(rounds: int) -> Section:
    """A chat whose turns are added to a transcript, and one that is rendered and encoded whole for each turn."""
    rows = [apart(_chat, "llama3", rounds)]
    notes = [
        f"A turn is a question of 30 tokens and an answer of 300; the mean of turns 2 to 6, and of the last five of {TURNS}."
    ]
    columns = ("", "whole, early", "whole, late", "Transcript, early", "Transcript, late", "late / early")
    return Section("A turn of a chat", columns, rows, notes)


def _chat(vocabulary: str, rounds: int) -> Row:
    tokenizer = detok.load(path_of(vocabulary), encoder="tokenizers")
    questions, answers = unseen(vocabulary, 30), unseen(vocabulary, 300)
    times: dict[str, list[list[float]]] = {"whole": [], "Transcript": []}
    for _ in range(rounds):
        asked = [{"role": "user", "content": text} for text in islice(questions, TURNS)]
        said = [{"role": "assistant", "content": text} for text in islice(answers, TURNS)]
        sampled = [tokenizer.encode(str(each["content"]) + "<|eot_id|>", add_special_tokens=False) for each in said]
        transcript = Transcript(tokenizer, render=_llama3)
        whole: list[dict[str, str]] = []
        for name in times:
            times[name].append([])
        for question, answer, ids in zip(asked, said, sampled, strict=True):
            start = time.perf_counter()
            whole.append(question)
            expected = tokenizer.encode(_llama3(whole, add_generation_prompt=True), add_special_tokens=False)
            whole.append(answer)
            middle = time.perf_counter()
            transcript.add_message(question)
            prompt = transcript.ids
            transcript.add_generated(ids)
            end = time.perf_counter()
            times["whole"][-1].append(middle - start)
            times["Transcript"][-1].append(end - middle)
            if prompt != expected and not transcript.drift():
                raise AssertionError("the transcript is not what the template says")
    early = {name: Spread.of(sum(turns[1:6]) / 5 for turns in found) for name, found in times.items()}
    late = {name: Spread.of(sum(turns[-5:]) / 5 for turns in found) for name, found in times.items()}
    growth = late["Transcript"].median / early["Transcript"].median
    cells = [seconds(each.median) for name in times for each in (early[name], late[name])]
    record = {name: {"early": early[name].record(), "late": late[name].record()} for name in times}
    return Row([vocabulary, *cells, f"{growth:.2f}"], {"vocabulary": vocabulary, "turns": TURNS, **record})


def _llama3(messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool) -> str:
    """The format of Llama 3, without the time that a template takes."""
    turns = [f"<|start_header_id|>{each['role']}<|end_header_id|>\n\n{each['content']}<|eot_id|>" for each in messages]
    begin = "<|start_header_id|>assistant<|end_header_id|>\n\n" * add_generation_prompt
    return f"<|begin_of_text|>{''.join(turns)}{begin}"


def _refuse_different(encoders: Mapping[str, Callable[[str], list[int]]], text: str) -> None:
    """What gives other ids is no contestant."""
    found = {name: encode(text) for name, encode in encoders.items()}
    for name, ids in found.items():
        if ids != found[LIBRARY]:
            raise AssertionError(f"{name} gives other ids than {LIBRARY}")


def _ratios(judge: Sequence[float], found: Sequence[float]) -> Spread:
    return Spread.of(one / other for one, other in zip(judge, found, strict=True))


def _row(name: str, taken: Mapping[str, Sequence[float]], *, per: int, unit: float) -> Row:
    """Medians in a unit, the first as they are, the others with their ratio to it."""
    judge = next(iter(taken.values()))
    spreads = {each: Spread.of(second / per for second in found) for each, found in taken.items()}
    ratios = {each: _ratios(judge, found) for each, found in taken.items()}
    cells = [
        f"{spread.median / unit:.3g}" + ("" if taken[each] is judge else f" ({ratios[each].median:.1f}x)")
        for each, spread in spreads.items()
    ]
    record = {
        "name": name,
        "seconds": {each: spread.record() for each, spread in spreads.items()},
        "ratio": {each: ratio.record() for each, ratio in ratios.items()},
    }
    return Row([name, *cells], record)


if __name__ == "__main__":
    sys.exit(main([measure], __doc__))
