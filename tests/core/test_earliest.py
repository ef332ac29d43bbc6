"""
Law 3, proven: after each step exactly that is out which no continuation could change.

For a small vocabulary all lists of ids up to a length are decoded by the tokenizer's own library. What is certain after a list is
then no matter of opinion: it is the longest common prefix of the texts of all lists that continue it, itself included.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from detok.core.decoding.cleanup import TRANSFORMERS_CLEANUP, clean_up
from tests.support.earliest import assert_earliest
from tests.support.handmade import CLEANED, HANDMADE, STRIPPED, cleaned, handmade, stripped


@pytest.mark.parametrize("name", HANDMADE)
def test_step_gives_out_all_that_is_certain(name: str) -> None:
    """Every decoder of the library, and rows of them."""
    library, tokenizer = handmade(name)
    assert_earliest(tokenizer, lambda ids: str(library.decode(ids, skip_special_tokens=False)))


@pytest.mark.parametrize("name", CLEANED)
def test_step_gives_out_all_that_is_certain_under_clean_up(name: str) -> None:
    """Ten replacements over the whole text, behind each way of joining tokens."""
    library, tokenizer = cleaned(name)

    def decode(ids: Sequence[int]) -> str:
        return clean_up(str(library.decode(ids, skip_special_tokens=False)), TRANSFORMERS_CLEANUP)

    assert_earliest(tokenizer, decode, clean_up=True)


@pytest.mark.parametrize(("start", "stop"), [(1, 0), (0, 1), (0, 2), (2, 1)])
@pytest.mark.parametrize("name", STRIPPED)
def test_step_gives_out_all_that_is_certain_under_strip(name: str, start: int, stop: int) -> None:
    """Strip behind each way of joining; the library's own panics on short texts, so it is done here."""
    library, tokenizer = stripped(name, start, stop)

    def decode(ids: Sequence[int]) -> str:
        text = str(library.decode(ids, skip_special_tokens=False))
        leading = min(start, len(text) - len(text.lstrip(" ")))
        text = text[leading:]
        trailing = min(stop, len(text) - len(text.rstrip(" ")))
        return text[: len(text) - trailing]

    assert_earliest(tokenizer, decode)
