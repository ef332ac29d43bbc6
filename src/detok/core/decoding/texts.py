"""Two things that text values need everywhere: what several have in common, and growing without copying."""

from __future__ import annotations

from collections.abc import Iterable


def common_prefix(texts: Iterable[str]) -> str:
    """
    Return the longest text that all of ``texts`` begin with. There is at least one.

    >>> common_prefix(["don't", "do not"])
    'do'
    """
    # What the smallest and the largest share, all between them share too.
    first, last = (ordered := sorted(texts))[0], ordered[-1]
    for place, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return first[:place]
    return first


def append(pieces: tuple[str, ...], text: str) -> tuple[str, ...]:
    """
    Add text to a value made of pieces, joining the last ones while they are no longer than what follows them.

    The pieces stay of falling length, so that there are O(log n) of them and adding a character costs O(log n) amortised,
    while the value as a whole stays plain and immutable.
    """
    if not text:
        return pieces
    keep = len(pieces)
    while keep and len(pieces[keep - 1]) <= len(text):
        keep -= 1
        text = pieces[keep] + text
    return (*pieces[:keep], text)
