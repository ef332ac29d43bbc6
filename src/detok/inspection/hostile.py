"""Hostile id lists: the tokens that break detokenizers, in the neighbourhoods in which they do, made for one vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from random import Random
from weakref import WeakKeyDictionary

from ..core.decoding.cleanup import TRANSFORMERS_CLEANUP
from ..core.decoding.rules import byte_of
from ..data import sample, sample_names
from ..errors import DetokError
from ..tokenizers import Tokenizer

__all__ = ["Hostile", "hostile_ids"]

Maker = Callable[[Random], list[int]]
"""Makes a few ids that hurt in one way."""

# One byte token after another: characters of one to four bytes, and what can never be one (RFC 3629).
CHARACTERS = [
    character.encode() for character in ("a", " ", ".", "é", "ß", "€", "あ", "한", "က", "ﬀ", "🦜", "👩‍👩‍👧", "\u0301", "\ufffd")
]
BROKEN = [
    b"\x80",  # a continuation without a beginning
    b"\xff",
    b"\xc0\x80",  # too long for what it says
    b"\xe0\x80",
    b"\xed\xa0\x80",  # half of a surrogate pair
    b"\xf4\x90\x80\x80",  # beyond U+10FFFF
    b"\xc3",  # beginnings without an end
    b"\xe2\x80",
    b"\xf0\x9f\x98",
    b"\xf0\x9f",
]
PUNCTUATION = {part for pattern, _ in TRANSFORMERS_CLEANUP for part in (pattern, pattern.strip())} | {
    "do",
    "not",
    "n",
    "t",
    "'",
    "s",
}
# Whatever the vocabulary is: ids that no list may be indexed with.
FAR = [-1, -2, -(1 << 63), (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 32) + 5, (1 << 63) - 1, 1 << 64, 10**30]
MANY = 4096
"""Of holes, at most this many are kept."""


class Hostile:
    """
    Makes hostile id lists for one tokenizer. All of its vocabulary is looked at once, which takes seconds for the largest.

    Args:
        tokenizer: Whose ids are wanted.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._bytes: dict[int, int] = {}
        self._partial: list[int] = []
        self._edges: list[int] = []
        self._replacements: list[int] = []
        self._punctuation: list[int] = []
        self._sort(tokenizer)
        gaps = (range(before + 1, after) for before, after in pairwise((-1, *tokenizer.ids)))
        holes = list(islice(chain.from_iterable(gaps), MANY))
        strangers = [*FAR, *(tokenizer.vocab_size + more for more in (0, 1, 1000))]
        texts = list(filter(None, map(partial(_encoded, tokenizer), map(sample, sample_names()))))
        makers: list[tuple[str, float, Maker | None]] = [
            ("any token", 3, _from(tokenizer.ids)),
            ("parts of characters", 3, _from(self._partial)),
            ("runs of bytes", 3, self._run if any(byte >= 0x80 for byte in self._bytes) else None),
            ("specials", 1, _from(sorted(tokenizer.special_ids))),
            ("added tokens", 1, _from(sorted(tokenizer.added_ids))),
            ("holes", 1, _from(holes)),
            ("strangers", 0.5, _from(strangers)),
            ("U+FFFD in the vocabulary", 1, _from(self._replacements)),
            ("spaces at an edge", 2, _from(self._edges)),
            ("punctuation", 2, _from(self._punctuation)),
            ("cuttings of text", 3, (lambda rng: _cutting(rng, texts)) if texts else None),
        ]
        self._makers = [(weight, maker) for _, weight, maker in makers if maker is not None]
        self.kinds = tuple(name for name, _, maker in makers if maker is not None)
        """What there is to hurt with in this vocabulary."""

    def ids(self, rng: Random, length: int) -> list[int]:
        """Return ``length`` ids: of few kinds, so that long runs of one kind occur, or of all, with repeated neighbours."""
        weights, makers = zip(*self._makers, strict=True)
        chosen = rng.choices(makers, weights, k=rng.choice((1, 2, 3, 8)))
        found: list[int] = []
        while len(found) < length:
            found += rng.choice(chosen)(rng)
            if found and rng.random() < 0.1:
                found += found[-1:] * rng.randint(1, 3)
        return found[:length]

    def _sort(self, tokenizer: Tokenizer) -> None:
        for token_id in tokenizer.ids:
            text, data = tokenizer.piece(token_id).text, tokenizer.token_bytes(token_id)
            byte = byte_of(text)
            if byte is not None:
                self._bytes[byte] = token_id
            elif len(data) == 1:
                self._bytes.setdefault(data[0], token_id)
            if not _is_text(data):
                self._partial.append(token_id)
            if data[:1].isspace() or data[-1:].isspace() or not data:
                self._edges.append(token_id)
            if "\ufffd" in text or b"\xef\xbf\xbd" in data:
                self._replacements.append(token_id)
            if text in PUNCTUATION or data in _PUNCTUATION_BYTES:
                self._punctuation.append(token_id)

    def _run(self, rng: Random) -> list[int]:
        fragments = CHARACTERS if rng.random() < 0.5 else [*CHARACTERS, *BROKEN]
        data = b"".join(rng.choices(fragments, k=rng.randint(1, 40 if rng.random() < 0.05 else 4)))
        if rng.random() < 0.3:
            data = data[rng.randint(0, 2) : len(data) - rng.randint(0, 2)]
        return [self._bytes[byte] for byte in data if byte in self._bytes]


def hostile_ids(rng: Random, tokenizer: Tokenizer, length: int) -> list[int]:
    """Return ``length`` ids chosen to hurt; the same for the same state of ``rng``."""
    hostile = _MADE.get(tokenizer)
    if hostile is None:
        hostile = _MADE[tokenizer] = Hostile(tokenizer)
    return hostile.ids(rng, length)


_MADE: WeakKeyDictionary[Tokenizer, Hostile] = WeakKeyDictionary()
_PUNCTUATION_BYTES = {text.encode() for text in PUNCTUATION}


def _encoded(tokenizer: Tokenizer, text: str) -> Sequence[int]:
    """The ids of a text; none where this tokenizer cannot encode it, which is no matter of decoding."""
    try:
        return tokenizer.encode(text, add_special_tokens=False)
    except DetokError:
        return ()


def _from(ids: Sequence[int]) -> Maker | None:
    return (lambda rng: rng.choices(ids, k=rng.randint(1, 4))) if ids else None


def _cutting(rng: Random, texts: Sequence[Sequence[int]]) -> list[int]:
    """A few neighbours out of the ids of a text: the cuts fall into the middle of characters too."""
    ids = rng.choice(texts)
    begin = rng.randrange(len(ids))
    return list(ids[begin : begin + rng.randint(1, 12)])


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
