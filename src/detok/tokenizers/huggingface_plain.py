"""Text to ids by a ``tokenizers.Tokenizer`` that reads some of its added tokens as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from .reading import utf8

__all__ = ["PlainPieces"]

ANCHOR = "\ufddc<anchor>\ufddd"
"""Stands for the token before a part, since a tokenizer does something else at the beginning of a text. No text has it."""


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
        tokenizer = self._tokenizer()
        flags = {token.content: token for token in tokenizer.get_added_tokens_decoder().values()} if before or after else {}
        if before and flags[before].rstrip:
            text = text.lstrip()
        if after and flags[after].lstrip:
            text = text.rstrip()
        if not text:
            return []
        twin, own_ids = self._twin(control)
        ids = twin.encode(text if before is None else ANCHOR + text, add_special_tokens=False).ids
        return [own_ids.get(token_id, token_id) for token_id in (ids if before is None else ids[1:])]

    def _make(self, control: frozenset[str]) -> tuple[Any, Mapping[int, int]]:
        """The twin, and the ids that its added tokens have in the tokenizer itself."""
        import tokenizers

        tokenizer = self._tokenizer()
        twin = tokenizers.Tokenizer(tokenizer.model)
        for part in ("normalizer", "pre_tokenizer"):
            if getattr(tokenizer, part) is not None:
                setattr(twin, part, getattr(tokenizer, part))
        # A new token gets the id behind the last one. Where ids have holes, that may be one of the model's.
        highest = max(tokenizer.get_vocab(with_added_tokens=False).values(), default=0)
        holes = highest + 1 - tokenizer.get_vocab_size(with_added_tokens=False)
        fillers = [f"\ufddc<{number}>\ufddd" for number in range(max(holes, 0))]
        twin.add_special_tokens([tokenizers.AddedToken(text, normalized=False) for text in (*fillers, ANCHOR)])
        kept = [token for _, token in sorted(tokenizer.get_added_tokens_decoder().items()) if token.content not in control]
        twin.add_tokens(kept)
        id_in_twin: Callable[[str], Any] = twin.token_to_id
        return twin, {id_in_twin(token.content): tokenizer.token_to_id(token.content) for token in kept}
