"""
Joiners: how bytes and texts become one text.

Bytes of which those that belong to no character vanish, as in ByT5, have properties of their own here: they are what Python's
error handler "ignore" leaves, streamed. The other ways are tried by the laws over every decoder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.core.decoding.cleanup import TRANSFORMERS_CLEANUP, clean_up
from detok.core.decoding.joiners import LastPiece, MayBeLast, OneAfterAnother, byte_token, raw_bytes
from detok.core.decoding.rewriter import Rewriter
from detok.core.decoding.rules import RawBytes, byte_level_bytes
from detok.core.decoding.tail import Tail
from detok.core.decoding.text_rules import Substitute, WhiteEnds
from detok.core.utf8 import decode_ignoring
from tests.support.laws import cuts, split

TOKENS = [
    b"A",
    b" ",
    b".",
    b"\xe3",
    b"\x81",
    b"\x82",
    b"\xf0\x9f",
    b"\x98\x80",
    b"\xff",
    b"\xed\xa0",
    b"\xef\xbf\xbd",
    b"\x82a\xc3",
]
SPECIAL = len(TOKENS)


class Tokens:
    """`TOKENS`, and a special token behind them."""

    def piece(self, token_id: int) -> detok.Piece | None:
        """The piece behind an id."""
        if token_id == SPECIAL:
            return detok.Piece("<s>", special=True, added=True, data=b"<s>")
        return detok.Piece("", data=TOKENS[token_id]) if 0 <= token_id < SPECIAL else None

    def ids(self) -> Iterable[int]:
        """All ids."""
        return range(SPECIAL + 1)

    def added_ids(self) -> Iterable[int]:
        """The special one."""
        return [SPECIAL]


DECODER = detok.Decoder(Tokens(), [RawBytes(drops_invalid=True)])
id_lists = st.lists(st.integers(-1, SPECIAL + 1), max_size=14)


def one_shot(ids: Sequence[int], *, skips: bool = True) -> str:
    """Python's own."""
    pieces = [DECODER.vocabulary.piece(token_id) for token_id in ids]
    return b"".join(p.data or b"" for p in pieces if p and not (p.special and skips)).decode(errors="ignore")


def test_ignoring_does_not_depend_on_the_split() -> None:
    """Any two pieces give what one gives, and that is what Python gives for all of it."""
    some = [0x41, 0x80, 0xA0, 0xBF, 0xC2, 0xE1, 0xED, 0xF0, 0xFF]
    for data in map(bytes, product(some, repeat=4)):
        for cut in range(5):
            text, pending = decode_ignoring(b"", data[:cut])
            more, pending = decode_ignoring(pending, data[cut:])
            assert text + more == data.decode(errors="ignore")
            assert len(pending) <= 3
            assert pending.decode(errors="ignore") == ""


@given(ids=id_lists, cuts=cuts, skips=st.booleans())
def test_stream_equals_one_shot(ids: list[int], cuts: list[int], skips: bool) -> None:
    """Law 1, through snapshots too."""
    stream = DECODER.stream(skip_special_tokens=skips)
    text = ""
    for step in split(ids, cuts):
        text += stream.extend(step)
        stream = DECODER.restore(json.loads(json.dumps(stream.snapshot())))
    assert text + stream.finish() == one_shot(ids, skips=skips)
    assert stream.exact


@given(ids=id_lists)
def test_stream_with_clean_up_equals_one_shot(ids: list[int]) -> None:
    """A space is not given out while an incomplete character behind it may vanish before a full stop."""
    stream = DECODER.stream(clean_up_tokenization_spaces=True)
    assert "".join(map(stream.step, ids)) + stream.finish() == clean_up(one_shot(ids), TRANSFORMERS_CLEANUP)


