"""`Tokenizer`: what `detok.load` returns, the same for every source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, SupportsIndex, get_args, runtime_checkable

from ..core.decoder import Decoder, DecodeStreamSteps
from ..core.decoding.rules import RawBytes, Replace, Rule
from ..core.options import check_choice
from ..core.vocabulary import Vocabulary
from ..errors import OptionError
from ..prompts.bos import check_double_bos
from ..prompts.drift import roundtrips
from ..prompts.facts import PromptSupport
from ..prompts.prompting import PromptEncoder, Prompting
from .encoders import EncoderInfo, FastestEncoder

if TYPE_CHECKING:
    from ..prompts.microbatch import AsyncEncoder
    from ..prompts.transcript import Transcript
    from ..prompts.turns import Render

__all__ = ["Encoder", "EncodingLibrary", "Library", "Mode", "Tokenizer", "check_mode"]

Mode = Literal["auto", "fast", "slow"]
"""Which implementation of a Hugging Face tokenizer: the one there is, that of ``tokenizers``, or Python code."""


class Encoder(Protocol):
    """Text to ids, by the tokenizer's own library."""

    def __call__(self, text: str, *, add_special_tokens: bool) -> list[int]: ...


class Library(Protocol):
    """The tokenizer's own one-shot decode: the judge of `detok check`."""

    name: str

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Decode; ids at which the library would raise are left out, since a stream skips them."""
        ...

    def tokens(self) -> Mapping[str, int]:
        """Every token with its id, as the library lists them: here two tokens may be seen to share one."""
        ...


@runtime_checkable
class EncodingLibrary(Library, Protocol):
    """A library whose encode is not always what encodes here: the judge of `detok check --encode`."""

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]: ...


class Tokenizer(Prompting, Decoder):
    """
    Ids to text and text to ids. Immutable; one serves any number of streams and threads.

    `decode`, `stream`, `restore`, `token_bytes`, `token_text` and `fingerprint` are those of `Decoder`; `encode_prompt`,
    `encode_chat`, `tokenize` and what else is for prompts, those of `Prompting`.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        rules: Sequence[Rule],
        *,
        encoder: Encoder,
        library: Library,
        cleans_up: bool = False,
        source: str = "",
        decode_stream: DecodeStreamSteps | None = None,
        remarks: Sequence[str] = (),
        prompts: PromptSupport | None = None,
    ) -> None:
        super().__init__(vocabulary, rules, cleans_up=cleans_up, decode_stream=decode_stream)
        self.library = library
        self.source = source
        self.remarks = tuple(remarks)
        """What else there is to know about it; part of `description`."""

        self.prompts = prompts or PromptSupport()
        """What the format knows of prompts."""

        self._encoder = encoder

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """
        Return the ids of a text, by the tokenizer's own library, with the special tokens that its template adds.

        Raises:
            OptionError: The text cannot be encoded: it has a lone surrogate, or is no str.
            EncodeUnsupported: There is no encoder for this kind of tokenizer.
        """
        return self._encoder(text, add_special_tokens=add_special_tokens)

    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[list[int]]:
        """Return the ids of several texts; on all cores, where the encoder can. Errors as `encode`, if any of them is bad."""
        if isinstance(self._encoder, FastestEncoder):
            return self._encoder.batch(texts, add_special_tokens=add_special_tokens)
        return [self._encoder(text, add_special_tokens=add_special_tokens) for text in texts]

    @property
    def encoder(self) -> EncoderInfo:
        """
        Which encoder there is, and why none that is faster.

        A tokenizer.json has the choice between libraries, which is made when this is first asked for, or after the first 65,536
        characters. That takes up to a few seconds where fastokens is installed; a server does well to ask before it serves.
        """
        if isinstance(self._encoder, FastestEncoder):
            return self._encoder.info
        return EncoderInfo(name=self.library.name)

    def async_encoder(self, **options: Any) -> AsyncEncoder:
        """
        Return an encoder for an event loop, with the options of `AsyncEncoder`. Makes the choice of `encoder` first.

        It encodes prompts, as `encode_prompt` does: with exactly one BOS.
        """
        from ..prompts.microbatch import AsyncEncoder

        return AsyncEncoder(PromptEncoder(self), **{"inline_bytes": self.encoder.inline_bytes, **options})

    def transcript(self, *, render: Render | None = None, **options: Any) -> Transcript:
        """
        Return an empty conversation that keeps ids as the truth.

        Args:
            render: The chat template of its messages; by default the tokenizer's own.
            options: For that: `chat_template`, `tools` and what else `encode_chat` takes, but not ``safe``: messages are
                encoded as they are rendered.
        """
        from ..prompts.transcript import Transcript

        as_prompt = partial(self.as_prompt, double_bos=options.get("double_bos", "fix"))
        check_double_bos(as_prompt.keywords["double_bos"])
        if "safe" in options:
            raise OptionError(option="safe", value=options["safe"], accepted="a transcript encodes messages as they are rendered")
        return Transcript(
            self, render=render or partial(self.render_chat, **options), encode=self.encode_rendered, as_prompt=as_prompt
        )

    def roundtrips(self, ids: Iterable[SupportsIndex]) -> bool:
        """
        Whether the text of some ids, encoded again, is these ids.

        Raises:
            TokenTypeError: They are no ids.
        """
        return roundtrips(self, ids, encode=self.encode_rendered)

    @cached_property
    def ids(self) -> Sequence[int]:
        """All ids that have a piece, ascending."""
        return tuple(self.vocabulary.ids())

    @cached_property
    def vocab_size(self) -> int:
        """One more than the highest id, so that every id is below it; more than the number of ids if the range has holes."""
        return self.ids[-1] + 1 if self.ids else 0

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The ids that `skip_special_tokens` leaves out."""
        return frozenset(self._added("special"))

    @cached_property
    def added_ids(self) -> frozenset[int]:
        """The ids of the added vocabulary, special or not."""
        return frozenset(self._added("added"))

    def _added(self, kind: str) -> Iterable[int]:
        for token_id in self.vocabulary.added_ids():
            piece = self.vocabulary.piece(token_id)
            if piece is not None and getattr(piece, kind):
                yield token_id

    @property
    def description(self) -> str:
        """One line: the rules that were compiled, the number of ids, what is held longer than usual; and, once it is known, which
        faster encoder was refused, and why."""
        rules = ", ".join(map(_describe, self.rules)) or "plain concatenation"
        if self.cleans_up:
            rules += ", clean-up of spaces"
        parts = [rules, f"{len(self.ids):,} ids, {len(self.added_ids):,} added", *self.notes, *self.remarks]
        chosen = self._encoder.maybe_info if isinstance(self._encoder, FastestEncoder) else None
        if chosen is not None and chosen.refused:
            parts.append(f"encoded by {chosen.name}, since {chosen.reason}")
        return "; ".join(parts)

    def __repr__(self) -> str:
        return f"<detok.Tokenizer {self.source}: {self.description}>"


def _describe(rule: Rule) -> str:
    if isinstance(rule, RawBytes):
        return "RawBytes, split by specials" if rule.specials_split else "RawBytes"
    if isinstance(rule, Replace):
        pattern = f"/{rule.pattern}/" if rule.is_regex else repr(rule.pattern)
        return f"Replace {pattern} by {rule.content!r}"
    return type(rule).__name__


def check_mode(mode: str) -> None:
    """
    Refuse a mode that there is not.

    Raises:
        OptionError: Naming those that there are.
    """
    check_choice("mode", mode, get_args(Mode))
