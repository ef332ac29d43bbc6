"""A directory is what AutoTokenizer of transformers makes of it: random configurations, with the library as the judge."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.support.against_auto import Refused, differences
from tests.support.configurations import random_directory

DIRECTORIES = 100
REAL_EVERY = 10
"""One in so many is a real vocabulary's."""

PARTS = 10
"""Of the whole run, so that a part can be run alone."""


def differing(numbers: range, folder: Path) -> tuple[list[str], Counter[str]]:
    """What differs in the directories of these numbers; and how many transformers loaded, and how many it refused."""
    found: list[str] = []
    counts: Counter[str] = Counter()
    for number in numbers:
        rng = Random(f"configuration/{number}")
        made = random_directory(rng, folder / str(number), real_one=number % REAL_EVERY == 0)
        try:
            found += [f"{number}: {difference}" for difference in differences(made.write(), rng)]
            counts["loaded"] += 1
        except Refused:
            counts["refused"] += 1
    return found, counts


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_directory_is_what_auto_tokenizer_makes_of_it(part: int, tmp_path: Path) -> None:
    """Text with special tokens and without, encode, special ids and the end: equal, whatever the files say."""
    pytest.importorskip("transformers", minversion="5.24", reason="transformers is the judge")
    size = DIRECTORIES // PARTS
    found, counts = differing(range(part * size, (part + 1) * size), tmp_path)
    assert not found
    assert counts["loaded"] >= size * 0.7
