"""The stages in a row, over a vocabulary that is written down here."""

from __future__ import annotations

from typing import Any

import pytest

import detok
from detok.core.decoding.pipeline import MAX_READ_BACK, Pipeline, State
from detok.core.decoding.rules import BPEDecoder, ByteFallback, ByteLevel, Fuse, Metaspace, RawBytes, Replace, Rule, WordPiece
from detok.core.options import DecodeOptions
from detok.core.vocabulary import Piece
from tests.support.kinds import CountingPrompt
from tests.support.pieces import Pieces

METASPACE = Metaspace("▁", keep_first=False)
SPECIAL = Piece("<s>", special=True, added=True)


def pipeline(pieces: Pieces, *rules: Rule, **options: Any) -> Pipeline:
    """A pipeline with clean-up decided."""
    return Pipeline(rules, pieces, DecodeOptions(**{"clean_up_tokenization_spaces": False, **options}))


def run(line: Pipeline, ids: list[int], state: State | None = None) -> str:
    """All that comes out."""
    state, out = line.start if state is None else state, ""
    for token_id in ids:
        text, state = line.feed(state, token_id)
        out += text
    return out + line.finish(state)


def test_unknown_id_is_skipped_refused_or_replaced() -> None:
    """As the options say; what replaces it goes the way of a token."""
    pieces = Pieces("▁a", None)
    assert run(pipeline(pieces, METASPACE), [0, 1, 0]) == "a a"
    assert run(pipeline(pieces, METASPACE, unknown_ids="replace"), [1, 0]) == "\ufffd a"
    line = pipeline(pieces, METASPACE, unknown_ids="error")
    with pytest.raises(detok.UnknownTokenId, match=r"no id 1$"):
        line.feed(line.start, 1)


@pytest.mark.parametrize(
    ("rule", "skipped", "shown"),
    [
        (RawBytes(), " a", "<s> a"),
        # Two formats count a skipped special as a token without text.
        (RawBytes(drops_first_space=True), " a", "<s> a"),
        (RawBytes(specials_split=True), " a", "<s> a"),
        (RawBytes(drops_invalid=True), " a", "<s> a"),
    ],
)
def test_special_is_skipped_or_shown(rule: Rule, skipped: str, shown: str) -> None:
    """What a skipped one is to the stages after it."""
    pieces = Pieces(Piece("<s>", special=True, data=b"<s>"), b" a")
    assert run(pipeline(pieces, rule), [0, 1]) == skipped
    assert run(pipeline(pieces, rule, skip_special_tokens=False), [0, 1]) == shown
    assert run(pipeline(pieces, rule), [1]) == (" a" if rule != RawBytes(drops_first_space=True) else "a")


def test_special_ends_an_incomplete_character_where_specials_split() -> None:
    """Tekken's rule, skipped or not; elsewhere a skipped one is not there."""
    pieces = Pieces(Piece("<s>", special=True, data=b"\xff"), b"\xe3", b"\x81\x82")
    assert run(pipeline(pieces, RawBytes(specials_split=True)), [1, 0, 2]) == "\ufffd\ufffd\ufffd"
    assert run(pipeline(pieces, RawBytes(specials_split=True), skip_special_tokens=False), [1, 0, 2]) == "\ufffd<s>\ufffd\ufffd"
    assert run(pipeline(pieces, RawBytes()), [1, 0, 2]) == "あ"


def test_alone_says_what_feed_does() -> None:
    """Where it has an answer, that token leads from the idle state back to it with this text."""
    pieces = Pieces("a", "▁b", "<0x41>", "new")
    for rules in ((METASPACE,), (WordPiece("##", cleanup=True),), (ByteFallback(), METASPACE), (BPEDecoder("▁"), METASPACE)):
        line = pipeline(pieces, *rules)
        for token_id, piece in enumerate(pieces.pieces):
            assert piece is not None
            text = line.alone(piece.text)
            assert text is None or line.feed(line.idle, token_id) == (text, line.idle)
    assert pipeline(pieces, METASPACE).alone("new") == "new"
    assert pipeline(pieces, ByteFallback(), METASPACE).alone("<0x41>") is None


