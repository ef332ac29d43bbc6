"""
Spans: which token a character belongs to.

A character belongs to the earliest token such that stopping there would have produced it, and stopping at any later token would
have given a text at least that long. So a character that is split over tokens belongs to the token that completes it, and a space
that a decoder puts between two words belongs to the second. The *span* of a token is the characters that belong to it, perhaps
none. Joined, the spans are the text. This holds for every decoder, since it uses only the texts that stopping would have given.
Byte-fallback tokens as an example:

    token     text if it ended here     certain    span
    a         "a"                       "a"        "a"
    <0xE3>    "a" U+FFFD                "a"        ""     the U+FFFD does not stay
    <0x81>    "a" U+FFFD U+FFFD         "a"        ""
    <0x82>    "aあ"                     "a"        "あ"
    x         "aあx"                    "aあx"     "x"

The spans of the three bytes are known only after "x": the byte FF in its place would have made four U+FFFD of the run, with the
spans 1, 0, 0 and 3. Until then these tokens are *undecided*, and are kept here. Nearly all tokens are decided at once: nothing is
held before and after them, so their text is their span.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from ..decoding.automaton import Node
from ..decoding.texts import common_prefix

# Maximum undecided tokens that are kept apart. To keep one costs time and memory in the length of the held text, so a run of n
# byte tokens would cost n * n. In a longer run, the characters of the tokens after these belong to the last token.
MAX_UNDECIDED = 1024
# Maximum undecided tokens before they are looked at again, if nobody wants spans: then they are needed at a stop only.
MAX_UNASKED = 16
# Maximum undecided tokens, if a follower wants spans. Beyond it the first span is given as it is: memory is bounded (law 8).
MAX_WAITING = 4096


class Undecided(NamedTuple):
    """
    A token whose span is undecided, and the tokens directly after it that have none.

    Tokens beyond `MAX_UNDECIDED` are *many* in one: the last of them has the span, and is told from the others by its node.
    """

    node: Node
    """The stream's node after the token; of many, after the last."""

    certain: int
    """Place where the certain text ended after the token; of many, after the last."""

    length: int | None
    """Length of the text if it had ended after the token. None: these are many, and it is worked out when somebody asks."""

    more: int = 0
    """Number of tokens directly after it that changed nothing, such as skipped special tokens; of many, those before the last."""

    @property
    def is_many(self) -> bool:
        """Whether these are the tokens beyond `MAX_UNDECIDED`."""
        return self.length is None

    def lengths(self, span: int) -> list[int]:
        """Return the lengths of the spans of all these tokens, given the length of the one span."""
        return [*([0] * self.more), span] if self.is_many else [span, *([0] * self.more)]

    def first(self, count: int) -> Undecided:
        """Return the first ``count`` of these tokens."""
        return self._replace(more=count - 1)


