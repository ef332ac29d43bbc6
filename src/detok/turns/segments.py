"""
Segments: the text of a request with its special tokens as events, so that a parser sees tokens that the text leaves out.

The tokens ``<|im_start|>``, "Hi", ``<|im_end|>`` with special tokens skipped as an example:

    text          "Hi"
    segments      Special("<|im_start|>")  Text("Hi")  Special("<|im_end|>")

>>> segmenter = Segmenter()
>>> for special in (Special(1, "<|im_start|>"), None, Special(2, "<|im_end|>")):
...     segmenter.step(special)
>>> segmenter.decide([0, 2, 0])
>>> [segment.text for segment in segmenter.take("Hi")]
['<|im_start|>', 'Hi', '<|im_end|>']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Text:
    """Text between two special tokens. The next output may continue it."""

    text: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special token."""

    token_id: int
    text: str
    """Its surface string, even if special tokens are skipped."""

    shown: str = ""
    """Its part of the output's text: "" if special tokens are skipped."""


Segment = Text | Special


class Event(NamedTuple):
    """A special token whose span is decided. Its places count characters from the beginning of the request's text."""

    begin: int
    end: int
    special: Special


class Segmenter:
    """
    Cuts the text that comes out at special tokens.

    The places of special tokens come from spans (see `spans`), and a span may be decided later than its text comes out. Text of
    ordinary tokens does not wait: text after the decided spans belongs to the first undecided token, or to one after it, so it
    goes out at once unless that first token is special.
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
        """Place in the text where the decided spans end."""
        self._text = text
        """Text that came out of the request and is in no segment yet."""
        self._out = out
        """Number of characters that are in segments."""

    def plain(self) -> tuple[tuple[Event, ...], tuple[Special | None, ...], int, str, int]:
        """Return what the constructor takes."""
        return tuple(self._events), tuple(self._undecided), self._decided, self._text, self._out

    def step(self, special: Special | None) -> None:
        """Take the next token: None for an ordinary one."""
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
        """Leave out the last ``count`` tokens, which a stop cut."""
        if count:
            del self._undecided[-count:]

    def take(self, text: str, *, ends: bool = False) -> list[Segment]:
        """
        Take text that came out; return the segments that are certain now.

        Args:
            text: The next part of the request's text.
            ends: Whether it is the last part. A span that goes on after it was cut by a stop.
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
            # No special token may come into the text here, unless the first undecided token is one.
            is_early = ends or not self._undecided or self._undecided[0] is None
            border = there if is_early else max(place, min(self._decided, there))
            segments.append(Text(text[place - self._out : border - self._out]))
            place = border
        del self._events[:taken]
        self._text = text[place - self._out :]
        self._out = place
        return joined(segments)


def joined(segments: Sequence[Segment]) -> list[Segment]:
    """Return the segments with neighbouring texts joined, and without empty texts."""
    whole: list[Segment] = []
    for is_text, group in groupby(segments, lambda segment: isinstance(segment, Text)):
        if not is_text:
            whole += group
        elif text := "".join(segment.text for segment in group):
            whole.append(Text(text))
    return whole
