"""`Decoder`: a vocabulary and the rules over it; what every tokenizer becomes, whatever file or library it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, Never, SupportsIndex

from ..errors import OptionError, UnknownTokenId
from ..ids import as_id
from .decoding.automaton import Automaton, IdleTexts, StreamMachine
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

# Maximum different options that are remembered, worked out, for requests and streams to come.
MAX_OPTIONS = 256
# Maximum values of an option that is a list for it to be remembered: long lists of stops would fill the memory.
MAX_VALUES = 16
# Maximum characters of a value for it to be remembered.
MAX_LENGTH = 256
# Maximum characters of stops in all options that are remembered.
MAX_STOP_TEXT = 1 << 22

_STREAM_OPTIONS = [field.name for field in fields(DecodeOptions)]
_PLAIN = DecodeOptions()
_PLAIN_KINDS = (str, int, bool, float, type(None))


class Decoder:
    """
    Ids to text, by a vocabulary and rules that never change. Safe to share between threads.

    Args:
        vocabulary: The piece of each id.
        rules: What the tokenizer's decoder says, flat and in order.
        cleans_up: What `clean_up_tokenization_spaces=None` means here.
    """

    def __init__(self, vocabulary: Vocabulary, rules: Sequence[Rule], *, cleans_up: bool = False) -> None:
        self.vocabulary = vocabulary
        self.rules = tuple(rules)
        self.cleans_up = cleans_up
        self._forget()

    def _forget(self) -> None:
        """Begin with nothing remembered."""
        self._blank: IdleTexts = []
        self._automata: dict[DecodeOptions, Automaton] = {}
        self._machines: dict[tuple[object, ...], tuple[tuple[object, ...], StreamMachine]] = {}
        self._compiled: dict[RequestOptions, CompiledRequest] = {}
        self._compiled_by_fields: dict[object, CompiledRequest] = {}
        self._stop_text = 0
        self._places = Places()
        self._token_bytes: dict[int, bytes] = {}

    def __getstate__(self) -> dict[str, Any]:
        # What is remembered is remembered again elsewhere.
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
            prompt_ids: The ids before the stream. Context only: none of their text comes out, but a character that they leave
                incomplete does, when the stream completes it. Only their end is read.
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
        choice = (skip_special_tokens, spaces_between_special_tokens, clean_up_tokenization_spaces, unknown_ids, byte_fallback)
        machine = self._remembered_machine(choice)
        if machine is None:
            machine = self.machine(DecodeOptions.of(dict(zip(_STREAM_OPTIONS, choice, strict=True))))
            self._machines[choice] = choice, machine
        return TextStream(machine.after_prompt(prompt_ids))

    def _remembered_machine(self, choice: tuple[object, ...]) -> StreamMachine | None:
        """Return the machine of options that were checked before. There are 108 different ones, so all may be remembered."""
        try:
            found = self._machines.get(choice)
        except TypeError:
            return None  # what has no hash is no option
        if found is None:
            return None
        known, machine = found
        # 1 is equal to True, but is no option: only the very same values have been checked.
        return machine if choice[0] is known[0] and choice[1] is known[1] and choice[2] is known[2] else None

    def decode(self, ids: Iterable[SupportsIndex], skip_special_tokens: bool = True, **options: Any) -> str:
        """Return the text of all ids: a stream, fed at once and finished. Arguments and errors as `stream`."""
        stream = self.stream(skip_special_tokens=skip_special_tokens, **options)
        return stream.extend(ids) + stream.finish()

    def warm(self) -> None:
        """
        Fill the table of what each id is by itself, so that no stream meets an id for the first time: what a server does before
        it listens. Takes less than loading the tokenizer did, and about 80 bytes an id.
        """
        machine = self.machine(_PLAIN)
        if isinstance(machine, Automaton):
            machine.warm()

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
            OptionError: An option or its value is not accepted, or two contradict each other.
            MissingExtra: `stop_regex` without the library ``regex``.
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
        """Return what all requests with these options share; the same object each time, while it is remembered."""
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
            self._stop_text += sum(map(len, (*options.stop, *options.stop_regex)))
            if len(self._compiled) >= MAX_OPTIONS or self._stop_text > MAX_STOP_TEXT:
                self._compiled.clear()
                self._stop_text = 0
            compiled = self._compiled.setdefault(options, made)
        return compiled

    def _compiled_of(self, fields: Mapping[str, Any]) -> CompiledRequest:
        """Return the same for options by name, which are checked once while they are remembered."""
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
        Go on from a `RequestDecoder.snapshot`.

        Raises:
            SnapshotError: It is of another tokenizer or version, or damaged.
            MissingExtra: It has a `stop_regex`, and the library ``regex`` is not here.
        """
        options, state = unpack_request(snapshot, self.fingerprint)
        return RequestDecoder.restored(self.compile(options), state)

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
        """Return the vocabulary's entry of an id. Errors as `token_bytes`."""
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
        return tuple(self._plain.pipeline.notes)

    # The three methods that a class without rules replaces: what moves streams, the bytes of an id, what decoding depends on.

    def machine(self, options: DecodeOptions) -> StreamMachine:
        """Return what moves streams for a choice of options: here the automaton of the rules."""
        return self.automaton(options)

    def _bytes_of(self, token_id: int, piece: Piece) -> bytes:
        """Return the exact bytes of an id that the vocabulary has."""
        return self._plain.pipeline.token_bytes(piece)

    def _facts(self) -> Iterable[object]:
        """Give all that decoding depends on, in a fixed order, as values whose `repr` tells them apart."""
        yield self.rules, self.cleans_up
        for token_id in self.vocabulary.ids():
            yield token_id, self.vocabulary.piece(token_id)

    def automaton(self, options: DecodeOptions) -> Automaton:
        """Return the automaton of a choice of options, the same one each time."""
        automaton = self._automata.get(options)
        if automaton is None:
            cleans_up = options.clean_up_tokenization_spaces
            decided = replace(options, clean_up_tokenization_spaces=self.cleans_up if cleans_up is None else cleans_up)
            automaton = self._automata.get(decided)
            if automaton is None:
                made = Automaton(Pipeline(self.rules, self.vocabulary, decided), lambda: self.fingerprint, self._blank)
                automaton = self._automata.setdefault(decided, made)
            self._automata[options] = automaton
        return automaton

    @property
    def _plain(self) -> Automaton:
        return self.automaton(_PLAIN)


_REMEMBERED = ("_blank", "_automata", "_machines", "_compiled", "_compiled_by_fields", "_stop_text", "_places", "_token_bytes")


def _key_of(fields: Mapping[str, Any]) -> tuple[object, ...] | None:
    """
    Return options as a key, with the types of their values: 1 is equal to True, but is no such option.

    None if one of them is neither a plain value nor a short list of plain values: what it says may change, or fill the memory.
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
