"""
Which token a character belongs to.

A character belongs to the earliest token such that stopping there, or anywhere later, would already have produced it. So a
character that is split over tokens belongs to the one that completes it, and a space that a decoder puts between two words to the
second. The spans of all tokens, some of them empty, are the text: exactly, for every decoder, since nothing is used but how the
text would have ended. Byte-fallback tokens as an example, where a run is "あx" if it ends well and U+FFFD for each byte if not:

    token     if the text ended here    certain then    its span, once the run has ended well
    a         "a"                       "a"             "a"
    <0xE3>    "a" U+FFFD                "a"             ""    (the U+FFFD did not stay)
    <0x81>    "a" U+FFFD U+FFFD         "a"             ""
    <0x82>    "aあ"                     "a"             "あ"
    x         "aあx"                    "aあx"          "x"

Nearly all tokens are decided as they come: nothing is held before and after, so the token's text is its span. Kept here are those
whose span is *undecided*, because a later token may yet take or leave a character.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from ..decoding.automaton import Node
from ..decoding.texts import common_prefix

# Maximum undecided tokens with spans of their own. Of a byte run that is longer and comes out at once, all the rest belongs to
# the token that ends it: what each of them would have been costs as much as the run is long.
MAX_UNDECIDED = 1024
# Maximum tokens that are undecided before it is looked whether they still are, if nobody wants their spans.
MAX_UNASKED = 16
# Maximum tokens that wait for their spans, if somebody does.
MAX_WAITING = 4096


class Undecided(NamedTuple):
    """A token whose span may yet grow, and those after it that have none."""

    node: Node | None
    """The stream's node after it; None for all tokens beyond `MAX_UNDECIDED`, of which the last has the span."""

    certain: int
    """Where the certain text ended then."""

    length: int
    """Length that the text would have had, had it ended there."""

    more: int = 0
    """Number of tokens after it that changed nothing, such as special tokens that are skipped."""

    def lengths(self, span: int) -> list[int]:
        """Return the lengths of the spans of all of them."""
        return [*([0] * self.more), span] if self.node is None else [span, *([0] * self.more)]

    def first(self, count: int) -> Undecided:
        """Return the same with ``count`` tokens alone."""
        return self._replace(more=count - 1)


class TokenSpans:
    """The tokens at the end of a stream whose spans are undecided, and the certain text that they are compared with."""

    __slots__ = ("_begin", "_done", "_new", "_text", "_tokens")

    def __init__(self, tokens: tuple[Undecided, ...] = (), text: str = "", begin: int = 0, done: int = 0) -> None:
        self._tokens = list(tokens)
        self._text = text
        self._begin = begin
        """Where the text begins."""
        self._done = done
        """Where the spans of the tokens before these end."""
        self._new: list[tuple[Node, str]] = []
        """Tokens that came since somebody asked last: the node after each, and the text that it made certain."""

    def __bool__(self) -> bool:
        return bool(self._tokens or self._new)

    def __len__(self) -> int:
        return sum(1 + token.more for token in self._tokens) + len(self._new)

    def copy(self) -> TokenSpans:
        """Return another one that stands here too."""
        return TokenSpans(*self.plain())

    def plain(self) -> tuple[tuple[Undecided, ...], str, int, int]:
        """Return what the constructor takes."""
        self._take_new()
        return tuple(self._tokens), self._text, self._begin, self._done

    def add(self, node: Node, text: str) -> None:
        """Take a token: the stream's node after it, and the text that it made certain."""
        self._new.append((node, text))

    def settle(self, *, text: str, is_idle: bool, wanted: bool) -> list[int]:
        """
        Take out the tokens that are decided, once it pays to look, and return the lengths of their spans.

        Args:
            text: What the last token made certain.
            is_idle: Nothing is held any more, so that all are decided.
            wanted: Whether somebody wants the spans.
        """
        if is_idle and not wanted:
            self.clear()
            return []
        lengths = []
        is_ripe = 4 * len(self._new) >= len(self._tokens)  # enough has come to pay for looking at all tokens again
        if not (text or is_idle):
            self._take_new()  # nothing came that could decide anything
        elif is_idle or (wanted and is_ripe) or len(self._new) > MAX_UNASKED:
            lengths = self.decided(ends=is_idle)
        while wanted and len(self) > MAX_WAITING:
            lengths += self._release()
        return lengths

    def _take_new(self) -> None:
        """Make tokens of the new ones, with what is remembered of each bounded."""
        tokens = self._tokens
        for node, text in self._new:
            self._text += text
            last = tokens[-1] if tokens else None
            if last is not None and (last.node is None or (not text and node.state is last.node.state)):
                tokens[-1] = last._replace(more=last.more + 1)
            elif len(tokens) < MAX_UNDECIDED:
                tokens.append(Undecided(node, self._end, self._end + len(held_text(node))))
            else:
                tokens.append(Undecided(None, self._end, self._end))
        self._new.clear()

    def clear(self) -> None:
        """Forget all tokens: nothing is held any more, and nobody wants their spans."""
        self._text = ""
        self._begin = self._done = 0
        self._tokens.clear()
        self._new.clear()

    def cut(self, index: int) -> int:
        """Take out the tokens after the one at ``index``, and return how many they are."""
        self._take_new()
        before, first = len(self), 0
        for place, token in enumerate(self._tokens):
            if index <= first + token.more:
                self._tokens[place] = token.first(index - first + 1)
                del self._tokens[place + 1 :]
                break
            first += 1 + token.more
        return before - len(self)

    def end(self, text: str) -> None:
        """Add the text that the end of the stream made certain; now everything is decided."""
        self._take_new()
        self._text += text

    def decided(self, *, ends: bool = False) -> list[int]:
        """
        Take out the tokens, from the first one on, that are decided, and return the lengths of their spans.

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

    def _release(self) -> list[int]:
        """Take out the first token although it is undecided: too many wait after it. What it would have had goes to the next."""
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
        """Return where the span of the undecided token at ``index`` ends, counted back from the end of the certain text."""
        for token, end, _ in self._ends():
            if index <= token.more:
                return self._end - end
            index -= 1 + token.more
        raise IndexError(index)

    def first_with(self, back: int) -> int:
        """Return the index of the token that has the character which ends ``back`` before the end of the certain text."""
        first = 0
        for token, end, _ in self._ends():
            if end >= self._end - back:
                return first if token.node is not None else first + token.more
            first += 1 + token.more
        return first - 1

    def _ends(self) -> Iterator[tuple[Undecided, int, bool]]:
        """Yield each token, where its span ends as far as the text is certain, and whether that is decided."""
        self._take_new()
        end = self._done
        for token, shortest in zip(self._tokens, self._shortest(), strict=True):
            if token.node is None:
                yield token, self._end, False
                continue
            had = self._text[: token.certain - self._begin] + held_text(token.node)
            end = max(end, min(self._begin + common_length(had, self._text), shortest))
            yield token, end, len(had) <= len(self._text) or not had.startswith(self._text)

    def _shortest(self) -> list[int]:
        """Return for each token how long the text would at least have been after it and after every later one."""
        known = [self._end if token.node is None else token.length for token in self._tokens]
        # What is certain stays, so no later token can make the text shorter than that.
        return list(accumulate(reversed(known), min))[::-1]


def common_length(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    shorter, longer = (one, other) if len(one) < len(other) else (other, one)
    return len(shorter if longer.startswith(shorter) else common_prefix([one, other]))


def held_text(node: Node) -> str:
    """Return what would come out if the stream ended at a node."""
    machine = node.machine
    return "" if node is machine.idle or node is machine.finished else machine.pipeline.finish(node.state)
