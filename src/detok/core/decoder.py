"""`Decoder`: a vocabulary and the rules over it; what every tokenizer becomes, whatever file or library it came from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, Never, SupportsIndex

from ..errors import OptionError, UnknownTokenId
from ..ids import as_id
from .decoding.automaton import Automaton, Machine
from .decoding.joiners import Held
from .decoding.pipeline import Pipeline
from .decoding.rules import Rule
from .options import ByteFallbackMode, DecodeOptions, UnknownIds
from .request.compiled import Plan
from .request.options import RequestOptions
from .request.progress import Progress
from .request.request import RequestDecoder
from .request.snapshot import unpack_request
from .snapshot import unpack
from .stream import TextStream
from .vocabulary import Piece, Vocabulary

__all__ = ["Decoder", "Held"]

# The plans of so many different options are kept for requests to come.
MAX_PLANS = 256

_PLAIN = DecodeOptions()


class Decoder:
    """
    Ids to text, by a vocabulary and rules that never change. Safe to share between threads.

    Args:
        vocabulary: The piece behind each id.
        rules: What the tokenizer's decoder says, flat and in order.
        cleans_up: What `clean_up_tokenization_spaces=None` means here.
    """

    def __init__(self, vocabulary: Vocabulary, rules: Sequence[Rule], *, cleans_up: bool = False) -> None:
        self.vocabulary = vocabulary
        self.rules = tuple(rules)
        self.cleans_up = cleans_up
        self._automata: dict[DecodeOptions, Automaton] = {}
        self._token_bytes: dict[int, bytes] = {}
        self._plans: dict[RequestOptions, Plan] = {}

    def __getstate__(self) -> dict[str, Any]:
        # What is remembered is remembered again elsewhere.
        return {**self.__dict__, "_automata": {}, "_token_bytes": {}, "_plans": {}}

    def stream(
        self,
        prompt_ids: Iterable[SupportsIndex] = (),
        *,
        skip_special_tokens: bool = True,
        spaces_between_special_tokens: bool | None = None,
        clean_up_tokenization_spaces: bool | None = None,
        unknown_ids: UnknownIds = "skip",
        byte_fallback: ByteFallbackMode = "exact",
        **unknown: Never,
    ) -> TextStream:
        """
        Open a stream of ids.

        Args:
            prompt_ids: What stands before the stream. Context only: none of its text comes out, but a character that it
                leaves incomplete does, when the stream completes it. Only its end is read.
            skip_special_tokens, spaces_between_special_tokens, clean_up_tokenization_spaces, unknown_ids, byte_fallback:
                See `DecodeOptions`.
            unknown: Any other keyword is refused, so that the error can say what to do.

        Raises:
            OptionError: A value is not accepted, or there is no such option. `strategy` is one of
                `detok.inspection.strategies.open_stream`.
            TokenTypeError: An id of the prompt, as far as it is read, is no integer.
            UnknownTokenId: The same, with ``unknown_ids="error"``.
        """
        if unknown:
            DecodeOptions.check_names(unknown)
        options = DecodeOptions(
            skip_special_tokens=skip_special_tokens,
            spaces_between_special_tokens=spaces_between_special_tokens,
            clean_up_tokenization_spaces=clean_up_tokenization_spaces,
            unknown_ids=unknown_ids,
            byte_fallback=byte_fallback,
        )
        return TextStream(self.machine(options).behind(prompt_ids))

    def decode(self, ids: Iterable[SupportsIndex], skip_special_tokens: bool = True, **options: Any) -> str:
        """Return the text of all ids: a stream, fed at once and finished. Arguments and errors as `stream`."""
        stream = self.stream(skip_special_tokens=skip_special_tokens, **options)
        return stream.extend(ids) + stream.finish()

    def restore(self, snapshot: object) -> TextStream:
        """
        Go on from a `TextStream.snapshot`.

        Raises:
            SnapshotError: It is of another tokenizer or version, or damaged.
        """
        options, state = unpack(snapshot, of="stream", options=DecodeOptions, fingerprint=self.fingerprint)
        machine = self.machine(options)
        return TextStream(machine.finished if state is None else machine.node(state))

    def request(
        self, prompt_ids: Iterable[SupportsIndex] = (), *, options: RequestOptions | None = None, **fields: Any
    ) -> RequestDecoder:
        """
        Open a request: a stream that stops where it should, and gives outputs.

        Args:
            prompt_ids: As `stream` takes them.
            options: What is asked for, worked out once for many requests.
            fields: Or here, by name: `stop`, `stop_token_ids`, `min_tokens`, `output` and so on; see `RequestOptions`.

        Raises:
            OptionError: An option or its value is not possible, or two contradict each other.
            MissingExtra: `stop_regex` without the library ``regex``.
            TokenTypeError, UnknownTokenId: As `stream`.
        """
        if options is None:
            options = RequestOptions.of(fields)
        elif fields:
            option, value = next(iter(fields.items()))
            raise OptionError(option=option, value=value, accepted="give options, or each by name, not both")
        elif not isinstance(options, RequestOptions):
            raise OptionError(option="options", value=options, accepted="they are detok.RequestOptions")
        plan = self.plan(options)
        return RequestDecoder(plan, Progress(plan, plan.machine.behind(prompt_ids)))

    def plan(self, options: RequestOptions) -> Plan:
        """Return what all requests with these options have in common; the same object each time, while it is remembered."""
        plan = self._plans.get(options)
        if plan is None:
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            plan = self._plans.setdefault(options, Plan(self, options))
        return plan

    def restore_request(self, snapshot: object) -> RequestDecoder:
        """
        Go on from a `RequestDecoder.snapshot`.

        Raises:
            SnapshotError: It is of another tokenizer or version, or damaged.
            MissingExtra: It has a `stop_regex`, and the library ``regex`` is not here.
        """
        return RequestDecoder(*unpack_request(snapshot, self))

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """The ids that end an answer, as far as is known here."""
        return ()

    def token_bytes(self, token_id: SupportsIndex) -> bytes:
        """
        Return the exact bytes of one id, whatever stands beside it (law 10), special or not.

        Raises:
            UnknownTokenId: The vocabulary has no such id.
        """
        token_id = as_id(token_id)
        data = self._token_bytes.get(token_id)
        if data is None:
            data = self._token_bytes[token_id] = self._bytes_of(token_id, self.piece(token_id))
        return data

    def token_text(self, token_id: SupportsIndex) -> str:
        """Return the text of one id in the middle of a text, a part of a character as U+FFFD. Errors as `token_bytes`."""
        return self.token_bytes(token_id).decode(errors="replace")

    def piece(self, token_id: SupportsIndex) -> Piece:
        """Return the vocabulary's entry behind an id. Errors as `token_bytes`."""
        token_id = as_id(token_id)
        piece = self.vocabulary.piece(token_id)
        if piece is None:
            raise UnknownTokenId(token_id)
        return piece

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits over all that decoding depends on: rules, clean-up, every piece. Made when first asked for."""
        digest = blake2b(digest_size=16)
        for fact in self._facts():
            digest.update(repr(fact).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is held longer than usual with the default options, and why."""
        return tuple(self._plain.notes)

    # The three methods that a class without rules replaces: what moves streams, the bytes of an id, what decoding depends on.

    def machine(self, options: DecodeOptions) -> Machine:
        """Return what moves streams for a choice of options: here the automaton of the rules."""
        return self.automaton(options)

    def _bytes_of(self, token_id: int, piece: Piece) -> bytes:
        """Return the exact bytes of an id that the vocabulary has."""
        return self._plain.token_bytes(piece)

    def _facts(self) -> Iterable[object]:
        """Give all that decoding depends on, in a fixed order, as values whose `repr` tells them apart."""
        yield self.rules, self.cleans_up
        for token_id in self.vocabulary.ids():
            yield token_id, self.vocabulary.piece(token_id)

    def automaton(self, options: DecodeOptions) -> Automaton:
        """Return the automaton of the rules for a choice of options, the same one each time."""
        automaton = self._automata.get(options)
        if automaton is None:
            cleans_up = options.clean_up_tokenization_spaces
            cleans_up = self.cleans_up if cleans_up is None else cleans_up
            decided = replace(options, clean_up_tokenization_spaces=cleans_up)
            automaton = self._automata.get(decided)
            if automaton is None:
                automaton = Automaton(Pipeline(self.rules, self.vocabulary, decided), lambda: self.fingerprint)
                automaton = self._automata.setdefault(decided, automaton)
            self._automata[options] = automaton
        return automaton

    @property
    def _plain(self) -> Pipeline:
        return self.automaton(_PLAIN).pipeline
