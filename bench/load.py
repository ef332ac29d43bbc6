"""Loading: ``detok.load`` against ``tokenizers.Tokenizer.from_file``, of which it is made, and the first step after it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial

from tokenizers import Tokenizer

import detok

from .harness import Prepare, Row, Section, Spread, again, alternate, main, seconds
from .texts import english, ids_of, path_of

__all__ = ["load", "measure"]


def measure(rounds: int) -> Iterator[Section]:
    """Yield the section of this file."""
    yield load(rounds)


def load(rounds: int) -> Section:
    """The same file, read from a warm disk cache."""
    rows: list[Row] = []
    for vocabulary in ("gemma3", "llama3", "mistral-v1", "minilm"):
        path, first = path_of(vocabulary), ids_of(vocabulary, english())[0]
        contestants: dict[str, Prepare] = {
            "from_file": again(Tokenizer.from_file, path),
            "detok.load": again(detok.load, path),
            "first step": partial(_loaded, path, first),
        }
        taken = alternate(contestants, rounds)
        spreads = {name: Spread.of(found) for name, found in taken.items()}
        more = Spread.of(ours / theirs - 1 for ours, theirs in zip(taken["detok.load"], taken["from_file"], strict=True))
        record = {
            "vocabulary": vocabulary,
            "seconds": {name: spread.record() for name, spread in spreads.items()},
            "more": more.record(),
        }
        times = [seconds(spread.median) for spread in spreads.values()]
        rows.append(Row([vocabulary, *times[:2], f"{more.median:+.1%}", times[2]], record))
    notes = ["The first step is that of the first stream, with all tables empty."]
    return Section("Loading", ("", "from_file", "detok.load", "more", "stream() + first step"), rows, notes)


def _loaded(path: str, first: int) -> Callable[[], str]:
    tokenizer = detok.load(path)
    return lambda: tokenizer.stream().step(first)


if __name__ == "__main__":
    sys.exit(main([measure], __doc__))
