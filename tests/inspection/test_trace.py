"""The trace tells what a stream does, and what a naive decode would have done wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.inspection import Summary, summary, trace
from detok.inspection.trace import fault_of
from tests.support.handmade import BYTE_LEVEL, FUSE, METASPACE, UNDERSCORE, WORDPIECE, byte_level_tokens, make, sequence, strip

EMBEDDED = detok.load(detok.EMBEDDED)
SPACED = detok.load(make(METASPACE, ("<s>", "▁Hi", "▁there", "!"), special=["<s>"], added=["!"]))


@given(st.lists(st.integers(-2, EMBEDDED.vocab_size + 2)), st.booleans())
def test_trace_texts_are_the_decode(ids: list[int], skips: bool) -> None:
    """What comes out of all rows is what a decode gives, and there is a row for each id and one for the end."""
    rows = trace(EMBEDDED, ids, skip_special_tokens=skips)
    assert summary(rows).right == EMBEDDED.decode(ids, skip_special_tokens=skips)
    assert [row.token_id for row in rows] == [*ids, None]
    assert [row.position for row in rows] == list(range(len(ids) + 1))


def test_trace_of_a_cut_character_holds_its_bytes() -> None:
    """While a character is incomplete its bytes are held, with the reason; each of its tokens alone is broken."""
    first, second, last = trace(EMBEDDED, EMBEDDED.encode("ë"))
    assert (first.bytes, first.held, first.held_because, first.text) == (b"\xc3", b"\xc3", "incomplete character", "")
    assert (second.bytes, second.held, second.held_because, second.text) == (b"\xab", "", "", "ë")
    assert [first.naive, second.naive] == ["\ufffd", "\ufffd"]
    assert [first.fault, second.fault, last.fault] == ["broken character", "broken character", None]


def test_trace_of_an_unfinished_character_gives_it_at_the_end() -> None:
    """What is still held comes out of the last row."""
    rows = trace(EMBEDDED, EMBEDDED.encode("ë")[:1])
    assert [row.text for row in rows] == ["", "\ufffd"]
    assert rows[-1].token_id is None
    assert rows[-1].held == ""


def test_trace_of_bytes_that_are_no_text_finds_no_fault() -> None:
    """U+FFFD is no fault where the right text has it too."""
    tokenizer = detok.load(make(BYTE_LEVEL, byte_level_tokens(b"\xff", b"A")))
    assert [row.fault for row in trace(tokenizer, [0, 1])] == [None, None, None]


def test_trace_of_words_finds_lost_spaces() -> None:
    """Each word alone is the first word, and loses its space; the first one is right."""
    rows = trace(SPACED, [1, 2, 3])
    assert [row.naive for row in rows] == ["Hi", "there", "!", ""]
    assert [row.fault for row in rows] == [None, "lost space", None, None]
    assert summary(rows) == Summary(right="Hi there!", naive="Hithere!", faults=1)


def test_trace_behind_a_prompt_finds_the_first_space_lost() -> None:
    """Behind a prompt the first word is not the first, and no text of the prompt comes out."""
    rows = trace(SPACED, [2], prompt_ids=[1])
    assert (rows[0].text, rows[0].naive, rows[0].fault) == (" there", "there", "lost space")


def test_trace_of_text_released_late_blames_the_right_tokens() -> None:
    """A token that ends a byte run releases it; the token itself is judged by what it adds."""
    tokens = ("<0xC3>", "<0xAB>", "▁x", "y")
    tokenizer = detok.load(make(sequence(UNDERSCORE, {"type": "ByteFallback"}, FUSE, strip(1, 0)), tokens))
    rows = trace(tokenizer, [0, 1, 3, 2])
    assert [row.text for row in rows] == ["", "", "ëy", " x", ""]
    assert [row.fault for row in rows] == ["broken character", "broken character", None, "lost space", None]


def test_trace_with_clean_up_finds_wrong_spaces() -> None:
    """A space that clean-up takes away is wrong, in the token that has it and in the one that only a later token shows wrong."""
    tokenizer = detok.load(make(BYTE_LEVEL, byte_level_tokens(b"a", b" .", b" ", b".")))
    rows = trace(tokenizer, [0, 1, 2, 3], clean_up_tokenization_spaces=True)
    assert summary(rows).right == "a.."
    assert [row.fault for row in rows] == [None, "wrong space", "wrong space", None, None]


def test_trace_of_word_parts_finds_their_marks() -> None:
    """The mark of a word part stays when the part is decoded alone."""
    rows = trace(detok.load(make(WORDPIECE, ("a", "##b"))), [0, 1])
    assert (rows[1].text, rows[1].naive, rows[1].fault) == ("b", "##b", "other")


def test_trace_tells_kinds_of_tokens_apart() -> None:
    """Special, added and unknown ids are marked; an unknown id has neither piece nor bytes."""
    special, added, unknown, beyond = trace(SPACED, [0, 3, 99, 1 << 70])[:4]
    assert (special.special, special.added, special.unknown, special.piece) == (True, True, False, "<s>")
    assert (added.special, added.added, added.unknown) == (False, True, False)
    for row in (unknown, beyond):
        assert (row.unknown, row.piece, row.bytes, row.text, row.naive, row.fault) == (True, None, b"", "", "", None)


def test_trace_survives_a_library_that_fails() -> None:
    """Where the library panics on an id alone, a naive decode sends nothing."""
    tokenizer = detok.load(make(sequence(FUSE, strip(0, 3)), (" ", "a")))
    rows = trace(tokenizer, [0, 1])
    assert [(row.text, row.naive, row.fault) for row in rows[:2]] == [("", "", None), (" a", "a", "lost space")]


def test_trace_with_unknown_ids_as_errors_raises() -> None:
    """The options are those of a stream, and so are the errors."""
    with pytest.raises(detok.UnknownTokenId):
        trace(EMBEDDED, [1 << 30], unknown_ids="error")
    with pytest.raises(detok.TokenTypeError):
        trace(EMBEDDED, ["1"])  # type: ignore[list-item]  # wrong on purpose


def test_fault_of_equal_texts_is_none() -> None:
    """A naive decode that is what the token adds is right, whatever was held before."""
    assert fault_of("b", before="a", after="ab", right="abc") is None


def test_trace_beside_a_strategy_shows_where_it_is_late() -> None:
    """A token that is U+FFFD stalls a window, and is right in the end."""
    tokenizer = detok.load(make(FUSE, ("a", "\ufffd")))
    rows = trace(tokenizer, [0, 1, 1, 0, 1], strategy="window")
    assert [row.text for row in rows] == ["a", "\ufffd", "\ufffd", "a", "\ufffd", ""]
    assert [row.compared for row in rows] == ["a", "", "", "\ufffd\ufffda", "", "\ufffd"]
    assert [row.deviation for row in rows] == [None, "late", "late", None, "late", None]
    whole = summary(rows)
    assert (whole.compared, whole.late) == (whole.right, 3)


def test_trace_beside_a_strategy_shows_where_it_goes_wrong() -> None:
    """In the first step that gives what is no beginning of the right text; no more is said of it then."""
    tokenizer = detok.load(make({"type": "ByteFallback"}, ("<0xC3>", "<0xA9>", "<0xFF>", "x")))
    rows = trace(tokenizer, [3, 0, 1, 2, 3], strategy="window")
    assert [row.text for row in rows] == ["x", "", "", "\ufffd\ufffd\ufffd", "x", ""]
    assert [row.compared for row in rows] == ["x", "", "é", "", "\ufffd\ufffdx", ""]
    assert [row.deviation for row in rows] == [None, None, "wrong", None, None, None]
    assert summary(rows).compared == "xé\ufffd\ufffdx"


def test_trace_beside_a_strategy_that_loses_the_end_shows_it_at_finish() -> None:
    """What is a beginning of the right text all the time may still not be all of it."""
    tokenizer = detok.load(make(BYTE_LEVEL, byte_level_tokens(b"a\xc3", b"\xa9")))
    rows = trace(tokenizer, [1], prompt_ids=[0], strategy="window")
    assert [(row.text, row.compared, row.deviation) for row in rows] == [("é", "", "late"), ("", "", "wrong")]


def test_trace_without_a_strategy_compares_nothing() -> None:
    """Then only a naive decode stands beside the stream."""
    rows = trace(SPACED, [1, 2])
    assert {(row.compared, row.deviation) for row in rows} == {(None, None)}
    assert (summary(rows).compared, summary(rows).late) == (None, 0)


def test_trace_with_stops_holds_what_may_become_one() -> None:
    """With the reason; the id that completes a stop is the last, and says how the request ended."""
    tokenizer = detok.load(make(FUSE, ("a", "E", "N", "D", "x")))
    rows = trace(tokenizer, [0, 1, 4, 1, 2, 3, 0], stops={"stop": ["END"]})
    assert [row.text for row in rows] == ["a", "", "Ex", "", "", "", ""]
    assert [row.held for row in rows] == ["", "E", "", "E", "EN", "", ""]
    assert [row.held_because for row in rows] == [row.held and "it may become a stop" for row in rows]
    assert [row.token_id for row in rows] == [0, 1, 4, 1, 2, 3, None]
    ends = [row.end for row in rows]
    assert ends == [None] * 5 + [summary(rows).end, None]
    end = summary(rows).end
    assert end is not None
    assert (end.finish_reason, end.stop_reason, end.tokens_kept, end.text_end) == ("stop", "END", 6, 3)


def test_trace_with_stops_holds_a_part_of_a_character_behind_one() -> None:
    """The candidate and the bytes, with both reasons."""
    tokenizer = detok.load(make(BYTE_LEVEL, byte_level_tokens(b"E", b"\xc3", b"\xab")))
    rows = trace(tokenizer, [0, 1, 2], stops={"stop": "Eé"})
    assert [row.held for row in rows] == ["E", b"E\xc3", "", ""]
    assert rows[1].held_because == "incomplete character, after what may become a stop"
    assert [row.text for row in rows] == ["", "", "Eë", ""]


def test_trace_with_stops_that_do_not_come_gives_out_all_at_the_end() -> None:
    """Then the last row says how it ended, and the text is the decode."""
    rows = trace(EMBEDDED, EMBEDDED.encode("The EN"), stops={"stop": "END"})
    assert rows[-1].text == "EN"
    assert rows[-1].end is not None
    assert rows[-1].end.stop_reason is None
    assert summary(rows).right == "The EN"


def test_trace_with_stops_and_a_strategy_is_refused() -> None:
    """A text that was cut cannot be compared with a whole one."""
    with pytest.raises(detok.OptionError, match="strategy='window' is invalid"):
        trace(EMBEDDED, [39], stops={"stop": "x"}, strategy="window")
