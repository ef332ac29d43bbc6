"""
Which token a character belongs to.

A character belongs to the first token after which the text, had it ended there, would have had it, and since which it would
always have been that long. So a character that is split over tokens belongs to the one that completes it, a space that a decoder
puts between two words to the second, and the tiles of all tokens, some of them empty, are the text: exactly, for every decoder,
since nothing is used but how the text would have ended.

Nearly all tokens are settled as they come: nothing is held before and after, so the token's text is its tile. Kept here are those
whose tile is *undecided*, because a later one may yet take or leave a character.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from ..automaton import Node
from ..texts import common_prefix

__all__ = ["Tiling", "Undecided"]

# So many tokens that are undecided together have tiles of their own. All of a byte run that is longer and comes out at once
# belongs, from there on, to the token that ends it: what each of them would have been costs as much as the run is long.
MAX_UNDECIDED = 1024


class Undecided(NamedTuple):
    """A token whose tile may yet grow."""

    token_id: int
    node: Node | None
    """Where the stream stands behind it; None beyond `MAX_UNDECIDED`."""

    certain: int
    """Where the certain text ended then."""

    length: int
    """How long the text would have been, had it ended there."""


class Tiling:
    """The tokens at the end of a stream whose tiles are undecided, and the certain text from the first of them on."""

    __slots__ = ("_begin", "_done", "_text", "_tokens", "steps")

    def __init__(self, tokens: tuple[Undecided, ...] = (), text: str = "", begin: int = 0, done: int = 0) -> None:
        self._tokens = list(tokens)
        self._text = text
        """The certain text that the tokens are compared with."""
        self._begin = begin
        """Where it begins."""
        self._done = done
        """Where the tiles of the tokens before these end."""
        self.steps: list[tuple[int, Node, str]] = []
        """Tokens that came since somebody asked last: id, node behind it, the text that it made certain. Add new ones here."""

    def __len__(self) -> int:
        return len(self._tokens) + len(self.steps)

    def __iter__(self) -> Iterator[Undecided]:
        self.take_steps()
        return iter(self._tokens)

    def take_steps(self) -> None:
        """Make tokens of the steps, with what is remembered of each bounded."""
        for token_id, node, text in self.steps:
            self._text += text
            if len(self._tokens) < MAX_UNDECIDED:
                self._tokens.append(Undecided(token_id, node, self._end, self._end + len(rest(node))))
            else:
                self._tokens.append(Undecided(token_id, None, self._end, self._end))
        self.steps.clear()

    def copy(self) -> Tiling:
        """Return another one that stands here too."""
        return Tiling(tuple(self), self._text, self._begin, self._done)

    def plain(self) -> tuple[str, int, int]:
        """What is kept beside the tokens."""
        self.take_steps()
        return self._text, self._begin, self._done

    def clear(self) -> None:
        """Forget all tokens: nothing is held any more, and nobody asked for their tiles."""
        self._text = ""
        self._begin = self._done = 0
        self._tokens.clear()
        self.steps.clear()

    def cut(self, index: int) -> list[int]:
        """Take out the tokens behind the one at ``index``, and return their ids."""
        self.take_steps()
        behind = [token.token_id for token in self._tokens[index + 1 :]]
        del self._tokens[index + 1 :]
        return behind

    def end(self, text: str) -> None:
        """Add the text that the end of the stream made certain; now everything is decided."""
        self.take_steps()
        self._text += text

    def decided(self, *, all_of_them: bool = False) -> list[int]:
        """
        Take out the tokens, from the first one on, that are decided, and return the lengths of their tiles.

        Args:
            all_of_them: Nothing more comes.
        """
        lengths: list[int] = []
        for token, end, is_decided in self._ends():
            if not (is_decided or all_of_them):
                break
            if all_of_them and token is self._tokens[-1]:
                end = self._end
            lengths.append(end - self._done)
            self._done = end
        del self._tokens[: len(lengths)]
        needed = min(self._done, self._tokens[0].certain) if self._tokens else self._done
        self._text = self._text[needed - self._begin :]
        self._begin = needed
        return lengths

    @property
    def _end(self) -> int:
        """Where the certain text ends."""
        return self._begin + len(self._text)

    def end_of(self, index: int) -> int:
        """Where the tile of the undecided token at ``index`` ends, counted back from the end of the certain text."""
        ends = [end for _, end, _ in self._ends()]
        return self._end - ends[index]

    def first_with(self, back: int) -> int:
        """The index of the undecided token that has the character which ends ``back`` before the end of the certain text."""
        ends = [end for _, end, _ in self._ends()]
        place = self._end - back
        return next((index for index, end in enumerate(ends) if end >= place), len(ends) - 1)

    def _ends(self) -> Iterator[tuple[Undecided, int, bool]]:
        """Each token, where its tile ends as far as the text is certain, and whether that is decided."""
        end = self._done
        for token, shortest in zip(self._tokens, self._shortest(), strict=True):
            is_decided = True
            if token.node is not None:
                had = self._text[: token.certain - self._begin] + rest(token.node)
                is_decided = len(had) <= len(self._text) or not had.startswith(self._text)
                end = max(end, min(self._begin + _agree(had, self._text), shortest))
            yield token, end, is_decided

    def _shortest(self) -> list[int]:
        """For each token, how long the text would at least have been behind it and every later one."""
        self.take_steps()
        known = [self._end if token.node is None else token.length for token in self._tokens]
        # What is certain stays, so no later token can make the text shorter than that.
        return list(accumulate(reversed(known), min))[::-1]


def _agree(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    shorter, longer = (one, other) if len(one) < len(other) else (other, one)
    return len(shorter if longer.startswith(shorter) else common_prefix([one, other]))


def rest(node: Node) -> str:
    """What would come out if the stream ended at a node."""
    machine = node.automaton
    return "" if node is machine.settled or node is machine.finished else machine.pipeline.finish(node.state)
