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

from ..decoding.automaton import Node
from ..decoding.texts import common_prefix

__all__ = ["Tiling", "Undecided", "agree", "rest"]

# So many tokens that are undecided together have tiles of their own. Of a byte run that is longer and comes out at once, all the
# rest belongs to the token that ends it: what each of them would have been costs as much as the run is long.
MAX_UNDECIDED = 1024


class Undecided(NamedTuple):
    """A token whose tile may yet grow, and those behind it that have none."""

    node: Node | None
    """Where the stream stands behind it; None for all tokens beyond `MAX_UNDECIDED`, of which the last has the tile."""

    certain: int
    """Where the certain text ended then."""

    length: int
    """How long the text would have been, had it ended there."""

    more: int = 0
    """So many tokens behind it changed nothing, such as special tokens that are skipped."""

    def lengths(self, tile: int) -> list[int]:
        """The lengths of all their tiles."""
        return [*([0] * self.more), tile] if self.node is None else [tile, *([0] * self.more)]

    def first(self, count: int) -> Undecided:
        """The same with so many tokens alone."""
        return self._replace(more=count - 1)


class Tiling:
    """The tokens at the end of a stream whose tiles are undecided, and the certain text that they are compared with."""

    __slots__ = ("_begin", "_done", "_text", "_tokens", "steps")

    def __init__(self, tokens: tuple[Undecided, ...] = (), text: str = "", begin: int = 0, done: int = 0) -> None:
        self._tokens = list(tokens)
        self._text = text
        self._begin = begin
        """Where the text begins."""
        self._done = done
        """Where the tiles of the tokens before these end."""
        self.steps: list[tuple[Node, str]] = []
        """Tokens that came since somebody asked last: the node behind each, and the text that it made certain. Add new ones."""

    def __bool__(self) -> bool:
        return bool(self._tokens or self.steps)

    def __len__(self) -> int:
        return sum(1 + token.more for token in self._tokens) + len(self.steps)

    def __iter__(self) -> Iterator[Undecided]:
        self.take_steps()
        return iter(self._tokens)

    def copy(self) -> Tiling:
        """Return another one that stands here too."""
        return Tiling(tuple(self), *self.plain())

    def plain(self) -> tuple[str, int, int]:
        """What is kept beside the tokens."""
        self.take_steps()
        return self._text, self._begin, self._done

    def take_steps(self) -> None:
        """Make tokens of the steps, with what is remembered of each bounded."""
        tokens = self._tokens
        for node, text in self.steps:
            self._text += text
            last = tokens[-1] if tokens else None
            if last is not None and (last.node is None or (not text and node.state is last.node.state)):
                tokens[-1] = last._replace(more=last.more + 1)
            elif len(tokens) < MAX_UNDECIDED:
                tokens.append(Undecided(node, self._end, self._end + len(rest(node))))
            else:
                tokens.append(Undecided(None, self._end, self._end))
        self.steps.clear()

    @property
    def is_ripe(self) -> bool:
        """Whether enough has come since somebody asked last to pay for looking at all tokens again."""
        return 4 * len(self.steps) >= len(self._tokens)

    def clear(self) -> None:
        """Forget all tokens: nothing is held any more, and nobody asked for their tiles."""
        self._text = ""
        self._begin = self._done = 0
        self._tokens.clear()
        self.steps.clear()

    def cut(self, index: int) -> int:
        """Take out the tokens behind the one at ``index``, and return how many they are."""
        before, first = len(self), 0
        for place, token in enumerate(self):
            if index <= first + token.more:
                self._tokens[place] = token.first(index - first + 1)
                del self._tokens[place + 1 :]
                break
            first += 1 + token.more
        return before - len(self)

    def end(self, text: str) -> None:
        """Add the text that the end of the stream made certain; now everything is decided."""
        self.take_steps()
        self._text += text

    def decided(self, *, ends: bool = False) -> list[int]:
        """
        Take out the tokens, from the first one on, that are decided, and return the lengths of their tiles.

        Args:
            ends: Nothing is held any more, so that all are.
        """
        lengths: list[int] = []
        count = 0
        for token, end, is_decided in self._ends():
            if not (is_decided or ends):
                break
            if ends and token is self._tokens[-1]:
                end = self._end
            lengths += token.lengths(end - self._done)
            self._done = end
            count += 1
        self._drop(count)
        return lengths

    def release(self) -> list[int]:
        """Take out the first undecided token although it is: too many wait behind it. What it would have had goes to the next."""
        token, end, _ = next(self._ends())
        lengths = token.lengths(end - self._done)
        self._done = end
        self._drop(1)
        return lengths

    def _drop(self, count: int) -> None:
        del self._tokens[:count]
        needed = min(self._done, self._tokens[0].certain) if self._tokens else self._done
        self._text = self._text[needed - self._begin :]
        self._begin = needed

    @property
    def _end(self) -> int:
        """Where the certain text ends."""
        return self._begin + len(self._text)

    def end_of(self, index: int) -> int:
        """Where the tile of the undecided token at ``index`` ends, counted back from the end of the certain text."""
        for token, end, _ in self._ends():
            if index <= token.more:
                return self._end - end
            index -= 1 + token.more
        raise IndexError(index)

    def first_with(self, back: int) -> int:
        """The index of the undecided token that has the character which ends ``back`` before the end of the certain text."""
        first = 0
        for token, end, _ in self._ends():
            if end >= self._end - back:
                return first if token.node is not None else first + token.more
            first += 1 + token.more
        return first - 1

    def _ends(self) -> Iterator[tuple[Undecided, int, bool]]:
        """Each token, where its tile ends as far as the text is certain, and whether that is decided."""
        self.take_steps()
        end = self._done
        for token, shortest in zip(self._tokens, self._shortest(), strict=True):
            if token.node is None:
                yield token, self._end, False
                continue
            had = self._text[: token.certain - self._begin] + rest(token.node)
            end = max(end, min(self._begin + agree(had, self._text), shortest))
            yield token, end, len(had) <= len(self._text) or not had.startswith(self._text)

    def _shortest(self) -> list[int]:
        """For each token, how long the text would at least have been behind it and every later one."""
        known = [self._end if token.node is None else token.length for token in self._tokens]
        # What is certain stays, so no later token can make the text shorter than that.
        return list(accumulate(reversed(known), min))[::-1]


def agree(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    shorter, longer = (one, other) if len(one) < len(other) else (other, one)
    return len(shorter if longer.startswith(shorter) else common_prefix([one, other]))


def rest(node: Node) -> str:
    """What would come out if the stream ended at a node."""
    machine = node.automaton
    return "" if node is machine.settled or node is machine.finished else machine.pipeline.finish(node.state)
