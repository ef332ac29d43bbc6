"""One step, text by text: nanoseconds a token, and how many times as fast as ``tokenizers.decoders.DecodeStream.step``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import detok

from .harness import Prepare, Row, Section, Spread, alternate, main
from .peers import DecodeStreams, Extends, Peer, Steps, other_peers
from .texts import NINE_SCRIPTS, at_least, english, hugging_face, ids_of, nine_scripts, path_of

__all__ = ["CASES", "Case", "cold", "extend", "measure", "warm"]

TOKENS = 20_000
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
    yield warm(rounds)
    yield cold(rounds)
    yield extend(rounds)


def warm(rounds: int) -> Section:
    """Streams over tables that earlier streams have filled, as in a server a minute after its start."""
    rows: list[Row] = []
    notes = [
        f"Nanoseconds a token; in brackets, how many times as fast as {JUDGE}. ≠: its text is not the one-shot decode.",
        f"Nine scripts: {', '.join(NINE_SCRIPTS)}, and emoji.",
    ]
    for case in CASES:
        path = path_of(case.vocabulary)
        tokenizer = detok.load(path)
        peers: dict[str, Peer] = {JUDGE: DecodeStreams(hugging_face(case.vocabulary)), OURS: Steps(tokenizer)}
        if case.byte_fallback:
            peers["eager"] = Steps(tokenizer, byte_fallback="eager")
        peers["extend"] = Extends(tokenizer)
        others, hindrances = other_peers(path)
        peers |= others
        ids = at_least(TOKENS, case.ids)
        faults = _faults(case, peers, ids)
        taken = alternate({name: _prepared(peer, ids) for name, peer in peers.items()}, rounds)
        rows.append(_row(case, len(ids), taken, faults))
        notes += [f"{case.name}: {hindrance}" for hindrance in hindrances]
        notes += [f"{case.name}: {name} {fault}" for name, fault in faults.items()]
    names = (JUDGE, OURS, "eager", "extend", "iree-tokenizer", "splintr-rs")
    return _section("One step, tables filled", names, rows, notes)


def cold(rounds: int) -> Section:
    """The first stream of a tokenizer's life: one reading of the text, every id that occurs in it met for the first time."""
    rows: list[Row] = []
    for case in CASES:
        library, ids = hugging_face(case.vocabulary), case.ids
        contestants: dict[str, Prepare] = {
            JUDGE: lambda library=library, ids=ids: partial(DecodeStreams(library).run, ids),  # type: ignore[misc]
            OURS: lambda library=library, ids=ids: partial(Steps(detok.load(library)).run, ids),  # type: ignore[misc]
        }
        rows.append(_row(case, len(ids), alternate(contestants, rounds), {}, distinct=len(set(ids))))
    notes = [f"As above, but each round with a tokenizer that was just loaded. {JUDGE} has no tables to fill."]
    return _section("One step, tables empty", (JUDGE, OURS), rows, notes)


def extend(rounds: int) -> Section:
    """Several ids in one call, as speculative decoding brings them."""
    lengths = (1, 2, 4, 8, 64)
    rows: list[Row] = []
    for case in CASES:
        if case.vocabulary not in ("llama3", "mistral-v1"):
            continue
        tokenizer, ids = detok.load(path_of(case.vocabulary)), at_least(TOKENS, case.ids)
        peers: dict[str, Peer] = {JUDGE: DecodeStreams(hugging_face(case.vocabulary)), OURS: Steps(tokenizer)}
        peers |= {f"extend {length}": Extends(tokenizer, length) for length in lengths}
        peers["extend all"] = Extends(tokenizer)
        faults = _faults(case, peers, ids)
        taken = alternate({name: _prepared(peer, ids) for name, peer in peers.items()}, rounds)
        rows.append(_row(case, len(ids), taken, faults))
    names = (JUDGE, OURS, *(f"extend {length}" for length in lengths), "extend all")
    return _section("Several ids in one call", names, rows, ["Nanoseconds a token, by the number of ids in one call."])


def _prepared(peer: Peer, ids: list[int]) -> Prepare:
    return lambda: partial(peer.run, ids)


def _faults(case: Case, peers: Mapping[str, Peer], ids: list[int]) -> dict[str, str]:
    """Let each peer read the text once, off the clock (which fills the tables), and say where it is not the one-shot decode."""
    truth = hugging_face(case.vocabulary).decode(ids, skip_special_tokens=True)
    faults: dict[str, str] = {}
    for name, peer in peers.items():
        text = peer.text(ids)
        if text != truth:
            at = next((at for at, pair in enumerate(zip(text, truth, strict=False)) if pair[0] != pair[1]), len(text))
            shown = slice(max(0, at - 4), at + 8)
            faults[name] = f"differs from decode() at character {at:,}: {text[shown]!r} instead of {truth[shown]!r}"
    return faults


def _row(
    case: Case, tokens: int, taken: Mapping[str, Sequence[float]], faults: Mapping[str, str], **more: object
) -> Row:
    judge = taken[JUDGE]
    record: dict[str, Any] = {"vocabulary": case.vocabulary, "text": case.text_name, "tokens": tokens, **more}
    record["streams"] = {
        name: {
            "nanoseconds_a_token": Spread.of(second / tokens * 1e9 for second in found).record(),
            "ratio": Spread.of(one / other for one, other in zip(judge, found, strict=True)).record(),
            "fault": faults.get(name),
        }
        for name, found in taken.items()
    }
    return Row([case.name], record)


def _section(title: str, names: Sequence[str], rows: Sequence[Row], notes: Sequence[str]) -> Section:
    """Write out the numbers; a stream that is not in a row leaves its place empty."""
    written = [
        Row([*row.cells, f"{row.record['tokens']:,}", *(_cell(row.record["streams"].get(name), name) for name in names)], row.record)
        for row in rows
    ]
    return Section(title, ("", "tokens", *names), written, notes, draw=partial(_draw, names, rows))


def _cell(found: dict[str, Any] | None, name: str) -> str:
    if found is None:
        return ""
    cell = f"{found['nanoseconds_a_token']['median']:.1f}"
    if name != JUDGE:
        cell += f" ({found['ratio']['median']:.1f}x)"
    return f"≠ {cell}" if found["fault"] else cell


def _draw(names: Sequence[str], rows: Sequence[Row], axes: Any) -> None:
    """Bars of the ratios, one group for each row."""
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        bars = [(place, row.record["streams"][name]) for place, row in enumerate(rows) if name in row.record["streams"]]
        axes.bar(
            [place + (number - (len(names) - 1) / 2) * width for place, _ in bars],
            [found["nanoseconds_a_token"]["median"] for _, found in bars],
            width,
            label=name,
        )
    axes.set_yscale("log")
    axes.set_ylabel("ns a token")
    axes.set_xticks(range(len(rows)), [row.cells[0] for row in rows], rotation=25, ha="right")
    axes.legend(ncols=len(names), fontsize="small")


if __name__ == "__main__":
    sys.exit(main([measure], __doc__))
