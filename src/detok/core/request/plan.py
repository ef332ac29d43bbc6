"""What a request needs to know and never changes: its options, worked out for one decoder."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

from ...errors import UnknownTokenId
from ..automaton import Machine, Node
from ..options import DecodeOptions
from ..snapshot import Envelope
from ..utf8 import REPLACEMENT
from ..vocabulary import Piece, Vocabulary
from .formats import TurnFormat
from .logprobs import Logprob, TokenLogprob, TopLogprob
from .options import RequestOptions
from .segments import Special
from .stop_search import StopSearch
from .tiling import agree, rest

__all__ = ["Plan", "RequestedOf"]

# Behind so much that is held, what an alternative would have made of it is not worked out.
MAX_ADDED_BEHIND = 64


class RequestedOf(Protocol):
    """What a request needs of a decoder."""

    vocabulary: Vocabulary

    @property
    def eos_token_ids(self) -> tuple[int, ...]: ...

    @property
    def fingerprint(self) -> str: ...

    def machine(self, options: DecodeOptions) -> Machine: ...
    def plan(self, options: RequestOptions) -> Plan: ...

    def token_bytes(self, token_id: int) -> bytes: ...


class Plan:
    """
    Args:
        decoder: Whose ids they are.
        options: What was asked for.

    Raises:
        OptionError, MissingExtra: As `StopRegex`; or the decoder has no such strategy.
    """

    def __init__(self, decoder: RequestedOf, options: RequestOptions) -> None:
        self.decoder = decoder
        self.options = options
        self._decoding = options.decoding
        self.machine = decoder.machine(self._decoding)
        texts, patterns = tuple(options.stop), tuple(options.stop_regex)
        self.search: StopSearch | None = None
        if texts or patterns:
            holds = not options.include_stop_str_in_output
            self.search = StopSearch(texts, patterns, options.stop_regex_timeout, holds=holds)
        self.stop_ids = frozenset(options.stop_token_ids)
        eos = decoder.eos_token_ids if options.eos_token_ids is None else options.eos_token_ids
        self.ends = self.stop_ids if options.ignore_eos else self.stop_ids.union(eos)
        self.table = options.channels if isinstance(options.channels, TurnFormat) else None
        self._event_ids = frozenset() if self.table is None else self.table.token_ids
        self.wants_segments = options.segments or self.table is not None
        self.is_plain = options.detokenize and not patterns and not self.wants_segments and options.unknown_ids != "error"
        """Whether a token that is whole characters needs no more than its text."""
        self.gives_at_once = options.output == "delta" and options.stream_interval == 1
        """Whether what a step gives is its output."""

    def ends_here(self, token_id: int, stop_reason: Any) -> bool:
        """Whether an engine that ended with "stop" means this last id, whose text is then no part of the answer."""
        if stop_reason is not None:
            return bool(stop_reason == token_id)
        piece = self.decoder.vocabulary.piece(token_id)
        return token_id in self.ends or (piece is not None and piece.special)

    def shown(self, node: Node, token_id: int) -> tuple[str, Node]:
        """Return the text of a token that stopped the request, special or not, and the node behind it."""
        piece = self.decoder.vocabulary.piece(token_id)
        if piece is not None and piece.special and self._decoding.skip_special_tokens:
            node = self._unskipping.node(node.state)
        return node.automaton.advance(node, token_id)

    @cached_property
    def envelope(self) -> Envelope:
        """What every snapshot of such a request has in common."""
        return Envelope.of("request", self.options.as_dict(), self.decoder.fingerprint)

    @cached_property
    def _unskipping(self) -> Machine:
        """The machine that does not skip special tokens. States are the same in both."""
        return self.decoder.machine(replace(self._decoding, skip_special_tokens=False))

    def special(self, token_id: int) -> Special | None:
        """Return the event of a token, None if it is an ordinary one."""
        piece = self.decoder.vocabulary.piece(token_id)
        if piece is None or not (piece.special or token_id in self._event_ids):
            return None
        return Special(token_id, piece.text)

    def entry(self, before: Node, token_id: int, logprob: Logprob) -> TokenLogprob:
        """Return the entry of a token behind a node; its string and offsets come with its tile."""
        top = tuple(
            TopLogprob(int(other), float(value), self._adds(before, int(other)), self._bytes(int(other)))
            for other, value in logprob.top
        )
        return TokenLogprob(token_id, logprob.logprob, "", self._bytes(token_id), 0, 0, logprob.rank, top)

    def _bytes(self, token_id: int) -> bytes:
        return b"" if self._piece(token_id) is None else self.decoder.token_bytes(token_id)

    def _piece(self, token_id: int) -> Piece | None:
        return self.decoder.vocabulary.piece(token_id)

    def _adds(self, before: Node, token_id: int) -> str:
        """What an alternative would have added to the text: whole characters only, and a special token as it is written."""
        piece = self._piece(token_id)
        if piece is None:
            return ""
        if piece.special and self._decoding.skip_special_tokens:
            return piece.text
        text, after = before.automaton.advance(before, token_id)
        had = rest(before)
        if len(had) > MAX_ADDED_BEHIND:
            # What is held is that long in an open byte run alone, where a token is its bytes.
            return self._bytes(token_id).decode(errors="ignore")
        has = text + rest(after)
        added = has[agree(had, has) :]
        # U+FFFD stands for a part of a character, unless the token says it itself.
        return added if REPLACEMENT.encode() in self._bytes(token_id) else added.rstrip(REPLACEMENT)

    def check_ids(self, token_ids: list[int]) -> None:
        """Raise `UnknownTokenId` if the options ask for it and one of the ids has no piece."""
        if self._decoding.unknown_ids == "error":
            for position, token_id in enumerate(token_ids):
                if self._piece(token_id) is None:
                    raise UnknownTokenId(token_id, position=position)
