"""
Followers: they add logprobs, segments and channels to the outputs of a request.

A `Follower` is told of three things: each token as it comes (`step`), the span of each token once it is decided (`decide`, see
`spans`), and each output (`take`), to which it adds its fields. The usual request has no followers. Logprobs for the bytes
E3 81 82 of "あ", one token each, as an example:

    told                    entries that wait        output of the step
    step <0xE3>             1
    step <0x81>             2                        no text, no logprobs
    step <0x82>             3
    decide [0, 0, 1]        3, all decided
    take the text "あ"      0                        logprobs with the strings "", "", "あ"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ...turns.channels import TurnFollower, joined_deltas
from ...turns.part_tokens import PartTokens
from ...turns.segments import Segmenter, Special
from ..decoding.automaton import Node
from ..utf8 import REPLACEMENT
from ..vocabulary import Piece, Vocabulary
from .logprobs import Logprob, TokenLogprob, TopLogprob
from .output import RequestOutput
from .spans import common_length, held_text

# Maximum held characters for which the text of an alternative is worked out exactly: that costs time in the length of the held
# text, for each alternative. Beyond it the bytes of the alternative are decoded by themselves.
MAX_ADDED_AFTER = 64

NO_LOGPROB = Logprob(None)

AFTER_END = -1
"""In place of the length of a span: the token comes after the end of the text."""


class Follower(Protocol):
    """Adds fields to the outputs of a request, for its tokens."""

    def step(self, before: Node, token_id: int, logprob: Logprob) -> None:
        """Take a token: the stream's node before it, its id, and its logprob."""

    def decide(self, lengths: Sequence[int]) -> None:
        """Take the lengths of the next spans: those of the first tokens that have none yet."""

    def drop(self, count: int) -> None:
        """Leave out the last ``count`` tokens, which a stop cut."""

    def pass_end(self, count: int) -> None:
        """Learn that the last ``count`` tokens come after the end of the text (``after_stop="keep"``), so they have no text."""

    def take(self, output: RequestOutput) -> None:
        """Read the text of the next output, and add the fields that are certain now."""

    def copy(self) -> Follower:
        """Return an independent follower with the same state."""

    def plain(self) -> tuple[object, ...]:
        """Return the state as plain data, from which `CompiledRequest.follower` makes a follower again."""


class TokenFacts:
    """Facts about tokens that followers need: pieces, bytes, and the text that an alternative would add."""

    def __init__(
        self, vocabulary: Vocabulary, token_bytes: Callable[[int], bytes], *, skips_specials: bool, event_ids: frozenset[int]
    ) -> None:
        self._vocabulary = vocabulary
        self._token_bytes = token_bytes
        self._skips_specials = skips_specials
        self._event_ids = event_ids
        """Ids that are events among the segments although they are not special: delimiters of channels."""

    def piece(self, token_id: int) -> Piece | None:
        """Return the piece of an id, or None."""
        return self._vocabulary.piece(token_id)

    def bytes_of(self, token_id: int) -> bytes:
        """Return the exact bytes of an id; b"" if the vocabulary has no such id."""
        return b"" if self.piece(token_id) is None else self._token_bytes(token_id)

    def special(self, token_id: int) -> Special | None:
        """Return the event of a token; None for an ordinary token."""
        piece = self.piece(token_id)
        if piece is None or not (piece.special or token_id in self._event_ids):
            return None
        return Special(token_id, piece.text)

    def added_text(self, before: Node, token_id: int) -> str:
        """Return the text that an alternative would have added: whole characters, and the surface of a skipped special token."""
        piece = self.piece(token_id)
        if piece is None:
            return ""
        if piece.special and self._skips_specials:
            return piece.text
        text, after = before.machine.advance(before, token_id)
        had = held_text(before)
        if len(had) > MAX_ADDED_AFTER:
            # Only an open byte run holds this much, and there a token is its bytes.
            return self.bytes_of(token_id).decode(errors="ignore")
        has = text + held_text(after)
        added = has[common_length(had, has) :]
        # A trailing U+FFFD is a part of a character, unless it is in the bytes of the token itself.
        return added if REPLACEMENT.encode() in self.bytes_of(token_id) else added.rstrip(REPLACEMENT)


