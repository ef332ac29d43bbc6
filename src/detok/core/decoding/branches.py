"""
Two futures of one text: what both begin with is certain.

Where the future decides what a token is (an open byte run may yet be valid or not, a token may yet be the last), a joiner goes
both ways at once. Each way is a `Branch` with a cursor of its own, so that each alone gives everything out as early as it can.

The byte tokens EF BF BD 41 as an example: the first three spell U+FFFD, and an invalid run is U+FFFD for each of its bytes.

    bytes so far    if the run ends valid    if it ends invalid    certain
    EF              (incomplete)             U+FFFD                nothing
    EF BF BD        U+FFFD                   U+FFFD x 3, or more   U+FFFD
    EF BF BD 41     U+FFFD A                 U+FFFD x 4, or more   U+FFFD
"""

from __future__ import annotations

from typing import NamedTuple

from .tail import Cursor, Tail
from .texts import append, common_prefix


class Branch(NamedTuple):
    """One of two futures."""

    cursor: Cursor
    """Where the text stands in it."""

    ahead: tuple[str, ...] = ()
    """The text that it would give, in pieces."""

    out: int = 0
    """How many characters of that are out."""

    @property
    def rest(self) -> str:
        """The text that it would give and that is not out."""
        return "".join(self.ahead)[self.out :]

    def then(self, cursor: Cursor, text: str) -> Branch:
        """Return the branch after more text."""
        return Branch(cursor, append(self.ahead, text), self.out)


def agree(one: Branch, two: Branch) -> tuple[str, Branch, Branch]:
    """Return what two branches both give next, and the branches after it. Once they differ this takes no time."""
    agreed = ""
    while one.ahead and two.ahead:
        first, second = one.ahead[0], two.ahead[0]
        if first[one.out] != second[two.out]:
            break
        length = min(len(first) - one.out, len(second) - two.out)
        common = common_prefix([first[one.out : one.out + length], second[two.out : two.out + length]])
        agreed += common
        one, two = _give_out(one, len(common)), _give_out(two, len(common))
    return agreed, one, two


def _give_out(branch: Branch, length: int) -> Branch:
    """Count characters as out; pieces that are out altogether are dropped, so that this too is O(1) amortised."""
    out = branch.out + length
    if out < len(branch.ahead[0]):
        return branch._replace(out=out)
    return Branch(branch.cursor, branch.ahead[1:])


def past_border(ahead: str, cursor: Cursor, shown: str, tail: Tail) -> Branch:
    """
    Return one of two futures as it is after the end of a prompt.

    Where the future begins with what the prompt alone shows, exactly that is passed over, so that prompt and stream together are
    the one-shot decode. Where it does not, the prompt's own part of it is left out: no text of a prompt comes out.

    Args:
        ahead: The text that the future would give.
        cursor: Where the text stands in it.
        shown: What would come out if the prompt were all there is.
        tail: The rules over joined text.
    """
    if ahead.startswith(shown):
        return Branch(cursor, append((), ahead[len(shown) :]))
    if shown.startswith(ahead):
        return Branch(cursor.passing_over(shown[len(ahead) :]))
    return Branch(cursor.passing_over(tail.finish(cursor)))
