"""
All stops of a request: strings and patterns, and the text that is held for either.

>>> search = StopSearch(("END",), (), 0.1, holds=True)
>>> out, state, match = search.scan(search.start, "The E")
>>> out, state.held, match
('The ', 'E', None)
>>> out, state, match = search.scan(state, "ND.")
>>> out, match.reason, match.end, match.after
('', 'END', 2, 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...text_search import Candidate, StopMatch, StopStrings, stop_strings
from .stop_regex import RegexState, StopRegex, stop_regex


class SearchState(NamedTuple):
    """The state of the search after the text so far."""

    candidate: Candidate | None
    """The state of the strings; None if there are none."""

    patterns: tuple[RegexState, ...] = ()
    """The state of each pattern."""

    held: str = ""
    """Text that is certain, but is held since it may become part of a stop."""

    def plain(self) -> tuple[str, tuple[RegexState, ...], str]:
        """Return the same as plain data."""
        return "" if self.candidate is None else self.candidate.text, self.patterns, self.held


class StopFound(NamedTuple):
    """A stop that completed."""

    reason: str
    """The stop as the request gave it."""

    end: int
    """Number of characters of the new text up to the end of the stop."""

    after: int
    """Number of characters of the new text after the stop."""


class StopSearch:
    """
    The search for all stops of a request. It is immutable; the state goes in and comes out.

    Args:
        stops: The stop strings.
        patterns: The stop patterns, of the library ``regex``.
        timeout: Maximum seconds of one search for a pattern.
        holds: Whether text that may become a stop is held. False if a stop is part of the output.

    Raises:
        OptionError, MissingExtra: As `StopRegex`.
    """

    def __init__(self, stops: tuple[str, ...], patterns: tuple[str, ...], timeout: float, *, holds: bool) -> None:
        self.holds = holds
        self.strings: StopStrings | None = stop_strings(stops, holds) if stops else None
        self.patterns: tuple[StopRegex, ...] = tuple(stop_regex(pattern, timeout) for pattern in patterns)
        idle = None if self.strings is None else self.strings.idle
        self.start = SearchState(idle, tuple(pattern.start for pattern in self.patterns))

    def scan(self, state: SearchState, text: str, silent: int = 0) -> tuple[str, SearchState, StopFound | None]:
        """
        Take more text; return the text that comes out, the next state, and the first stop that completes, if one does.

        Args:
            state: The state after the text before.
            text: The text, of any length.
            silent: Number of its first characters in which no stop counts (`min_tokens`).

        Raises:
            StopRegexTimeout: A search for a pattern took longer than ``timeout``.
        """
        candidate, patterns, held = state
        if silent:
            candidate, patterns, _ = self._look(candidate, patterns, text[:silent], counts=False)
        candidate, patterns, match = self._look(candidate, patterns, text[silent:], counts=True)
        whole = held + text
        if match is not None:
            end = silent + match.end
            out = whole[: len(held) + end - (match.length if self.holds else 0)]
            return out, SearchState(candidate, patterns), StopFound(match.reason, end, len(text) - end)
        certain = len(whole) - self._held(candidate, patterns)
        return whole[:certain], SearchState(candidate, patterns, whole[certain:]), None

    def _look(
        self, candidate: Candidate | None, states: tuple[RegexState, ...], text: str, *, counts: bool
    ) -> tuple[Candidate | None, tuple[RegexState, ...], StopMatch | None]:
        first = None
        if self.strings is not None and candidate is not None:
            candidate, first = self.strings.scan(candidate, text, counts=counts)
        after = []
        for pattern, at in zip(self.patterns, states, strict=True):
            at, match = pattern.scan(at, text, counts=counts)
            after.append(at)
            # Less, not less or equal: of two that complete at one character a string goes before a pattern.
            if match is not None and (first is None or match.end < first.end):
                first = match
        return candidate, tuple(after), first

    def _held(self, candidate: Candidate | None, patterns: Sequence[RegexState]) -> int:
        """Return the number of characters at the end of the text that are held, since they may become part of a stop."""
        if not self.holds:
            return 0
        held = 0 if candidate is None else candidate.length
        return max([held, *(at.held for at in patterns)])

    def at(self, candidate: Candidate | None) -> SearchState:
        """Return the state of a search that has no patterns."""
        return SearchState(candidate, (), candidate.text if candidate is not None and self.holds else "")

    def state(self, candidate: str, patterns: Sequence[Sequence[object]], held: str) -> SearchState:
        """Return the state that `SearchState.plain` made plain."""
        at = None if self.strings is None else self.strings.candidate(candidate)
        return SearchState(at, tuple(RegexState(*pattern) for pattern in patterns), held)  # type: ignore[arg-type]  # as plain
