"""SGLang's window sends what can hardly change during a hold."""

from __future__ import annotations

import pytest

from detok.inspection.strategies.printable import PrintableWindow, find_printable
from tests.support.windows import Made, by_steps, steps

REPLACEMENT = "\ufffd"


def test_printable_window_follows_sglang_step_by_step() -> None:
    """Whole words and Chinese characters are sent during a hold, and not again when it ends."""
    made = Made(b"one two\xf0", b"\x9f\x98\x80", "漢字".encode() + b"\xe3", b"\x81\x82", b"x\xc3")
    assert steps(by_steps(PrintableWindow(made.window())), range(5)) == ["one ", "two😀", "漢字", "あ", "", f"x{REPLACEMENT}"]
    assert steps(made.stream(), range(5)) == ["", "one two😀", "", "漢字あ", "", f"x{REPLACEMENT}"]


def test_printable_window_repeats_what_turns_out_different() -> None:
    """A known failure: what was sent is a number of characters, and it shrinks when the rules change their mind."""
    made = Made("漢".encode() + b"\xe3", b"\x81\x82\xe3")
    assert steps(by_steps(PrintableWindow(made.window())), [0, 1]) == ["漢", "", f"漢あ{REPLACEMENT}"]


def test_printable_window_holds_what_was_not_sent() -> None:
    """`held` and `finish` give the rest; U+FFFD for an unknown id comes after it."""
    made = Made(b"one two\xf0", b"\x9f\x98\x80")
    stream = by_steps(PrintableWindow(made.window(unknown_ids="replace")))
    assert (stream.step(0), stream.held, stream.held_because) == ("one ", f"two{REPLACEMENT}", "the window ends in U+FFFD")
    assert stream.copy().finish() == f"two{REPLACEMENT}"
    assert stream.copy().step(99) == f"two{REPLACEMENT}{REPLACEMENT}"
    assert (stream.step(1), stream.held, stream.step(99), stream.finish()) == ("two😀", "", REPLACEMENT, "")


def test_printable_window_decodes_at_most_two_windows_a_step() -> None:
    """As the window of two offsets."""
    made = Made(b"a", b"\xc3", b"\xa9", specials=1)
    stream, counts = by_steps(PrintableWindow(made.window())), []
    for token_id in (0, 0, 1, 2, 3, 99, 1):
        before = made.decodes
        stream.step(token_id)
        counts.append(made.decodes - before)
    assert counts == [2, 2, 2, 2, 0, 0, 2]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("a\n", "a\n"),
        ("word", ""),
        ("two words", "two "),
        ("漢", "漢"),
        ("a漢", "a漢"),
        ("漢a", "漢"),
        ("漢a ", "漢a "),
        ("漢ab", ""),
        ("漢 ab", "漢 "),
        ("\U00020000", "\U00020000"),
        ("あ", ""),
        ("한", ""),
    ],
)
def test_printable_is_lines_words_and_chinese_characters(text: str, shown: str) -> None:
    """Kana and Hangul are no Chinese characters here, as in the original."""
    assert find_printable(text) == shown
