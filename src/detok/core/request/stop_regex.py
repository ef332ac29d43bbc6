"""
Stops that are patterns of the library ``regex``, which can say that a text may yet become a match.

As with strings, the result is that of feeding one character at a time: the stop is the first character at which some beginning
makes the pattern match up to just there, and of several beginnings the first. What is held begins where a match may still be
growing. Lookbehind sees `CONTEXT` characters of what is out; an end (``$``, a word's border, lookahead) sees the text that has
come so far, as a pattern cannot wait for what may never come.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from ...errors import MissingExtra, OptionError, StopRegexTimeout
from .stops import MAX_SETS, StopMatch

__all__ = ["RegexState", "StopRegex", "stop_regex"]

# A match is at most so long: what is held for one is bounded (law 8).
MAX_LENGTH = 4096
# So much of the text that is out stays visible to lookbehind.
CONTEXT = 64

# What makes a pattern see the end of the text so far, or what it gives up when there is more: then a text in which it does
# not match may have a beginning in which it does.
_LOOKS_AHEAD = re.compile(r"\$|\\[ZzbBmMX]|\(\?[=!>]|\(\*|[*+?}]\+")


class RegexState(NamedTuple):
    """The end of the text: what is held, and the context before it."""

    window: str = ""
    held: int = 0


class StopRegex:
    """
    One pattern.

    Args:
        pattern: In the syntax of the library ``regex``.
        timeout: So many seconds one search may take.

    Raises:
        OptionError: It is no pattern, or matches the empty text.
        MissingExtra: The library is not installed.
    """

    def __init__(self, pattern: str, timeout: float) -> None:
        try:
            import regex
        except ImportError:
            raise MissingExtra("regex", extra="regex", purpose="stop_regex") from None
        self.pattern = pattern
        self._timeout = timeout
        try:
            self._anywhere = regex.compile(pattern)
            # A comment of a verbose pattern would go on over the bracket.
            end = "\n" if self._anywhere.flags & regex.VERBOSE else ""
            # Something to match, and up to just here.
            self._whole = regex.compile(rf"(?=[\s\S])(?:{pattern}{end})\Z")
        except (regex.error, OverflowError, RecursionError) as error:
            raise OptionError(option="stop_regex", value=pattern, accepted=f"it is no pattern: {error}") from None
        if self._anywhere.flags & regex.REVERSE:
            raise OptionError(option="stop_regex", value=pattern, accepted="a stream has no end to search backwards from")
        if self._anywhere.fullmatch("") is not None:
            raise OptionError(option="stop_regex", value=pattern, accepted="a stop is a text, and this matches an empty one")
        self._is_plain = _LOOKS_AHEAD.search(pattern) is None
        self.start = RegexState()

    def scan(self, state: RegexState, text: str, *, counts: bool = True) -> tuple[RegexState, StopMatch | None]:
        """
        Take more text. Arguments and result as those of `StopStrings.scan`.

        Raises:
            StopRegexTimeout: A search took too long.
        """
        window = state.window + text
        begin, seen = len(state.window) - state.held, len(state.window)
        growing = self._growing(window, max(begin, len(window) + 1 - MAX_LENGTH))
        if counts and not (self._is_plain and self._search(self._anywhere, window, begin, len(window)) is None):
            for end in range(seen + 1, len(window) + 1):
                match = self._search(self._whole, window, max(begin, end - MAX_LENGTH), end)
                if match is not None:
                    return state, StopMatch(end - seen, end - match.start(), self.pattern)
        context = max(0, growing - CONTEXT)
        return RegexState(window[context:], len(window) - growing), None

    def _growing(self, window: str, begin: int) -> int:
        """Where a match begins that more text may complete; the end of the text if there is none."""
        match = self._search(self._whole, window, begin, len(window), partial=True)
        return len(window) if match is None else match.start()

    def _search(self, pattern: Any, window: str, begin: int, end: int, *, partial: bool = False) -> Any:
        try:
            return pattern.search(window, begin, end, partial=partial, timeout=self._timeout)
        except TimeoutError:
            raise StopRegexTimeout(self.pattern, timeout=self._timeout) from None


@lru_cache(maxsize=MAX_SETS)
def stop_regex(pattern: str, timeout: float) -> StopRegex:
    """Return the matcher of a pattern, the same one each time."""
    return StopRegex(pattern, timeout)
