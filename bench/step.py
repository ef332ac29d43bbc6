"""One step, text by text: nanoseconds a token, and how many times as fast as ``tokenizers.decoders.DecodeStream.step``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import detok
from detok.core.decoding.texts import common_prefix

from .harness import Prepare, Row, Section, Spread, again, alternate, apart, main, seconds
from .peers import OTHERS, DecodeStreamLists, DecodeStreams, Extends, Peer, Steps, load_other
from .texts import NINE_SCRIPTS, at_least, english, hugging_face, ids_of, nine_scripts, path_of

__all__ = ["CASES", "JUDGE", "Case", "cold", "extend", "measure", "measured", "opening", "section", "warm"]

TOKENS = 20_000
OPENED = 10
JUDGE = "DecodeStream"
OURS = "step"


@dataclass(frozen=True, slots=True)
class Case:
    """A text in a vocabulary."""

    vocabulary: str
    text_name: str
    text: Callable[[], str]
    byte_fallback: bool = False

    @property
    def name(self) -> str:
        return f"{self.vocabulary}, {self.text_name}"

    @property
    def ids(self) -> list[int]:
        return ids_of(self.vocabulary, self.text())


CASES = (
    Case("llama3", "English", english),
    Case("qwen3", "English", english),
    Case("gptoss", "English", english),
    Case("llama3", "nine scripts", nine_scripts),
    Case("qwen3", "nine scripts", nine_scripts),
    Case("gptoss", "nine scripts", nine_scripts),
    Case("mistral-v1", "English", english, byte_fallback=True),
    Case("gemma3", "English", english, byte_fallback=True),
    Case("mistral-v1", "nine scripts", nine_scripts, byte_fallback=True),
    Case("gemma3", "nine scripts", nine_scripts, byte_fallback=True),
    Case("minilm", "English", english),
)


def measure(rounds: int) -> Iterator[Section]:
    """Yield all sections of this file."""
    yield (filled := warm(rounds))
    yield opening(filled, "Opening a stream", (JUDGE, OURS, *OTHERS))
    yield cold(rounds)
    yield extend(rounds)


def warm(rounds: int) -> Section:
    """Streams over tables that earlier streams have filled, as in a server a minute after its start."""
    notes = [
        f"Nanoseconds a token; in brackets, how many times as fast as {JUDGE}. ≠: its text is not the one-shot decode.",
        f"Each library alternates with {JUDGE} in a process of its own; the column shows the one beside detok.",
        f'Nine scripts: {", ".join(NINE_SCRIPTS)}, and emoji. Eager: byte_fallback="eager".',
    ]
    return section("One step, tables filled", (JUDGE, OURS, "eager", *OTHERS), [_warm(case, rounds) for case in CASES], notes)


def _warm(case: Case, rounds: int) -> Row:
    row = apart(_ours, case, rounds)
    found = {name: apart(_other, name, case, rounds) for name in OTHERS}
    others = [other.record for other in found.values() if isinstance(other, Row)]
    record = {
        **row.record,
        "streams": {name: stream for each in (*others, row.record) for name, stream in each["streams"].items()},
        "faults": {name: fault for each in (*others, row.record) for name, fault in each["faults"].items()},
        "opening_seconds": {name: each for one in (*others, row.record) for name, each in one["opening_seconds"].items()},
        "hindrances": {name: other for name, other in found.items() if isinstance(other, str)},
    }
    return Row(row.cells, record)


def _ours(case: Case, rounds: int) -> Row:
    tokenizer = detok.load(path_of(case.vocabulary))
    peers: dict[str, Peer] = {OURS: Steps(tokenizer)}
    if case.byte_fallback:
        peers["eager"] = Steps(tokenizer, byte_fallback="eager")
    return measured(case, DecodeStreams(hugging_face(case.vocabulary)), peers, rounds)


def _other(name: str, case: Case, rounds: int) -> Row | str:
    peer = load_other(name, path_of(case.vocabulary))
    if isinstance(peer, str):
        return peer
    return measured(case, DecodeStreams(hugging_face(case.vocabulary)), {name: peer}, rounds)


def opening(filled: Section, title: str, names: Sequence[str]) -> Section:
    """What it takes to open one, from the same measurement."""
    rows: list[Row] = []
    for row in filled.rows:
        found = row.record["opening_seconds"]
        if row.record["text"] == "English":
            record = {"vocabulary": row.record["vocabulary"], "seconds": found}
            rows.append(
                Row(
                    [str(record["vocabulary"]), *(seconds(found[name]["median"]) if name in found else "" for name in names)],
                    record,
                )
            )
    return Section(title, ("", *names), rows)


def cold(rounds: int) -> Section:
    """The first stream of a tokenizer's life: one reading of the text, every id that occurs in it met for the first time."""
    notes = [f"As above, but each round with a tokenizer that was just loaded. {JUDGE} has no tables to fill."]
    return section("One step, tables empty", (JUDGE, OURS), [apart(_cold, case, rounds) for case in CASES], notes)


