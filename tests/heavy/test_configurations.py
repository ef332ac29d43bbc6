"""The same as `tests/tokenizers/test_configurations.py` in ten times as many directories."""

from __future__ import annotations

from pathlib import Path

import pytest

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
