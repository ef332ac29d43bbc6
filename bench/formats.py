"""
The other formats: one step of each against ``DecodeStream`` of the nearest tokenizer.json on the same text, the window strategy
against the plain decodes that it makes, and loading a large file of ranks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import detok
from detok.inspection.strategies import open_stream
from scripts.fetch_vocabularies import fetch

from .harness import Row, Section, Spread, again, alternate, apart, main, seconds
from .peers import DecodeStreams, Peer, Steps
from .texts import at_least, english, hugging_face, ids_of, nine_scripts

__all__ = ["load", "measure", "step", "window"]

TOKENS = 20_000


@dataclass(frozen=True, slots=True)
class Case:
    """A file of another format, and the tokenizer.json that is nearest to it."""

    name: str
    vocabulary: str
    file: str
    nearest: str


CASES = (
    Case("SentencePiece, Mistral v3", "mistral-common", "mistral_instruct_tokenizer_240323.model.v3", "mistral-v1"),
    Case("tiktoken, o200k", "openai-ranks", "o200k_base.json", "gptoss"),
    Case("Tekken", "mistral-common", "tekken_240911.json", "gptoss"),
    Case("GGUF, llama-bpe", "gguf", "ggml-vocab-llama-bpe.gguf", "llama3"),
)
TEXTS: dict[str, Callable[[], str]] = {"English": english, "nine scripts": nine_scripts}


def measure(rounds: int) -> Iterator[Section]:
    """Yield all sections of this file."""
    yield step(rounds)
    yield window(rounds)
    yield load(rounds)


def step(rounds: int) -> Section:
    """Nanoseconds a token on the same text; each side with the ids of its own vocabulary."""
    rows = [apart(_step, case, text, rounds) for case in CASES for text in TEXTS]
    notes = ["Both sides stream the same text in their own ids; the ratio is of the times a token."]
    return Section("One step of other formats", ("", "DecodeStream", "step", "ratio"), rows, notes)


def _step(case: Case, text_name: str, rounds: int) -> Row:
    text = TEXTS[text_name]()
    tokenizer = detok.load(fetch(case.vocabulary) / case.file)
    theirs = at_least(TOKENS, ids_of(case.nearest, text))
    # The ids of the text itself, not of a text with special tokens around it.
    ours = at_least(TOKENS, tokenizer.encode(text, add_special_tokens=False))
    assert tokenizer.decode(ours) == tokenizer.library.decode(ours, skip_special_tokens=True)
    peers: dict[str, Peer] = {"DecodeStream": DecodeStreams(hugging_face(case.nearest)), "step": Steps(tokenizer)}
    ids = {"DecodeStream": theirs, "step": ours}
    for name, peer in peers.items():
        peer.feeding(ids[name])()
    taken = alternate({name: partial(peer.feeding, ids[name]) for name, peer in peers.items()}, rounds)
    spreads = {name: Spread.of(one / len(ids[name]) for one in found) for name, found in taken.items()}
    ratio = Spread.of((a / len(theirs)) / (b / len(ours)) for a, b in zip(taken["DecodeStream"], taken["step"], strict=True))
    record = {
        "case": case.name,
        "text": text_name,
        "seconds_a_token": {name: spread.record() for name, spread in spreads.items()},
        "ratio": ratio.record(),
    }
    cells = [f"{case.name}, {text_name}", *(seconds(spread.median) for spread in spreads.values()), f"{ratio.median:.1f}x"]
    return Row(cells, record)


def window(rounds: int) -> Section:
    """The window strategy, and the two decodes of a window a step that it cannot do without."""
    rows = [_window(name, rounds) for name in ("llama3", "mistral-v1")]
    notes = ["Plain: two decodes of the eight ids around the place at each step, and nothing else."]
    return Section("The window strategy", ("", "plain decodes", "window", "ratio"), rows, notes)


def _window(vocabulary: str, rounds: int) -> Row:
    tokenizer = detok.load(fetch(vocabulary) / "tokenizer.json")
    ids = at_least(2_000, ids_of(vocabulary, english()))[:2_000]
    taken = alternate({"plain": again(_plain, tokenizer, ids), "window": again(_windowed, tokenizer, ids)}, rounds)
    spreads = {name: Spread.of(one / len(ids) for one in found) for name, found in taken.items()}
    ratio = Spread.of(ours / plain for plain, ours in zip(taken["plain"], taken["window"], strict=True))
    record = {
        "vocabulary": vocabulary,
        "seconds_a_token": {name: spread.record() for name, spread in spreads.items()},
        "ratio": ratio.record(),
    }
    return Row([vocabulary, *(seconds(spread.median) for spread in spreads.values()), f"{ratio.median:.2f}x"], record)


def _plain(tokenizer: detok.Decoder, ids: list[int]) -> None:
    for place in range(len(ids)):
        tokenizer.decode(ids[max(0, place - 7) : place])
        tokenizer.decode(ids[max(0, place - 7) : place + 1])


def _windowed(tokenizer: detok.Decoder, ids: list[int]) -> None:
    stream = open_stream(tokenizer, "window")
    for token_id in ids:
        stream.step(token_id)


def load(rounds: int) -> Section:
    """Files of 200,000 ranks and more."""
    rows: list[Row] = []
    for vocabulary, file in (("openai-ranks", "o200k_base.json"), ("gguf", "ggml-vocab-command-r.gguf")):
        path = fetch(vocabulary) / file
        taken = Spread.of(alternate({"load": again(detok.load, path)}, rounds)["load"])
        size = detok.load(path).vocab_size
        record = {"file": file, "ids": size, "seconds": taken.record()}
        rows.append(Row([file, f"{size:,}", seconds(taken.median)], record))
    return Section("Loading other formats", ("", "ids", "detok.load"), rows)


if __name__ == "__main__":
    sys.exit(main([measure], __doc__))
