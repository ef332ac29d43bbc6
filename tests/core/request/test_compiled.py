"""Options worked out for one decoder: what ends a request, what is asked beside text, and which tokens may be usual."""

from __future__ import annotations

from typing import Any

import pytest

import detok
from detok.core.decoding.rules import ByteLevel
from detok.core.request.compiled import CompiledRequest
from detok.core.request.followers import LogprobCollector, SegmentFollower
from detok.core.request.options import RequestOptions
from detok.core.vocabulary import Piece
from tests.support.pieces import Pieces

WORD, SPECIAL, END = range(3)
PIECES = Pieces("a", Piece("<s>", special=True), Piece("</s>", special=True))


class Knows(detok.Decoder):
    """A decoder that knows its end of sequence."""

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        return (END,)


DECODER = Knows(PIECES, [ByteLevel()])


def compiled(**options: Any) -> CompiledRequest:
    """Options of this decoder."""
    return DECODER.compile(RequestOptions(**options))


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        ({}, {END}),
        ({"ignore_eos": True}, set()),
        ({"eos_token_ids": [WORD]}, {WORD}),
        ({"eos_token_ids": []}, set()),
        ({"stop_token_ids": [WORD]}, {WORD, END}),
        ({"stop_token_ids": [WORD], "ignore_eos": True, "eos_token_ids": [SPECIAL]}, {WORD}),
    ],
)
def test_ids_that_end_a_request(options: dict[str, Any], ends: set[int]) -> None:
    """Those that were asked for, and those of the decoder or of the options unless they are ignored."""
    assert compiled(**options).ends == ends


@pytest.mark.parametrize(
    ("options", "is_plain", "gives_at_once"),
    [
        ({}, True, True),
        ({"stop": "x"}, True, True),
        ({"stop_regex": "x"}, False, True),
        ({"detokenize": False}, False, True),
        ({"segments": True}, False, True),
        ({"channels": "qwen"}, False, True),
        ({"output": "final"}, True, False),
        ({"output": "cumulative"}, True, False),
        ({"stream_interval": 2}, True, False),
    ],
)
def test_usual_tokens_need_no_more_than_their_text(options: dict[str, Any], is_plain: bool, gives_at_once: bool) -> None:
    """Patterns, segments and channels see every token; outputs that wait are gathered."""
    found = compiled(**options)
    assert (found.is_plain, found.gives_at_once) == (is_plain, gives_at_once)


def test_search_holds_unless_the_stop_is_in_the_output() -> None:
    """Without a stop there is none."""
    assert compiled().search is None
    for include in (True, False):
        search = compiled(stop="x", include_stop_str_in_output=include).search
        assert search is not None
        assert search.holds is not include


def test_engine_means_its_last_id_or_not() -> None:
    """A reason says which; without one, an id that ends, or a special one."""
    found = compiled()
    assert [found.ended_by(token_id, None) for token_id in (WORD, SPECIAL, END, 99)] == [False, True, True, False]
    assert [found.ended_by(WORD, reason) for reason in (WORD, SPECIAL, "a")] == [True, False, False]


def test_stop_token_is_shown_whether_specials_are_skipped_or_not() -> None:
    """Asked of the machine that does not skip, whose states are the same."""
    for skips in (True, False):
        found = compiled(skip_special_tokens=skips)
        for token_id, text in ((SPECIAL, "<s>"), (WORD, "a"), (99, "")):
            assert found.shown(found.machine.after_prompt([WORD]), token_id)[0] == text


def test_followers_are_those_that_were_asked_for() -> None:
    """Logprobs come with the first of them; each stands again where its plain data says."""
    assert compiled().followers() == ()
    (one,) = compiled(segments=True).followers()
    assert isinstance(one, SegmentFollower)
    assert isinstance(compiled().follower("LogprobCollector", ()), LogprobCollector)
    for found in (compiled(segments=True), compiled(channels="qwen")):
        (one,) = found.followers()
        assert found.follower("SegmentFollower", one.plain()).plain() == one.plain()


def test_unknown_id_is_refused_if_asked() -> None:
    """With its position; a list of known ones is fine."""
    compiled().check_ids([WORD, 99])
    strict = compiled(unknown_ids="error")
    strict.check_ids([WORD, SPECIAL])
    with pytest.raises(detok.UnknownTokenId, match="no id 99 at position 1"):
        strict.check_ids([WORD, 99])
