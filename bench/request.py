"""One step of a request: text, stops and the output object, against ``tokenizers.decoders.DecodeStream.step`` on the same ids."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from statistics import fmean
from typing import Any

import detok

from .bounds import course_of
from .harness import Row, Section, Spread, alternate, apart, main, seconds
from .peers import DecodeStreams, Peer, Requests, Steps
from .step import CASES, JUDGE, Case, measured, opening, section
from .texts import NINE_SCRIPTS, at_least, english, hugging_face, ids_of, nine_scripts, path_of

__all__ = ["many_stops", "measure", "places", "steps"]

TOKENS = 20_000
MANY = 10_000
# Line ends in the texts make candidates of it, but it never comes.
ONE_STOP = ("\n\nQuestion:",)
NAMES = ("step", "no stop", "one stop", f"{MANY:,} stops", "logprobs")
LONG = 32_000
SHORT = 1_000


def measure(rounds: int) -> Iterator[Section]:
    """Yield all sections of this file."""
    yield (found := steps(rounds))
    yield opening(found, "Opening a request", (JUDGE, *NAMES))
    yield many_stops(rounds)
    yield places(rounds)


def steps(rounds: int) -> Section:
    """Requests over tables that earlier ones have filled."""
    notes = [
        f"Nanoseconds a token, fed in lists of one; in brackets, how many times as fast as {JUDGE}, which alternates with them.",
        "step: a stream. Logprobs: one number a token, no stop. The text of each is the one-shot decode.",
        f"Nine scripts: {', '.join(NINE_SCRIPTS)}, and emoji.",
    ]
    return section("One step of a request", (JUDGE, *NAMES), [apart(_steps, case, rounds) for case in CASES], notes)


def _steps(case: Case, rounds: int) -> Row:
    tokenizer = detok.load(path_of(case.vocabulary))
    peers: dict[str, Peer] = {
        "step": Steps(tokenizer),
        "no stop": Requests(tokenizer),
        "one stop": Requests(tokenizer, detok.RequestOptions(stop=ONE_STOP)),
        f"{MANY:,} stops": Requests(tokenizer, detok.RequestOptions(stop=_stops("stop{}x"))),
        "logprobs": Requests(tokenizer, with_logprobs=True),
    }
    return measured(case, DecodeStreams(hugging_face(case.vocabulary)), peers, rounds)


def _stops(pattern: str) -> list[str]:
    return [pattern.format(f"{number:05d}") for number in range(MANY)]


def _open_stops(text: str) -> list[str]:
    """Stops that all begin as the text has it somewhere, so that nearly every token opens one or goes on in it."""
    beginnings = sorted({text[place : place + 3] for place in range(len(text) - 3)})
    return [f"{beginnings[number % len(beginnings)]}\0{number}" for number in range(MANY)]


def many_stops(rounds: int) -> Section:
    """10,000 stops against one."""
    cases = [case for case in CASES if case.vocabulary in ("llama3", "mistral-v1")]
    notes = [
        f"{MANY:,} stops that begin alike.",
        f"Open ones: {MANY:,} that begin as the text does everywhere, so that something is held nearly always.",
    ]
    columns = ("", "one stop", f"{MANY:,} stops", "ratio", f"{MANY:,} open ones", "ratio")
    return Section("Many stops", columns, [apart(_many_stops, case, rounds) for case in cases], notes)


def _many_stops(case: Case, rounds: int) -> Row:
    tokenizer, ids = detok.load(path_of(case.vocabulary)), at_least(TOKENS, case.ids)
    sets = {"one": list(ONE_STOP), "many": _stops("stop{}x"), "open": _open_stops(case.text())}
    peers = {name: Requests(tokenizer, detok.RequestOptions(stop=stops)) for name, stops in sets.items()}
    for peer in peers.values():
        peer.feeding(ids)()
    taken = alternate({name: partial(peer.feeding, ids) for name, peer in peers.items()}, rounds)
    spreads = {name: Spread.of(one / len(ids) for one in found) for name, found in taken.items()}
    ratios = {
        name: Spread.of(other / one for one, other in zip(taken["one"], taken[name], strict=True)) for name in ("many", "open")
    }
    record = {
        "vocabulary": case.vocabulary,
        "text": case.text_name,
        "seconds_a_token": {name: spread.record() for name, spread in spreads.items()},
        "ratio": {name: ratio.record() for name, ratio in ratios.items()},
    }
    cells = [case.name, seconds(spreads["one"].median)]
    for name, ratio in ratios.items():
        cells += [seconds(spreads[name].median), f"{ratio.median:.2f}x"]
    return Row(cells, record)


def places(rounds: int) -> Section:
    """What a token costs by its place in the output: one request, the same short text again and again."""
    # A few words of each script: the text is short, so that early and late tokens are the same ones.
    texts = {"English": english()[:500], "nine scripts": nine_scripts(24)}
    rows = [apart(_places, name, title, text, rounds) for name in ("llama3", "mistral-v1") for title, text in texts.items()]
    notes = [f"Cost of a token among the first {SHORT:,} of a request, and among the {SHORT:,} that end at {LONG:,}."]
    return Section(
        "The place in an output", ("", "", "early", "late", "late/early"), [row for some in rows for row in some], notes
    )


def _places(vocabulary: str, title: str, text: str, rounds: int) -> list[Row]:
    tokenizer, ids = detok.load(path_of(vocabulary)), ids_of(vocabulary, text)
    block = [[token_id] for token_id in ids]
    short = max(1, SHORT // len(ids))
    kinds: dict[str, Callable[[], Callable[[Any], object]]] = {
        "no stop": lambda: tokenizer.request().feed,
        "one stop": lambda: tokenizer.request(stop=ONE_STOP).feed,
        "logprobs": lambda: partial(tokenizer.request().feed, logprobs=[-0.5]),
    }
    rows = []
    for kind, opened in kinds.items():
        course_of(opened(), block, 2)
        runs = [course_of(opened(), block, LONG // len(ids)) for _ in range(rounds)]
        course = [Spread.of(times).median for times in zip(*runs, strict=True)]
        early, late = fmean(course[:short]), fmean(course[-short:])
        record = {"vocabulary": vocabulary, "text": title, "kind": kind, "seconds_a_token": course, "late_to_early": late / early}
        rows.append(Row([f"{vocabulary}, {title}", kind, seconds(early), seconds(late), f"{late / early:.2f}x"], record))
    return rows


if __name__ == "__main__":
    sys.exit(main([measure], __doc__))
