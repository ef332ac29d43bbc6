"""`Tokenizer`: what `detok.load` returns, the same for every source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, SupportsIndex, get_args, runtime_checkable

from ..core.decoder import Decoder
from ..core.decoding.rules import RawBytes, Replace, Rule
from ..core.options import check_choice
from ..core.vocabulary import Vocabulary
from ..errors import OptionError
from ..prompts.bos import DoubleBosMode, check_double_bos
from ..prompts.chats import ChatOptions
from ..prompts.drift import roundtrips
from ..prompts.facts import PromptFacts, PromptSupport
from ..prompts.prompts import PromptMemory, Prompts
from ..prompts.token_strings import TokenString
from .encoders import EncoderInfo, FastestEncoder
from .suspicions import suspicions_of

if TYPE_CHECKING:
    from ..prompts.microbatch import AsyncEncoder
    from ..prompts.transcript import Transcript
    from ..prompts.turns import Render
    from ..turns.channels import ChannelDelta
    from ..turns.formats import TurnFormat

__all__ = ["Encoder", "EncodingLibrary", "Library", "Mode", "Tokenizer", "TokenizersLibrary", "check_mode"]

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


@runtime_checkable
class TokenizersLibrary(Library, Protocol):
    """A library that is ``tokenizers``, or a wrap of it."""

    @property
    def backend(self) -> Any:
        """The ``tokenizers.Tokenizer``."""
        ...


class Tokenizer(Decoder):
    """
    Ids to text and text to ids. Immutable; one serves any number of streams and threads.

    `decode`, `stream`, `restore`, `token_bytes`, `token_text` and `fingerprint` are those of `Decoder`. `encode_prompt`,
    `encode_chat`, `tokenize` and what else is for prompts are those of `prompts`.

    Args:
        vocabulary, rules, cleans_up: As `Decoder` has them.
        encoder: Text to ids.
        library: The tokenizer's own library.
        source: Where it comes from, for people.
        remarks: What else there is to know about it; part of `description`.
        prompt_support: What the format knows of prompts.
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
        remarks: Sequence[str] = (),
        prompt_support: PromptSupport | None = None,
        built: str = "",
    ) -> None:
        super().__init__(vocabulary, rules, cleans_up=cleans_up)
        self.built = built
        """What built it, where that is not detok by its own rules: "transformers 5.24.0"; part of the fingerprint."""

        self.content = ""
        """A digest of the files that the vocabulary was read from, as `load` takes it; "" for objects."""

        self.library = library
        self.source = source
        self.remarks = tuple(remarks)
        self._encoder = encoder
        self._prompt_memory = PromptMemory(prompt_support or PromptSupport())

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

        return AsyncEncoder(self.prompts, **{"inline_bytes": self.encoder.inline_bytes, **options})

    @property
    def prompts(self) -> Prompts:
        """What makes ids of prompts and chats."""
        return Prompts(self, self._prompt_memory)

    @cached_property
    def prompt_facts(self) -> PromptFacts:
        """What the tokenizer's files say of prompts; they are read when this is first asked for."""
        return self._prompt_memory.support.facts()

    @property
    def bos_token_id(self) -> int | None:
        """The id that a prompt begins with, if the model has one."""
        return self.prompts.bos_token_id

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """Every id that ends what the model writes, as far as the files say: eos_token, then those of generation_config.json."""
        return self.prompt_facts.eos_token_ids

    @property
    def chat_templates(self) -> Mapping[str, str]:
        """The tokenizer's chat templates by their names; the usual one is "default"."""
        return self.prompt_facts.chat_templates

    @cached_property
    def added_texts(self) -> Mapping[str, int]:
        """The texts of the added vocabulary with their ids."""
        return {self.piece(token_id).text: token_id for token_id in self.added_ids}

    def encode_prompt(self, text: str, add_special_tokens: bool = True, *, double_bos: DoubleBosMode = "fix") -> list[int]:
        """Return the ids of a prompt that is no chat: as `encode`, with exactly one BOS. See `Prompts.encode`."""
        return self.prompts.encode(text, add_special_tokens, double_bos=double_bos)

    def as_prompt(self, ids: list[int], add_special_tokens: bool = True, *, double_bos: DoubleBosMode = "fix") -> list[int]:
        """Return the ids of `encode` as those of `encode_prompt`, for whoever encodes in another way. See `Prompts.of_ids`."""
        return self.prompts.of_ids(ids, add_special_tokens, double_bos=double_bos)

    def parse_turn(
        self,
        ids: Sequence[int],
        format: str | TurnFormat = "auto",
        *,
        prompt_ids: Sequence[int] = (),
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[ChannelDelta]:
        """
        Return the parts of a turn: content, reasoning and tool calls, each with its place in the text with special tokens.

        Args:
            ids: What the model wrote.
            format: The name of one of `TURN_FORMATS`, or a format; "auto" finds it by chat template and vocabulary.
            prompt_ids: What came before, if it may have opened the reasoning.
            tools: Of the request. None: any call is one, and a parameter without a type of its own is a string.

        Raises:
            OptionError: There is no such format, or "auto" finds none.
        """
        from ..prompts.turn_formats import parse_turn

        return parse_turn(self, ids, format, prompt_ids=prompt_ids, tools=tools)

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        chat_template: str | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool | None = None,
        continue_final_message: bool | str = False,
        safe: bool = False,
        complete: bool = False,
        double_bos: DoubleBosMode = "fix",
        now: datetime | None = None,
        **variables: Any,
    ) -> list[int]:
        """
        Return the ids of a chat: the template writes every special token, the encoder adds none.

        Args:
            messages: Objects with role and content, a text or a list of parts, as clients of OpenAI's API send them: contents of
                null, arguments as JSON, old calls and so on become what the template wants (docs/prompts.md).
            chat_template: The name of one of `chat_templates`, or a Jinja template. By default it is "tool_use" for chats with
                tools, where there is one, else "default"; the chats of Mistral's own files go through mistral_common.
            tools, documents: As the template gets them: objects.
            add_generation_prompt: Whether the text ends where the assistant begins to write; by default it does, unless
                ``continue_final_message``.
            continue_final_message: Whether it ends where the last message does, which is the assistant's; or the field of that
                message that is to be continued, such as "reasoning_content".
            safe: Whether a special token that is spelled in a message, a tool or a document stays text. What the template writes
                is special all the same.
            complete: Whether a role that the template does not show, or a part that is no text, is refused. By default the
                template has its way, as in transformers.
            double_bos: What becomes of two BOS, when a template writes one and a message another.
            now: The time that ``strftime_now`` tells.
            variables: What else the template names, such as ``enable_thinking``.

        Raises:
            MessageError, ChatTemplateError, OptionError, DoubleBos, MissingExtra, EncodeUnsupported: As `Prompts.encode_chat`.
        """
        options = ChatOptions(
            chat_template=chat_template,
            tools=tools,
            documents=documents,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            safe=safe,
            complete=complete,
            now=now,
            variables=variables,
        )
        return self.prompts.encode_chat(messages, options, double_bos=double_bos)

    def encode_chat_with_mask(
        self, messages: Sequence[Mapping[str, Any]], *, double_bos: DoubleBosMode = "fix", **options: Any
    ) -> tuple[list[int], list[int]]:
        """
        Return the ids of a chat and, for each, 1 if the assistant wrote it and 0 if not: what a training counts.

        Arguments as `encode_chat`. Errors as `Prompts.encode_chat_with_mask`.
        """
        return self.prompts.encode_chat_with_mask(messages, ChatOptions.of(options, marks_generation=True), double_bos=double_bos)

    def render_chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> str:
        """Return the text of a chat. Arguments as `encode_chat`; see `Prompts.render_chat`."""
        options.pop("double_bos", None)
        return self.prompts.render_chat(messages, ChatOptions.of(options))

    def encode_rendered(self, text: str) -> list[int]:
        """Return the ids of a text in which special tokens are read, and to which none are added: of a chat as it is rendered."""
        return self.prompts.encode_rendered(text)

    def tokenize(self, text: str, add_special_tokens: bool = True) -> list[TokenString]:
        """
        Return the tokens of a prompt with their texts, bytes and places. Arguments and errors as `encode_prompt`.

        >>> import detok
        >>> [(token.text, token.start, token.end) for token in detok.load(detok.EMBEDDED).tokenize("Hi 🦜")]
        [('H', 0, 1), ('i', 1, 2), (' �', 2, 4), ('�', 3, 4)]
        """
        return self.prompts.tokenize(text, add_special_tokens)

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

    @cached_property
    def suspicions(self) -> tuple[str, ...]:
        """What looks like a broken export; part of `description`, and lines of `detok check`."""
        return tuple(suspicions_of(self))

    def _facts(self) -> Iterable[object]:
        if self.built:
            yield self.built
        if not self.content:
            yield from super()._facts()
            return
        yield self.content, self.rules, self.cleans_up
        for token_id in self.vocabulary.added_ids():
            yield token_id, self.vocabulary.piece(token_id)

    @property
    def description(self) -> str:
        """One line: the rules that were compiled, the number of ids, what is held longer than usual; and, once it is known, which
        faster encoder was refused, and why."""
        parts = [self._way, f"{len(self.ids):,} ids, {len(self.added_ids):,} added", *self.notes, *self.remarks, *self.suspicions]
        chosen = self._encoder.maybe_info if isinstance(self._encoder, FastestEncoder) else None
        if chosen is not None and chosen.refused:
            parts.append(f"encoded by {chosen.name}, since {chosen.reason}")
        return "; ".join(parts)

    @property
    def _way(self) -> str:
        """How ids become text, for `description`."""
        rules = ", ".join(map(_describe, self.rules)) or "plain concatenation"
        return f"{rules}, clean-up of spaces" if self.cleans_up else rules

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
