"""The automaton of stop strings: its bounds, counted in work."""

from __future__ import annotations

import random

import pytest

from detok import text_search as stops
from detok.text_search import StopStrings


def test_ten_thousand_stops_cost_no_more_moves_than_one() -> None:
    """A text that was seen is a remembered move: nothing is looked at again, however many stops there are."""
    many = StopStrings(tuple(f"{number:05}" for number in range(10_000)))
    words = [" the", " year", " 19", "84", "\n", " was"] * 50
    counts = []
    for _ in range(2):
        at = many.idle
        for word in words:
            at, match = many.scan(at, word)
            assert match is None
        counts.append(many.questions)
    assert counts[0] == counts[1] <= 20


def test_long_candidate_is_searched_once() -> None:
    """A text of one character under a stop of the same one asks for a bounded number of moves, each once."""
    stop = StopStrings(("a" * 2000 + "b",))
    at = stop.idle
    for _ in range(10_000):
        at, match = stop.scan(at, "a")
        assert match is None
    assert at.length == 2000
    assert stop.questions <= 2001
    at, match = stop.scan(at, "b")
    assert match is not None


def test_memory_of_moves_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of ever new texts begins the memory again; what is found stays right."""
    monkeypatch.setattr(stops, "MAX_MOVES", 50)
    stop = StopStrings(("abc", "bcd"))
    letters = random.Random(5)
    for _ in range(300):
        text = "".join(letters.choices("abcd", k=letters.randint(1, 9)))
        at, match = stop.idle, None
        for start in range(0, len(text), 2):
            at, match = stop.scan(at, text[start : start + 2])
            if match is not None:
                end = start + match.end
                break
        found = [text.find(one) + 3 for one in ("abc", "bcd") if one in text]
        assert (min(found) if found else None) == (end if match is not None else None)
    assert sum(len(node.moves) + len(node.chars) + len(node.children) for node in stop._known) <= 52


@pytest.mark.parametrize("stop", ["]", "^", "-", "\\", "[a-z]", "a^", "\n", "🦜", "\u0301e", "ก", "\x00", "\ud800"])
def test_stop_is_literal_in_any_script(stop: str) -> None:
    """Whatever it is written in, a stop is itself and nothing else."""
    strings = StopStrings((stop,))
    assert strings.scan(strings.idle, "abc xyz, -"[: 9 if stop == "-" else None])[1] is None
    _, match = strings.scan(strings.idle, f"z{stop}z")
    assert match is not None
    assert (match.end, match.length) == (1 + len(stop), len(stop))
