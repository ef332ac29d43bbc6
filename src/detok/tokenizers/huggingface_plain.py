"""Text to ids by a ``tokenizers.Tokenizer`` that reads some of its added tokens as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .reading import utf8

__all__ = ["PlainPieces"]

ANCHOR = "\ufddc<anchor>\ufddd"
"""Stands for the token before a part, since a tokenizer does something else at the beginning of a text. No text has it."""


@dataclass(frozen=True, slots=True)
class Twin:
    """A tokenizer that does not know some of another one's added tokens."""

    tokenizer: Any
    own_ids: Mapping[int, int]
    """The ids that its added tokens have in the other one."""

    swallows_before: frozenset[str]
    """The other one's tokens that take the white space before them."""

    swallows_behind: frozenset[str]


class PlainPieces:
    """
    A twin of a tokenizer for each choice of tokens that it is not to read. It shares the model, so that making one costs next to
    nothing; the library's own switch (``encode_special_tokens``) is one for all threads, and knows special tokens alone.

    Args:
        tokenizer: Gives the ``tokenizers.Tokenizer``; asked at the first use.
    """

    def __init__(self, tokenizer: Callable[[], Any]) -> None:
        self._tokenizer = tokenizer
        self._twin = lru_cache(maxsize=8)(self._make)

    def __reduce__(self) -> tuple[object, ...]:
        return PlainPieces, (self._tokenizer,)

    def __call__(self, text: str, *, control: frozenset[str], before: str | None, after: str | None) -> list[int]:
        """Encode a part of a text; see `PlainEncoder`."""
        utf8(text)
        twin = self._twin(control)
        if before in twin.swallows_behind:
            text = text.lstrip()
        if after in twin.swallows_before:
            text = text.rstrip()
        ids = twin.tokenizer.encode(text if before is None else ANCHOR + text, add_special_tokens=False).ids
        return [twin.own_ids.get(token_id, token_id) for token_id in (ids if before is None else ids[1:])]

    def _make(self, control: frozenset[str]) -> Twin:
        import tokenizers

        tokenizer = self._tokenizer()
        added = [token for _, token in sorted(tokenizer.get_added_tokens_decoder().items())]
        twin = tokenizers.Tokenizer(tokenizer.model)
        for part in ("normalizer", "pre_tokenizer"):
            if getattr(tokenizer, part) is not None:
                setattr(twin, part, getattr(tokenizer, part))
        kept = [token for token in added if token.content not in control]
        fillers = [f"\ufddc<{number}>\ufddd" for number in range(_fillers(tokenizer, len(kept) + 1))]
        twin.add_special_tokens([tokenizers.AddedToken(text, normalized=False) for text in (*fillers, ANCHOR)])
        twin.add_tokens(kept)
        id_in_twin: Callable[[str], Any] = twin.token_to_id
        return Twin(
            twin,
            own_ids={id_in_twin(token.content): tokenizer.token_to_id(token.content) for token in kept},
            swallows_before=frozenset(token.content for token in added if token.lstrip),
            swallows_behind=frozenset(token.content for token in added if token.rstrip),
        )


def _fillers(tokenizer: Any, needed: int) -> int:
    """
    How many tokens have to be added first, so that the ``needed`` ones after them get ids that no token of the model has.

    A new token gets an id that is the number of tokens so far. That may be one of the model's where its ids have holes.
    """
    count: int = tokenizer.get_vocab_size(with_added_tokens=False)
    if count and tokenizer.model.id_to_token(count - 1) is not None:
        return 0  # the ids are dense, and to look through all of them takes longer than everything else
    first = count
    for token_id in sorted(tokenizer.get_vocab(with_added_tokens=False).values()):
        if first <= token_id < first + needed:
            first = token_id + 1
    return first - count
