"""
Whoever streams ids into text: this project, and the libraries that are installed.

What is timed is a plain loop over an open stream, each library called by its own function, with nothing between. `text` is what
such a stream gives, since a wrong answer is not a speed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

import detok
from detok.core.options import ByteFallbackMode

__all__ = ["OTHERS", "DecodeStreamLists", "DecodeStreams", "Extends", "Peer", "Requests", "Steps", "load_other"]


class Peer(Protocol):
    """One way to stream."""

    def open(self) -> Any:
        """Open a stream."""
        ...

    def feeding(self, ids: list[int]) -> Callable[[], object]:
        """Open a stream and return what feeds it all ids, one call after another."""
        ...

    def text(self, ids: list[int]) -> str:
        """Return the text of such a stream."""
        ...


def _feed(step: Callable[[Any], object], items: list[Any]) -> None:
    for item in items:
        step(item)


def _feed_with(step: Callable[[Tokenizer, Any], object], tokenizer: Tokenizer, items: list[Any]) -> None:
    for item in items:
        step(tokenizer, item)


def _feed_lists_of_one(feed: Callable[[list[int]], object], ids: list[int]) -> None:
    for token_id in ids:
        feed([token_id])


def _feed_with_logprobs(feed: Callable[[list[int], list[float]], object], ids: list[int]) -> None:
    for token_id in ids:
        feed([token_id], [-0.5])


@dataclass(frozen=True, slots=True)
class Steps:
    """detok's `step`."""

    tokenizer: detok.Decoder
    byte_fallback: ByteFallbackMode = "exact"

    def open(self) -> detok.TextStream:
        return self.tokenizer.stream(byte_fallback=self.byte_fallback)

    def feeding(self, ids: list[int]) -> Callable[[], object]:
        return partial(_feed, self.open().step, ids)

    def text(self, ids: list[int]) -> str:
        stream = self.open()
        return "".join(map(stream.step, ids)) + stream.finish()


@dataclass(frozen=True, slots=True)
class Extends:
    """detok's `extend`, with lists of `length` ids."""

    tokenizer: detok.Decoder
    length: int

    def open(self) -> detok.TextStream:
        return self.tokenizer.stream()

    def feeding(self, ids: list[int]) -> Callable[[], object]:
        return partial(_feed, self.open().extend, _lists(ids, self.length))

    def text(self, ids: list[int]) -> str:
        stream = self.open()
        return "".join(map(stream.extend, _lists(ids, self.length))) + stream.finish()


@dataclass(frozen=True, slots=True)
class Requests:
    """detok's `feed` with lists of one id, the output object included."""

    tokenizer: detok.Decoder
    options: detok.RequestOptions = field(default_factory=detok.RequestOptions)
    with_logprobs: bool = False

    def open(self) -> detok.RequestDecoder:
        return self.tokenizer.request(options=self.options)

    def feeding(self, ids: list[int]) -> Callable[[], object]:
        feed = self.open().feed
        return partial(_feed_with_logprobs if self.with_logprobs else _feed_lists_of_one, feed, ids)

    def text(self, ids: list[int]) -> str:
        request = self.open()
        values = [-0.5] if self.with_logprobs else None
        return "".join(request.feed([token_id], values).text for token_id in ids) + request.finish().text


@dataclass(frozen=True, slots=True)
class DecodeStreams:
    """``tokenizers.decoders.DecodeStream``, which has no `finish`: what it holds at the end is lost."""

    tokenizer: Tokenizer

    def open(self) -> DecodeStream:
        return DecodeStream(skip_special_tokens=True)

    def feeding(self, ids: list[int]) -> Callable[[], object]:
        return partial(_feed_with, self.open().step, self.tokenizer, ids)

    def text(self, ids: list[int]) -> str:
        stream = self.open()
        return "".join(stream.step(self.tokenizer, token_id) or "" for token_id in ids)


@dataclass(frozen=True, slots=True)
class DecodeStreamLists:
    """The same, with lists of `length` ids."""

    tokenizer: Tokenizer
    length: int

    def open(self) -> DecodeStream:
        return DecodeStream(skip_special_tokens=True)

    def feeding(self, ids: list[int]) -> Callable[[], object]:
        return partial(_feed_with, self.open().step, self.tokenizer, _lists(ids, self.length))

    def text(self, ids: list[int]) -> str:
        stream = self.open()
        return "".join(stream.step(self.tokenizer, part) or "" for part in _lists(ids, self.length))


@dataclass(frozen=True, slots=True)
class Iree:
    """iree-tokenizer: `feed` takes a list, of one id here."""

    tokenizer: Any

    def open(self) -> Any:
        return self.tokenizer.decode_stream(skip_special_tokens=True)

    def feeding(self, ids: list[int]) -> Callable[[], object]:
        return partial(_feed_lists_of_one, self.open().feed, ids)

    def text(self, ids: list[int]) -> str:
        stream = self.open()
        return "".join(stream.feed([token_id]) for token_id in ids) + str(stream.finalize())


@dataclass(frozen=True, slots=True)
class Splintr:
    """splintr-rs."""

    tokenizer: Any

    def open(self) -> Any:
        return self.tokenizer.streaming_decoder()

    def feeding(self, ids: list[int]) -> Callable[[], object]:
        return partial(_feed, self.open().add_token, ids)

    def text(self, ids: list[int]) -> str:
        stream = self.open()
        return "".join(stream.add_token(token_id) or "" for token_id in ids) + str(stream.flush())


def _lists(ids: list[int], length: int) -> list[list[int]]:
    return [ids[place : place + length] for place in range(0, len(ids), length)]


def _iree(path: str) -> Peer:
    from iree.tokenizer import Tokenizer

    return Iree(Tokenizer.from_file(path))


def _splintr(path: str) -> Peer:
    from splintr import from_json

    return Splintr(from_json(path))


OTHERS: dict[str, Callable[[str], Peer]] = {"iree-tokenizer": _iree, "splintr-rs": _splintr}
"""Further libraries by name, each with what loads a tokenizer.json."""


def load_other(name: str, path: str) -> Peer | str:
    """Return a further library's peer, or what hinders it."""
    try:
        return OTHERS[name](path)
    except ImportError:
        return "is not installed"
    # A fault of any kind, even a Rust panic (which is no Exception), is a finding and not ours to stop at.
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return f"cannot load it: {error}"