@given(ids=id_lists, place=st.integers(0, 14))
def test_prompt_is_context_only(ids: list[int], place: int) -> None:
    """Law 5: a character that straddles the border belongs to the output."""
    prompt, ids = ids[:place], ids[place:]
    stream = DECODER.stream(prompt)
    assert one_shot(prompt) + stream.extend(ids) + stream.finish() == one_shot([*prompt, *ids])


def test_incomplete_is_held_and_invalid_is_not() -> None:
    """What can become nothing vanishes at once; what may become a character is held, and shown as bytes."""
    stream = DECODER.stream()
    assert [stream.step(token_id) for token_id in (8, 0, 3)] == ["", "A", ""]
    assert (stream.held, stream.held_because) == (b"\xe3", "incomplete character")
    assert [stream.step(token_id) for token_id in (0, 3, 4)] == ["A", "", ""]
    assert stream.finish() == ""


def joined(joiner: OneAfterAnother | LastPiece, tokens: Sequence[str | bytes]) -> list[str]:
    """What each token makes certain, and the end."""
    state, out = joiner.start, []
    for token in tokens:
        text, state = joiner.feed(state, token)  # type: ignore[arg-type]  # the state is its own
        out.append(text)
    return [*out, joiner.finish(state)]  # type: ignore[arg-type]  # the same


EMPTY = Tail([])
TEXT = OneAfterAnother(EMPTY)
BYTES = OneAfterAnother(EMPTY, raw_bytes)
PER_BYTE = OneAfterAnother(EMPTY, raw_bytes, "byte")
NOTHING = OneAfterAnother(EMPTY, raw_bytes, "nothing")


@pytest.mark.parametrize(
    ("joiner", "tokens", "out"),
    [
        (TEXT, ["a", "", "b"], ["a", "", "b", ""]),
        (BYTES, [b"a\xe2\x82", b"\xac!"], ["a", "€!", ""]),
        (BYTES, [b"\xe2\x82", b"\xe2"], ["", "\ufffd", "\ufffd"]),
        (PER_BYTE, [b"\xe2\x82", b"\xe2"], ["", "\ufffd\ufffd", "\ufffd"]),
        (NOTHING, [b"\xe2\x82", b"\xe2"], ["", "", ""]),
        # A token that is text ends an incomplete character.
        (BYTES, [b"\xe2\x82", "a"], ["", "\ufffda", ""]),
        (PER_BYTE, [b"\xe2\x82", "a"], ["", "\ufffd\ufffda", ""]),
        (NOTHING, [b"\xe2\x82", "a", b"\xac"], ["", "a", "", ""]),
        (OneAfterAnother(EMPTY, byte_token), ["<0xE2>", "<0x82>", "<0xAC>", "<0xFF>", "x"], ["", "", "€", "\ufffd", "x", ""]),
        (OneAfterAnother(EMPTY, byte_level_bytes), ["âĤ", "¬", "☃"], ["", "€", "☃", ""]),
    ],
)
def test_tokens_are_joined_one_after_another(joiner: OneAfterAnother, tokens: list[str | bytes], out: list[str]) -> None:
    """Each character comes out as it is complete; what belongs to none becomes what was chosen."""
    assert joined(joiner, tokens) == out


@pytest.mark.parametrize("invalid", ["subpart", "byte", "nothing"])
def test_split_of_bytes_does_not_matter(invalid: Any) -> None:
    """Any two pieces of four bytes give what one gives."""
    joiner = OneAfterAnother(EMPTY, raw_bytes, invalid)
    for data in map(bytes, product([0x41, 0x80, 0xA0, 0xC2, 0xED, 0xF0, 0xFF], repeat=4)):
        whole = "".join(joined(joiner, [data]))
        assert {"".join(joined(joiner, [data[:cut], data[cut:]])) for cut in range(5)} == {whole}


