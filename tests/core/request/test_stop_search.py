"""Strings and patterns together: the first that completes, whatever the pieces, and what is held."""

from __future__ import annotations

from itertools import product

import pytest

from detok.core.request.stop_search import SearchState, StopFound, StopSearch
from detok.text_search import Candidate

BOTH = StopSearch(("END", "abc"), (r"\d{3}",), 1.0, holds=True)


def run(search: StopSearch, pieces: list[str]) -> tuple[str, StopFound | None, str]:
    """What comes out, the stop, and what is held when the text ends or a stop came."""
    state, out = search.start, ""
    for piece in pieces:
        text, state, found = search.scan(state, piece)
        out += text
        if found is not None:
            return out, found._replace(end=0, after=0), state.held
    return out, None, state.held


@pytest.mark.parametrize("text", ["The END.", "ab1234abc", "EEND", "12END", "abab12", "E1", "", "xyz"])
@pytest.mark.parametrize("holds", [True, False])
def test_pieces_do_not_matter(text: str, holds: bool) -> None:
    """At once, one by one, and in any two pieces: the same text, stop and hold."""
    search = StopSearch(("END", "abc"), (r"\d{3}",), 1.0, holds=holds)
    out, found, held = run(search, list(text))
    for cut in range(len(text) + 1):
        again = run(search, [text[:cut], text[cut:]])
        assert again[1:] == (found, held)
        # With the stop in the output the text goes up to its end, at which a piece ends too.
        assert again[0] == out
    assert found is not None or out + held == text
    assert holds or held == ""


def test_worked_example() -> None:
    """Where the stop ends in the new text, and how much stands after it."""
    search = StopSearch(("END",), (), 0.1, holds=True)
    out, state, found = search.scan(search.start, "The E")
    assert (out, state.held, found) == ("The ", "E", None)
    assert search.scan(state, "ND.")[::2] == ("", StopFound("END", 2, 1))
    out, _, found = StopSearch(("END",), (), 0.1, holds=False).scan(state, "ND.")
    assert (out, found) == ("END", StopFound("END", 2, 1))


@pytest.mark.parametrize("silent", range(6))
def test_stop_that_completes_in_silence_does_not_count(silent: int) -> None:
    """One that goes on behind it does, wherever it began."""
    search = StopSearch(("ab",), (), 0.1, holds=True)
    _, _, found = search.scan(search.start, "xabab", silent)
    assert found == (StopFound("ab", 3, 2) if silent < 3 else StopFound("ab", 5, 0) if silent < 5 else None)


def test_string_wins_where_both_complete() -> None:
    """At one character the string, else the first of all; of two patterns the first to complete."""
    search = StopSearch(("c",), ("abc", "b"), 1.0, holds=True)
    for text, reason in (("abc", "b"), ("c", "c"), ("ac", "c")):
        _, found, _ = run(search, [text])
        assert found is not None
        assert found.reason == reason


def test_longest_hold_decides() -> None:
    """What any of them may need is held."""
    assert run(StopSearch(("bcd",), ("ab.d",), 1.0, holds=True), ["xabc"]) == ("x", None, "abc")
    assert run(StopSearch(("abcd",), ("c.e",), 1.0, holds=True), ["xabc"]) == ("x", None, "abc")
    assert run(StopSearch((), ("ab.d",), 1.0, holds=True), ["xabc"]) == ("x", None, "abc")


def test_state_survives_as_plain_data() -> None:
    """After any text, with and without strings."""
    for search in (BOTH, StopSearch((), (r"\d{3}",), 1.0, holds=True), StopSearch(("END",), (), 1.0, holds=False)):
        for text in map("".join, product("E1aN", repeat=3)):
            _, state, _ = search.scan(search.start, text)
            twin = search.state(*state.plain())
            for more in ("23", "ND", "bc"):
                assert search.scan(twin, more)[::2] == search.scan(state, more)[::2]


def test_state_of_strings_alone_is_made_of_a_candidate() -> None:
    """As the places of usual tokens remember it."""
    search = StopSearch(("END",), (), 1.0, holds=True)
    assert search.strings is not None
    candidate: Candidate = search.strings.candidate("EN")
    assert search.at(candidate) == SearchState(candidate, (), "EN")
    assert StopSearch(("END",), (), 1.0, holds=False).at(candidate) == SearchState(candidate, (), "")
    assert search.at(None) == SearchState(None)
