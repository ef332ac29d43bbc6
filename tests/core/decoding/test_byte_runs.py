"""Runs of byte tokens: the tables of the module, and the border of a prompt in a run."""

from __future__ import annotations

import pytest

from detok.core.decoding.byte_runs import Broken, ByteRuns, Run
from detok.core.decoding.tail import Tail
from detok.core.decoding.text_rules import WhiteEnds

RUNS = ByteRuns(Tail([]))


def given_out(runs: ByteRuns, tokens: list[str]) -> list[str]:
    """The text that each token makes certain, and the end."""
    state, out = runs.start, []
    for token in tokens:
        text, state = runs.feed(state, token)
        out.append(text)
    return [*out, runs.finish(state)]


@pytest.mark.parametrize(
    ("tokens", "out"),
    [
        (["<0xE3>", "<0x81>", "<0x82>", "x"], ["", "", "", "あx", ""]),
        (["<0xE3>", "<0x81>", "<0xFF>", "<0x41>"], ["", "", "\ufffd" * 3, "\ufffd", ""]),
        (["<0xE3>", "<0x81>", "x"], ["", "", "\ufffd\ufffdx", ""]),
        (["<0xE3>", "<0x81>", "<0x82>"], ["", "", "", "あ"]),
        (["<0x41>", "<0xFF>", "<0x41>", "x"], ["", "\ufffd\ufffd", "\ufffd", "x", ""]),
        (["<0xEF>", "<0xBF>", "<0xBD>", "<0x41>"], ["", "", "\ufffd", "", "A"]),
        (["a", "b", ""], ["a", "b", "", ""]),
    ],
)
def test_worked_examples(tokens: list[str], out: list[str]) -> None:
    """All bytes of a run are one text, or each is U+FFFD."""
    assert given_out(RUNS, tokens) == out


def test_states_say_what_a_run_is() -> None:
    """A cursor between runs, `Run` in one that is still valid, `Broken` in one that is not; the next token ends both."""
    _, run = RUNS.feed(RUNS.start, "<0x41>")
    assert isinstance(run, Run)
    assert RUNS.held(run) == (b"A", "open byte run")
    _, broken = RUNS.feed(run, "<0xFF>")
    assert isinstance(broken, Broken)
    assert RUNS.held(broken) == RUNS.held(RUNS.start) == ("", "")
    assert [RUNS.feed(state, "x")[1] for state in (run, broken, RUNS.start)] == [RUNS.idle] * 3


@pytest.mark.parametrize(
    ("prompt", "tokens", "text"),
    [
        (["<0xE3>", "<0x81>"], ["<0x82>", "x"], "あx"),
        (["<0x41>"], ["<0x42>", "x"], "Bx"),
        (["<0xE3>"], ["<0xFF>"], "\ufffd"),
        (["<0x41>", "<0xFF>"], ["<0x42>", "x"], "\ufffdx"),
        (["a"], ["b"], "b"),
    ],
)
def test_of_a_prompt_only_what_it_leaves_open_comes_out(prompt: list[str], tokens: list[str], text: str) -> None:
    """Of two futures the one that the prompt shows is passed over, and the other one's part of the prompt too."""
    state = RUNS.start
    for token in prompt:
        _, state = RUNS.feed(state, token)
    state, out = RUNS.border(state, RUNS.finish(state)), ""
    for token in tokens:
        more, state = RUNS.feed(state, token)
        out += more
    assert out + RUNS.finish(state) == text


def test_rules_over_the_text_hold_what_a_run_gives() -> None:
    """White space at the end of a run may be the end of the text."""
    runs = ByteRuns(Tail([WhiteEnds()]))
    assert given_out(runs, ["<0x41>", "<0x20>", "x", " "]) == ["", "", "A x", "", ""]
    assert given_out(runs, ["<0x20>", "<0x41>", "<0x20>"]) == ["", "", "", "A"]


def test_what_is_asked_of_one_token() -> None:
    """A byte token is neither alone nor resets anything, and is its byte; any other is its text."""
    assert (RUNS.alone("x"), RUNS.alone("<0x41>"), RUNS.alone("<0x4")) == ("x", None, "<0x4")
    ruled = ByteRuns(Tail([WhiteEnds()]))
    assert (ruled.alone("x"), ruled.alone("x ")) == ("x", None)
    assert (RUNS.resets(["x"]), RUNS.resets(["<0x41>", "x"])) == (True, False)
    assert (RUNS.bytes_of("<0xE3>"), RUNS.bytes_of("あ")) == (b"\xe3", "あ".encode())
