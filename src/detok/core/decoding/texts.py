"""Two helpers for texts: the common beginning of several, and a text that grows without being copied at each step."""

from __future__ import annotations

from collections.abc import Iterable


def common_prefix(texts: Iterable[str]) -> str:
    """
    Return the longest text that all of ``texts`` begin with.

    Args:
        texts: One or more.

    >>> common_prefix(["don't", "do not"])
    'do'
    """
    # In sorted order, the common beginning of the first and the last is common to all between them.
    first, last = (ordered := sorted(texts))[0], ordered[-1]
    for place, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return first[:place]
    return first


def append(pieces: tuple[str, ...], text: str) -> tuple[str, ...]:
    """
    Add text to a tuple of pieces; a piece that is no longer than the text after it is joined with it.

    So each piece is longer than the next, there are O(log n) of them, and adding a character costs O(log n) amortised. A plain
    string would cost O(n) a character, since states are immutable and every step would copy it.

    >>> append(("held ",), "a"), append(("held ", "a"), "b"), append(("held ", "ab"), "cde")
    (('held ', 'a'), ('held ', 'ab'), ('held abcde',))
    """
    if not text:
        return pieces
    keep = len(pieces)
    while keep and len(pieces[keep - 1]) <= len(text):
        keep -= 1
        text = pieces[keep] + text
    return (*pieces[:keep], text)
