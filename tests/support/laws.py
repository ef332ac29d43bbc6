"""What the law tests share: lists of ids that hurt, splits into steps, and the judge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from hypothesis import strategies as st

import detok
from tests.support.handmade import CLEANED, HANDMADE, LATE, cleaned, handmade
from tests.support.vocabularies import REAL_NAMES, real

SUBJECTS = (*(f"handmade: {name}" for name in (*HANDMADE, *LATE)), *(f"cleaned: {name}" for name in CLEANED), *REAL_NAMES)
"""Every tokenizer that the laws are tried on."""


@cache
def subject(name: str) -> detok.Tokenizer:
    """The tokenizer of a name in `SUBJECTS`; a real one may skip the test."""
    kind, _, rest = name.partition(": ")
    match kind:
        case "handmade":
            return handmade(rest)[1]
        case "cleaned":
            return cleaned(rest)[1]
        case _:
            return detok.load(real(name) / "tokenizer.json")


def judge(tokenizer: detok.Tokenizer, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
    """The one-shot decode of the tokenizer's own library."""
    return tokenizer.library.decode(ids, skip_special_tokens=skip_special_tokens)


@cache
def hurting(tokenizer: detok.Tokenizer) -> tuple[int, ...]:
    """Ids that are more likely to hurt: bytes and parts of characters, specials, U+FFFD, spaces; and ids that do not exist."""
    found = [*tokenizer.added_ids][:40]
    for token_id in tokenizer.ids[:2000]:
        data = tokenizer.token_bytes(token_id)
        if len(data) < 2 or b" " in data[:1] or data.decode(errors="replace") != data.decode(errors="ignore"):
            found.append(token_id)
    return (*found, tokenizer.vocab_size, tokenizer.vocab_size + 7, -1, -tokenizer.vocab_size, 1 << 32, 1 << 40)


# Hypothesis looks at each element of what a new `sampled_from` may give. For 260,000 ids that takes longer than the rest of
# an example, so these strategies are made once for a tokenizer, not once for an example.
@cache
def any_id(tokenizer: detok.Tokenizer, *others: int) -> st.SearchStrategy[int]:
    """Each id of a tokenizer, and the other ones that are named."""
    return st.sampled_from((*tokenizer.ids, *others))


@cache
def id_lists(tokenizer: detok.Tokenizer, max_size: int = 12) -> st.SearchStrategy[list[int]]:
    """Lists of ids of a tokenizer."""
    return st.lists(st.sampled_from(hurting(tokenizer)) | any_id(tokenizer), max_size=max_size)


def split(ids: Sequence[int], cuts: Sequence[int]) -> list[Sequence[int]]:
    """``ids`` in steps, cut at places modulo its length; empty steps occur."""
    places = sorted(cut % (len(ids) + 1) for cut in cuts)
    return [ids[start:end] for start, end in pairwise([0, *places, len(ids)])]


cuts = st.lists(st.integers(0, 30), max_size=6)
