"""`Decoder`: a vocabulary and its rules. Every tokenizer becomes one, from whatever file or library it was loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, Never, SupportsIndex

from ..errors import OptionError, UnknownTokenId
from ..ids import as_id
from .decoding.automaton import Automaton, IdleTexts, StreamMachine, blank_texts
from .decoding.pipeline import Pipeline
from .decoding.rules import Rule
from .options import ByteFallbackMode, DecodeOptions, UnknownIds
from .request.compiled import CompiledRequest
from .request.options import RequestOptions
from .request.places import Places
from .request.request import RequestDecoder
from .request.snapshot import unpack_request
from .snapshot import unpack
from .stream import TextStream
from .vocabulary import Piece, Vocabulary

# Maximum different request options whose compiled form is remembered; a client may send options that are new each time.
MAX_OPTIONS = 256
# Maximum values of a list option in a remembered choice of keywords: long lists of stops would fill the memory.
MAX_VALUES = 16
# Maximum characters of a value in a remembered choice of keywords.
MAX_LENGTH = 256
# Maximum characters of the stops in all remembered options together: about 4 MB in ASCII.
MAX_STOP_TEXT = 1 << 22

_STREAM_OPTIONS = [field.name for field in fields(DecodeOptions)]
_PLAIN = DecodeOptions()
_PLAIN_KINDS = (str, int, bool, float, type(None))


class Decoder:
    """
    Token ids to text, by a vocabulary and rules that never change. Any number of threads may share one.

    `decode` and `stream` give text, `request` adds stops, limits and outputs, `token_bytes` gives the bytes of one id.

    Args:
        vocabulary: The piece of each id.
        rules: The tokenizer's decoder, as rules in order; a sequence of decoders is flattened.
        cleans_up: The value that ``clean_up_tokenization_spaces=None`` has for this tokenizer.
    """

    def __init__(self, vocabulary: Vocabulary, rules: Sequence[Rule], *, cleans_up: bool = False) -> None:
        self.vocabulary = vocabulary
        self.rules = tuple(rules)
        self.cleans_up = cleans_up
        self._forget()

    def _forget(self) -> None:
        """Start with empty memories."""
        # The lists are made here, so that no stream waits for them: 0.3 ms for 200,000 ids.
        self._blank: IdleTexts = blank_texts(self.vocabulary)
        self._plain_texts: IdleTexts = blank_texts(self.vocabulary)
        self._automata: dict[DecodeOptions, Automaton] = {}
        self._compiled: dict[RequestOptions, CompiledRequest] = {}
        self._compiled_by_fields: dict[object, CompiledRequest] = {}
        self._stop_text = 0
        self._places = Places()
        self._token_bytes: dict[int, bytes] = {}

    def __getstate__(self) -> dict[str, Any]:
        # The memories are left out: another process fills its own.
        state = dict(self.__dict__)
        for name in _REMEMBERED:
            state.pop(name, None)
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

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
            prompt_ids: The ids before the stream, as context. None of their text comes out. A character that begins in them and
                that the stream completes does. Only their end is read, unless a rule may look at the whole text (`notes`).
            skip_special_tokens, spaces_between_special_tokens, clean_up_tokenization_spaces, unknown_ids, byte_fallback:
                See `DecodeOptions`.
            unknown: Other keywords; they are refused with an error that suggests the right name.

        Raises:
            OptionError: A value is not accepted, or there is no such option. (`strategy` is an argument of
                `detok.inspection.strategies.open_stream`.)
            TokenTypeError: An id of the prompt that is read is not an integer.
            UnknownTokenId: An id of the prompt that is read has no piece (with ``unknown_ids="error"``).
        """
        if unknown:
            DecodeOptions.check_names(unknown)
        is_usual = skip_special_tokens is True and spaces_between_special_tokens is clean_up_tokenization_spaces is None
        if is_usual and unknown_ids == "skip" and byte_fallback == "exact":
            machine = self._usual
        else:
            choice = (
                skip_special_tokens,
                spaces_between_special_tokens,
                clean_up_tokenization_spaces,
                unknown_ids,
                byte_fallback,
            )
            machine = self.machine(DecodeOptions.of(dict(zip(_STREAM_OPTIONS, choice, strict=True))))
        return TextStream(machine.after_prompt(prompt_ids))

    @cached_property
    def _usual(self) -> StreamMachine:
        """The machine of the default options, which is not looked for each time that a stream is opened."""
        return self.machine(_PLAIN)

    def decode(self, ids: Iterable[SupportsIndex], skip_special_tokens: bool = True, **options: Any) -> str:
        """Return the text of all ids: that of a stream which takes them all and finishes. Arguments and errors as `stream`."""
        stream = self.stream(skip_special_tokens=skip_special_tokens, **options)
        return stream.extend(ids) + stream.finish()

    def warm(self) -> None:
        """
        Fill the table of the text of each id, so that no stream waits for the first occurrence of an id (about 2 µs each).

        A server calls this before it listens. It takes less time than loading the tokenizer did, and about 80 bytes an id.
        """
        machine = self.machine(_PLAIN)
        if isinstance(machine, Automaton):
            machine.warm()

    def restore(self, snapshot: object) -> TextStream:
        """
        Return a stream that continues from a `TextStream.snapshot`.

        Args:
            snapshot: The dict, perhaps after JSON or msgpack.

        Raises:
            SnapshotError: The snapshot is of another tokenizer (by `fingerprint`) or version, or it is damaged.
        """
        options, state = unpack(snapshot, of="stream", options=DecodeOptions, fingerprint=self.fingerprint)
        machine = self.machine(options)
        return TextStream(machine.finished if state is None else machine.node(state))

    def request(
        self, prompt_ids: Iterable[SupportsIndex] = (), *, options: RequestOptions | None = None, **fields: Any
    ) -> RequestDecoder:
        """
        Open a request: a stream with stops, limits and outputs.

        Args:
            prompt_ids: As `stream` takes them.
            options: The options. Equal options are compiled once for many requests.
            fields: The same by name, in place of ``options``: `stop`, `stop_token_ids`, `min_tokens`, `output` and so on; see
                `RequestOptions`.

        Raises:
            OptionError: A name or value is not accepted, two values contradict each other, or both ways are used.
            MissingExtra: `stop_regex` is given, and the library ``regex`` is not installed.
            TokenTypeError, UnknownTokenId: As `stream`.
        """
        if options is None:
            compiled = self._compiled_of(fields)
        elif fields:
            option, value = next(iter(fields.items()))
            raise OptionError(option=option, value=value, accepted="give options, or each by name, not both")
        elif not isinstance(options, RequestOptions):
            raise OptionError(option="options", value=options, accepted="they are detok.RequestOptions")
        else:
            compiled = self.compile(options)
        return RequestDecoder(compiled, compiled.machine.after_prompt(prompt_ids))

    def compile(self, options: RequestOptions) -> CompiledRequest:
        """Return the compiled form of options, which all requests with equal options share."""
        compiled = self._compiled.get(options)
        if compiled is None:
            made = CompiledRequest(
                options,
                vocabulary=self.vocabulary,
                machine=self.machine,
                token_bytes=self.token_bytes,
                eos_token_ids=self.eos_token_ids,
                fingerprint=lambda: self.fingerprint,
                places=self._places,
            )
            self._stop_text += sum(map(len, (*(options.stop or ()), *(options.stop_regex or ()))))
            if len(self._compiled) >= MAX_OPTIONS or self._stop_text > MAX_STOP_TEXT:
                self._compiled.clear()
                self._stop_text = 0
            compiled = self._compiled.setdefault(options, made)
        return compiled

    def _compiled_of(self, fields: Mapping[str, Any]) -> CompiledRequest:
        """Return the compiled form of options by name. While it is remembered, they are not checked again."""
        key = _key_of(fields)
        compiled = None if key is None else self._compiled_by_fields.get(key)
        if compiled is None:
            compiled = self.compile(RequestOptions.of(fields))
            if key is not None:
                if len(self._compiled_by_fields) >= MAX_OPTIONS:
                    self._compiled_by_fields.clear()
                self._compiled_by_fields[key] = compiled
        return compiled

    def restore_request(self, snapshot: object) -> RequestDecoder:
        """
        Return a request that continues from a `RequestDecoder.snapshot`.

        Args:
            snapshot: The dict, perhaps after JSON or msgpack.

        Raises:
            SnapshotError: The snapshot is of another tokenizer (by `fingerprint`) or version, or it is damaged.
            MissingExtra: It has a `stop_regex`, and the library ``regex`` is not installed.
        """
        options, state = unpack_request(snapshot, self.fingerprint)
        return RequestDecoder.restored(self.compile(options), state)

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """The ids that end an answer; a `Tokenizer` reads them from its files, a bare decoder knows none."""
        return ()

    def token_bytes(self, token_id: SupportsIndex) -> bytes:
        """
        Return the exact bytes of one id, special or not, in the middle of a text. Its neighbours do not count (law 10).

        Raises:
            UnknownTokenId: The vocabulary has no such id.
            TokenTypeError: ``token_id`` is not an integer.
        """
        token_id = as_id(token_id)
        data = self._token_bytes.get(token_id)
        if data is None:
            data = self._token_bytes[token_id] = self._bytes_of(token_id, self.piece(token_id))
        return data

    def token_text(self, token_id: SupportsIndex) -> str:
        """Return the bytes of one id as text; a part of a character becomes U+FFFD. Errors as `token_bytes`."""
        return self.token_bytes(token_id).decode(errors="replace")

    def piece(self, token_id: SupportsIndex) -> Piece:
        """Return the vocabulary's entry for an id. Errors as `token_bytes`."""
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
        """For people: the text that is held longer than law 3 allows with the default options, and why."""
        return tuple(self._plain.rules.notes)

    # A tokenizer without rules (`tokenizers.opaque`) replaces these three methods.

    def machine(self, options: DecodeOptions) -> StreamMachine:
        """Return the machine that moves streams with these options: here the automaton of the rules."""
        return self.automaton(options)

    def _bytes_of(self, token_id: int, piece: Piece) -> bytes:
        """Return the exact bytes of an id that the vocabulary has."""
        return self._plain.rules.token_bytes(piece)

    def _facts(self) -> Iterable[object]:
        """Yield all facts that decoding depends on, in a fixed order, as values whose `repr` tells them apart."""
        yield self.rules, self.cleans_up
        for token_id in self.vocabulary.ids():
            yield token_id, self.vocabulary.piece(token_id)

    def automaton(self, options: DecodeOptions) -> Automaton:
        """Return the automaton for a choice of options, the same one each time."""
        automaton = self._automata.get(options)
        if automaton is None:
            cleans_up = options.clean_up_tokenization_spaces
            decided = replace(options, clean_up_tokenization_spaces=self.cleans_up if cleans_up is None else cleans_up)
            automaton = self._automata.get(decided)
            if automaton is None:
                texts = self._plain_texts if options == _PLAIN else blank_texts(self.vocabulary)
                pipeline = Pipeline(self.rules, self.vocabulary, decided)
                made = Automaton(pipeline, lambda: self.fingerprint, self._blank, texts)
                automaton = self._automata.setdefault(decided, made)
            self._automata[options] = automaton
        return automaton

    @property
    def _plain(self) -> Automaton:
        return self.automaton(_PLAIN)


# Attributes that do not go to another process with a decoder.
_REMEMBERED = (
    "_automata",
    "_blank",
    "_compiled",
    "_compiled_by_fields",
    "_places",
    "_plain_texts",
    "_stop_text",
    "_token_bytes",
    "_usual",
)


def _key_of(fields: Mapping[str, Any]) -> tuple[object, ...] | None:
    """
    Return options as a key that includes the types of the values, since 1 equals True but is not a valid option.

    None if a value is neither plain nor a short list of strings: it may be mutable, or fill the memory.
    """
    key: list[object] = []
    for name, value in fields.items():
        kind = type(value)
        if kind is list or kind is tuple:
            if len(value) > MAX_VALUES or not all(type(one) is str and len(one) <= MAX_LENGTH for one in value):
                return None
            value = tuple(value)
        elif kind not in _PLAIN_KINDS or (kind is str and len(value) > MAX_LENGTH):
            return None
        key += (name, kind, value)
    return tuple(key)
