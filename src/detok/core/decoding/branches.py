"""
Two futures of one text: what both agree on is certain.

Where the future decides what a token is (an open byte run may yet be valid or not, a token may yet be the last), a joiner goes
both ways at once: each way is a branch with a cursor of its own in the tail. That is exact, since each branch alone gives
everything out at the earliest moment.
"""

from __future__ import annotations

from typing import NamedTuple

from .tail import Cursor, Tail
from .texts import append, common_prefix

__all__ = ["Branch", "agree", "behind_border"]


class Branch(NamedTuple):
    """One of two futures: the cursor in it, and the text that it would give, in pieces, of which ``out`` characters are out."""

    cursor: Cursor
    ahead: tuple[str, ...] = ()
    out: int = 0

    def rest(self) -> str:
        return "".join(self.ahead)[self.out :]

    @classmethod
    def ahead_of(cls, text: str, cursor: Cursor) -> Branch:
        return cls(cursor, append((), text))

    def then(self, cursor: Cursor, text: str) -> Branch:
        return Branch(cursor, append(self.ahead, text), self.out)


def agree(one: Branch, two: Branch) -> tuple[str, Branch, Branch]:
    """What two branches both give next, and the branches behind it. Once they differ this takes no time."""
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


def behind_border(ahead: str, cursor: Cursor, shown: str, tail: Tail) -> tuple[str, Cursor]:
    """
    One of two futures behind the border of a prompt: what it still has ahead, and its cursor.

    Where the future begins with what the prompt alone shows, exactly that is passed over, so that prompt and stream together are
    the one-shot decode. Where it does not, the prompt's own part of it is left out: no text of a prompt comes out.
    """
    if ahead.startswith(shown):
        return ahead[len(shown) :], cursor
    if shown.startswith(ahead):
        return "", cursor.passing_over(shown[len(ahead) :])
    return "", cursor.passing_over(tail.finish(cursor))
