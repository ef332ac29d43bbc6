"""
The tail of a pipeline: rules over joined text, and the memory of what must not come out again.

A `Cursor` is where a text stands in them, as a plain value: the states of the rules, and ``shown``, text that the rules are
still going to give although it is out already. There are two reasons for that, and one mechanism for both: what a prompt's own
decode has shown (law 5), and what was certain before the rules could say it (an incomplete character excludes most others).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from .texts import common_prefix

__all__ = ["Cursor", "Tail", "TextStage"]


class TextStage(Protocol):
    """A rule over joined text. Its states are plain values that only it understands."""

    start: Any
    usual: Any
    """The state that most characters leave as it is."""

    def feed(self, state: Any, text: str, /) -> tuple[str, Any]:
        """Take text and return what is certain now, and the next state."""
        ...

    def finish(self, state: Any, /) -> str:
        """Return what comes out at the end of the text."""
        ...

    def expect(self, state: Any, pending: bytes, /) -> str:
        """Return what is certain to come out first if the next character begins with the bytes ``pending``, or is U+FFFD."""
        ...

    def settles(self, text: str, /) -> bool:
        """Whether the state after ``text`` is the same whatever stood before it."""
        ...


class Cursor(NamedTuple):
    """Where a text stands in the rules over it."""

    states: tuple[Any, ...]
    shown: str = ""
    """Text that is out already although the rules are still going to give it."""

    def passing_over(self, text: str) -> Cursor:
        """The same place, with ``text``, which would come out next, counted as shown."""
        return Cursor(self.states, self.shown + text) if text else self


class Tail:
    """Rules over joined text, in a row; often none at all."""

    def __init__(self, stages: Sequence[TextStage]) -> None:
        self._stages = tuple(stages)
        self.start = Cursor(tuple(stage.start for stage in stages))
        self.usual = Cursor(tuple(stage.usual for stage in stages))

    def feed(self, cursor: Cursor, text: str) -> tuple[str, Cursor]:
        """Take text and return what is certain now."""
        if not self._stages and not cursor.shown:
            return text, cursor
        states = []
        for stage, state in zip(self._stages, cursor.states, strict=True):
            text, after = stage.feed(state, text)
            states.append(after)
        text, shown = _unseen(text, cursor.shown)
        return text, Cursor(tuple(states), shown)

    def expect(self, cursor: Cursor, pending: bytes) -> tuple[str, Cursor]:
        """Return what is certain now if the next character begins with ``pending``, or is U+FFFD."""
        if not pending or len(self._stages) != 1:
            return "", cursor
        certain = self._stages[0].expect(cursor.states[0], pending)
        text, _ = _unseen(certain, cursor.shown)
        return text, cursor._replace(shown=certain) if text else cursor

    def finish(self, cursor: Cursor) -> str:
        """Return the rest of the text."""
        return _unseen(self._end(cursor), cursor.shown)[0]

    def settles(self, text: str) -> bool:
        """Whether the cursor after ``text`` is the same whatever stood before it."""
        # A character that a stage does not look at passes it unchanged, so one such for all of them settles all.
        return not self._stages or any(all(stage.settles(one) for stage in self._stages) for one in set(text))

    def _end(self, cursor: Cursor) -> str:
        text = ""
        for stage, state in zip(self._stages, cursor.states, strict=True):
            out, after = stage.feed(state, text)
            text = out + stage.finish(after)
        return text


def _unseen(text: str, shown: str) -> tuple[str, str]:
    """The part of ``text`` that was not shown yet, and what is still to be passed over; a difference ends the passing over."""
    if not shown:
        return text, ""
    common = len(common_prefix([text, shown]))
    return text[common:], shown[common:] if common == len(text) else ""
