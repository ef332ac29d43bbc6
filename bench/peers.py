"""
Whoever streams ids into text: this project, and the libraries that are installed.

`run` is what is timed: a plain loop over a fresh stream, each library called by its own function, with nothing between. `text`
is what such a stream gives, since a wrong answer is not a speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

import detok
from detok.core.options import ByteFallbackMode

__all__ = ["OTHERS", "DecodeStreamLists", "DecodeStreams", "Extends", "Peer", "Steps", "load_other"]


class Peer(Protocol):
    """One way to stream."""

    def run(self, ids: list[int]) -> None:
        """Feed all ids, one at a time, to a stream of its own."""
        ...

    def text(self, ids: list[int]) -> str:
        """Return the text of such a stream."""
        ...


@dataclass(frozen=True, slots=True)
class Steps:
    """detok's `step`."""

    tokenizer: detok.Decoder
    byte_fallback: ByteFallbackMode = "exact"

    def run(self, ids: list[int]) -> None:
        stream = self.tokenizer.stream(byte_fallback=self.byte_fallback)
        step = stream.step
        for token_id in ids:
            step(token_id)
        stream.finish()

    def text(self, ids: list[int]) -> str:
        stream = self.tokenizer.stream(byte_fallback=self.byte_fallback)
        return "".join(map(stream.step, ids)) + stream.finish()


@dataclass(frozen=True, slots=True)
class Extends:
    """detok's `extend`, with lists of `length` ids."""

    tokenizer: detok.Decoder
    length: int

    def run(self, ids: list[int]) -> None:
        stream, length = self.tokenizer.stream(), self.length
        extend = stream.extend
        for place in range(0, len(ids), length):
            extend(ids[place : place + length])
        stream.finish()

    def text(self, ids: list[int]) -> str:
        stream = self.tokenizer.stream()
        return "".join(map(stream.extend, _parts(ids, self.length))) + stream.finish()


@dataclass(frozen=True, slots=True)
class DecodeStreams:
    """``tokenizers.decoders.DecodeStream``, which has no `finish`: what it holds at the end is lost."""

    tokenizer: Tokenizer

    def run(self, ids: list[int]) -> None:
        tokenizer = self.tokenizer
        step = DecodeStream(skip_special_tokens=True).step
        for token_id in ids:
            step(tokenizer, token_id)

    def text(self, ids: list[int]) -> str:
        stream = DecodeStream(skip_special_tokens=True)
        return "".join(stream.step(self.tokenizer, token_id) or "" for token_id in ids)


@dataclass(frozen=True, slots=True)
class DecodeStreamLists:
    """The same, with lists of `length` ids."""

    tokenizer: Tokenizer
    length: int

    def run(self, ids: list[int]) -> None:
        tokenizer, length = self.tokenizer, self.length
        step = DecodeStream(skip_special_tokens=True).step
        for place in range(0, len(ids), length):
            step(tokenizer, ids[place : place + length])

    def text(self, ids: list[int]) -> str:
        stream = DecodeStream(skip_special_tokens=True)
        return "".join(stream.step(self.tokenizer, part) or "" for part in _parts(ids, self.length))


@dataclass(frozen=True, slots=True)
class Iree:
    """iree-tokenizer: `feed` takes a list, of one id here."""

    tokenizer: Any

    def run(self, ids: list[int]) -> None:
        with self.tokenizer.decode_stream(skip_special_tokens=True) as stream:
            feed = stream.feed
            for token_id in ids:
                feed([token_id])
            stream.finalize()

    def text(self, ids: list[int]) -> str:
        with self.tokenizer.decode_stream(skip_special_tokens=True) as stream:
            return "".join(stream.feed([token_id]) for token_id in ids) + str(stream.finalize())


@dataclass(frozen=True, slots=True)
class Splintr:
    """splintr-rs."""

    tokenizer: Any

    def run(self, ids: list[int]) -> None:
        stream = self.tokenizer.streaming_decoder()
        add_token = stream.add_token
        for token_id in ids:
            add_token(token_id)
        stream.flush()

    def text(self, ids: list[int]) -> str:
        stream = self.tokenizer.streaming_decoder()
        return "".join(stream.add_token(token_id) or "" for token_id in ids) + str(stream.flush())


def _parts(ids: list[int], length: int) -> Iterator[list[int]]:
    return (ids[place : place + length] for place in range(0, len(ids), length))


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
