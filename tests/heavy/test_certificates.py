"""The certificates of GGUF and of word lists again, over ten times the hostile lists that `make test` tries."""

from __future__ import annotations

import pytest

from detok.tokenizers.wordlists import from_file
from tests.support.kinds import assert_check_finds_nothing
from tests.support.vocabularies import real
from tests.tokenizers import test_gguf, test_wordlists
from tests.tokenizers.test_wordlists import Loaded, loaded

__all__ = ["loaded"]

LISTS = 2000


@pytest.mark.parametrize("name", test_gguf.VOCABULARIES)
def test_gguf_vocabulary(name: str) -> None:
    """Each kind of vocabulary that llama.cpp has."""
    assert_check_finds_nothing(test_gguf.made(name), LISTS)


@pytest.mark.parametrize("name", test_wordlists.MAKERS)
def test_wordlist(loaded: Loaded, name: str) -> None:
    """Each kind of directory."""
    assert_check_finds_nothing(loaded(name)[0], LISTS)


def test_clip() -> None:
    """The real list."""
    path = real("clip") / "bpe_simple_vocab_16e6.txt.gz"
    assert_check_finds_nothing(from_file(path), LISTS)
