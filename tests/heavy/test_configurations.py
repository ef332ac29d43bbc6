"""The same as `tests/tokenizers/test_configurations.py` in ten times as many directories."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.support.against_auto import differences
from tests.support.vocabularies import REAL_NAMES, real
from tests.tokenizers.test_configurations import DIRECTORIES, differing

PARTS = 20
MORE = 1000


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_directory_is_what_auto_tokenizer_makes_of_it(part: int, tmp_path: Path) -> None:
    """Text with special tokens and without, encode, special ids and the end: equal, whatever the files say."""
    pytest.importorskip("transformers", minversion="5.24", reason="transformers is the judge")
    size = MORE // PARTS
    begin = DIRECTORIES + part * size
    found, counts = differing(range(begin, begin + size), tmp_path)
    assert not found
    assert counts["loaded"] >= size * 0.7


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REAL_NAMES)
def test_real_directory_is_what_auto_tokenizer_makes_of_it(name: str) -> None:
    """As it was downloaded."""
    pytest.importorskip("transformers", minversion="5.24", reason="transformers is the judge")
    assert not list(differences(real(name), Random(name)))
