"""The properties can fail: three planted bugs, one for each way in which streams go wrong, are found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import SupportsIndex

import pytest

import detok
from tests.support.earliest import assert_earliest
from tests.support.handmade import HANDMADE, handmade
from tests.support.laws import id_lists, judge


class ReadsTwice(detok.TextStream):
    """Gives the text of a step again if the step before gave none."""

    __slots__ = ("_empty",)

    def step(self, token_id: SupportsIndex) -> str:
        text = super().step(token_id)
        again = text if getattr(self, "_empty", False) else ""
        self._empty = not text
        return text + again

    def extend(self, token_ids: Iterable[SupportsIndex]) -> str:
        return "".join(map(self.step, token_ids))


class LosesTheTail(detok.TextStream):
    """Has nothing to say at the end."""

    __slots__ = ()

    def finish(self) -> str:
        super().finish()
        return ""


class GivesTooLate(detok.TextStream):
    """Keeps the last character of each step for the next one."""

    __slots__ = ("_late",)

    def step(self, token_id: SupportsIndex) -> str:
        text = getattr(self, "_late", "") + super().step(token_id)
        self._late = text[-1:]
        return text[:-1]

    def extend(self, token_ids: Iterable[SupportsIndex]) -> str:
        return "".join(map(self.step, token_ids))

    def finish(self) -> str:
        late, self._late = getattr(self, "_late", ""), ""
        return late + super().finish()

    def copy(self) -> detok.TextStream:
        twin = GivesTooLate(self._node)
        twin._late = getattr(self, "_late", "")
        return twin


def with_bug(tokenizer: detok.Tokenizer, bug: type[detok.TextStream]) -> detok.Tokenizer:
    """The tokenizer, opening streams that have a bug."""
    right = type(tokenizer).stream

    class Buggy(type(tokenizer)):  # type: ignore[misc]  # the class of a value, on purpose
        def stream(self, *args: object, **options: object) -> detok.TextStream:
            return bug(right(self, *args, **options)._node)  # type: ignore[arg-type]  # passed on as they came

    tokenizer.__class__ = Buggy
    return tokenizer


def differs(tokenizer: detok.Tokenizer, ids: Sequence[int]) -> bool:
    """What law 1 asserts, of one list."""
    stream = tokenizer.stream()
    text = "".join(map(stream.step, ids)) + stream.finish()
    return text != judge(tokenizer, ids, skip_special_tokens=True)


SUBJECT = "ByteLevel"


@pytest.mark.parametrize("bug", [ReadsTwice, LosesTheTail])
def test_stream_equals_one_shot_finds_it(bug: type[detok.TextStream]) -> None:
    """Law 1 catches a double read and a lost tail."""
    from hypothesis import find, settings

    tokenizer = with_bug(detok.load(handmade(SUBJECT)[0]), bug)
    smallest = find(id_lists(handmade(SUBJECT)[1]), lambda ids: differs(tokenizer, ids), settings=settings(max_examples=2000))
    assert 1 <= len(smallest) <= 3


def test_earliest_finds_a_character_given_too_late() -> None:
    """Law 3 catches what law 1 cannot see."""
    assert SUBJECT in HANDMADE
    library, tokenizer = handmade(SUBJECT)[0], with_bug(detok.load(handmade(SUBJECT)[0]), GivesTooLate)
    assert not differs(tokenizer, tokenizer.ids)
    with pytest.raises(AssertionError):
        assert_earliest(tokenizer, lambda ids: str(library.decode(ids, skip_special_tokens=False)))
