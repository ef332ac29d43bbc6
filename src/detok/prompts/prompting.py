"""`Prompting`: what every tokenizer does with prompts and chats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, SupportsIndex

from ..errors import EncodeUnsupported, OptionError
from .bos import DoubleBosMode, check_double_bos, one_bos
from .chats import Chat, ChatOptions, prepared
from .disguise import Controls
from .facts import PromptFacts, PromptSupport
from .pieces import encode_around, encode_disguised
from .token_strings import Place, Token, TokenString, places, token_strings
from .turns import parse_turn

if TYPE_CHECKING:
    from ..core.request.channels import ChannelDelta
    from ..core.request.formats import TurnFormat
    from ..core.vocabulary import Piece, Vocabulary
    from .templates import ChatTemplate

__all__ = ["PromptEncoder", "Prompting"]

MAX_TEMPLATES = 16
"""So many are remembered with what a user must not spell in them."""

PROBE = "a"
"""A text that every tokenizer knows, to see what encode puts around one."""


class Prompting:
    """
    The methods of a tokenizer that make ids of prompts. A base class of `Tokenizer`, which brings what is only named here.
    """

    vocabulary: Vocabulary
    prompts: PromptSupport

    if TYPE_CHECKING:

        @property
        def special_ids(self) -> frozenset[int]: ...
        @property
        def added_ids(self) -> frozenset[int]: ...
        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]: ...
        def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[list[int]]: ...
        def token_bytes(self, token_id: SupportsIndex) -> bytes: ...
        def piece(self, token_id: SupportsIndex) -> Piece: ...

    @cached_property
    def prompt_facts(self) -> PromptFacts:
        """What the tokenizer's files say of prompts; they are read when this is first asked for."""
        return self.prompts.facts()

    @property
    def bos_token_id(self) -> int | None:
        """The id that a prompt begins with, if the model has one."""
        known = self.prompt_facts.bos_token_id
        return self._encoder_bos if known is None else known

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """Every id that ends what the model writes, as far as the files say: eos_token, then those of generation_config.json."""
        return self.prompt_facts.eos_token_ids

    @property
    def chat_templates(self) -> Mapping[str, str]:
        """The tokenizer's chat templates by their names; the usual one is "default"."""
        return self.prompt_facts.chat_templates

    def encode_prompt(self, text: str, add_special_tokens: bool = True, *, double_bos: DoubleBosMode = "fix") -> list[int]:
        """
        Return the ids of a prompt that is no chat: as `encode`, with exactly one BOS.

        Where the library's encode knows no ``add_special_tokens`` (tiktoken), BOS is put in front here, if the model wants one.

        Args:
            text: The prompt.
            add_special_tokens: Whether the text stands at the beginning.
            double_bos: What becomes of two BOS, when the text begins with one of its own.

        Raises:
            OptionError: The text cannot be encoded, or there is no such mode.
            DoubleBos: There would be two, and the mode is "error".
            EncodeUnsupported: There is no encoder for this kind of tokenizer.
        """
        check_double_bos(double_bos)
        ids = self.encode(text, add_special_tokens=add_special_tokens)
        return self._with_one_bos(self._with_bos(ids, add_special_tokens), double_bos)

    def as_prompt(self, ids: list[int], add_special_tokens: bool = True, *, double_bos: DoubleBosMode = "fix") -> list[int]:
        """
        Return the ids of `encode` as those of `encode_prompt`, for whoever encodes in another way, a batch at once say.

        Args:
            ids: The whole prompt.
            add_special_tokens: What it was encoded with.
            double_bos: As `encode_prompt`.

        Raises:
            OptionError, DoubleBos: As `encode_prompt`.
        """
        check_double_bos(double_bos)
        return self._with_one_bos(self._with_bos(ids, add_special_tokens), double_bos)

    def parse_turn(
        self,
        ids: Sequence[int],
        format: str | TurnFormat = "auto",  # noqa: A002, it is what it is called
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
        return parse_turn(self, ids, format, prompt_ids=prompt_ids, tools=tools)  # type: ignore[arg-type]  # a mixin

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
        double_bos: DoubleBosMode = "fix",
        now: datetime | None = None,
        **variables: Any,
    ) -> list[int]:
        """
        Return the ids of a chat: the template writes every special token, the encoder adds none.

        Args:
            messages: Objects with role and content, a text or a list of parts, as in OpenAI's API.
            chat_template: The name of one of `chat_templates`, or a Jinja template. By default it is "tool_use" for chats with
                tools, where there is one, else "default"; the chats of Mistral's own files go through mistral_common.
            tools, documents: As the template gets them: objects.
            add_generation_prompt: Whether the text ends where the assistant begins to write; by default it does, unless
                ``continue_final_message``.
            continue_final_message: Whether it ends where the last message does, which is the assistant's; or the field of that
                message that is to be continued, such as "reasoning_content".
            safe: Whether a special token that is spelled in a message, a tool or a document stays text. What the template writes
                is special all the same.
            double_bos: What becomes of two BOS, when a template writes one and a message another.
            now: The time that ``strftime_now`` tells.
            variables: What else the template names, such as ``enable_thinking``.

        Raises:
            MessageError: A message, tool or document is not possible, and where.
            ChatTemplateError: The template cannot be read, refuses the chat, fails or does too much, and in which line.
            OptionError: There is no such template or mode.
            DoubleBos: There would be two BOS, and the mode is "error".
            MissingExtra: Jinja2 or mistral_common is not installed.
            EncodeUnsupported: There is no encoder, or none for ``safe``.
        """
        check_double_bos(double_bos)
        options = ChatOptions(
            chat_template=chat_template,
            tools=tools,
            documents=documents,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            safe=safe,
            now=now,
            variables=variables,
        )
        return self._with_one_bos(self._chat_ids(self._chat(messages, options)), double_bos)

    def render_chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> str:
        """
        Return the text of a chat. Arguments and errors as `encode_chat`.

        Of Mistral's own files, whose chats are never text, it is what their ids show.
        """
        options.pop("double_bos", None)
        chat = self._chat(messages, ChatOptions.of(options))
        if chat.ids is not None:
            return b"".join(map(self.token_bytes, chat.ids)).decode(errors="replace")
        return chat.shown

    def encode_chat_with_mask(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> tuple[list[int], list[int]]:
        """
        Return the ids of a chat and, for each, 1 if the assistant wrote it and 0 if not: what a training counts.

        A token with one character of the assistant's counts as its own. Arguments and errors as `encode_chat`.

        Raises:
            OptionError: The template does not say what the assistant writes: it has no ``{% generation %}`` block; or where the
                tokens stand in the text is not known.
        """
        double_bos: DoubleBosMode = options.pop("double_bos", "fix")
        check_double_bos(double_bos)
        chat = self._chat(messages, ChatOptions.of(options, marks_generation=True))
        ids = self._chat_ids(chat)
        mask = chat.mask(self._places(chat.shown, [self._token(token_id) for token_id in ids], 0, 0))
        once = self._with_one_bos(ids, double_bos)
        return once, mask[len(mask) - len(once) :]

    def tokenize(self, text: str, add_special_tokens: bool = True) -> list[TokenString]:
        """
        Return the tokens of a prompt with their texts, bytes and places. Arguments and errors as `encode_prompt`.

        >>> import detok
        >>> [(token.text, token.start, token.end) for token in detok.load(detok.EMBEDDED).tokenize("Hi 🦜")]
        [('H', 0, 1), ('i', 1, 2), (' �', 2, 4), ('�', 3, 4)]
        """
        ids = self.encode_prompt(text, add_special_tokens)
        plain = self.encode(text, add_special_tokens=False)
        more = len(ids) - len(plain)
        before = next((size for size in range(more + 1) if ids[size : size + len(plain)] == plain), 0) if more > 0 else 0
        tokens = [self._token(token_id) for token_id in ids]
        return token_strings(tokens, self._places(text, tokens, before, max(more - before, 0)))

    def _first_double_bos(self) -> bool:
        """Whether two BOS are met for the first time; later calls say no."""
        is_first = not self.__dict__.get("_met_double_bos", False)
        self.__dict__["_met_double_bos"] = True
        return is_first

    @cached_property
    def added_texts(self) -> Mapping[str, int]:
        """The texts of the added vocabulary with their ids."""
        return {self.piece(token_id).text: token_id for token_id in self.added_ids}

    @cached_property
    def _special_texts(self) -> Mapping[str, int]:
        return {text: token_id for text, token_id in self.added_texts.items() if token_id in self.special_ids}

    @cached_property
    def _encoder_bos(self) -> int | None:
        """What encode puts in front of a text, if it is one id."""
        try:
            bare = self.encode(PROBE, add_special_tokens=False)
            full = self.encode(PROBE, add_special_tokens=True)
        except (EncodeUnsupported, OptionError):  # what encodes nothing adds nothing
            return None
        is_added = len(full) > len(bare) and full[1 : 1 + len(bare)] == bare
        return full[0] if is_added else None

    def _with_bos(self, ids: list[int], add_special_tokens: bool) -> list[int]:
        bos = self.prompt_facts.bos_token_id
        wants = add_special_tokens and bos is not None and self.prompt_facts.add_bos_token and self._encoder_bos is None
        return [bos, *ids] if wants else ids  # type: ignore[list-item]  # it is no None then

    def _with_one_bos(self, ids: list[int], mode: DoubleBosMode) -> list[int]:
        if len(ids) < 2 or ids[0] != ids[1]:
            return ids
        known = {self.bos_token_id, self._encoder_bos} - {None}
        return one_bos(ids, known, mode, text_of=lambda bos: self.piece(bos).text, is_first=self._first_double_bos)  # type: ignore[arg-type]

    def _chat(self, messages: Sequence[Mapping[str, Any]], options: ChatOptions) -> Chat:
        return prepared(
            messages,
            options,
            facts=self.prompt_facts,
            encoder=self.prompts.chat,
            controls=self._controls,
        )

    def _controls(self, template: ChatTemplate) -> Controls:
        found = self._controls_by_template.get(template.source)
        if found is None:
            if len(self._controls_by_template) >= MAX_TEMPLATES:
                self._controls_by_template.clear()
            found = Controls(self.added_texts, self.special_ids, template.texts, ignores_case=template.changes_case)
            self._controls_by_template[template.source] = found
        return found

    @cached_property
    def _controls_by_template(self) -> dict[str, Controls]:
        return {}

    def _chat_ids(self, chat: Chat) -> list[int]:
        if chat.ids is not None:
            return chat.ids
        if chat.disguise is None:
            return self.encode_rendered(chat.text)
        return encode_disguised(self.encode_rendered, self.prompts.plain, chat.text, chat.disguise, self.added_texts)

    def encode_rendered(self, text: str) -> list[int]:
        """Return the ids of a text in which special tokens are read, and to which none are added: of a chat as it is rendered."""
        if self.prompts.reads_special_tokens:
            return self.encode(text, add_special_tokens=False)
        return encode_around(lambda part: self.encode(part, add_special_tokens=False), text, self._special_texts)

    def _token(self, token_id: int) -> Token:
        special = token_id in self.special_ids
        # A special token is what it is spelled as: some decoders put a space in front of it.
        return Token(token_id, self.piece(token_id).text.encode() if special else self.token_bytes(token_id), special)

    def _places(self, text: str, tokens: Sequence[Token], before: int, behind: int) -> Sequence[Place]:
        found = places(text, tokens, before=before, behind=behind)
        if found is None and self.prompts.offsets is not None:
            inner = self.prompts.offsets(text)
            if len(inner) == len(tokens) - before - behind:
                return [(0, 0)] * before + inner + [(len(text), len(text))] * behind
        return found or [(None, None)] * len(tokens)


class PromptEncoder:
    """
    A tokenizer whose `encode` is that of a prompt, with exactly one BOS, also of many at once.

    Args:
        tokenizer: It.
    """

    def __init__(self, tokenizer: Prompting) -> None:
        self._tokenizer = tokenizer

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Return the ids of a prompt, as `Prompting.encode_prompt` does."""
        return self._tokenizer.encode_prompt(text, add_special_tokens)

    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[list[int]]:
        """Return the ids of several prompts. Errors as `encode`, if any of them is bad."""
        encoded = self._tokenizer.encode_batch(texts, add_special_tokens=add_special_tokens)
        return [self._tokenizer.as_prompt(ids, add_special_tokens) for ids in encoded]
