"""The real vocabularies, fetched at the first use."""

import functools
import os
from pathlib import Path

import pytest
from tokenizers import Tokenizer

import detok
from scripts.fetch_vocabularies import VOCABULARIES, FetchError, fetch

REAL_NAMES = tuple(name for name, vocabulary in VOCABULARIES.items() if vocabulary.saved_as == "tokenizer.json")
"""Those that are a tokenizer.json."""


@functools.cache
def _outcome(name: str) -> Path | FetchError:
    """One attempt a run: the directory, or why there is none."""
    try:
        return fetch(name)
    except FetchError as error:
        return error


def real(name: str) -> Path:
    """
    Return the directory of a real vocabulary.

    Without it the test is skipped, so that one can work without a network; in CI it fails, so that nothing is
    skipped there unseen.
    """
    outcome = _outcome(name)
    if isinstance(outcome, Path):
        return outcome
    if os.environ.get("CI") == "true":
        pytest.fail(f"no vocabulary: {outcome}", pytrace=False)
    pytest.skip(f"no vocabulary: {outcome}")


@functools.cache
def load_tokenizer(name: str) -> Tokenizer:
    """Load a real vocabulary with the library whose answers we have to equal."""
    return Tokenizer.from_file(str(real(name) / "tokenizer.json"))


@functools.cache
def real_tokenizer(name: str) -> detok.Tokenizer:
    """A real vocabulary, as detok loads its directory: once for all tests that do not ask how it is loaded."""
    return detok.load(real(name))