def test_added_piece_after_another_has_no_space() -> None:
    """With `spaces_between_special_tokens=False`, and only after another."""
    pieces = Pieces("a", Piece("<x>", added=True))
    options = {"skip_special_tokens": False, "spaces_between_special_tokens": False}
    assert run(pipeline(pieces, WordPiece("##", cleanup=False), **options), [0, 1, 1, 0, 1]) == "a <x><x> a <x>"
    assert run(pipeline(pieces, WordPiece("##", cleanup=False)), [0, 1, 1]) == "a <x> <x>"


def test_prompt_is_read_to_where_the_past_no_longer_counts() -> None:
    """Backwards to an id that resets, and one further; a part of a character takes a few more."""
    pieces = Pieces(b"The", b"\xf0\x9f\x98", b"\x84", Piece("<s>", special=True, data=b"<s>"), None)
    line = pipeline(pieces, RawBytes())
    for end, most in (([0, 0], 5), ([0, 0, 1], 8), ([0, 0, 3, 3], 9), ([0, 0, 4, 4], 9), ([0, 0, 1, 3, 4], 12)):
        prompt = CountingPrompt([0] * 1000 + end)
        state = line.after_prompt(prompt)  # type: ignore[arg-type]  # it has all that is asked of it
        assert state == line.after_prompt(end)
        assert prompt.read <= most
    assert run(line, [2], line.after_prompt([0, 1])) == "😄"
    assert MAX_READ_BACK == 4


def test_prompt_with_what_is_no_id_names_its_place() -> None:
    """The one that was read."""
    line = pipeline(Pieces("a"), METASPACE)
    prompt: list[Any] = [0, 0, "0"]
    with pytest.raises(detok.TokenTypeError, match=r"prompt_ids\[2\] is the str"):
        line.after_prompt(prompt)


def test_prompt_of_nothing_that_is_seen_is_no_prompt() -> None:
    """The first token after it is the first of all."""
    line = pipeline(Pieces("▁a", SPECIAL, None), METASPACE)
    for prompt in ([], [1], [2, 1, 2]):
        assert run(line, [0], line.after_prompt(prompt)) == "a"
    assert run(line, [0], line.after_prompt([0, 1])) == " a"


def test_two_stages_before_the_joiner_are_read_from_the_beginning() -> None:
    """One may swallow a token, and the other still wait for its first: then no id resets."""
    line = pipeline(Pieces("▁a</w>", "b"), BPEDecoder("</w>"), METASPACE)
    assert not line.resets([0])
    prompt = CountingPrompt([0] * 10)
    line.after_prompt(prompt)  # type: ignore[arg-type]  # it has all that is asked of it
    assert prompt.read >= 10


def test_ids_that_become_no_token_reset_nothing() -> None:
    """There has to be something after which the state is the same."""
    line = pipeline(Pieces("a", None), Fuse())
    assert line.resets([0])
    assert not line.resets([1])
    assert not line.resets([])
    assert not pipeline(Pieces("<0x41>"), ByteFallback(), METASPACE).resets([0])
    assert not pipeline(Pieces("a"), ByteFallback(), ByteLevel()).resets([0])


def test_held_is_shown_with_its_reason() -> None:
    """What the joiner holds; and what stages before it hold, in bytes, whatever the joiner holds after it."""
    held = pipeline(Pieces("a</w>", "b"), BPEDecoder("</w>"), METASPACE)
    _, state = held.feed(held.start, 0)
    assert held.held(state) == (b"a", "a rule over tokens")
    assert held.held(held.start) == ("", "")
    runs = pipeline(Pieces("<0xE3>", "b"), ByteFallback(), Metaspace("▁", keep_first=True))
    _, state = runs.feed(runs.start, 0)
    assert runs.held(state) == ("\ufffd".encode(), "a rule over tokens")
    joined = pipeline(Pieces(b"\xe3"), RawBytes())
    assert joined.held(joined.feed(joined.start, 0)[1]) == (b"\xe3", "incomplete character")


def test_bytes_of_a_piece_do_not_depend_on_its_place() -> None:
    """Through the rules, as neither the first nor the last token."""
    assert pipeline(Pieces(), METASPACE).token_bytes(Piece("▁あ")) == " あ".encode()
    assert pipeline(Pieces(), RawBytes()).token_bytes(Piece("", data=b"\xff")) == b"\xff"
    assert pipeline(Pieces(), ByteFallback(), METASPACE).token_bytes(Piece("<0xE3>")) == b"\xe3"
    assert pipeline(Pieces(), Replace("a", "b"), Fuse()).token_bytes(Piece("a")) == b"b"
