"""
Which token a character belongs to.

A character belongs to the first token after which the text, had it ended there, would have had it. So a character that is split
over tokens belongs to the one that completes it, a space that a decoder puts between two words to the second, and the tiles of
all tokens, some of them empty, are the text: exactly, for every decoder, since nothing is used but how the text would have ended.

Nearly all tokens are settled as they come: nothing is held before and after, so the token's text is its tile. Kept here are those
whose tile is *undecided*, because a later one may yet take or leave a character.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    """So much text was certain then."""


class Tiling:
    """The tokens at the end of a stream whose tiles are undecided, and the certain text from the first of them on."""

    __slots__ = ("_begin", "_text", "_tokens", "steps")

    def __init__(self, tokens: tuple[Undecided, ...] = (), text: str = "", begin: int = 0) -> None:
        self._tokens = list(tokens)
        self._text = text
        self._begin = begin
        """Characters of the stream before ``text``."""
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
            remembered = node if len(self._tokens) < MAX_UNDECIDED else None
            self._tokens.append(Undecided(token_id, remembered, self._begin + len(self._text)))
        self.steps.clear()

    def copy(self) -> Tiling:
        """Return another one that stands here too."""
        return Tiling(tuple(self), self._text, self._begin)

    def plain(self) -> tuple[str, int]:
        """What is kept beside the tokens."""
        self.take_steps()
        return self._text, self._begin

    def clear(self) -> None:
        """Forget all tokens: nothing is held any more, and nobody asked for their tiles."""
        self._text = ""
        self._begin = 0
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
        begin = 0
        for token, end, is_decided in self._ends():
            if not (is_decided or all_of_them):
                break
            if all_of_them and token is self._tokens[-1]:
                end = len(self._text)
            lengths.append(end - begin)
            begin = end
        del self._tokens[: len(lengths)]
        self._text = self._text[begin:]
        self._begin += begin
        return lengths

    def end_of(self, index: int) -> int:
        """Where the tile of the undecided token at ``index`` ends, counted back from the end of the certain text."""
        ends = [end for _, end, _ in self._ends()]
        return len(self._text) - ends[index]

    def first_with(self, back: int) -> int:
        """The index of the undecided token that has the character which ends ``back`` before the end of the certain text."""
        ends = [end for _, end, _ in self._ends()]
        place = len(self._text) - back
        return next((index for index, end in enumerate(ends) if end >= place), len(ends) - 1)

    def _ends(self) -> Iterator[tuple[Undecided, int, bool]]:
        """Each token, where its tile ends in the text as far as it is certain, and whether that is decided."""
        end = 0
        for token in self:
            is_decided = True
            if token.node is not None:
                had = self._text[: token.certain - self._begin] + rest(token.node)
                is_decided = len(had) <= len(self._text) or not had.startswith(self._text)
                end = max(end, _agree(had, self._text))
            yield token, end, is_decided


def _agree(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    shorter, longer = (one, other) if len(one) < len(other) else (other, one)
    return len(shorter if longer.startswith(shorter) else common_prefix([one, other]))


def rest(node: Node) -> str:
    """What would come out if the stream ended at a node."""
    machine = node.automaton
    return "" if node is machine.finished else machine.pipeline.finish(node.state)
