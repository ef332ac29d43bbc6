"""`Decoder`: a vocabulary and the rules over it; what every tokenizer becomes, whatever file or library it came from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, SupportsIndex

from ..errors import UnknownTokenId
from .automaton import Automaton
from .ids import as_id
from .joiners import Held
from .options import ByteFallbackMode, DecodeOptions, UnknownIds
from .pipeline import Pipeline
from .rules import Rule
from .snapshot import unpack
from .stream import TextStream, prime
from .vocabulary import Piece, Vocabulary

__all__ = ["Decoder", "Held"]


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

    def stream(
        self,
        prompt_ids: Iterable[SupportsIndex] = (),
        *,
        skip_special_tokens: bool = True,
        spaces_between_special_tokens: bool | None = None,
        clean_up_tokenization_spaces: bool | None = None,
        unknown_ids: UnknownIds = "skip",
        byte_fallback: ByteFallbackMode = "exact",
    ) -> TextStream:
        """
        Open a stream of ids.

        Args:
            prompt_ids: What stands before the stream. Context only: none of its text comes out, but a character that it
                leaves incomplete does, when the stream completes it. Only its end is read.
            skip_special_tokens, spaces_between_special_tokens, clean_up_tokenization_spaces, unknown_ids, byte_fallback:
                See `DecodeOptions`.

        Raises:
            OptionError: A value is not accepted.
            TokenTypeError: An id of the prompt, as far as it is read, is no integer.
            UnknownTokenId: The same, with ``unknown_ids="error"``.
        """
        options = DecodeOptions(
            skip_special_tokens=skip_special_tokens,
            spaces_between_special_tokens=spaces_between_special_tokens,
            clean_up_tokenization_spaces=clean_up_tokenization_spaces,
            unknown_ids=unknown_ids,
            byte_fallback=byte_fallback,
        )
        return TextStream(prime(self.automaton(options), prompt_ids))

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
        options, state = unpack(snapshot, fingerprint=self.fingerprint)
        automaton = self.automaton(options)
        if state is None:
            return TextStream(automaton.finished)
        return TextStream(automaton.node(state))

    def token_bytes(self, token_id: SupportsIndex) -> bytes:
        """
        Return the exact bytes of one id, whatever stands beside it (law 10), special or not.

        Raises:
            UnknownTokenId: The vocabulary has no such id.
        """
        return self._plain.token_bytes(self.piece(token_id))

    def token_text(self, token_id: SupportsIndex) -> str:
        """Return the text of one id in the middle of a text, a part of a character as U+FFFD. Errors as `token_bytes`."""
        return self.token_bytes(token_id).decode(errors="replace")

    def piece(self, token_id: SupportsIndex) -> Piece:
        """Return the vocabulary's entry behind an id. Errors as `token_bytes`."""
        token_id = as_id(token_id, where="token_id")
        piece = self.vocabulary.piece(token_id)
        if piece is None:
            raise UnknownTokenId(token_id)
        return piece

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits over all that decoding depends on: rules, clean-up, every piece. Made when first asked for."""
        digest = blake2b(digest_size=16)
        digest.update(repr((self.rules, self.cleans_up)).encode())
        for token_id in self.vocabulary.ids():
            piece = self.vocabulary.piece(token_id)
            digest.update(repr((token_id, piece)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is held longer than usual with the default options, and why."""
        return tuple(self._plain.notes)

    def automaton(self, options: DecodeOptions) -> Automaton:
        """Return the automaton for a choice of options, the same one each time."""
        automaton = self._automata.get(options)
        if automaton is None:
            decided = options
            if options.clean_up_tokenization_spaces is None:
                decided = replace(options, clean_up_tokenization_spaces=self.cleans_up)
            automaton = self._automata.get(decided)
            if automaton is None:
                automaton = Automaton(Pipeline(self.rules, self.vocabulary, decided), lambda: self.fingerprint)
                automaton = self._automata.setdefault(decided, automaton)
            self._automata[options] = automaton
        return automaton

    @property
    def _plain(self) -> Pipeline:
        return self.automaton(DecodeOptions()).pipeline
