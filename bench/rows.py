"""
Whoever turns a step of many requests into text, row by row: this project, and the ways of vLLM and SGLang.

The two are written here from their descriptions, as short as they go: what they do for each row, without the objects that carry
it about. So they are faster than the originals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Protocol

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

import detok
from detok.core.utf8 import REPLACEMENT
from detok.inspection.strategies import find_printable

__all__ = ["Batches", "DecodeStreamRows", "Feeds", "RowPeer", "SGLangRows", "VLLMRows"]

Columns = Sequence[Sequence[int]]
"""For each step, the id of each request."""

Step = Callable[[Any], Sequence[Any]]
"""Takes a step as the peer wants it, and returns what came out for each request."""


class RowPeer(Protocol):
    """One way to serve many requests."""

    def steps(self, columns: Columns) -> Sequence[Any]:
        """Put steps into the shape that this peer takes them in; that is the engine's work, and not timed."""
        ...

    def open(self, count: int) -> Step:
        """Open so many requests, and return what takes a step."""
        ...

    def texts(self, columns: Columns) -> list[str]:
        """Return what each request gives in all."""
        ...


def feeding(peer: RowPeer, steps: Sequence[Any], count: int) -> Callable[[], object]:
    """Open requests and return what feeds them all steps."""
    return partial(_feed, peer.open(count), steps)


def _feed(step: Step, steps: Sequence[Any]) -> None:
    for one in steps:
        step(one)


class _Texts:
    """What peers have in common whose outputs are strings, or None for "nothing"."""

    def steps(self, columns: Columns) -> Sequence[Any]:
        return columns

    def open(self, count: int) -> Step:
        raise NotImplementedError

    def texts(self, columns: Columns) -> list[str]:
        step = self.open(len(columns[0]))
        return ["".join(filter(None, parts)) for parts in zip(*map(step, columns), strict=True)]


class DecodeStreamRows(_Texts):
    """``DecodeStream.step`` in a loop over the rows, and nothing else: no stop, no output, no `finish`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def open(self, count: int) -> Step:
        return partial(self._step, [DecodeStream(skip_special_tokens=True) for _ in range(count)])

    def _step(self, streams: list[DecodeStream], ids: Sequence[int]) -> list[str | None]:
        tokenizer = self._tokenizer
        return [stream.step(tokenizer, token_id) for stream, token_id in zip(streams, ids, strict=True)]


class VLLMRows(_Texts):
    """
    A `DecodeStream` for each request, its text so far, and a search for the stop strings in the end of it; as many characters as
    the longest stop is long, less one, are always held.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._stop = list(stop)

    def open(self, count: int) -> Step:
        return partial(self._step, [_VLLMRow(self._tokenizer, self._stop) for _ in range(count)])

    def _step(self, rows: list[_VLLMRow], ids: Sequence[int]) -> list[str]:
        outputs = []
        for row, token_id in zip(rows, ids, strict=True):
            row.update([token_id])
            outputs.append(row.take())
        return outputs

    def texts(self, columns: Columns) -> list[str]:
        rows = [_VLLMRow(self._tokenizer, self._stop) for _ in columns[0]]
        parts = zip(*(self._step(rows, ids) for ids in columns), strict=True)
        return ["".join(some) + row.take(finished=True) for some, row in zip(parts, rows, strict=True)]


class _VLLMRow:
    """One request in vLLM's way."""

    def __init__(self, tokenizer: Tokenizer, stop: list[str]) -> None:
        self._tokenizer = tokenizer
        self._stop = stop
        self._held = max(map(len, stop), default=1) - 1
        self._stream = DecodeStream(skip_special_tokens=True)
        self._ids: list[int] = []
        self._text = ""
        self._given = 0

    def update(self, token_ids: list[int]) -> str | None:
        """Take new ids; return the stop that is in the text now."""
        before = len(self._text)
        for token_id in token_ids:
            self._ids.append(token_id)
            self._text += self._stream.step(self._tokenizer, token_id) or ""
        new = len(self._text) - before
        if new:
            for stop in self._stop:
                place = self._text.find(stop, 1 - new - len(stop))
                if place >= 0:
                    self._text = self._text[:place]
                    return stop
        return None

    def take(self, *, finished: bool = False) -> str:
        """Return what is new and not held."""
        end = len(self._text) - (0 if finished else self._held)
        if end <= self._given:
            return ""
        text = self._text[self._given : end]
        self._given = end
        return text


