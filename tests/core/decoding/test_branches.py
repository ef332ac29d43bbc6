"""Two futures of one text: what both give next comes out once, in whatever pieces they grow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from detok.core.decoding.branches import Branch, agree, past_border
from detok.core.decoding.tail import Tail
from detok.core.decoding.text_rules import WhiteEnds

TAIL = Tail([])
texts = st.lists(st.text("ab", max_size=3), max_size=6)


def test_worked_example() -> None:
    """EF BF BD 41: the U+FFFD is certain as soon as both futures have one, and nothing after they differ."""
    valid, invalid = Branch(TAIL.start), Branch(TAIL.start)
    given_out = []
    for if_valid, if_invalid in [("", "\ufffd"), ("", "\ufffd"), ("\ufffd", "\ufffd"), ("A", "\ufffd")]:
        agreed, valid, invalid = agree(valid.then(TAIL.start, if_valid), invalid.then(TAIL.start, if_invalid))
        given_out.append(agreed)
    assert given_out == ["", "", "\ufffd", ""]
    assert (valid.rest, invalid.rest) == ("A", "\ufffd" * 3)


@given(texts, texts)
def test_what_is_agreed_is_the_common_beginning(ones: list[str], twos: list[str]) -> None:
    """Piece by piece: what came out and what is left are each branch's text, and no more could have come out."""
    one = two = Branch(TAIL.start)
    out, first, second = "", "", ""
    for place in range(max(len(ones), len(twos))):
        mine, other = ("".join(pieces[place : place + 1]) for pieces in (ones, twos))
        first, second = first + mine, second + other
        agreed, one, two = agree(one.then(TAIL.start, mine), two.then(TAIL.start, other))
        out += agreed
        assert (out + one.rest, out + two.rest) == (first, second)
        assert not one.rest or not two.rest or one.rest[0] != two.rest[0]


def test_what_a_prompt_shows_is_passed_over() -> None:
    """The future begins with what the prompt alone shows; or the prompt shows more; or they differ."""
    assert past_border("abc", TAIL.start, "ab", TAIL).rest == "c"
    longer = past_border("ab", TAIL.start, "abc", TAIL)
    assert longer.rest == ""
    assert TAIL.feed(longer.cursor, "cd")[0] == "d"
    other = past_border("xy", TAIL.start, "ab", TAIL)
    assert other.rest == ""
    assert TAIL.feed(other.cursor, "cd")[0] == "cd"


def test_what_rules_hold_of_a_prompt_is_passed_over_too() -> None:
    """Where the future is another, what its rules would still give of the prompt's text does not come out."""
    tail = Tail([WhiteEnds()])
    out, cursor = tail.feed(tail.start, "x \n")
    assert out == "x"
    assert tail.feed(past_border("x", cursor, "yz", tail).cursor, "a")[0] == " \na"
