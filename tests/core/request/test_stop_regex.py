"""Stop patterns against a search after each character; their holds, limits and errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.core.request.stop_regex import MAX_LENGTH, StopRegex
from tests.support.handmade import make

PATTERNS = (
    "ab+c", "a|abc", r"(?<=x)ab", r"\bab\b", "b$", r"^ab", r"(?<!x)a{2,3}", "(?i)AB", r"a(?=b)", r"(ab)\1", "[^a]b", "a.*?c",
    "(?x) a  b # a comment", "a++b", "x?ab?c", "🦜.",
)  # fmt: skip


def first(pattern: str, text: str) -> tuple[int, int] | None:
    """Where the first match that is one when it ends begins and ends, of the same end the first to begin; by looking at all."""
    compiled = regex.compile(pattern)
    for end in range(1, len(text) + 1):
        for begin in range(end):
            if compiled.fullmatch(text[:end], begin):
                return begin, end
    return None


def run(matcher: StopRegex, chunks: Sequence[str]) -> tuple[int, int] | None:
    """The same by a matcher that is fed chunks."""
    state, before = matcher.start, 0
    for chunk in chunks:
        state, match = matcher.scan(state, chunk)
        if match is not None:
            return before + match.end - match.length, before + match.end
        before += len(chunk)
    return None


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=st.text("abcx 🦜\nA", max_size=14), cuts=st.lists(st.integers(0, 14), max_size=5))
def test_pattern_is_found_as_one_character_at_a_time(pattern: str, text: str, cuts: list[int]) -> None:
    """The first character behind which there is a match, whatever the chunks."""
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    chunks = [text[one:two] for one, two in pairwise(places)]
    wanted = first(pattern, text)
    matcher = StopRegex(pattern, 1.0)
    assert run(matcher, chunks) == run(matcher, list(text)) == wanted


@given(text=st.text("abcx", max_size=12))
def test_held_begins_where_a_match_may_grow(text: str) -> None:
    """What is held begins at the first character from which more text could make a match."""
    matcher = StopRegex("ab{1,3}cx", 1.0)
    state, match = matcher.scan(matcher.start, text)
    if match is None:
        growing = re.search("(a|ab{1,3}|ab{1,3}c)$", text)
        assert state.held == (len(text) - growing.start() if growing else 0)


@pytest.fixture
def letters() -> detok.Tokenizer:
    """One token a character."""
    return detok.load(make({"type": "Fuse"}, [*"abcdefghij-0123456789 "]))


def test_pattern_cuts_text_and_ids(letters: detok.Tokenizer) -> None:
    """A pattern over tokens: the text before it, the ids up to its last one, and the pattern as the reason."""
    request = letters.request(stop_regex=r"\d{3}-")
    output = request.feed([0, 12, 13, 1, 14, 15, 16, 10, 2])
    assert (output.text, output.stop_reason, output.tokens_kept) == ("a12b", r"\d{3}-", 8)
    assert output.dropped_token_ids == [2]


def test_strings_and_patterns_race(letters: detok.Tokenizer) -> None:
    """The one that completes first wins; at one character the string."""
    for stop, pattern, wanted in (("bcd", "bc", "bc"), ("bc", "bcd", "bc"), ("bc", "abc", "bc")):
        assert letters.request(stop=stop, stop_regex=pattern).feed([0, 1, 2, 3]).stop_reason == wanted
    request = letters.request(stop="bcd", stop_regex="a.{3}e")
    assert [request.feed([token_id]).text for token_id in (0, 1, 2, 5, 5)] == ["", "", "", "", "abcff"]


def test_a_held_match_is_given_out_at_the_end(letters: detok.Tokenizer) -> None:
    """A match that was still growing is text after all; with the stop in the output nothing is ever held."""
    request = letters.request(stop_regex="ab+c")
    assert (request.feed([0, 1, 1]).text, request.held) == ("", "abb")
    assert request.finish("length").text == "abb"
    assert letters.request(stop_regex="ab+c", include_stop_str_in_output=True).feed([0, 1, 1]).text == "abb"


def test_a_match_that_came_too_early_may_still_grow(letters: detok.Tokenizer) -> None:
    """With min_tokens, a match counts only where it ends behind them, however early it began."""
    request = letters.request(stop_regex="ab+", min_tokens=2)
    assert request.feed([0, 1]).finish_reason is None
    assert request.feed([1]).stop_reason == "ab+"


def test_what_is_held_is_bounded() -> None:
    """Of a match that would be longer than the limit, the beginning is let go."""
    matcher = StopRegex("a[^c]*c", 1.0)
    state, _ = matcher.scan(matcher.start, "a" + "b" * 3 * MAX_LENGTH)
    assert state.held == 0
    state, _ = matcher.scan(matcher.start, "a" * 3 * MAX_LENGTH)
    assert (state.held, len(state.window)) == (MAX_LENGTH - 1, MAX_LENGTH + 64)
    _, match = matcher.scan(state, "c")
    assert match is not None
    assert match.length == MAX_LENGTH


def test_slow_pattern_is_stopped_and_changes_nothing(letters: detok.Tokenizer) -> None:
    """A pattern that explodes raises, names itself, and leaves the request as it was, to be ended."""
    request = letters.request(stop_regex=r"(a|aa)+(a|aa)+(a|aa)+$x", stop_regex_timeout=0.001)
    assert request.feed([1, 2]).text == "bc"
    before = request.snapshot()
    with pytest.raises(detok.StopRegexTimeout, match=r"\(a\|aa\)\+.* took longer than 0.001 s"):
        request.feed([0] * 60)
    assert request.snapshot() == before
    assert request.finish("error").finish_reason == "error"


@pytest.mark.parametrize(
    ("pattern", "why"), [("a(", "no pattern"), ("a*", "an empty one"), ("(?r)ab", "backwards"), ("", "empty")]
)
def test_impossible_pattern_is_refused(letters: detok.Tokenizer, pattern: str, why: str) -> None:
    """What is no pattern, or matches nothing at all, is an error before the request begins."""
    with pytest.raises(detok.OptionError, match=why):
        letters.request(stop_regex=pattern)


def test_missing_library_is_named(letters: detok.Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library there is an error that names the extra."""
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(detok.MissingExtra, match=r"detok\[regex\]"):
        letters.request(stop_regex="an unused pattern")