class TokenSpans:
    """
    The tokens at the end of a stream whose spans are undecided, and the certain text that they are compared with.

    Places in the text are counts of characters; only their differences have a meaning.
    """

    __slots__ = ("_begin", "_done", "_found", "_looked", "_new", "_text", "_tokens")

    def __init__(
        self, tokens: Sequence[Undecided] = (), text: str = "", begin: int = 0, done: int = 0, found: Sequence[int] = ()
    ) -> None:
        self._tokens = list(tokens)
        self._text = text
        self._begin = begin
        """Place where ``_text`` begins."""
        self._done = done
        """Place where the decided spans end."""
        self._new: list[tuple[Node, str]] = []
        """Tokens that were added and not looked at yet: the node after each, and the text that it made certain."""
        self._found = list(found)
        """Lengths of spans that were decided to make room, and are given out with the next ones."""
        self._looked = begin
        """Place where the certain text ended when room was last looked for."""

    def __bool__(self) -> bool:
        return bool(self._tokens or self._new)

    def __len__(self) -> int:
        return sum(1 + token.more for token in self._tokens) + len(self._new)

    def copy(self) -> TokenSpans:
        """Return an independent object with the same state."""
        return TokenSpans(*self.plain())

    def plain(self) -> tuple[tuple[Undecided, ...], str, int, int, tuple[int, ...]]:
        """Return the arguments of the constructor."""
        self._take_new()
        return tuple(self._tokens), self._text, self._begin, self._done, tuple(self._found)

    def add(self, node: Node, text: str) -> None:
        """Add a token: the stream's node after it, and the text that it made certain."""
        self._new.append((node, text))

    def settle(self, *, is_idle: bool, wanted: bool) -> list[int]:
        """
        Take out the tokens that are decided, if it is time to look, and return the lengths of their spans.

        Args:
            is_idle: Whether nothing is held after it, so that all tokens are decided.
            wanted: Whether a follower wants spans.
        """
        if is_idle and not wanted:
            self.clear()
            return []
        lengths = []
        is_ripe = 4 * len(self._new) >= len(self._tokens)  # a look costs as much as there are tokens: so O(1) a token
        if is_idle or (is_ripe and (wanted or len(self._new) > MAX_UNASKED)):
            if is_idle or any(text for _, text in self._new):
                lengths = self.decided(ends=is_idle)
            else:
                self._take_new()  # without new text nothing is decided
        while wanted and len(self) > MAX_WAITING:
            lengths += self._release()
        return lengths

    def _take_new(self) -> None:
        """Move the new tokens into ``_tokens``, bounded by `MAX_UNDECIDED`."""
        tokens, new, self._new = self._tokens, self._new, []
        for node, text in new:
            if len(tokens) >= MAX_UNDECIDED and self._looked < self._end:
                # The text of the tokens before this one was searched for stops, so nobody asks for decided ones any more.
                self._looked = self._end
                self._found += self._decide()
            self._text += text
            last = tokens[-1] if tokens else None
            if last is not None and not text and node.state is last.node.state:
                tokens[-1] = last._replace(more=last.more + 1)
            elif len(tokens) < (2 * MAX_UNDECIDED if text else MAX_UNDECIDED):  # one that has text is no part of a run
                tokens.append(Undecided(node, self._end, self._end + len(held_text(node))))
            elif last is not None and last.is_many:
                tokens[-1] = Undecided(node, self._end, None, last.more + 1)
            else:
                tokens.append(Undecided(node, self._end, None))

    def clear(self) -> None:
        """Forget all tokens: nothing is held, and nobody wants their spans."""
        self._text = ""
        self._begin = self._done = 0
        self._looked = 0
        self._tokens.clear()
        self._new.clear()
        self._found.clear()

    def cut(self, index: int) -> int:
        """Take out the tokens after the one at ``index``, and return their number."""
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
        """Add the text that the end of the stream made certain. After it all tokens are decided."""
        self._take_new()
        self._text += text

    def decided(self, *, ends: bool = False) -> list[int]:
        """
        Take out tokens, from the first one up to the first undecided one, and return the lengths of their spans.

        Args:
            ends: Whether nothing is held, so that all are decided.
        """
        self._take_new()
        found, self._found = self._found, []
        return found + self._decide(ends=ends)

    def _decide(self, *, ends: bool = False) -> list[int]:
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
        """Take out the first token although it is undecided, since too many are kept. The next one gets what it still misses."""
        self._take_new()
        found, self._found = self._found, []
        token, end, _ = next(self._ends())
        lengths = found + token.lengths(end - self._done)
        self._done = end
        self._drop(1)
        return lengths

    def _drop(self, count: int) -> None:
        del self._tokens[:count]
        # Each token is compared with the text from where it was certain, and spans are counted from `_done`: keep both.
        needed = min(self._done, self._tokens[0].certain) if self._tokens else self._done
        self._text = self._text[needed - self._begin :]
        self._begin = needed

    @property
    def _end(self) -> int:
        """Place where the certain text ends."""
        return self._begin + len(self._text)

    def end_of(self, index: int) -> int:
        """Return the end of the span of the token at ``index``, as a number of characters before the end of the certain text."""
        self._take_new()
        for token, end, _ in self._ends():
            if index <= token.more:
                return self._end - end
            index -= 1 + token.more
        raise IndexError(index)

    def first_with(self, back: int) -> int:
        """Return the index of the token with the character that ends ``back`` characters before the end of the certain text."""
        self._take_new()
        first = 0
        for token, end, _ in self._ends():
            if end >= self._end - back:
                return first + token.more if token.is_many else first
            first += 1 + token.more
        return first - 1

    def _ends(self) -> Iterator[tuple[Undecided, int, bool]]:
        """Yield each token, the place where its span ends as far as the text is certain, and whether that is decided."""
        end = self._done
        for token, shortest in zip(self._tokens, self._shortest(), strict=True):
            had = self._text[: token.certain - self._begin] + held_text(token.node)
            # The text after the token, as far as it has proved right, and as far as every later token kept it.
            end = max(end, min(self._begin + common_length(had, self._text), shortest))
            yield token, end, len(had) <= len(self._text) or not had.startswith(self._text)

    def _shortest(self) -> list[int]:
        """Return for each token the least length of the text if it had ended after it or after any later token."""
        known = [token.certain + len(held_text(token.node)) if token.length is None else token.length for token in self._tokens]
        # Certain text stays, so a later token that is not here yet makes the text no shorter.
        return list(accumulate(reversed(known), min))[::-1]


def common_length(one: str, other: str) -> int:
    """Return the number of characters that two texts share at their beginning."""
    shorter, longer = (one, other) if len(one) < len(other) else (other, one)
    return len(shorter if longer.startswith(shorter) else common_prefix([one, other]))


def held_text(node: Node) -> str:
    """Return the text that would come out if the stream ended at a node."""
    machine = node.machine
    return "" if node is machine.idle or node is machine.finished else machine.pipeline.finish(node.state)
