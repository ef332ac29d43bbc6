"""Two tokens with one id are found wherever they hide."""

from __future__ import annotations

import json
from typing import Any

import tokenizers

import detok
from detok.inspection import check
from detok.inspection.shared_ids import SharedId, shared_ids
from tests.support.handmade import make


def test_shared_id_in_a_huge_vocabulary_is_found() -> None:
    """`load` is quick and looks at the highest ids of a huge vocabulary only; the check looks at all, and does not pass."""
    content: dict[str, Any] = json.loads(make(None, (f"t{number}" for number in range(70_000))).to_str())
    content["model"]["vocab"]["t6"] = 5
    tokenizer = detok.load(tokenizers.Tokenizer.from_str(json.dumps(content)))
    assert shared_ids(tokenizer) == (SharedId(5, "t5", "t6"),)
    certificate = check(tokenizer, ids=[])
    assert not certificate.differing
    assert not certificate.ok


def test_shared_ids_of_an_ordinary_vocabulary_are_none() -> None:
    """No complaint where there is nothing to complain of."""
    assert shared_ids(detok.load(detok.EMBEDDED)) == ()