def _cold(case: Case, rounds: int) -> Row:
    library, ids = hugging_face(case.vocabulary), case.ids
    contestants: dict[str, Prepare] = {
        JUDGE: lambda: DecodeStreams(library).feeding(ids),
        OURS: lambda: Steps(detok.load(library)).feeding(ids),
    }
    return _row(case, len(ids), alternate(contestants, rounds), distinct=len(set(ids)))


def extend(rounds: int) -> Section:
    """Several ids in one call, as speculative decoding brings them, and a whole answer at once."""
    cases = [case for case in CASES if case.vocabulary in ("llama3", "mistral-v1")]
    rows = [apart(_extend, case, length, rounds) for case in cases for length in (1, 2, 4, 16, 64, TOKENS)]
    notes = [f"So many ids in a list, to {JUDGE}.step too. Nanoseconds a token."]
    return section("Several ids in one call", (JUDGE, "extend"), rows, notes)


def _extend(case: Case, length: int, rounds: int) -> Row:
    tokenizer, library = detok.load(path_of(case.vocabulary)), hugging_face(case.vocabulary)
    return measured(case, DecodeStreamLists(library, length), {"extend": Extends(tokenizer, length)}, rounds, length=length)


def measured(case: Case, judge: Peer, others: Mapping[str, Peer], rounds: int, **more: object) -> Row:
    """Let each peer read the text once off the clock, which fills tables and shows faults, and then against the judge."""
    ids = at_least(TOKENS, case.ids)
    peers = {JUDGE: judge, **others}
    truth = hugging_face(case.vocabulary).decode(ids, skip_special_tokens=True)
    faults = {name: fault for name, peer in peers.items() if (fault := _fault(peer.text(ids), truth))}
    taken = alternate({name: partial(peer.feeding, ids) for name, peer in peers.items()}, rounds)
    opened = alternate({name: again(_open, peer) for name, peer in peers.items()}, rounds)
    opening = {name: Spread.of(second / OPENED for second in found).record() for name, found in opened.items()}
    return _row(case, len(ids), taken, faults=faults, opening_seconds=opening, **more)


def _open(peer: Peer) -> list[object]:
    return [peer.open() for _ in range(OPENED)]


def _fault(text: str, truth: str) -> str:
    """Say where a text is not the one-shot decode; "" if it is."""
    if text == truth:
        return ""
    at = len(common_prefix([text, truth]))
    shown = slice(max(0, at - 4), at + 8)
    return f"differs from decode() at character {at:,}: {text[shown]!r} instead of {truth[shown]!r}"


def _row(case: Case, tokens: int, taken: Mapping[str, Sequence[float]], **more: object) -> Row:
    record: dict[str, Any] = {"vocabulary": case.vocabulary, "text": case.text_name, "tokens": tokens, **more}
    record["streams"] = {
        name: {
            "nanoseconds_a_token": Spread.of(second / tokens * 1e9 for second in found).record(),
            "ratio": Spread.of(one / other for one, other in zip(taken[JUDGE], found, strict=True)).record(),
        }
        for name, found in taken.items()
    }
    return Row([f"{case.name}, by {more['length']:,}" if "length" in more else case.name], record)


def section(title: str, names: Sequence[str], rows: Sequence[Row], notes: Sequence[str]) -> Section:
    """Write out the numbers; a stream that is not in a row leaves its place empty."""
    written: list[Row] = []
    said = list(notes)
    for row in rows:
        faults = row.record.get("faults", {})
        cells = [_cell(row.record["streams"].get(name), judge=name == JUDGE, wrong=name in faults) for name in names]
        written.append(Row([*row.cells, f"{row.record['tokens']:,}", *cells], row.record))
        said += [f"{row.cells[0]}: {name} {why}" for name, why in row.record.get("hindrances", {}).items()]
        said += [f"{row.cells[0]}: {name} {fault}" for name, fault in faults.items()]
    return Section(title, ("", "tokens", *names), written, said, draw=partial(_draw, names, rows))


def _cell(found: Mapping[str, Any] | None, *, judge: bool, wrong: bool) -> str:
    if found is None:
        return ""
    cell = f"{found['nanoseconds_a_token']['median']:.1f}"
    if not judge:
        cell += f" ({found['ratio']['median']:.1f}x)"
    return f"≠ {cell}" if wrong else cell


def _draw(names: Sequence[str], rows: Sequence[Row], axes: Any) -> None:
    """Bars, one group for each row; those of a wrong text are hatched."""
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        shown = [(place, row.record) for place, row in enumerate(rows) if name in row.record["streams"]]
        bars = axes.bar(
            [place + (number - (len(names) - 1) / 2) * width for place, _ in shown],
            [record["streams"][name]["nanoseconds_a_token"]["median"] for _, record in shown],
            width,
            label=name,
        )
        for bar, (_, record) in zip(bars, shown, strict=True):
            bar.set_hatch("//" if name in record.get("faults", {}) else None)
    axes.set_ylabel("ns a token")
    axes.set_xticks(range(len(rows)), [row.cells[0] for row in rows], rotation=40, ha="right", fontsize="small")
    axes.legend(loc="upper left", fontsize="small")


if __name__ == "__main__":
    sys.exit(main([measure], __doc__))
