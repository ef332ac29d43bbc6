"""Hostile texts: what encoders disagree on, thrown together for one vocabulary, and cuttings of real texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from ..data import sample, sample_names
from ..data.hard_texts import HARD_TEXTS
from ..tokenizers import Tokenizer

__all__ = ["HostileTexts"]

# One of these is as likely as another: bytes of UTF-8 that a character takes, and the scripts below the first ideograph.
PLANES = (0x80, 0x800, 0x3000, 0x10000, 0x110000)
RUNS = (" ", "  ", "\n", "\t", "\r\n", "0", "1", "a", "A", "'", ".", "-", "\u3000", "é", "e\u0301", "🦜", "\u200d")

MAX_PIECE = 80
"""Characters of what is cut out of a text."""

Maker = Callable[[Random], str]


class HostileTexts:
    """
    Makes texts for one tokenizer.

    Args:
        tokenizer: Whose tokens, special and other, are among the pieces.
        real: Texts of somebody's own, of which cuttings are taken.
    """

    def __init__(self, tokenizer: Tokenizer, real: Sequence[str] = ()) -> None:
        samples = [sample(name) for name in sample_names()]
        added = [tokenizer.token_text(token_id) for token_id in sorted(tokenizer.added_ids)]
        ids = tokenizer.ids
        self._makers: list[tuple[float, Maker]] = [
            (3, lambda rng: _cutting(rng, HARD_TEXTS)),
            (1.5, lambda rng: _cutting(rng, samples)),
            (1, lambda rng: "".join(_character(rng) for _ in range(rng.randint(1, 5)))),
            (1, lambda rng: rng.choice(RUNS) * rng.randint(1, 9)),
        ]
        if ids:
            self._makers.append((2, lambda rng: tokenizer.token_text(rng.choice(ids))))
        if added:
            self._makers += [(1.5, lambda rng: rng.choice(added)), (0.5, lambda rng: _nearly(rng, rng.choice(added)))]
        if real:
            self._makers.append((3, lambda rng: _cutting(rng, real)))

    def text(self, rng: Random) -> str:
        """Return a text: mostly a few pieces, since what goes wrong goes wrong at their borders; sometimes many."""
        count = rng.choices((1, rng.randint(2, 8), rng.randint(50, 500)), (10, 88, 2))[0]
        weights, makers = zip(*self._makers, strict=True)
        return "".join(maker(rng) for maker in rng.choices(makers, weights, k=count))


def _cutting(rng: Random, texts: Sequence[str]) -> str:
    text = rng.choice(texts)
    begin = rng.randint(0, len(text))
    return text[begin : begin + rng.randint(0, MAX_PIECE)]


def _nearly(rng: Random, token: str) -> str:
    """A special token with a fault."""
    place = rng.randint(0, len(token))
    return rng.choice((token[:place], token[place:], token.swapcase(), f"{token[:place]} {token[place:]}"))


def _character(rng: Random) -> str:
    while 0xD800 <= (code := rng.randrange(rng.choice(PLANES))) < 0xE000:
        pass
    return chr(code)