def test_incomplete_character_decides_what_rules_hold() -> None:
    """After E3 no full stop can follow, so the space is out; where bytes may vanish, it is not."""
    rules = [Substitute(" .", ".")]
    for joiner, out in (
        (OneAfterAnother(Tail([Rewriter(rules)]), raw_bytes), ["", " ", "あ", ""]),
        (OneAfterAnother(Tail([Rewriter(rules)]), raw_bytes, "nothing"), ["", "", " あ", ""]),
    ):
        assert joined(joiner, [b" ", b"\xe3", b"\x81\x82"]) == out
        assert (joiner.alone(b"a"), joiner.alone(b"a "), joiner.alone(b"\xe3")) == ("a", None, None)


def test_what_is_asked_of_one_token_of_bytes() -> None:
    """Alone, it leads from idle back to idle or it does not; it resets if it begins a character; its bytes are its own."""
    assert [BYTES.alone(token) for token in (b"a", b"\xff", b"\xe3", "a")] == ["a", None, None, "a"]
    assert [BYTES.resets([token]) for token in (b"a", b"\x80", b"\x80" * 4, "a", b"\xe3")] == [True, False, True, True, True]
    assert BYTES.resets([b"\x80", b"a"])
    assert not BYTES.resets([b"\x80", "a"])
    assert [BYTES.bytes_of(token) for token in (b"\xff", "あ")] == [b"\xff", "あ".encode()]
    # With rules over the text, there has to be a character that they do not look at, and U+FFFD may be of the past.
    ruled = OneAfterAnother(Tail([Rewriter([Substitute(" .", ".")])]), raw_bytes)
    assert [ruled.resets([token]) for token in (b"a", b" ", b"\xff", "a", ".")] == [True, False, False, True, False]


def test_held_and_prompt() -> None:
    """What is held is shown with its reason; after a prompt its incomplete character is the stream's."""
    _, state = BYTES.feed(BYTES.start, b"a\xe3")
    assert BYTES.held(state) == (b"\xe3", "incomplete character")
    assert BYTES.held(BYTES.start) == ("", "")
    state = BYTES.border(state, BYTES.finish(state))
    assert BYTES.feed(state, b"\x81\x82")[0] == "あ"
    assert BYTES.feed(state, b"A")[0] == "A"
    spaces = OneAfterAnother(Tail([WhiteEnds()]))
    _, blank = spaces.feed(spaces.start, "a ")
    assert spaces.held(blank) == ("", "")
    ruled = OneAfterAnother(Tail([Rewriter([Substitute(" .", ".")])]))
    _, blank = ruled.feed(ruled.start, "a ")
    assert ruled.held(blank) == (" ", "a rule over the text")


LAST = LastPiece(EMPTY, lambda token: token.replace("</w>", " "), lambda token: token.replace("</w>", ""))


def test_last_piece_is_written_differently() -> None:
    """What is the same in both futures is out; what a token has only before another one, or only at the end, is held."""
    assert joined(LAST, ["a</w>", "b", "</w>"]) == ["a", " b", "", ""]
    assert joined(LAST, ["a</w>b", "c"]) == ["a", " bc", ""]
    assert joined(LAST, ["a</w>b"]) == ["a", "b"]
    _, state = LAST.feed(LAST.start, "a</w>")
    assert (LAST.held(state), LAST.held(LAST.start)) == ((" ", "may be the last token"), ("", ""))
    assert [LAST.alone(token) for token in ("a", "a</w>")] == ["a", None]
    assert LAST.resets(["a</w>"])
    assert LAST.bytes_of("a</w>") == b"a "


def test_space_after_the_last_token_of_a_prompt_is_the_stream_s() -> None:
    """The prompt alone does not show it."""
    for prompt, text in (("a</w>", " b"), ("a", "b"), ("a</w>b", "b")):
        _, state = LAST.feed(LAST.start, prompt)
        state = LAST.border(state, LAST.finish(state))
        assert isinstance(state, MayBeLast)
        assert LAST.finish(state) == ""
        assert LAST.feed(state, "b")[0] == text
