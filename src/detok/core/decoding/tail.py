"""
The tail of a pipeline: the rules over joined text, in a row, and the text that must not come out twice.

A `Cursor` says where a text stands in these rules, as a plain value: the states of the rules, and ``shown``, text that the rules
are still going to give although it is out already. There are two reasons for that, and one mechanism for both: text that a
prompt's own decode has shown (law 5), and text that was certain before the rules could say it. An incomplete character is such
a case: with clean-up, a space is held since a full stop may follow, but after the byte E3 none can follow, so the space is given
out and passed over later:

    bytes in      held        given out     why
    20 (space)    " "         ""            " ." would become "."
    E3            E3          " "           E3 begins no full stop
    81 82         nothing     "あ"          the rules give " あ"; its space was shown
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .text_rules import TextStage
from .texts import common_prefix


class Cursor(NamedTuple):
    """Where a text stands in the rules over it."""

    states: tuple[object, ...]
    shown: str = ""
    """Text that is out already although the rules are still going to give it."""

    def passing_over(self, text: str) -> Cursor:
        """Return the same place, with ``text``, which would come out next, counted as shown."""
        return Cursor(self.states, self.shown + text) if text else self


class Tail:
    """Rules over joined text, in a row; most decoders have none."""

    def __init__(self, stages: Sequence[TextStage[Any]]) -> None:
        self._stages = tuple(stages)
        self.start = Cursor(tuple(stage.start for stage in stages))
        self.idle = Cursor(tuple(stage.idle for stage in stages))
        self.is_empty = not stages

    def feed(self, cursor: Cursor, text: str) -> tuple[str, Cursor]:
        """Take text and return what is certain now."""
        if self.is_empty and not cursor.shown:
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
        text = ""
        for stage, state in zip(self._stages, cursor.states, strict=True):
            out, after = stage.feed(state, text)
            text = out + stage.finish(after)
        return _unseen(text, cursor.shown)[0]

    def resets(self, text: str) -> bool:
        """Whether the cursor after ``text`` is the same whatever stood before it."""
        # A character that a stage does not look at passes it unchanged, so one such for all of them resets all.
        return self.is_empty or any(all(stage.resets(one) for stage in self._stages) for one in set(text))


def _unseen(text: str, shown: str) -> tuple[str, str]:
    """Return the part of ``text`` that was not shown, and what is still to be passed over; a difference ends the passing over."""
    if not shown:
        return text, ""
    common = len(common_prefix([text, shown]))
    return text[common:], shown[common:] if common == len(text) else ""
