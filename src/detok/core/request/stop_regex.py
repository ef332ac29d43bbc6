"""
Stops that are patterns of the library ``regex``, which can say that a text may yet become a match.

As with strings, the result is that of feeding one character at a time: the stop is the first character at which some beginning
makes the pattern match up to just there, and of several beginnings the first. What is held begins where a match may still be
growing. Lookbehind sees `CONTEXT` characters of what is not held; an end (``$``, a word's border, lookahead) sees the text that
has come so far, as a pattern cannot wait for what may never come.

A pattern that looks at nothing but the text it matches is searched for in a whole token at once; any other after each character,
so that it sees the same however the text is cut.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from ...errors import MissingExtra, OptionError, StopRegexTimeout
from ...text_search import MAX_SETS, StopMatch

# A match is at most so long: what is held for one is bounded (law 8).
MAX_LENGTH = 1024
# So much of the text that is out stays visible to lookbehind.
CONTEXT = 64

# What makes a pattern see more than the text it matches, or give up what it would match if there were less: then a text in which
# it does not match may have a beginning in which it does.
_LOOKS_AROUND = re.compile(r"[$^]|\\[AZzbBmMXR]|\(\?[=!>(&|R]|\(\?<[=!]|\(\?P?[0-9>]|\(\*|[*+?}]\+")
# A beginning that moves with the search, and one that a match gives up.
_MOVES = re.compile(r"(?<!\\)(?:\\\\)*\\[GK]")

# In front of text whose beginning is out of sight, so that it is not taken for the beginning of all.
_OUT_OF_SIGHT = "\0"


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
        if _MOVES.search(pattern):
            raise OptionError(
                option="stop_regex", value=pattern, accepted="\\G and \\K say where a match begins, and a stop begins where it is"
            )
        self._is_plain = _LOOKS_AROUND.search(pattern) is None
        self.start = RegexState()

    def scan(self, state: RegexState, text: str, *, counts: bool = True) -> tuple[RegexState, StopMatch | None]:
        """
        Take more text. Arguments and result as those of `StopStrings.scan`.

        Raises:
            StopRegexTimeout: A search took too long.
        """
        if self._is_plain:
            return self._scan(state, text, counts)
        for position, character in enumerate(text, 1):
            state, match = self._scan(state, character, counts)
            if match is not None:
                return state, match._replace(end=position)
        return state, None

    def _scan(self, state: RegexState, text: str, counts: bool) -> tuple[RegexState, StopMatch | None]:
        window = state.window + text
        begin, seen = len(state.window) - state.held, len(state.window)
        if counts and not (self._is_plain and self._search(self._anywhere, window, begin, len(window)) is None):
            for end in range(seen + 1, len(window) + 1):
                match = self._search(self._whole, window, max(begin, end - MAX_LENGTH), end)
                if match is not None:
                    return state, StopMatch(end - seen, end - match.start(), self.pattern)
        growing = self._growing(window, max(begin, len(window) + 1 - MAX_LENGTH), state.held)
        held = len(window) - growing
        if growing > CONTEXT:
            window = _OUT_OF_SIGHT + window[growing - CONTEXT :]
        return RegexState(window, held), None

    def _growing(self, window: str, begin: int, held: int) -> int:
        """Where a match begins that more text may complete; the end of the text if there is none."""
        # Nearly always where one was growing before, which is quicker to see than where else one could.
        if held and self._ask(self._whole.match, window, begin, len(window), partial=True) is not None:
            return begin
        match = self._search(self._whole, window, begin, len(window), partial=True)
        return len(window) if match is None else match.start()

    def _search(self, pattern: Any, window: str, begin: int, end: int, *, partial: bool = False) -> Any:
        return self._ask(pattern.search, window, begin, end, partial=partial)

    def _ask(self, method: Any, window: str, begin: int, end: int, *, partial: bool = False) -> Any:
        try:
            return method(window, begin, end, partial=partial, timeout=self._timeout)
        except TimeoutError:
            raise StopRegexTimeout(self.pattern, timeout=self._timeout) from None


@lru_cache(maxsize=MAX_SETS)
def stop_regex(pattern: str, timeout: float) -> StopRegex:
    """Return the matcher of a pattern, the same one each time."""
    return StopRegex(pattern, timeout)
