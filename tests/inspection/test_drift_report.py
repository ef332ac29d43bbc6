"""Drift over stored conversations: sums, what is common, and the worst."""

from __future__ import annotations

import json

import pytest

import detok
from detok.inspection import StoredConversation, drift_report
from detok.prompts.drift import drift_of

EMBEDDED = detok.load(detok.EMBEDDED)


def conversation(name: str, *parts: str) -> StoredConversation:
    """One whose parts are encoded each for itself, as a model may write them."""
    ids = [token_id for part in parts for token_id in EMBEDDED.encode(part, add_special_tokens=False)]
    return StoredConversation(name, tuple(ids))


GOOD = conversation("good", "All is well.")
BAD = conversation("bad", "What h", "o", "w", " are you?")
WORST = conversation("worst", " h", "o", "w", " are you?", " h", "o", "w", " is it? I do not know what there is to say.")


def test_report_sums_up() -> None:
    """Conversations, tokens, places and what is lost."""
    report = drift_report(EMBEDDED, iter([GOOD, BAD, WORST]), block_size=2, worst=1)
    drifts = [drift_of(EMBEDDED, each.ids, block_size=2) for each in (GOOD, BAD, WORST)]
    assert (report.conversations, report.drifting) == (3, 2)
    assert report.tokens == sum(len(each.ids) for each in (GOOD, BAD, WORST))
    assert report.lost_tokens == sum(drift.lost_tokens for drift in drifts)
    assert report.places == sum(drift.count for drift in drifts)
    assert report.worst == (("worst", drifts[2]),)
    assert report.common[0] == (" how", 3)
    assert json.loads(json.dumps(report.as_dict()))["worst"][0]["name"] == "worst"


def test_report_of_nothing_is_empty() -> None:
    """No conversations, and none that drift."""
    assert drift_report(EMBEDDED, []).conversations == 0
    report = drift_report(EMBEDDED, [GOOD], worst=5)
    assert (report.drifting, report.worst, report.common) == (0, (), ())


def test_block_size_that_cannot_be_is_named() -> None:
    """Before a conversation is read."""
    with pytest.raises(detok.OptionError, match=r"^block_size="):
        drift_report(EMBEDDED, iter([GOOD]), block_size=0)
