"""The window does what it is described to do, right or wrong, and loses nothing that it holds."""

from __future__ import annotations

from typing import Any

import pytest

import detok
from detok.core.stream import TextStream
from detok.tokenizers.transformers import join_segments
from detok.tokenizers.window import MAX_HELD, WindowState
from tests.support.windows import Made, steps

REPLACEMENT = "\ufffd"


def state(stream: TextStream) -> WindowState:
    """Where a stream stands."""
    found = stream._node.state
    assert isinstance(found, WindowState)
    return found


def test_window_follows_vllm_step_by_step() -> None:
    """A trace by hand: an emoji over two tokens is held until it is complete, and the offsets move only at a commit."""
    made = Made(b"Hel", b"lo", b" \xf0\x9f", b"\x98\x80", b"!")
    stream = made.stream()
    seen = [(stream.step(token_id), len(state(stream).ids), state(stream).read) for token_id in range(5)]
    # (text out, ids in the window, read offset): the window is the ids of the last commit and those that are held.
    assert seen == [("Hel", 1, 1), ("lo", 1, 1), ("", 2, 1), (" 😀", 2, 2), ("!", 1, 1)]
    assert stream.finish() == ""


def test_window_behind_a_prompt_takes_five_of_its_last_seven_ids() -> None:
    """Specials in the tail are skipped; what stands before the tail is never looked at."""
    made = Made(*(bytes([0x61 + number]) for number in range(9)), specials=2)
    prompt = [0, 1, 2, 3, 9, 4, 5, 10, 6]
    assert state(made.stream(prompt)).ids == (2, 3, 4, 5, 6)
    assert state(made.stream(prompt[:-1], skip_special_tokens=False)).ids == (3, 9, 4, 5, 10)
    assert state(made.stream([7, *[9] * 7])).ids == ()
    assert steps(made.stream(prompt), [7, 8]) == ["h", "i", ""]
    with pytest.raises(detok.TokenTypeError) as error:
        made.stream([0.5, *range(6), "x"])  # type: ignore[list-item]  # wrong on purpose; the first is not read
    assert error.value.position == 7


@pytest.mark.parametrize(
    ("lookback", "prompt_tail", "context"),
    [
        (0, None, ()),
        (1, None, (6,)),
        (2, None, (5, 6)),
        (3, None, (4, 5, 6)),
        (5, 5, (4, 5, 6)),
        (5, 6, (3, 4, 5, 6)),
        (5, 0, ()),
        (7, None, (0, 1, 2, 3, 4, 5, 6)),
        (99, None, (0, 1, 2, 3, 4, 5, 6)),
    ],
)
def test_window_lookback_and_prompt_tail_are_settings(lookback: int, prompt_tail: int | None, context: tuple[int, ...]) -> None:
    """The tail is two more than the lookback, unless it is given; specials count for the tail and not for the lookback."""
    made = Made(*(bytes([0x61 + number]) for number in range(9)), specials=2)
    prompt = [0, 1, 2, 3, 9, 4, 5, 10, 6]
    assert state(made.stream(prompt, lookback=lookback, prompt_tail=prompt_tail)).ids == context


@pytest.mark.parametrize(
    "setting", [{"lookback": -1}, {"lookback": 1.5}, {"lookback": True}, {"prompt_tail": -1}, {"prompt_tail": "7"}]
)
def test_window_settings_that_are_no_numbers_are_refused(setting: dict[str, Any]) -> None:
    """With the name of the setting."""
    with pytest.raises(detok.OptionError, match=f"{next(iter(setting))}=.* an integer of at least 0"):
        Made(b"a").window(**setting)


def test_window_states_are_values() -> None:
    """A copy goes its own way."""
    made = Made(b"a", b"\xc3", b"\xa9")
    stream = made.stream()
    assert stream.extend([0, 1]) == "a"
    twin = stream.copy()
    assert (twin.step(2), stream.step(0), stream.finish()) == ("é", "\ufffda", "")


def test_window_loses_a_character_that_straddles_the_border() -> None:
    """A known failure: the context ends in U+FFFD, which is as long as the character that it becomes."""
    made = Made(b"a\xc3", b"\xa9", b"b")
    assert steps(made.stream([0]), [1, 2]) == ["", "b", ""]
    assert steps(made.stream(), [0, 1, 2]) == ["", "aé", "b", ""]


def test_window_finish_gives_what_is_held() -> None:
    """Where vLLM drops it."""
    made = Made(b"a", b"\xf0\x9f\x98")
    stream = made.stream()
    assert [stream.step(0), stream.step(1)] == ["a", ""]
    assert (stream.held, stream.held_because, stream.finished, stream.exact) == (
        REPLACEMENT,
        "the window ends in U+FFFD",
        False,
        False,
    )
    assert stream.finish() == REPLACEMENT
    assert (stream.finish(), stream.held, stream.finished, stream.exact) == ("", "", True, False)
    with pytest.raises(detok.StreamFinished):
        stream.step(0)


