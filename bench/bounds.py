"""What must not grow: a stream's memory, the cost of a prompt, of hostile ids, and of the place in a stream."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import fmean
from time import perf_counter
from typing import Any

from tokenizers.decoders import DecodeStream

import detok
from detok.core.options import ByteFallbackMode

from .harness import Prepare, Row, Section, Spread, again, alternate, main, seconds
from .peers import Steps
from .texts import at_least, english, hugging_face, ids_of, nine_scripts, path_of

__all__ = ["bytes_each", "course_of", "hostile", "measure", "memory", "places", "prompts"]

STREAMS = 10_000
LONG = 100_000
SHORT = 10_000
# A prompt is read in microseconds; so many in a turn make a time that a clock can tell.
PROMPTS_IN_A_TURN = 50


def measure(rounds: int) -> Iterator[Section]:
    """Yield all sections of this file."""
    yield memory()
    yield prompts(rounds)
    yield hostile(rounds)
    yield places(rounds)


def memory() -> Section:
    """Bytes that one more open stream takes, beside the tables that all share."""
    llama, mistral = detok.load(path_of("llama3")), detok.load(path_of("mistral-v1"))
    words = ids_of("llama3", english())[:100]
    cut = ids_of("llama3", "🦜")[:1]
    # Byte tokens of a run that is still valid: exact mode holds it whole.
    run = ids_of("mistral-v1", "🦜🦜")[1:]
    cases: dict[str, Callable[[], detok.TextStream]] = {
        "llama3, just opened": llama.stream,
        "llama3, after 100 tokens": lambda: _after(llama.stream(), words),
        "llama3, after a prompt of 100 tokens": lambda: llama.stream(prompt_ids=words),
        "llama3, inside a character": lambda: _after(llama.stream(), cut),
        f"mistral-v1, {len(run)} byte tokens held": lambda: _after(mistral.stream(), run),
    }
    rows: list[Row] = []
    for name, make in cases.items():
        traced, size = bytes_each(make, STREAMS), sys.getsizeof(make())
        record = {"streams": STREAMS, "case": name, "bytes_traced": traced, "bytes_getsizeof": size}
        rows.append(Row([name, f"{traced:.0f}", str(size)], record))
    notes = [f"tracemalloc over {STREAMS:,} open streams; sys.getsizeof of one. Equal states are one object, whoever is in them."]
    return Section("Bytes of an open stream", ("", "traced", "getsizeof"), rows, notes)


def bytes_each(make: Callable[[], object], count: int) -> float:
    """Return the bytes that each of `count` objects takes, after a first one that may fill shared tables."""
    kept: list[object] = [make()] * count
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for place in range(count):
            kept[place] = make()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (after - before) / count


def _after(stream: detok.TextStream, ids: Sequence[int]) -> detok.TextStream:
    for token_id in ids:
        stream.step(token_id)
    return stream


@dataclass(frozen=True, slots=True)
class Prompt:
    """A kind of prompt."""

    vocabulary: str
    name: str
    ids: Callable[[], list[int]]
    """Repeated up to the length that is asked for."""

    hostile: bool = False
    """Nothing in it tells where the text stands."""


PROMPTS = (
    Prompt("llama3", "English", lambda: ids_of("llama3", english())),
    Prompt("llama3", "nine scripts", lambda: ids_of("llama3", nine_scripts())),
    Prompt("mistral-v1", "English", lambda: ids_of("mistral-v1", english())),
    Prompt("mistral-v1", "nine scripts", lambda: ids_of("mistral-v1", nine_scripts())),
    Prompt("llama3", "unknown ids", lambda: [1 << 30], hostile=True),
    Prompt("llama3", "skipped specials", lambda: _ids("llama3", "<|eot_id|>"), hostile=True),
    Prompt("llama3", "lone continuation bytes", lambda: _ids("llama3", "Ģ"), hostile=True),
    Prompt("mistral-v1", "lone lead bytes", lambda: _ids("mistral-v1", "<0xE3>"), hostile=True),
)


def prompts(rounds: int) -> Section:
    """``tokenizer.stream(prompt_ids=…)`` and the first step, by the length of the prompt."""
    lengths = (0, 1_000, 10_000, 250_000)
    rows: list[Row] = []
    for prompt in PROMPTS:
        tokenizer, library = detok.load(path_of(prompt.vocabulary)), hugging_face(prompt.vocabulary)
        first = ids_of(prompt.vocabulary, english())[0]
        contestants: dict[str, Prepare] = {}
        turns: dict[str, int] = {}
        for length in lengths:
            # Beginning in the middle of the text, so that each length ends at a place of its own.
            ids = at_least(length, prompt.ids())[-length:] if length else []
            turns[f"{length}"] = 1 if prompt.hostile else PROMPTS_IN_A_TURN
            contestants[f"{length}"] = again(_primes, tokenizer, ids, first, turns[f"{length}"])
        turns["DecodeStream"] = 1
        contestants["DecodeStream"] = again(_primes_peer, library, ids, first)
        for prepare in contestants.values():
            prepare()()
        taken = alternate(contestants, rounds)
        spreads = {name: Spread.of(second / turns[name] for second in found) for name, found in taken.items()}
        cells = [f"{prompt.vocabulary}, {prompt.name}", *(seconds(spread.median) for spread in spreads.values())]
        record = {"vocabulary": prompt.vocabulary, "prompt": prompt.name}
        rows.append(Row(cells, {**record, "seconds": {name: spread.record() for name, spread in spreads.items()}}))
    notes = [
        "tokenizer.stream(prompt_ids=…) and the first step. The last column: DecodeStream(ids=…) and its first, 250,000 ids.",
        "The last four kinds are hostile: no id in them tells where the text stands.",
    ]
    columns = ("", *(f"{length:,} ids" for length in lengths), "DecodeStream")
    return Section("First step after a prompt", columns, rows, notes)


def _primes(tokenizer: detok.Decoder, prompt_ids: list[int], first: int, turns: int) -> None:
    for _ in range(turns):
        tokenizer.stream(prompt_ids=prompt_ids).step(first)


def _primes_peer(tokenizer: Any, prompt_ids: list[int], first: int) -> None:
    DecodeStream(ids=prompt_ids, skip_special_tokens=True).step(tokenizer, first)


@dataclass(frozen=True, slots=True)
class Hostile:
    """Ids that some detokenizers slow down on."""

    vocabulary: str
    name: str
    tokens: tuple[str, ...]
    """As the vocabulary spells them; repeated."""

    byte_fallback: ByteFallbackMode = "exact"


# ã is how ByteLevel spells the byte E3, ï¿½ how it spells U+FFFD, ðŁ¦ľ the parrot: four tokens of a run that stays valid.
PARROT = ("<0xF0>", "<0x9F>", "<0xA6>", "<0x9C>")
HOSTILE = (
    Hostile("llama3", "skipped specials", ("<|eot_id|>",)),
    Hostile("llama3", "lone lead bytes", ("ã",)),
    Hostile("llama3", "U+FFFD ids", ("ï¿½",)),
    Hostile("mistral-v1", "skipped specials", ("</s>",)),
    Hostile("mistral-v1", "lone lead bytes, exact", ("<0xE3>",)),
    Hostile("mistral-v1", "lone lead bytes, eager", ("<0xE3>",), "eager"),
    Hostile("mistral-v1", "U+FFFD ids", ("�",)),
    Hostile("mistral-v1", "one valid byte run, exact", PARROT),
    Hostile("mistral-v1", "one valid byte run, eager", PARROT, "eager"),
    Hostile("gemma3", "skipped specials", ("<end_of_turn>",)),
    Hostile("gemma3", "lone lead bytes, exact", ("<0xE3>",)),
)


def hostile(rounds: int) -> Section:
    """100,000 hostile ids against as many of English, and against a tenth of them."""
    rows: list[Row] = []
    cases = [(case.vocabulary, case.name, _ids(case.vocabulary, *case.tokens), case.byte_fallback) for case in HOSTILE]
    cases.append(("llama3", "unknown ids", [1 << 30], "exact"))
    for vocabulary, name, ids, byte_fallback in cases:
        steps = Steps(detok.load(path_of(vocabulary)), byte_fallback)
        work = {
            "ordinary": at_least(LONG, ids_of(vocabulary, english()))[:LONG],
            "short": at_least(SHORT, ids)[:SHORT],
            "long": at_least(LONG, ids)[:LONG],
        }
        for each in work.values():
            steps.feeding(each)()
        taken = alternate({name: partial(steps.feeding, each) for name, each in work.items()}, rounds)
        each_token = {name: [second / len(work[name]) for second in found] for name, found in taken.items()}
        spreads = {name: Spread.of(found) for name, found in each_token.items()}
        ratio = Spread.of(long / ordinary for long, ordinary in zip(each_token["long"], each_token["ordinary"], strict=True))
        growth = Spread.of(long / short for long, short in zip(each_token["long"], each_token["short"], strict=True))
        times = [seconds(spreads[column].median) for column in ("ordinary", "long")]
        record = {
            "vocabulary": vocabulary,
            "ids": name,
            "seconds_a_token": {name: spread.record() for name, spread in spreads.items()},
            "ratio": ratio.record(),
            "growth": growth.record(),
        }
        rows.append(Row([f"{vocabulary}, {name}", *times, f"{ratio.median:.1f}x", f"{growth.median:.2f}x"], record))
    notes = [f"Cost of a token in {LONG:,} such ids; against English ids, and against {SHORT:,} such ids (1.00x: linear)."]
    return Section("Hostile ids", ("", "ordinary", "hostile", "ratio", "growth"), rows, notes)


def places(rounds: int) -> Section:
    """What a token costs by its place: one stream of 100,000 tokens, the same short text again and again."""
    # A few words of each script: the text is short, so that the stream begins and ends with the same tokens.
    texts = {"English": english()[:500], "nine scripts": nine_scripts(24)}
    rows: list[Row] = []
    courses: dict[str, list[float]] = {}
    for vocabulary in ("llama3", "mistral-v1"):
        tokenizer = detok.load(path_of(vocabulary))
        for name, text in texts.items():
            block = ids_of(vocabulary, text)
            repeats = LONG // len(block)
            course_of(tokenizer.stream().step, block, 2)
            runs = [course_of(tokenizer.stream().step, block, repeats) for _ in range(rounds)]
            course = [Spread.of(times).median for times in zip(*runs, strict=True)]
            courses[f"{vocabulary}, {name}"] = course
            tenth = len(course) // 10
            early, late = fmean(course[:tenth]), fmean(course[-tenth:])
            record = {"vocabulary": vocabulary, "text": name, "block": len(block), "seconds_a_token": course}
            cells = [f"{vocabulary}, {name}", str(len(block)), seconds(course[0]), seconds(early), seconds(late)]
            rows.append(Row([*cells, f"{late / early:.2f}x"], {**record, "late_to_early": late / early}))
    notes = [f"Cost of a token in a stream of {LONG:,}: in the first block, the first tenth and the last tenth of all blocks."]
    columns = ("", "block", "first", "early", "late", "late/early")
    return Section("The place in a stream", columns, rows, notes, draw=partial(_draw, courses))


def course_of(step: Callable[[Any], object], block: Sequence[object], repeats: int) -> list[float]:
    """Feed a block to one stream again and again; return what a token cost in each."""
    clock = [perf_counter()]
    for _ in range(repeats):
        for item in block:
            step(item)
        clock.append(perf_counter())
    return [(end - start) / len(block) for start, end in pairwise(clock)]


def _draw(courses: Mapping[str, Sequence[float]], axes: Any) -> None:
    for name, course in courses.items():
        places = [LONG * place / len(course) for place in range(len(course))]
        axes.plot(places, [second * 1e9 for second in course], label=name, linewidth=0.8)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("tokens before")
    axes.set_ylabel("ns a token")
    axes.legend()


def _ids(vocabulary: str, *tokens: str) -> list[int]:
    """Return the ids of tokens as the vocabulary spells them."""
    library = hugging_face(vocabulary)
    ids = [token_id for token in tokens if (token_id := library.token_to_id(token)) is not None]
    assert len(ids) == len(tokens), f"{vocabulary} has not all of {tokens}"
    return ids


if __name__ == "__main__":
    sys.exit(main([measure], __doc__))
