"""How many tokens the parts of a turn have."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from .channels import ChannelDelta
from .segments import Special

__all__ = ["PartTokens"]


class PartTokens:
    """
    Counts the tokens that begin in each delta. A token of a delimiter is in none.

    Args:
        waiting: Lengths as written of special tokens whose spans are undecided; -1 of ordinary tokens.
        starts: Where tokens begin that are in no delta yet.
        place: Where the next token begins, in the text as it is written.
        counted: Where the last delta ended.
    """

    __slots__ = ("_counted", "_place", "_starts", "_waiting")

    def __init__(self, waiting: Iterable[int] = (), starts: Iterable[int] = (), place: int = 0, counted: int = 0) -> None:
        self._waiting = deque(waiting)
        self._starts = deque(starts)
        self._place = place
        self._counted = counted

    def plain(self) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
        """What the constructor takes."""
        return tuple(self._waiting), tuple(self._starts), self._place, self._counted

    def step(self, special: Special | None) -> None:
        """Add a token: an ordinary one (None), or a special one."""
        self._waiting.append(-1 if special is None else len(special.text))

    def decide(self, lengths: Sequence[int]) -> None:
        """Take the lengths of the next spans."""
        for length in lengths:
            written = self._waiting.popleft() if self._waiting else -1
            self._starts.append(self._place)
            # A special token counts as it is written, even if its text is skipped.
            self._place += length if written < 0 or length else written

    def drop(self, count: int) -> None:
        """Leave out the last tokens: a stop cut them."""
        for _ in range(min(count, len(self._waiting))):
            self._waiting.pop()

    def counted(self, deltas: Sequence[ChannelDelta]) -> list[ChannelDelta]:
        """Return the deltas with their numbers of tokens."""
        return [delta._replace(tokens=self._count(delta)) for delta in deltas]

    def _count(self, delta: ChannelDelta) -> int:
        count = 0
        while self._starts and self._starts[0] < delta.end:
            # Between the last delta and this one is a delimiter.
            count += not self._counted <= self._starts.popleft() < delta.begin
        self._counted = delta.end
        return count
