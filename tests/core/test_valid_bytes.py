"""Bytes of which those that belong to no character vanish, as in ByT5: what Python's error handler "ignore" leaves, streamed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.core.decoding.cleanup import TRANSFORMERS_CLEANUP, clean_up
from detok.core.decoding.rules import RawBytes
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