def test_window_stalls_at_literal_replacement_characters() -> None:
    """A known failure: a token that is U+FFFD is held as if it were incomplete. With rules it comes out at once."""
    made = Made("\ufffd".encode(), b"a")
    assert steps(made.stream(), [0, 0, 1, 0]) == ["", "", "\ufffd\ufffda", "", "\ufffd"]


def test_window_holds_bytes_that_can_become_nothing() -> None:
    """A known failure: invalid is not incomplete, but a window cannot tell. With rules each U+FFFD comes at once."""
    made = Made(b"\xff", b"a")
    assert steps(made.stream(), [0, 0, 0, 1]) == ["", "", "", "\ufffd\ufffd\ufffda", ""]


def test_window_with_a_long_hold_commits() -> None:
    """So many ids are held and no more; what the originals do not have."""
    made = Made(b"\xff", b"a")
    ids = [0] * (MAX_HELD + 1)
    given_ = steps(made.stream(), ids)
    assert given_ == [""] * MAX_HELD + [REPLACEMENT * (MAX_HELD + 1), ""]
    assert "".join(steps(made.stream(), [0] * 500 + [1])) == REPLACEMENT * 500 + "a"


def test_window_leaves_out_specials_and_unknown_ids() -> None:
    """They do not get into the window; unknown ids give nothing, an error or U+FFFD, as the options say."""
    made = Made(b"a", b"\xc3", b"\xa9", specials=1)
    assert steps(made.stream(), [0, 1, 3, 99, -1, 2]) == ["a", "", "", "", "", "é", ""]
    assert steps(made.stream(skip_special_tokens=False), [0, 3]) == ["a", "<>", ""]
    assert steps(made.stream(unknown_ids="replace"), [0, 99, 1, 99, 0]) == ["a", REPLACEMENT, "", REPLACEMENT * 2, "a", ""]
    strict = made.stream(unknown_ids="error")
    with pytest.raises(detok.UnknownTokenId) as error:
        strict.extend([0, 1, 99])
    assert error.value.position == 2
    assert steps(strict, [1, 2]) == ["", "é", ""]
    with pytest.raises(detok.UnknownTokenId):
        made.stream([99], unknown_ids="error")


@pytest.mark.parametrize(("spaces", "text"), [(True, "ab <x> <y> c <x>"), (False, "ab<x><y>c<x>")])
def test_segments_are_joined_at_added_tokens(spaces: bool, text: str) -> None:
    """Each added token stands for itself; what is between becomes text together."""
    seen: list[list[str]] = []

    def to_string(tokens: list[str]) -> str:
        seen.append(tokens)
        return "".join(tokens)

    tokens = ["a", "b", "<x>", "<y>", "c", "<x>"]
    assert join_segments(tokens, added={"<x>", "<y>"}, to_string=to_string, spaces=spaces) == text
    assert seen == [["a", "b"], ["c"]]
    assert join_segments([], added=set(), to_string=to_string, spaces=spaces) == ""


def test_window_step_decodes_at_most_two_windows() -> None:
    """A step that holds decodes one, a step that commits two; skipped and unknown ids none; `finish` one if something is held."""
    made = Made(b"a", b"\xc3", b"\xa9", specials=1)
    stream = made.stream()
    counts = []
    for token_id in (0, 0, 1, 2, 3, 99, 1):
        before = made.decodes
        stream.step(token_id)
        counts.append(made.decodes - before)
    assert counts == [2, 2, 1, 2, 0, 0, 1]
    before = made.decodes
    stream.finish()
    assert made.decodes - before == 1
    assert made.stream().finish() == ""
    assert made.decodes - before == 1


def test_window_step_costs_the_same_however_far_it_is() -> None:
    """Step 100,000 decodes as many ids as step 100; a hold costs more with each id, up to its limit."""
    made = Made(b"a", b"\xff", specials=1)
    stream = made.stream()
    costs = []
    for token_id in [0] * 100_000:
        before = made.decoded
        stream.step(token_id)
        costs.append(made.decoded - before)
    assert costs[0] == 2
    assert {*costs[1:]} == {3}
    before = made.decodes
    stream.extend([2] * 100_000)
    assert made.decodes == before
    worst = 0
    for _ in range(1000):
        before = made.decoded
        stream.step(1)
        worst = max(worst, made.decoded - before)
    assert worst <= 3 * (MAX_HELD + 1)
    assert len(state(stream).ids) <= 2 * (MAX_HELD + 1)


def test_window_reads_only_the_tail_of_a_prompt() -> None:
    """A prompt of a million ids costs what one of seven does."""
    made = Made(b"a")
    made.stream([0] * 1_000_000)
    assert (made.decodes, made.decoded) == (1, 5)
