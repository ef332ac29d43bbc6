"""The options of a request, compiled for one decoder. All requests with equal options share one `CompiledRequest`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from ...errors import UnknownTokenId
from ...turns.formats import TurnFormat
from ...turns.parsers import turn_parser
from ...turns.part_tokens import PartTokens
from ...turns.segments import Segmenter
from ..decoding.automaton import Node, StreamMachine
from ..options import DecodeOptions
from ..snapshot import Envelope, Plain
from ..vocabulary import Vocabulary
from .followers import Follower, LogprobCollector, SegmentFollower, TokenFacts
from .options import RequestOptions
from .places import Places
from .stop_search import SearchState, StopSearch

NO_SEARCH = SearchState(None)


class CompiledRequest:
    """
    Options of a request, compiled for one decoder. Immutable, so any number of requests and threads share one.

    Args:
        options: The options.
        vocabulary: The vocabulary of the decoder.
        machine: Gives the machine that moves streams, for a choice of decoding options.
        token_bytes: Gives the exact bytes of an id.
        eos_token_ids: The ids that end an answer, as far as the decoder knows them.
        fingerprint: Gives the decoder's fingerprint; called when a snapshot is taken.
        places: The places of the decoder.

    Raises:
        OptionError, MissingExtra: As `StopRegex`.
    """

    def __init__(
        self,
        options: RequestOptions,
        *,
        vocabulary: Vocabulary,
        machine: Callable[[DecodeOptions], StreamMachine],
        token_bytes: Callable[[int], bytes],
        eos_token_ids: Sequence[int],
        fingerprint: Callable[[], str],
        places: Places,
    ) -> None:
        self.options = options
        self.places = places
        self._vocabulary = vocabulary
        self._machine_of = machine
        self._fingerprint = fingerprint
        self._decoding = options.decoding
        self.machine = machine(self._decoding)
        texts, patterns = tuple(options.stop or ()), tuple(options.stop_regex or ())
        self.search: StopSearch | None = None
        if texts or patterns:
            holds = not options.include_stop_str_in_output
            self.search = StopSearch(texts, patterns, options.stop_regex_timeout, holds=holds)
        self.search_start = NO_SEARCH if self.search is None else self.search.start
        self.stop_ids = frozenset(options.stop_token_ids or ())
        eos = eos_token_ids if options.eos_token_ids is None else options.eos_token_ids
        self.ends = self.stop_ids if options.ignore_eos else self.stop_ids.union(eos)
        """The ids that end a request."""
        self.turn = options.channels if isinstance(options.channels, TurnFormat) else None
        event_ids: frozenset[int] = frozenset() if self.turn is None else self.turn.token_ids
        self._facts = TokenFacts(vocabulary, token_bytes, skips_specials=self._decoding.skip_special_tokens, event_ids=event_ids)
        self._has_segments = options.segments or self.turn is not None
        self.is_plain = options.detokenize and not patterns and not self._has_segments
        """Whether a token can be usual: nobody wants more of it than its text, and no pattern is searched for (see `places`)."""
        self.gives_at_once = options.output == "delta" and options.stream_interval == 1
        """Whether each step has an output, with what is new."""

    def followers(self) -> tuple[Follower, ...]:
        """Return the followers of a new request."""
        return (self.follower(SegmentFollower.__name__, ((), None, ())),) if self._has_segments else ()

    def follower(self, name: str, plain: Sequence[Plain]) -> Follower:
        """
        Return a new follower, or one with a state from a snapshot.

        Args:
            name: The name of its class.
            plain: The state that `Follower.plain` gave; empty values for a new follower.
        """
        if name == LogprobCollector.__name__:
            return LogprobCollector(self._facts, *plain)
        segmenter, state, tokens = plain
        turn = None if self.turn is None else turn_parser(self.turn, state)
        shows = self.options.segments
        return SegmentFollower(self._facts, Segmenter(*segmenter), shows=shows, turn=turn, tokens=PartTokens(*tokens))

    def ended_by(self, token_id: int, stop_reason: str | int | None) -> bool:
        """Whether an engine that ended with "stop" stopped at this last id. Then its text is not part of the answer."""
        if stop_reason is not None:
            return stop_reason == token_id
        piece = self._vocabulary.piece(token_id)
        return token_id in self.ends or (piece is not None and piece.special)

    def shown(self, node: Node, token_id: int) -> tuple[str, Node]:
        """Return the text of a token that stopped the request, even a skipped special, and the node after it."""
        piece = self._vocabulary.piece(token_id)
        if piece is not None and piece.special and self._decoding.skip_special_tokens:
            node = self._unskipping.node(node.state)
        return node.machine.advance(node, token_id)

    @cached_property
    def _unskipping(self) -> StreamMachine:
        """The machine that does not skip special tokens. It has the same states."""
        return self._machine_of(replace(self._decoding, skip_special_tokens=False))

    @cached_property
    def envelope(self) -> Envelope:
        """The parts that are equal in all snapshots of these requests."""
        return Envelope.of("request", self.options.as_dict(), self._fingerprint())

    def check_ids(self, token_ids: Sequence[int]) -> None:
        """With ``unknown_ids="error"`` raise `UnknownTokenId` if one of the ids has no piece."""
        if self._decoding.unknown_ids == "error":
            for position, token_id in enumerate(token_ids):
                if self._vocabulary.piece(token_id) is None:
                    raise UnknownTokenId(token_id, position=position)
