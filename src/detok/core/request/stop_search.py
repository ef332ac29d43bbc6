"""All stops of a request at once: strings first, then patterns, and what of the text they hold together."""

from __future__ import annotations

from typing import Any, NamedTuple

from .stop_regex import RegexState, StopRegex, stop_regex
from .stops import Candidate, StopMatch, StopStrings, stop_strings

__all__ = ["SearchState", "StopSearch"]


class SearchState(NamedTuple):
    """Where the search stands: a candidate, and a state for each pattern."""

    candidate: Candidate | None
    patterns: tuple[RegexState, ...] = ()

    def plain(self) -> tuple[str, tuple[RegexState, ...]]:
        """The same as plain data."""
        return "" if self.candidate is None else self.candidate.text, self.patterns


class StopSearch:
    """
    Args:
        stops: Strings.
        patterns: Patterns of the library ``regex``.
        timeout: So many seconds one search for a pattern may take.
        holds: Whether text that may yet become a stop is held.

    Raises:
        OptionError, MissingExtra: As `StopRegex`.
    """

    def __init__(self, stops: tuple[str, ...], patterns: tuple[str, ...], timeout: float, *, holds: bool) -> None:
        self.holds = holds
        self.strings: StopStrings | None = stop_strings(stops, holds) if stops else None
        self.patterns: tuple[StopRegex, ...] = tuple(stop_regex(pattern, timeout) for pattern in patterns)
        idle = None if self.strings is None else self.strings.idle
        self.start = SearchState(idle, tuple(pattern.start for pattern in self.patterns))

    def scan(self, state: SearchState, text: str, *, counts: bool = True) -> tuple[SearchState, StopMatch | None]:
        """
        Take more text. Arguments and result as those of `StopStrings.scan`.

        Raises:
            StopRegexTimeout: A search took too long.
        """
        candidate, first = state.candidate, None
        if self.strings is not None and candidate is not None:
            candidate, first = self.strings.scan(candidate, text, counts=counts)
        states = []
        for pattern, at in zip(self.patterns, state.patterns, strict=True):
            at, match = pattern.scan(at, text, counts=counts)
            states.append(at)
            if match is not None and (first is None or match.end < first.end):
                first = match
        return SearchState(candidate, tuple(states)), first

    def held(self, state: SearchState) -> int:
        """How many characters at the end of the text are held, as they may yet belong to a stop."""
        if not self.holds:
            return 0
        held = 0 if state.candidate is None else state.candidate.length
        return max([held, *(at.held for at in state.patterns)])

    def state(self, plain: Any) -> SearchState:
        """Return a state from what `SearchState.plain` made of it."""
        candidate, patterns = plain
        at = None if self.strings is None else self.strings.candidate(candidate)
        return SearchState(at, tuple(RegexState(*pattern) for pattern in patterns))
