"""
The tail of a pipeline: the rules over joined text, in a row, and the text that must not come out twice.

A `Cursor` is the state of a text in these rules, as a plain value: the states of the rules, and ``shown``, text that is out
although the rules are still going to give it. Text is out early for two reasons: the decode of a prompt ended with it (law 5), or
it was certain before the rules could know. An incomplete character is the second case. With clean-up, a space is held since a
full stop may follow. After the byte E3 none can follow, so the space comes out, and is left out when the rules give it:

    bytes in      held        given out     why
    20 (space)    " "         ""            " ." would become "."
    E3            E3          " "           E3 begins no full stop
    81 82         nothing     "あ"          the rules give " あ"; its space was shown
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .text_rules import AnyTextStage
from .texts import common_prefix


class Cursor(NamedTuple):
    """The state of a text in the rules over it."""

    states: tuple[object, ...]
    shown: str = ""
    """Text that is out already, although the rules are still going to give it."""

    def passing_over(self, text: str) -> Cursor:
        """Return this cursor with ``text``, which would come out next, counted as shown."""
        return Cursor(self.states, self.shown + text) if text else self


class Tail:
    """Rules over joined text, in a row. Most decoders have none."""

    def __init__(self, stages: Sequence[AnyTextStage]) -> None:
        self._stages = tuple(stages)
        self.start = Cursor(tuple(stage.start for stage in stages))
        self.idle = Cursor(tuple(stage.idle for stage in stages))
        self.is_empty = not stages

    def feed(self, cursor: Cursor, text: str) -> tuple[str, Cursor]:
        """Take text; return the text that is certain now, and the next cursor."""
        if self.is_empty and not cursor.shown:
            return text, cursor
        states = []
        for stage, state in zip(self._stages, cursor.states, strict=True):
            text, after = stage.feed(state, text)
            states.append(after)
        text, shown = _unseen(text, cursor.shown)
        return text, Cursor(tuple(states), shown)

    def expect(self, cursor: Cursor, pending: bytes) -> tuple[str, Cursor]:
        """Return the text that is certain if the next character begins with the bytes ``pending`` or is U+FFFD; and a cursor."""
        # With several stages the text of one would have to be fed to the next, to find out what is certain: too rare to pay.
        if not pending or len(self._stages) != 1:
            return "", cursor
        certain = self._stages[0].expect(cursor.states[0], pending)
        text, _ = _unseen(certain, cursor.shown)
        return text, cursor._replace(shown=certain) if text else cursor

    def alone(self, text: str) -> str | None:
        """Return what comes out of text that leads from the idle cursor back to it; None if it does not."""
        for stage in self._stages:
            text, state = stage.feed(stage.idle, text)
            if state != stage.idle:
                return None
        return text

    def finish(self, cursor: Cursor) -> str:
        """Return the rest of the text."""
        text = ""
        for stage, state in zip(self._stages, cursor.states, strict=True):
            out, after = stage.feed(state, text)
            text = out + stage.finish(after)
        return _unseen(text, cursor.shown)[0]

    def resets(self, text: str) -> bool:
        """Whether the cursor after ``text`` does not depend on the text before it."""
        # A character that a stage does not look at passes through it unchanged; so one that no stage looks at resets them all.
        return self.is_empty or any(all(stage.resets(one) for stage in self._stages) for one in set(text))


def _unseen(text: str, shown: str) -> tuple[str, str]:
    """Return the part of ``text`` that was not shown, and the rest of ``shown``; where the two differ, nothing more was shown."""
    if not shown:
        return text, ""
    common = len(common_prefix([text, shown]))
    return text[common:], shown[common:] if common == len(text) else ""
