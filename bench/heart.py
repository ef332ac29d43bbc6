"""
The heart in one table: what a token, an opening and a cold start cost, as ratios to ``tokenizers.decoders.DecodeStream``.

    python -m bench.heart --rounds 7

Steps: DecodeStream.step on the same ids in the same process, alternating. A ratio of 4 is four times as fast.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

import detok

from .harness import Prepare, Row, Section, Spread, alternate, apart, main
from .texts import at_least, english, hugging_face, ids_of, nine_scripts, path_of

__all__ = ["cold", "loading", "measure", "opening", "warm"]

TOKENS = 20_000
REQUESTS = 256
COLD_TOKENS = 1_800
OPENED = 200
PROMPT = 100
VOCABULARIES = ("llama3", "qwen3", "gptoss", "mistral-v1", "gemma3")
TEXTS: dict[str, Callable[[], str]] = {"English": english, "nine scripts": nine_scripts}
# Line ends in the texts make candidates of it, but it never comes.
ONE_STOP = ("\n\nQuestion:",)
JUDGE = "DecodeStream"


def measure(rounds: int) -> Iterator[Section]:
    """Yield all sections of this file."""
    yield _section("Warm: times as fast as DecodeStream.step", [apart(warm, *case, rounds) for case in _cases()])
    yield _section("Cold: the first 1,800 tokens of a tokenizer just loaded", [apart(cold, *case, rounds) for case in _cases()])
    yield _section("Opening, as parts of DecodeStream's", [apart(opening, name, rounds) for name in VOCABULARIES])
    yield _section("Parts of the time of loading", [apart(loading, name) for name in VOCABULARIES])


def _cases() -> list[tuple[str, str]]:
    return [(name, text) for name in VOCABULARIES for text in TEXTS]


def _section(title: str, rows: Sequence[Row]) -> Section:
    return Section(title, ["", *(name for name in rows[0].record if name != "case")], rows)


def warm(name: str, text: str, rounds: int) -> Row:
    """Steps over tables that earlier streams have filled."""
    library, tokenizer = hugging_face(name), detok.load(path_of(name))
    ids = at_least(TOKENS, ids_of(name, TEXTS[text]()))[:TOKENS]
    stop = detok.RequestOptions(stop=ONE_STOP)
    steps = [[(number, [token_id], None, None, None) for number in range(REQUESTS)] for token_id in ids[: TOKENS // REQUESTS]]
    contestants: dict[str, Prepare] = {
        JUDGE: lambda: partial(_judge, library, ids),
        "step": lambda: partial(_each, tokenizer.stream().step, ids),
        "extend of 1": lambda: partial(_lists_of_one, tokenizer.stream().extend, ids),
        "extend of 64": lambda: partial(_lists, tokenizer.stream().extend, ids, 64),
        "feed": lambda: partial(_lists_of_one, tokenizer.request().feed, ids),
        "feed, one stop": lambda: partial(_lists_of_one, tokenizer.request(options=stop).feed, ids),
        "batch row": lambda: partial(_rows, _batch(tokenizer, None), steps),
        "batch row, one stop": lambda: partial(_rows, _batch(tokenizer, stop), steps),
    }
    for prepare in contestants.values():
        prepare()()
    taken = alternate(contestants, rounds)
    scale = {name: len(ids) / (len(steps) * REQUESTS) if name.startswith("batch") else 1.0 for name in taken}
    return _ratios(f"{name}, {text}", {name: [one * scale[name] for one in found] for name, found in taken.items()})


def cold(name: str, text: str, rounds: int) -> Row:
    """The first text of a tokenizer's life; the allocation of its tables is in it."""
    library, ids = hugging_face(name), ids_of(name, TEXTS[text]())[:COLD_TOKENS]

    def ours() -> Callable[[], object]:
        tokenizer = detok.load(library)
        return lambda: _each(tokenizer.stream().step, ids)

    return _ratios(f"{name}, {text}", alternate({JUDGE: lambda: partial(_judge, library, ids), "step": ours}, rounds))


def opening(name: str, rounds: int) -> Row:
    """Streams and requests opened, as parts of what DecodeStream takes to be opened; a request, of one of its steps."""
    library, tokenizer = hugging_face(name), detok.load(path_of(name))
    prompt, ids = ids_of(name, english())[:PROMPT], ids_of(name, english())[:TOKENS]
    opens: dict[str, Callable[[], object]] = {
        "DecodeStream()": partial(DecodeStream, skip_special_tokens=True),
        "DecodeStream(ids)": partial(DecodeStream, ids=prompt, skip_special_tokens=True),
        "stream()": tokenizer.stream,
        "stream(prompt)": partial(tokenizer.stream, prompt),
        "request()": tokenizer.request,
    }
    contestants: dict[str, Prepare] = {key: partial(partial, _often, one) for key, one in opens.items()}
    taken = {key: Spread.of(found).median / OPENED for key, found in alternate(contestants, rounds).items()}
    step = Spread.of(alternate({JUDGE: lambda: partial(_judge, library, ids)}, rounds)[JUDGE]).median / len(ids)
    found = {
        "stream() / DecodeStream()": taken["stream()"] / taken["DecodeStream()"],
        "stream(100 ids) / DecodeStream(ids)": taken["stream(prompt)"] / taken["DecodeStream(ids)"],
        "request() / DecodeStream.step": taken["request()"] / step,
    }
    return Row([name, *(f"{one:.2f}" for one in found.values())], {"case": name, **found})


def loading(name: str) -> Row:
    """What comes after loading, as parts of it."""
    start = time.process_time()
    tokenizer = detok.load(path_of(name))
    loaded = time.process_time()
    tokenizer.warm()
    warmed = time.process_time()
    _ = tokenizer.fingerprint
    ended = time.process_time()
    found = {"warm()": (warmed - loaded) / (loaded - start), "fingerprint": (ended - warmed) / (loaded - start)}
    return Row([name, *(f"{one:.3f}" for one in found.values())], {"case": name, **found})


def _ratios(case: str, taken: dict[str, list[float]]) -> Row:
    found = {
        name: Spread.of(one / other for one, other in zip(taken[JUDGE], seconds, strict=True)).median
        for name, seconds in taken.items()
        if name != JUDGE
    }
    return Row([case, *(f"{one:.2f}x" for one in found.values())], {"case": case, **found})


def _judge(library: Tokenizer, ids: Sequence[int]) -> None:
    step = DecodeStream(skip_special_tokens=True).step
    for token_id in ids:
        step(library, token_id)


def _each(step: Callable[[int], object], ids: Sequence[int]) -> None:
    for token_id in ids:
        step(token_id)


def _lists(feed: Callable[[list[int]], object], ids: list[int], length: int) -> None:
    for begin in range(0, len(ids), length):
        feed(ids[begin : begin + length])


def _lists_of_one(feed: Callable[[list[int]], object], ids: list[int]) -> None:
    for token_id in ids:
        feed([token_id])  # as an engine makes it; a slice costs more


def _batch(tokenizer: detok.Tokenizer, options: detok.RequestOptions | None) -> detok.BatchDecoder:
    batch = detok.BatchDecoder(tokenizer)
    for number in range(REQUESTS):
        batch.open(number, (), options)
    return batch


def _rows(batch: detok.BatchDecoder, steps: Sequence[Sequence[tuple[int, list[int], None, None, None]]]) -> None:
    for rows in steps:
        batch.step(rows)


def _often(function: Callable[[], object]) -> None:
    for _ in range(OPENED):
        function()


if __name__ == "__main__":
    sys.exit(main([measure], __doc__))
