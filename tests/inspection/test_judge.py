"""The judge speaks, or fails, but never ends the check."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import detok
from detok.inspection.judge import judge
from detok.tokenizers import Tokenizer
from tests.support.handmade import FUSE, make, sequence, strip

EMBEDDED = detok.load(detok.EMBEDDED)


def with_library(error: BaseException) -> Tokenizer:
    """A tokenizer whose library raises."""

    class Library:
        name = "broken"

        def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
            raise error

        def tokens(self) -> dict[str, int]:
            return {}

    return Tokenizer(EMBEDDED.vocabulary, EMBEDDED.rules, encoder=EMBEDDED.encode, library=Library())


def test_judge_is_asked_without_ids_that_the_library_refuses() -> None:
    """Negative and huge ids have no piece, and vanish."""
    assert judge(EMBEDDED, [-1, 39, 1 << 32, (1 << 32) - 1, 10**30], skip_special_tokens=True) == "H"


def test_judge_that_fails_says_nothing() -> None:
    """An error of the library is None, and so is a panic, which is no ordinary exception."""
    assert judge(with_library(ValueError()), [39], skip_special_tokens=True) is None
    panicking = detok.load(make(sequence(FUSE, strip(0, 3)), (" ", "a")))
    assert judge(panicking, [0], skip_special_tokens=True) is None


def test_judge_lets_an_interrupt_through() -> None:
    """Control-C is no failure of the library."""
    with pytest.raises(KeyboardInterrupt):
        judge(with_library(KeyboardInterrupt()), [39], skip_special_tokens=True)