class LogprobCollector:
    """
    Adds logprobs to outputs: an entry for each token, once its span is decided and that part of the text is out.

    Args:
        facts: The facts about tokens.
        entries, lengths, text, chars, bytes_: The state, as `plain` gives it.
    """

    __slots__ = ("_bytes", "_chars", "_entries", "_facts", "_lengths", "_text")

    def __init__(
        self,
        facts: TokenFacts,
        entries: Sequence[TokenLogprob] = (),
        lengths: Sequence[int] = (),
        text: str = "",
        chars: int = 0,
        bytes_: int = 0,
    ) -> None:
        self._facts = facts
        self._entries = list(entries)
        """Entries that are not given yet. Their strings and offsets are not set yet."""
        self._lengths = list(lengths)
        """The lengths of the decided spans, from the first of these entries on."""
        self._text = text
        """Text that is out, from the span of the first of these entries on."""
        self._chars = chars
        """Offset of that text in the text of the request, in characters."""
        self._bytes = bytes_
        """The same in bytes of UTF-8."""

    def copy(self) -> LogprobCollector:
        return LogprobCollector(self._facts, *self.plain())

    def plain(self) -> tuple[tuple[TokenLogprob, ...], tuple[int, ...], str, int, int]:
        return tuple(self._entries), tuple(self._lengths), self._text, self._chars, self._bytes

    def step(self, before: Node, token_id: int, logprob: Logprob) -> None:
        facts = self._facts
        top = tuple(
            TopLogprob(other, value, facts.added_text(before, other), facts.bytes_of(other)) for other, value in logprob.top
        )
        data = facts.bytes_of(token_id)
        self._entries.append(TokenLogprob(token_id, logprob.logprob, "", data, 0, 0, logprob.rank, top))

    def decide(self, lengths: Sequence[int]) -> None:
        self._lengths += lengths

    def drop(self, count: int) -> None:
        if count:
            del self._entries[-count:]
            del self._lengths[len(self._entries) :]

    def pass_end(self, count: int) -> None:
        self._lengths += [AFTER_END] * count

    def take(self, output: RequestOutput) -> None:
        """Add the entries whose part of the text is out. At the end, a part that a stop cut is as much as came out of it."""
        self._text += output.text
        given: list[TokenLogprob] = []
        place = 0
        for entry, length in zip(self._entries, self._lengths, strict=False):
            if not output.finished and place + length > len(self._text):
                break
            token = self._text[place : place + length] if length > 0 else ""
            place += len(token)
            top = entry.top if length == AFTER_END else _named(entry, token)
            given.append(
                TokenLogprob(entry.token_id, entry.logprob, token, entry.bytes, self._chars, self._bytes, entry.rank, top)
            )
            self._chars += len(token)
            self._bytes += len(token) if token.isascii() else len(token.encode("utf-8", "surrogatepass"))
        del self._entries[: len(given)], self._lengths[: len(given)]
        self._text = self._text[place:]
        output.logprobs = given


def _named(entry: TokenLogprob, token: str) -> tuple[TopLogprob, ...]:
    """Return the alternatives. The sampled token, if it is one of them, has the same string there as in its own entry."""
    return tuple(one._replace(token=token) if one.token_id == entry.token_id else one for one in entry.top)


class SegmentFollower:
    """
    Adds segments to outputs, or channels, which are made from segments, or both.

    Args:
        facts: The facts about tokens.
        segmenter: Cuts the text at special tokens.
        shows: Whether outputs have segments (option `segments`).
        turn: Makes channels of segments; None without the option `channels`.
    """

    __slots__ = ("_facts", "_segmenter", "_shows", "_tokens", "_turn")

    def __init__(
        self, facts: TokenFacts, segmenter: Segmenter, *, shows: bool, turn: TurnFollower | None, tokens: PartTokens
    ) -> None:
        self._facts = facts
        self._segmenter = segmenter
        self._shows = shows
        self._turn = turn
        self._tokens = tokens

    def copy(self) -> SegmentFollower:
        turn = None if self._turn is None else self._turn.copy()
        segmenter, tokens = Segmenter(*self._segmenter.plain()), PartTokens(*self._tokens.plain())
        return SegmentFollower(self._facts, segmenter, shows=self._shows, turn=turn, tokens=tokens)

    def plain(self) -> tuple[object, ...]:
        return self._segmenter.plain(), None if self._turn is None else self._turn.state, self._tokens.plain()

    def step(self, before: Node, token_id: int, logprob: Logprob) -> None:
        special = self._facts.special(token_id)
        self._segmenter.step(special)
        if self._turn is not None:
            self._tokens.step(special)

    def decide(self, lengths: Sequence[int]) -> None:
        self._segmenter.decide(lengths)
        if self._turn is not None:
            self._tokens.decide(lengths)

    def drop(self, count: int) -> None:
        self._segmenter.drop(count)
        self._tokens.drop(count)

    def pass_end(self, count: int) -> None:
        self._segmenter.drop(count)  # a special token after the end of the text has no place in it
        self._tokens.drop(count)

    def take(self, output: RequestOutput) -> None:
        """Add the segments that are certain now, and the new text of each channel."""
        segments = self._segmenter.take(output.text, ends=output.finished)
        if self._shows:
            output.segments = segments
        if self._turn is not None:
            deltas = self._turn.feed(segments) + (self._turn.finish() if output.finished else [])
            output.channels = self._tokens.counted(joined_deltas(deltas))
