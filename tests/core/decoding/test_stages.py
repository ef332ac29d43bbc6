"""Rules over tokens that are still apart, one stage at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from detok.core.decoding.stages import EachToken, FirstToken, HeldRuns, LastToken, LeadingSpace, Repeats, TokenStage

UPPER: Any = str.upper
PLAIN = TokenStage[None](None, None)


def run(stage: TokenStage[Any], tokens: Sequence[str | bytes]) -> list[tuple[str | bytes, ...]]:
    """The tokens that each token makes certain, and those of the end."""
    state, out = stage.start, []
    for token in tokens:
        given, state = stage.feed(state, token)
        out.append(given)
    return [*out, stage.finish(state)]


def test_stage_without_a_rule_gives_each_token_at_once() -> None:
    """What the other stages begin with."""
    assert run(PLAIN, ["a", b"b"]) == [("a",), (b"b",), ()]
    assert PLAIN.resets("a")
    assert PLAIN.without_space(None) is None


@pytest.mark.parametrize(
    ("stage", "tokens", "out"),
    [
        (EachToken(UPPER), ["a", "b"], [("A",), ("B",), ()]),
        (FirstToken(UPPER, str.title), ["ab", "cd", "ef"], [("AB",), ("Cd",), ("Ef",), ()]),
        (LastToken(UPPER, str.title), ["ab", "cd"], [(), ("AB",), ("Cd",)]),
        (LastToken(UPPER, str.title), [], [()]),
        (Repeats(lambda token: token.strip("_")), ["a", "a", "_", "a", "b_"], [("a",), (), (), ("a",), ("b",), ()]),
    ],
)
def test_tokens_come_out_as_soon_as_they_are_certain(
    stage: TokenStage[Any], tokens: Sequence[str], out: list[tuple[str, ...]]
) -> None:
    """One token is held where the last one differs, and none elsewhere."""
    assert run(stage, tokens) == out


@pytest.mark.parametrize("first", [EachToken(UPPER), FirstToken(UPPER, lambda token: f" {token}", spaces=True)])
@pytest.mark.parametrize("second", [EachToken(lambda token: token + "."), FirstToken(str.strip, lambda token: f"-{token}")])
def test_two_stages_as_one_are_the_same(first: EachToken | FirstToken, second: EachToken | FirstToken) -> None:
    """Token by token, and in the middle of a text."""
    tokens = ["a", " b", "c"]
    both = first.then(second)
    apart: list[Any] = [first.start, second.start]
    state: Any = both.start
    for token in tokens:
        (one,), apart[0] = first.feed(apart[0], token)
        two, apart[1] = second.feed(apart[1], one)
        given, state = both.feed(state, token)
        assert given == two
        (middle,) = first.middle(token)
        assert both.middle(token) == second.middle(middle)
    spaces = [stage.spaces for stage in (first, second, both) if isinstance(stage, FirstToken)]
    assert not spaces or spaces[-1] == any(spaces[:-1])


def test_next_token_loses_only_a_space_that_a_rule_puts() -> None:
    """Where the first differs by a space in front, the next token is as the first."""
    assert FirstToken(UPPER, UPPER, spaces=True).without_space(True) is False
    assert FirstToken(UPPER, UPPER).without_space(True) is True


@pytest.mark.parametrize(
    ("options", "tokens", "text"),
    [
        ({"strips": True, "every": False}, ["▁▁a", "▁b▁c"], " a b c"),
        ({"strips": True, "every": False}, ["▁", "▁a"], " a"),
        ({"strips": True, "every": True}, ["▁", "▁", "▁a", "▁b"], "a b"),
        ({"strips": False, "every": False}, ["▁a", "▁b"], " a b"),
        ({"strips": True, "every": True}, [b"A", "▁a"], "A a"),
        ({"strips": True, "every": False, "surfaces": {"<unk>": " ▁ "}}, ["<unk>", "▁a"], " ▁  a"),
    ],
)
def test_leading_space_is_lost_while_there_is_no_text(options: dict[str, Any], tokens: Sequence[str | bytes], text: str) -> None:
    """Of the first piece that has one, or of every piece until there is text; bytes are text."""
    given = [out.decode() if isinstance(out, bytes) else out for step in run(LeadingSpace(**options), tokens) for out in step]
    assert "".join(given) == text


def test_piece_with_text_ends_the_wait_for_it() -> None:
    """Then what follows does not depend on what was before."""
    stage = LeadingSpace(strips=True, every=True, surfaces={"<unk>": ""})
    assert [stage.resets(token) for token in ("a", "▁", "▁a", b"A", "<unk>", "")] == [True, False, True, True, False, False]
    assert [stage.middle(token) for token in ("▁a", b"A")] == [(" a",), (b"A",)]


@pytest.mark.parametrize(
    ("eager", "tokens", "out"),
    [
        (False, ["<0xE3>", "<0x81>", "<0x82>", "x"], [(), (), (), ("あ", "x"), ()]),
        (False, ["<0x41>", "<0xFF>", "<0x41>", "x"], [(), ("\ufffd", "\ufffd"), ("\ufffd",), ("x",), ()]),
        (False, ["<0x41>", "<0xE3>", "x"], [(), (), ("\ufffd", "\ufffd", "x"), ()]),
        (False, ["<0x41>"], [(), ("A",)]),
        (True, ["<0x41>", "<0xE3>", "<0x81>", "x"], [("A",), (), (), ("\ufffd", "x"), ()]),
        (True, ["<0x41>", "<0xFF>", "<0x42>"], [("A",), ("\ufffd",), ("B",), ()]),
        (True, ["<0xE3>", "<0x81>", "<0x82>", "<0xE3>"], [(), (), ("あ",), (), ("\ufffd",)]),
    ],
)
def test_runs_before_other_rules_are_held_whole(eager: bool, tokens: Sequence[str], out: list[tuple[str, ...]]) -> None:
    """One token at the end of a valid run, a U+FFFD for each byte of another; eagerly, each character is a token."""
    stage = HeldRuns(eager=eager)
    assert run(stage, tokens) == out
    assert not stage.resets(tokens[0])


def test_what_may_be_held_resets_nothing() -> None:
    """And a repeated token gives what it gives in the middle of others."""
    assert not LastToken(UPPER, UPPER).resets("a")
    assert LastToken(UPPER, str.title).middle("ab") == ("AB",)
    assert Repeats(UPPER).resets("a")
    assert Repeats(UPPER).middle("") == ()
