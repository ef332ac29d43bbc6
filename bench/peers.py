"""
Whoever streams ids into text: this project, and the libraries that are installed.

`run` is what is timed: a plain loop over a fresh stream, each library called by its own function, with nothing between. `text` is
what came out of it, since a wrong answer is not a speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

import detok
from detok.core.options import ByteFallbackMode

__all__ = ["DecodeStreams", "Extends", "Peer", "Steps", "other_peers"]


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
    """detok's `extend`, with lists of `length` ids; all at once if that is 0."""

    tokenizer: detok.Decoder
    length: int = 0

    def run(self, ids: list[int]) -> None:
        stream = self.tokenizer.stream()
        extend = stream.extend
        length = self.length or len(ids)
        for place in range(0, len(ids), length):
            extend(ids[place : place + length])
        stream.finish()

    def text(self, ids: list[int]) -> str:
        stream = self.tokenizer.stream()
        length = self.length or len(ids)
        return "".join(stream.extend(ids[at : at + length]) for at in range(0, len(ids), length)) + stream.finish()


@dataclass(frozen=True, slots=True)
class DecodeStreams:
    """``tokenizers.decoders.DecodeStream``: no `finish`, so that what it holds at the end is lost."""

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


def other_peers(path: str) -> tuple[dict[str, Peer], list[str]]:
    """Load a tokenizer.json with each further library; return who could, and what hindered the others."""
    peers: dict[str, Peer] = {}
    hindrances: list[str] = []
    for name, load in (("iree-tokenizer", _iree), ("splintr-rs", _splintr)):
        try:
            peers[name] = load(path)
        except ImportError:
            hindrances.append(f"{name} is not installed")
        # A peer's fault of any kind, even a Rust panic (which is no Exception), is a finding and not ours to stop at.
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            hindrances.append(f"{name} cannot load it: {error}")
    return peers, hindrances


def _iree(path: str) -> Peer:
    from iree.tokenizer import Tokenizer

    return Iree(Tokenizer.from_file(path))


def _splintr(path: str) -> Peer:
    from splintr import from_json

    return Splintr(from_json(path))
