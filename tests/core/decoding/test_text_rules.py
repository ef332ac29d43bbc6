"""Rules over joined text that are no table, and the contract of those that become one."""

from __future__ import annotations

from itertools import product

import pytest

from detok.core.decoding.text_rules import CharRule, StripText, Substitute, TextStage, WhiteEnds, WholeText


def run(stage: TextStage[object], pieces: list[str]) -> str:
    """All that comes out."""
    state, out = stage.start, ""
    for piece in pieces:
        text, state = stage.feed(state, piece)
        out += text
    return out + stage.finish(state)


@pytest.mark.parametrize("cuts", [(0, 6), (3, 3), (1, 2), (2, 5)])
def test_white_ends_are_those_of_python(cuts: tuple[int, int]) -> None:
    """Every text of six characters, in three pieces."""
    one, two = cuts
    for text in map("".join, product("a \n\u3000", repeat=6)):
        assert run(WhiteEnds(), [text[:one], text[one:two], text[two:]]) == text.strip()  # type: ignore[arg-type]  # its own states


def test_white_space_in_the_middle_waits_for_what_follows() -> None:
    """It is held in pieces, and given out with the next character."""
    stage = WhiteEnds()
    out, state = stage.feed(stage.start, " a ")
    assert (out, state) == ("a", (" ",))
    out, state = stage.feed(state, "\n")
    assert (out, "".join(state or ())) == ("", " \n")
    assert stage.feed(state, "b") == (" \nb", ())
    assert stage.finish(state) == ""


def test_byte_that_begins_no_white_space_makes_the_held_certain() -> None:
    """E3 may become U+3000; F0 may not. Before the first character nothing is held."""
    stage = WhiteEnds()
    _, state = stage.feed(stage.start, "a ")
    assert (stage.expect(state, b"\xe3"), stage.expect(state, b"\xe3\x81"), stage.expect(state, b"\xf0")) == ("", " ", " ")
    assert stage.expect(None, b"\xf0") == ""
    assert [stage.resets(text) for text in ("a", " a ", " ", "")] == [True, True, False, False]


def test_function_over_the_whole_text_is_asked_at_the_end() -> None:
    """Once, with all of it; nothing is certain before."""
    asked: list[str] = []

    def reverse(text: str) -> str:
        asked.append(text)
        return text[::-1]

    stage = WholeText(reverse)
    state = stage.start
    for piece in ("ab", "", "c"):
        out, state = stage.feed(state, piece)
        assert (out, stage.expect(state, b"\xf0")) == ("", "")
    assert asked == []
    assert (stage.finish(state), asked) == ("cba", ["abc"])
    assert not stage.resets("abc")


@pytest.mark.parametrize("rule", [Substitute("aab", "X"), Substitute("a", ""), StripText("a", 1, 2), StripText("a", 0, 0)])
def test_character_outside_the_alphabet_resets_a_rule(rule: CharRule) -> None:
    """From any state a rule gives what it holds, then the character, and comes to one state."""
    after = set()
    for text in map("".join, product(sorted(rule.alphabet), repeat=4)):
        for length in range(5):
            state = rule.start
            for character in text[:length]:
                _, state = rule.feed(state, character)
            out, state = rule.feed(state, "Z")
            assert out.endswith("Z")
            assert set(out[:-1]) <= rule.alphabet | rule.writes
            after.add(state)
    assert len(after) == 1