class SGLangRows(_Texts):
    """Two `batch_decode` of all requests a step: of each one's window, and of that without what is new."""

    def __init__(self, batch_decode: Callable[[list[list[int]]], list[str]]) -> None:
        self._batch_decode = batch_decode

    def open(self, count: int) -> Step:
        return partial(self._step, [_SGLangRow() for _ in range(count)])

    def _step(self, rows: list[_SGLangRow], ids: Sequence[int]) -> list[str]:
        for row, token_id in zip(rows, ids, strict=True):
            row.ids.append(token_id)
        before = self._batch_decode([row.ids[row.surrounding : row.read] for row in rows])
        whole = self._batch_decode([row.ids[row.surrounding :] for row in rows])
        return [row.take(text[len(part) :]) for row, part, text in zip(rows, before, whole, strict=True)]


class _SGLangRow:
    """One request in SGLang's way: its ids, and from where on they are read again."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.surrounding = 0
        self.read = 0
        self._sent = 0

    def take(self, new: str) -> str:
        """Return what of the window's new text was not sent."""
        if new and not new.endswith(REPLACEMENT):
            sent, self._sent = self._sent, 0
            self.surrounding, self.read = self.read, len(self.ids)
            return new[sent:]
        shown = find_printable(new)
        text = shown[self._sent :]
        self._sent = len(shown)
        return text


class Feeds(_Texts):
    """detok's `RequestDecoder.feed` in a loop over the rows."""

    def __init__(self, tokenizer: detok.Tokenizer, options: detok.RequestOptions) -> None:
        self._tokenizer = tokenizer
        self._options = options

    def open(self, count: int) -> Step:
        return partial(self._step, [self._tokenizer.request(options=self._options) for _ in range(count)])

    def _step(self, requests: list[detok.RequestDecoder], ids: Sequence[int]) -> list[detok.RequestOutput]:
        return [request.feed([token_id]) for request, token_id in zip(requests, ids, strict=True)]

    def texts(self, columns: Columns) -> list[str]:
        requests = [self._tokenizer.request(options=self._options) for _ in columns[0]]
        parts = zip(*(self._step(requests, ids) for ids in columns), strict=True)
        return [
            "".join(output.text for output in outputs) + request.finish().text
            for outputs, request in zip(parts, requests, strict=True)
        ]


class Batches:
    """
    detok's `BatchDecoder`.

    Args:
        tokenizer: Whose.
        options: Of each request, by its number.
        logprobs: Whether each row has one.
    """

    def __init__(
        self, tokenizer: detok.Tokenizer, options: Callable[[int], detok.RequestOptions], *, logprobs: bool = False
    ) -> None:
        self._batch = detok.BatchDecoder(tokenizer)
        self._options = options
        self._logprobs = logprobs

    def steps(self, columns: Columns) -> Sequence[Any]:
        names = [f"request-{row}" for row in range(len(columns[0]))]
        logprobs = [[-1.0]] * len(names) if self._logprobs else repeat(None)
        return [[*zip(names, [[one] for one in ids], logprobs, repeat(None), repeat(None), strict=False)] for ids in columns]

    def open(self, count: int) -> Step:
        for row in range(count):
            name = f"request-{row}"
            if name in self._batch:
                self._batch.release(name)
            self._batch.open(name, (), self._options(row))
        return self._batch.step

    def texts(self, columns: Columns) -> list[str]:
        step = self.open(len(columns[0]))
        parts = zip(*map(step, self.steps(columns)), strict=True)
        return [
            "".join(output.text for output in outputs) + self._batch.close(f"request-{row}").text
            for row, outputs in enumerate(parts)
        ]
