"""The text of a request with the special tokens in it as events, so that a parser sees what the user's text hides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Text:
    """Text between two special tokens; more of it may come in the next output."""

    text: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special token."""

    token_id: int
    text: str
    """Its surface string, whether it is in the output's text or not."""

    shown: str = ""
    """What of the output's text is its: "" if special tokens are skipped."""


Segment = Text | Special


class Event(NamedTuple):
    """A special token whose span is decided: where it begins and ends in the text."""

    begin: int
    end: int
    special: Special


class Segmenter:
    """
    Cuts the text that comes out at special tokens.

    Their places come from the spans of the tokens, which may be decided later than the text comes out. Ordinary text does not
    wait for that: what is certain after the decided spans belongs to the first token that is undecided.
    """

    __slots__ = ("_decided", "_events", "_out", "_text", "_undecided")

    def __init__(
        self,
        events: Sequence[Event] = (),
        undecided: Sequence[Special | None] = (),
        decided: int = 0,
        text: str = "",
        out: int = 0,
    ) -> None:
        self._events = list(events)
        self._undecided = list(undecided)
        """The tokens after the decided ones, in order; None for ordinary ones."""
        self._decided = decided
        """Where the decided spans end."""
        self._text = text
        """What came out of the request, but is in no segment yet."""
        self._out = out
        """How much is in segments."""

    def plain(self) -> tuple[tuple[Event, ...], tuple[Special | None, ...], int, str, int]:
        """Return what the constructor takes."""
        return tuple(self._events), tuple(self._undecided), self._decided, self._text, self._out

    def step(self, special: Special | None) -> None:
        """Add a token: an ordinary one (None), or a special one."""
        self._undecided.append(special)

    def decide(self, lengths: Sequence[int]) -> None:
        """Take the lengths of the next spans."""
        for length, special in zip(lengths, self._undecided, strict=False):
            end = self._decided + length
            if special is not None:
                self._events.append(Event(self._decided, end, special))
            self._decided = end
        del self._undecided[: len(lengths)]

    def drop(self, count: int) -> None:
        """Leave out the last tokens: a stop cut them."""
        if count:
            del self._undecided[-count:]

    def take(self, text: str, *, ends: bool = False) -> list[Segment]:
        """
        Take text that came out and return the segments that are certain now.

        Args:
            text: The next of the output's text.
            ends: It was the last: what is left of a span was cut away.
        """
        text = self._text + text
        there = self._out + len(text)
        segments: list[Segment] = []
        place, taken = self._out, 0
        for begin, end, special in self._events:
            border = max(place, min(begin, there))
            segments.append(Text(text[place - self._out : border - self._out]))
            place = border
            if there < end and not ends:
                break
            segments.append(Special(special.token_id, special.text, text[place - self._out : max(place, end) - self._out]))
            place = max(place, min(end, there))
            taken += 1
        else:
            # What is certain after the decided spans belongs to the first token that is undecided.
            is_early = ends or not self._undecided or self._undecided[0] is None
            border = there if is_early else max(place, min(self._decided, there))
            segments.append(Text(text[place - self._out : border - self._out]))
            place = border
        del self._events[:taken]
        self._text = text[place - self._out :]
        self._out = place
        return joined(segments)


def joined(segments: Sequence[Segment]) -> list[Segment]:
    """Return the segments with neighbouring texts as one, and without empty ones."""
    whole: list[Segment] = []
    for is_text, group in groupby(segments, lambda segment: isinstance(segment, Text)):
        if not is_text:
            whole += group
        elif text := "".join(segment.text for segment in group):
            whole.append(Text(text))
    return whole
