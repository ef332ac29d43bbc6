"""Followers: told of tokens, spans and outputs by hand, they answer as they do in a request."""

from __future__ import annotations

from typing import Any

import pytest

import detok
from detok.core.decoding.automaton import Node
from detok.core.decoding.rules import ByteFallback, Fuse
from detok.core.options import DecodeOptions
from detok.core.request.followers import (
    MAX_ADDED_AFTER,
    NO_LOGPROB,
    Follower,
    LogprobCollector,
    SegmentFollower,
    TokenFacts,
)
from detok.core.request.logprobs import Logprob
from detok.core.request.output import RequestOutput
from detok.core.vocabulary import Piece
from detok.turns.channels import ChannelDelta
from detok.turns.formats import ReasoningFormat, TurnFormat
from detok.turns.parsers import turn_parser
from detok.turns.part_tokens import PartTokens
from detok.turns.segments import Segmenter, Special, Text
from tests.support.pieces import Pieces

A, SPECIAL, E3, X81, X82, BYTE_A, WORD, FFFD = range(8)
PIECES = Pieces("a", Piece("<s>", special=True), "<0xE3>", "<0x81>", "<0x82>", "<0x41>", "word", "\ufffd")
DECODER = detok.Decoder(PIECES, [ByteFallback(), Fuse()])
MACHINE = DECODER.machine(DecodeOptions())


def facts(*, skips: bool = True, events: frozenset[int] = frozenset()) -> TokenFacts:
    """What followers ask."""
    return TokenFacts(PIECES, DECODER.token_bytes, skips_specials=skips, event_ids=events)


def node_after(*ids: int) -> Node:
    """Where a stream stands after these ids."""
    node = MACHINE.after_prompt([A])
    for token_id in ids:
        _, node = MACHINE.advance(node, token_id)
    return node


def output(text: str, finish_reason: str | None = None) -> RequestOutput:
    """An output with a text, and perhaps the end."""
    made = RequestOutput(text)
    made.finish_reason = finish_reason
    return made


def test_facts_of_ids() -> None:
    """Bytes, events, and nothing of what is not there."""
    found = facts(events=frozenset([WORD]))
    assert [found.bytes_of(token_id) for token_id in (A, E3, SPECIAL, 99)] == [b"a", b"\xe3", b"<s>", b""]
    assert [found.special(token_id) for token_id in (A, SPECIAL, WORD, 99)] == [
        None,
        Special(SPECIAL, "<s>"),
        Special(WORD, "word"),
        None,
    ]


@pytest.mark.parametrize(
    ("before", "token_id", "text"),
    [
        ([], A, "a"),
        ([], SPECIAL, "<s>"),
        ([], 99, ""),
        ([], E3, ""),
        ([], FFFD, "\ufffd"),
        ([E3, X81], X82, "あ"),
        ([E3, X81], A, "a"),
        ([BYTE_A] * MAX_ADDED_AFTER, BYTE_A, "A"),
        # So much is held that the token's own bytes stand for what it would add.
        ([BYTE_A] * (MAX_ADDED_AFTER + 1), BYTE_A, "A"),
        ([BYTE_A] * (MAX_ADDED_AFTER + 1), E3, ""),
    ],
)
def test_alternative_is_what_it_would_have_added(before: list[int], token_id: int, text: str) -> None:
    """Whole characters, and a special token as it is written."""
    assert facts().added_text(node_after(*before), token_id) == text


def test_special_that_is_not_skipped_is_text() -> None:
    """As any other token."""
    machine = DECODER.machine(DecodeOptions(skip_special_tokens=False))
    assert facts(skips=False).added_text(machine.after_prompt([A]), SPECIAL) == "<s>"


def collected(*ids: int, entry: Logprob = NO_LOGPROB) -> LogprobCollector:
    """A collector that was told of these ids, each at the beginning of a text."""
    found = LogprobCollector(facts())
    for token_id in ids:
        found.step(node_after(), token_id, entry)
    return found


def take(follower: Follower, text: str, finish_reason: str | None = None) -> RequestOutput:
    """The output with what the follower adds."""
    made = output(text, finish_reason)
    follower.take(made)
    return made


def test_entry_waits_for_its_span_and_its_text() -> None:
    """It comes once both are there, with its place in characters and bytes."""
    found = collected(A, E3, X81, X82, WORD)
    assert take(found, "aあw").logprobs == []
    found.decide([1, 0, 0, 1, 4])
    entries = take(found, "o").logprobs or []
    assert [(entry.token, entry.text_offset, entry.byte_offset) for entry in entries] == [
        ("a", 0, 0),
        ("", 1, 1),
        ("", 1, 1),
        ("あ", 1, 1),
    ]
    (last,) = take(found, "rd").logprobs or []
    assert (last.token, last.bytes, last.text_offset, last.byte_offset) == ("word", b"word", 2, 4)


def test_last_entries_have_what_there_is_of_their_text() -> None:
    """A stop cut it; tokens after the end have none of it, though the engine's alternatives stay."""
    found = collected(WORD, A, entry=Logprob(-1.0, 2, [(WORD, -1.0)]))
    found.decide([4])
    found.pass_end(1)
    first, last = take(found, "wo", "stop").logprobs or []
    assert (first.token, first.top[0].token, first.rank) == ("wo", "wo", 2)
    assert (last.token, last.top[0].token) == ("", "word")


@pytest.mark.parametrize(("count", "left"), [(0, 3), (1, 2), (3, 0)])
def test_dropped_entries_are_gone_with_their_spans(count: int, left: int) -> None:
    """The last ones."""
    found = collected(A, A, A)
    found.decide([1, 1, 1])
    found.drop(count)
    assert len(take(found, "aaa", "stop").logprobs or []) == left


def test_table_splits_and_segments_are_shown_if_asked() -> None:
    """Both, one of them, in the order of the text; at the end nothing stays behind."""
    turn = TurnFormat(ReasoningFormat(("<s>",), ("</s>",)))
    for shows, splits in ((True, False), (True, True), (False, True)):
        parser = turn_parser(turn) if splits else None
        found = SegmentFollower(facts(), Segmenter(), shows=shows, turn=parser, tokens=PartTokens())
        for token_id in (SPECIAL, WORD):
            found.step(node_after(), token_id, NO_LOGPROB)
        found.decide([0, 4])
        twin = found.copy()
        for one in (found, twin):
            made = take(one, "word", "stop")
            assert made.segments == ([Special(SPECIAL, "<s>"), Text("word")] if shows else None)
            deltas = [ChannelDelta("reasoning", "word", 0, begin=3, end=7, tokens=1)]
            assert made.channels == (deltas if splits else None)


@pytest.mark.parametrize("method", ["drop", "pass_end"])
def test_event_after_the_end_has_no_place(method: str) -> None:
    """Cut by a stop, or kept after it."""
    found: Any = SegmentFollower(facts(), Segmenter(), shows=True, turn=None, tokens=PartTokens())
    for token_id in (A, SPECIAL):
        found.step(node_after(), token_id, NO_LOGPROB)
    getattr(found, method)(1)
    found.decide([1])
    assert take(found, "a", "stop").segments == [Text("a")]


def test_copies_go_their_own_way() -> None:
    """What one is told the other does not know; plain data makes the same one."""
    found = collected(A)
    twin = found.copy()
    again = LogprobCollector(facts(), *found.plain())
    found.decide([1])
    assert take(found, "a").logprobs
    assert take(twin, "a").logprobs == take(again, "a").logprobs == []
