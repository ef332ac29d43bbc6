"""Rules over joined text in a row, and the text that must not come out twice."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from detok.core.decoding.rewriter import Rewriter
from detok.core.decoding.tail import Tail
from detok.core.decoding.text_rules import Substitute, TextStage, WhiteEnds, WholeText

STOPS = Rewriter([Substitute(" .", ".")])


def run(tail: Tail, pieces: Sequence[str]) -> str:
    """All that comes out."""
    cursor, out = tail.start, ""
    for piece in pieces:
        text, cursor = tail.feed(cursor, piece)
        out += text
    return out + tail.finish(cursor)


@pytest.mark.parametrize(
    "stages",
    [[], [STOPS], [WhiteEnds()], [STOPS, WhiteEnds()], [WhiteEnds(), STOPS], [WholeText(str.upper), STOPS]],
    ids=["none", "table", "ends", "table, ends", "ends, table", "whole, table"],
)
def test_split_does_not_matter(stages: list[TextStage[Any]]) -> None:
    """Of all texts of five characters that count, at once and one by one."""
    tail = Tail(stages)
    assert tail.is_empty == (not stages)
    for text in map("".join, product(" .a", repeat=5)):
        assert run(tail, list(text)) == run(tail, [text]) == run(tail, ["", text[:2], "", text[2:]])


def test_worked_example() -> None:
    """The space is out when the first byte of a kana has come, and passed over when the rules give it."""
    tail = Tail([STOPS])
    text, cursor = tail.feed(tail.start, " ")
    assert (text, tail.finish(cursor)) == ("", " ")
    text, cursor = tail.expect(cursor, b"\xe3")
    assert (text, cursor.shown, tail.finish(cursor)) == (" ", " ", "")
    assert tail.expect(cursor, b"\xe3\x81") == ("", cursor)
    assert tail.feed(cursor, "あ")[0] == "あ"


def test_nothing_is_expected_of_several_rules_or_of_no_bytes() -> None:
    """One rule says what is certain; of a row of them nobody knows."""
    for tail in (Tail([]), Tail([STOPS, WhiteEnds()])):
        _, cursor = tail.feed(tail.start, " ")
        assert tail.expect(cursor, b"\xe3") == ("", cursor)
    tail = Tail([STOPS])
    _, cursor = tail.feed(tail.start, " ")
    assert tail.expect(cursor, b"") == ("", cursor)


def test_text_that_differs_from_what_was_shown_ends_the_passing_over() -> None:
    """As far as they agree it is left out, over any number of steps; then all comes out."""
    tail = Tail([])
    cursor = tail.start.passing_over("abc")
    assert tail.start.passing_over("") is tail.start
    text, cursor = tail.feed(cursor, "ab")
    assert (text, cursor.shown) == ("", "c")
    text, cursor = tail.feed(cursor, "xc")
    assert (text, cursor.shown) == ("xc", "")
    assert tail.feed(cursor, "c") == ("c", cursor)


def test_text_resets_where_each_rule_lets_a_character_pass() -> None:
    """The same character for all of them."""
    assert Tail([]).resets("")
    assert [Tail([STOPS]).resets(text) for text in ("a", " .", ". a", "")] == [True, False, True, False]
    assert [Tail([STOPS, WhiteEnds()]).resets(text) for text in ("a", ".\n", "\n")] == [True, False, False]
