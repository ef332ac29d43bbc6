"""Special tokens as events in the text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok import Special, Text
from tests.support.handmade import BYTE_LEVEL, make

TOKENIZER = detok.load(make(BYTE_LEVEL, ["a", "b", "ðŁ", "¦ľ", "<s>", "<tool>", "ST", "OP"], special=["<s>", "<tool>"]))


def segments_of(ids: list[int], **options: Any) -> list[list[Text | Special]]:
    """What each step gives, and the end."""
    request = TOKENIZER.request(segments=True, **options)
    outputs = [request.feed([token_id]) for token_id in ids]
    if not outputs[-1].finished:
        outputs.append(request.finish("length"))
    return [output.segments or [] for output in outputs]


def test_events_stand_between_texts() -> None:
    """In order, each where it belongs, with its surface string, although the text hides it."""
    s = Special(4, "<s>")
    assert segments_of([4, 0, 5, 4, 1]) == [[s], [Text("a")], [Special(5, "<tool>")], [s], [Text("b")], []]


def test_event_waits_for_the_text_before_it() -> None:
    """Behind a candidate or half a character, an event comes when that is decided, and before the character that spans it."""
    assert segments_of([6, 4, 0], stop="STOP") == [[], [], [Text("ST"), Special(4, "<s>"), Text("a")], []]
    assert segments_of([2, 4, 3, 0]) == [[], [], [Special(4, "<s>"), Text("🦜")], [Text("a")], []]
    assert segments_of([2, 4, 0]) == [[], [], [Text("\ufffd"), Special(4, "<s>"), Text("a")], []]


def test_event_inside_a_stop_is_kept_before_the_cut() -> None:
    """A stop is found in the text over a special token that is skipped; the ids are kept, so the event is too."""
    assert segments_of([0, 6, 4, 7], stop="STOP") == [[Text("a")], [], [], [Special(4, "<s>")]]


def test_shown_special_is_an_event_and_no_text() -> None:
    """With special tokens in the text, the event says which part of it is its own."""
    assert segments_of([0, 4, 1], skip_special_tokens=False) == [[Text("a")], [Special(4, "<s>", "<s>")], [Text("b")], []]
    cut = segments_of([0, 4, 1], skip_special_tokens=False, stop="s>b")
    assert [one for step in cut for one in step] == [Text("a"), Special(4, "<s>", "<")]


@pytest.mark.parametrize("skip", [True, False])
@given(ids=st.lists(st.sampled_from(TOKENIZER.ids), min_size=1, max_size=12), stop=st.sampled_from(["STOP", "a🦜", "b<"]))
def test_segments_say_what_the_text_says(skip: bool, ids: list[int], stop: str) -> None:
    """Joined they are the text, and ordinary text is never later in them than there."""
    request = TOKENIZER.request(segments=True, skip_special_tokens=skip, stop=stop)
    text = joined = ""
    for token_id in [*ids, None]:
        output = request.finish("length") if token_id is None else request.feed([token_id])
        text += output.text
        joined += "".join(one.text if isinstance(one, Text) else one.shown for one in output.segments or ())
        assert text.startswith(joined)
        assert not skip or text == joined
        if output.finished:
            break
    assert text == joined
