"""Spans of tokens: the module's example, the limits of what is kept, and counting from the end."""

from __future__ import annotations

import pytest

import detok
from detok.core.decoding.automaton import Node
from detok.core.decoding.rules import BPEDecoder, ByteFallback, Fuse
from detok.core.options import DecodeOptions
from detok.core.request import spans
from detok.core.request.spans import TokenSpans, Undecided, common_length, held_text
from tests.support.pieces import Pieces

PIECES = Pieces("a", "<0xE3>", "<0x81>", "<0x82>", "x", "<0x41>", "")
A, E3, X81, X82, X, BYTE_A, EMPTY = range(7)
MACHINE = detok.Decoder(PIECES, [ByteFallback(), Fuse()]).automaton(DecodeOptions())


def walk(ids: list[int], found: TokenSpans, *, wanted: bool = True, node: Node | None = None) -> tuple[list[int], Node]:
    """Feed ids as a request does; return the lengths that were decided, and the last node."""
    node, lengths = MACHINE.after_prompt([A]) if node is None else node, []
    for token_id in ids:
        text, node = MACHINE.advance(node, token_id)
        found.add(node, text)
        lengths += found.settle(is_idle=node.is_idle, wanted=wanted)
    return lengths, node


def test_worked_example() -> None:
    """The character belongs to the byte that completes it, once the run has ended well; to nobody before."""
    found = TokenSpans()
    lengths, node = walk([A, E3, X81, X82], found)
    assert (lengths, len(found), bool(found), held_text(node)) == ([1], 3, True, "あ")
    lengths, _ = walk([X], found, node=node)
    assert (lengths, len(found), bool(found)) == ([0, 0, 1, 1], 0, False)


def test_run_that_ends_badly_is_u_fffd_for_each_byte() -> None:
    """Each has its own, if stopping at it would have shown it; those that would have been letters leave theirs to the bad one."""
    assert walk([E3, X81, X], TokenSpans())[0] == [1, 1, 1]
    assert walk([BYTE_A, BYTE_A, E3, X], TokenSpans())[0] == [0, 0, 3, 1]


def test_end_decides_everything() -> None:
    """With the text that was held."""
    found = TokenSpans()
    _, node = walk([E3, X81, X82], found)
    found.end(held_text(node))
    assert found.decided(ends=True) == [0, 0, 1]
    assert TokenSpans().decided(ends=True) == []


def test_tokens_that_change_nothing_are_counted_alone() -> None:
    """They take no room of their own; each has a span of nothing, and a copy is a copy."""
    found = TokenSpans()
    _, node = walk([E3], found)
    for _ in range(100):
        found.add(node, "")
    (tokens, *_) = found.plain()
    assert tokens == (Undecided(node, 0, 1, more=100),)
    twin = found.copy()
    assert (len(twin), len(found)) == (101, 101)
    found.clear()
    assert (len(twin), len(found), bool(found)) == (101, 0, False)
    assert twin.cut(5) == 95
    assert twin.cut(5) == twin.cut(99) == 0
    assert len(twin) == 6


@pytest.mark.parametrize("length", [1023, 1024, 1025, 1100])
def test_run_over_the_limit_belongs_to_its_last_token(length: int) -> None:
    """Up to `MAX_UNDECIDED` each byte has its character; those after it have nothing, and the last of all the rest."""
    found = TokenSpans()
    _, node = walk([BYTE_A] * length, found, wanted=False)
    assert spans.MAX_UNDECIDED == 1024
    lengths, _ = walk([X], found, node=node)
    beyond = max(0, length - 1024)
    assert lengths == [1] * (length - beyond) + ([0] * (beyond - 1) + [beyond] if beyond else []) + [1]


def test_spans_after_a_run_over_the_limit_are_those_of_their_tokens() -> None:
    """What was decided to make room is given out in order, by a copy and by what was kept as plain data too."""
    machine = detok.Decoder(Pieces("<0x41>", "b</w>"), [ByteFallback(), BPEDecoder("</w>")]).machine(DecodeOptions())
    for is_copied in (False, True):
        node, found, lengths = machine.after_prompt([]), TokenSpans(), []
        for token_id in [0] * 1100 + [1] * 1500:
            text, node = machine.advance(node, token_id)
            found.add(node, text)
            lengths += found.settle(is_idle=False, wanted=True)
            if is_copied and token_id:
                found = found.copy()
        found.end(held_text(node))
        lengths += found.decided(ends=True)
        assert len(lengths) == 2600
        # The bytes up to the limit have their characters, the last one beyond it all the others; each word has its own.
        assert lengths == [1] * 1024 + [0] * 75 + [76] + [1] + [2] * 1499


def test_tokens_over_the_limit_of_waiting_are_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limit all wait; with one more the first goes, with what is certain of it."""
    monkeypatch.setattr(spans, "MAX_WAITING", 3)
    found = TokenSpans()
    lengths, node = walk([E3, X81, X82], found)
    assert (lengths, len(found)) == ([], 3)
    lengths, node = walk([E3], found, node=node)
    assert (lengths, len(found)) == ([0], 3)
    lengths, _ = walk([X81, X82, X], found, node=node)
    # The first two went before anything of them was certain; the characters are all there.
    assert sum(lengths) == 3


def test_nobody_asks_and_few_tokens_are_kept() -> None:
    """Where the stream is never idle, tokens are looked at again after a few, and those that are decided go."""
    machine = detok.Decoder(Pieces("a</w>"), [BPEDecoder("</w>")]).machine(DecodeOptions())
    node, found, lengths = machine.after_prompt([0]), TokenSpans(), []
    for _ in range(120):
        text, node = machine.advance(node, 0)
        assert (text, node.is_idle) == (" a", False)
        found.add(node, text)
        lengths += found.settle(is_idle=False, wanted=False)
        assert len(found) <= spans.MAX_UNASKED
    assert set(lengths) == {2}
    assert len(lengths) + len(found) == 120


def test_characters_are_found_from_the_end() -> None:
    """The token that has the last character, the one before, and where each token's part ends."""
    found = TokenSpans()
    _, node = walk([BYTE_A, BYTE_A, E3, X81, X82], found)
    found.end(held_text(node))
    assert [found.first_with(back) for back in (0, 1, 2)] == [4, 1, 0]
    assert [found.end_of(index) for index in range(5)] == [2, 1, 1, 1, 0]
    with pytest.raises(IndexError):
        found.end_of(5)
    assert found.cut(1) == 3
    assert found.decided(ends=True)[:1] == [1]


def test_character_after_all_tokens_is_the_last_one_s() -> None:
    """Where none of them had it when it came."""
    found = TokenSpans()
    _, node = walk([E3], found)
    found.end(held_text(node) + "more")
    assert found.first_with(0) == 0


def test_lengths_that_texts_have_in_common() -> None:
    """One a beginning of the other, or neither."""
    for one, other, length in (("", "a", 0), ("ab", "abc", 2), ("abc", "ab", 2), ("abx", "aby", 2), ("x", "y", 0), ("a", "a", 1)):
        assert common_length(one, other) == length


def test_nothing_is_held_where_nothing_can_be() -> None:
    """At the idle node, and after the end."""
    assert held_text(MACHINE.home) == held_text(MACHINE.finished) == ""
