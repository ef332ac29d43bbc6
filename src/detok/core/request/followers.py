"""
What goes along with the tokens of a request and adds to its outputs: logprobs, segments, channels.

A `Follower` is told of each token as it comes, of the spans of the tokens once they are decided (see `spans`), and of the text
that goes out; it answers with fields of the output. The usual request has none.
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

# If more characters than this are held, the text of alternatives is approximated by their bytes.
MAX_ADDED_AFTER = 64

NO_LOGPROB = Logprob(None)

AFTER_END = -1
"""The length of the span of a token after the end."""


class Follower(Protocol):
    """Goes along with the tokens of a request."""

    def step(self, before: Node, token_id: int, logprob: Logprob) -> None:
        """Take a token: the stream's node before it, its id, and what the engine says of it."""

    def decide(self, lengths: Sequence[int]) -> None:
        """Take the lengths of the next spans."""

    def drop(self, count: int) -> None:
        """Leave out the last tokens: a stop cut them."""

    def pass_end(self, count: int) -> None:
        """Learn that the last ``count`` tokens come after the end and stay, with ``after_stop="keep"``: no text is theirs."""

    def take(self, output: RequestOutput) -> None:
        """Look at the text of an output that is the next one, and add to it what is certain now."""

    def copy(self) -> Follower:
        """Return another one that stands here too."""

    def plain(self) -> tuple[object, ...]:
        """Return where it stands, for a snapshot; `CompiledRequest.follower` makes one of it again."""


class TokenFacts:
    """What followers ask of a vocabulary."""

    def __init__(
        self, vocabulary: Vocabulary, token_bytes: Callable[[int], bytes], *, skips_specials: bool, event_ids: frozenset[int]
    ) -> None:
        self._vocabulary = vocabulary
        self._token_bytes = token_bytes
        self._skips_specials = skips_specials
        self._event_ids = event_ids
        """Ids that are events among segments although they are not special."""

    def piece(self, token_id: int) -> Piece | None:
        """Return the piece of an id, or None."""
        return self._vocabulary.piece(token_id)

    def bytes_of(self, token_id: int) -> bytes:
        """Return the exact bytes of an id; b"" if the vocabulary has no such id."""
        return b"" if self.piece(token_id) is None else self._token_bytes(token_id)

    def special(self, token_id: int) -> Special | None:
        """Return the event of a token, None if it is an ordinary one."""
        piece = self.piece(token_id)
        if piece is None or not (piece.special or token_id in self._event_ids):
            return None
        return Special(token_id, piece.text)

    def added_text(self, before: Node, token_id: int) -> str:
        """Return what an alternative would have added to the text: whole characters, and a special token as it is written."""
        piece = self.piece(token_id)
        if piece is None:
            return ""
        if piece.special and self._skips_specials:
            return piece.text
        text, after = before.machine.advance(before, token_id)
        had = held_text(before)
        if len(had) > MAX_ADDED_AFTER:
            # So much is held in an open byte run alone, where a token is its bytes.
            return self.bytes_of(token_id).decode(errors="ignore")
        has = text + held_text(after)
        added = has[common_length(had, has) :]
        # U+FFFD stands for a part of a character, unless the token says it itself.
        return added if REPLACEMENT.encode() in self.bytes_of(token_id) else added.rstrip(REPLACEMENT)


class LogprobCollector:
    """
    The logprobs of a request: each is given once the token's span is decided and out.

    Args:
        facts: Of the vocabulary.
        entries, lengths, text, chars, bytes_: Where another one stood.
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
        """Not given yet; their strings and offsets are still to come."""
        self._lengths = list(lengths)
        """Of the spans that are decided, from the first entry on."""
        self._text = text
        """Text that is out, from the first entry's span on."""
        self._chars = chars
        self._bytes = bytes_

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
        """Add the entries whose part of the text is all there; at the end each has what there is of it."""
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
    """Return the alternatives; where the sampled token is among them, it has the same string there: its part of the text."""
    return tuple(one._replace(token=token) if one.token_id == entry.token_id else one for one in entry.top)


class SegmentFollower:
    """
    The segments of a request, and its channels if they are asked for.

    Args:
        facts: Of the vocabulary.
        segmenter: Cuts the text at special tokens.
        shows: Whether the segments themselves are asked for.
        turn: Sorts them into channels, if that is asked for.
        tokens: Counts the tokens of those.
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
        return SegmentFollower(
            self._facts,
            Segmenter(*self._segmenter.plain()),
            shows=self._shows,
            turn=turn,
            tokens=PartTokens(*self._tokens.plain()),
        )

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
        self._segmenter.drop(count)  # an event after the end of the text has no place in it
        self._tokens.drop(count)

    def take(self, output: RequestOutput) -> None:
        """Add the segments that are certain now, and what of each channel is."""
        segments = self._segmenter.take(output.text, ends=output.finished)
        if self._shows:
            output.segments = segments
        if self._turn is not None:
            deltas = self._turn.feed(segments) + (self._turn.finish() if output.finished else [])
            output.channels = self._tokens.counted(joined_deltas(deltas))
