"""
Stops that are patterns. The library ``regex`` has *partial* matches: it can tell that a text may still become a match.

The result is that of feeding one character at a time (law 6). A stop is complete at the first character where the pattern matches
some part of the text that ends there; of several such parts, the one that begins first. Text is held from the first character
where a match may still be growing. The pattern ``a+b`` as an example:

    token    held     comes out    why
    "xa"     "a"      "x"          "a" may become "ab"
    "a"      "aa"     ""
    "c"      ""       "aac"        no match can begin in "aac"
    or "b"            ""           "aab" matches: the text ends before it

Lookbehind sees `CONTEXT` characters before the held text. An end (``$``, a word's border, lookahead) sees the text that has come
so far: a pattern cannot wait for text that may never come.

A pattern that looks only at the text it matches is searched for in a whole token at once. Any other pattern is searched for after
each character, so that it sees the same text for every split into tokens.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from ...errors import MissingExtra, OptionError, StopRegexTimeout
from ...text_search import MAX_SETS, StopMatch

# Maximum characters of a match, and so of the text that is held for one (law 8).
MAX_LENGTH = 1024
# Characters before the held text that lookbehind sees.
CONTEXT = 64

# Syntax by which a pattern sees more than the text it matches (``$``, lookahead), or refuses to match less (``a++``). Then a text
# without a match may have a beginning with one, so a search in the whole token is not enough.
_LOOKS_AROUND = re.compile(r"[$^]|\\[AZzbBmMXR]|\(\?[=!>(&|R]|\(\?<[=!]|\(\?P?[0-9>]|\(\*|[*+?}]\+")
# ``\G`` is where the search begins, and ``\K`` moves the beginning of a match: neither has a meaning in a stream.
_MOVES = re.compile(r"(?<!\\)(?:\\\\)*\\[GK]")

# Put in front of text whose beginning was cut off, so that ``^`` does not match there.
_OUT_OF_SIGHT = "\0"


class RegexState(NamedTuple):
    """The end of the text: the held characters, and the context before them."""

    window: str = ""
    """Context and held text."""

    held: int = 0
    """Number of characters of ``window`` that are held, from its end."""


class StopRegex:
    """
    The matcher of one pattern. It is immutable.

    Args:
        pattern: The pattern, in the syntax of the library ``regex``.
        timeout: Maximum seconds of one search.

    Raises:
        OptionError: The pattern is invalid, matches the empty text, or searches backwards.
        MissingExtra: The library ``regex`` is not installed.
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
            # A comment at the end of a verbose pattern would include the closing bracket.
            end = "\n" if self._anywhere.flags & regex.VERBOSE else ""
            # Matches at least one character, and ends where the searched text ends.
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
        Take more text. Arguments and result as those of `StopStrings.scan`, with a state in place of a candidate.

        Raises:
            StopRegexTimeout: A search took longer than ``timeout``.
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
        # A plain pattern without a match in the window has none in a beginning of it either: one search instead of many.
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
        """Return where the first match begins that more text may complete; the end of the text if there is none."""
        # A match that was growing nearly always goes on. To test that is quicker than to search.
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
    """Return the matcher of a pattern, the same one each time while it is kept."""
    return StopRegex(pattern, timeout)
