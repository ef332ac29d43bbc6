"""
Two futures of one text: the text that both begin with is certain.

A later token may decide what an earlier one becomes: an open byte run ends valid or not, a token is the last or not. Then a
joiner follows both futures at once. Each is a `Branch` with its own cursor, so that each gives out text as early as possible.

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
    """The cursor of the text in this future."""

    ahead: tuple[str, ...] = ()
    """The text that this future would give, in pieces."""

    out: int = 0
    """Number of characters of the first piece that are out."""

    @property
    def rest(self) -> str:
        """The text that this future would give and that is not out yet."""
        return "".join(self.ahead)[self.out :]

    def then(self, cursor: Cursor, text: str) -> Branch:
        """Return the branch after more text."""
        return Branch(cursor, append(self.ahead, text), self.out)


def agree(one: Branch, two: Branch) -> tuple[str, Branch, Branch]:
    """Return the text that both branches give next, and the branches after it. After they differ, a call costs O(1)."""
    agreed = ""
    while one.ahead and two.ahead:
        first, second = one.ahead[0], two.ahead[0]
        # Once two branches differ, they differ for good: without this look each call would compare all that is ahead.
        if first[one.out] != second[two.out]:
            break
        length = min(len(first) - one.out, len(second) - two.out)
        common = common_prefix([first[one.out : one.out + length], second[two.out : two.out + length]])
        agreed += common
        one, two = _give_out(one, len(common)), _give_out(two, len(common))
    return agreed, one, two


def _give_out(branch: Branch, length: int) -> Branch:
    """Count characters as out. A piece that is out altogether is dropped, so memory stays small and the cost O(1) amortised."""
    out = branch.out + length
    if out < len(branch.ahead[0]):
        return branch._replace(out=out)
    return Branch(branch.cursor, branch.ahead[1:])


def past_border(ahead: str, cursor: Cursor, shown: str, tail: Tail) -> Branch:
    """
    Return one of two futures at the end of a prompt, without the prompt's own text.

    If the future and ``shown`` begin alike, exactly ``shown`` is left out, so that the decodes of prompt and stream together are
    the one-shot decode (law 5). If they differ, the future's whole text so far is left out: no text of a prompt comes out.

    Args:
        ahead: The text that the future would give.
        cursor: The cursor of the text in that future.
        shown: The text that would come out if the prompt were all.
        tail: The rules over joined text.
    """
    if ahead.startswith(shown):
        return Branch(cursor, append((), ahead[len(shown) :]))
    if shown.startswith(ahead):
        return Branch(cursor.passing_over(shown[len(ahead) :]))
    return Branch(cursor.passing_over(tail.finish(cursor)))
