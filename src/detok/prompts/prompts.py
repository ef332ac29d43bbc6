"""`Prompts`: what every tokenizer does with prompts and chats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, SupportsIndex

from ..core.vocabulary import Piece
from ..errors import EncodeUnsupported, OptionError
from .bos import DoubleBosMode, check_double_bos, one_bos
from .chats import Chat, ChatOptions, prepared
from .disguise import Controls
from .facts import PromptFacts, PromptSupport
from .pieces import encode_around, encode_disguised
from .templates import ChatTemplate
from .token_strings import Place, Token, TokenString, places, token_strings

__all__ = ["PromptMemory", "Prompts", "TextCodec"]

MAX_TEMPLATES = 16
"""Maximum templates that are remembered with what a user must not spell in them."""

PROBE = "a"
"""A text that every tokenizer knows, to see what encode puts around one."""


class TextCodec(Protocol):
    """What prompts need of a tokenizer: text to ids, what single ids are, and what its files say of prompts."""

    @property
    def special_ids(self) -> frozenset[int]: ...
    @property
    def added_texts(self) -> Mapping[str, int]: ...
    @property
    def prompt_facts(self) -> PromptFacts: ...

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]: ...
    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[list[int]]: ...
    def token_bytes(self, token_id: SupportsIndex) -> bytes: ...
    def piece(self, token_id: SupportsIndex) -> Piece: ...


@dataclass(slots=True)
class PromptMemory:
    """What a tokenizer keeps for its `Prompts`: what its format knows of prompts, and what was found out since."""

    support: PromptSupport
    met_double_bos: bool = False
    """Whether a prompt had two BOS; the warning of the mode "fix" comes once."""

    encoder_bos: tuple[int | None] | None = None
    """What encode puts in front of a text, if it is one id; None until it was tried."""

    special_texts: Mapping[str, int] | None = None
    """The texts of special tokens with their ids; None until they were asked for."""

    controls: dict[str, Controls] = field(default_factory=dict)
    """What a user must not spell, by the source of the template."""


class Prompts:
    """
    Prompts and chats to ids, for one tokenizer.

    It holds the tokenizer, and the tokenizer holds no more than the memory: so a tokenizer that nobody uses is freed at once.

    Args:
        codec: The tokenizer, or whatever encodes and knows the ids.
        memory: What the tokenizer keeps for this.
    """

    def __init__(self, codec: TextCodec, memory: PromptMemory) -> None:
        self.support = memory.support
        self.memory = memory
        self._codec = codec

    @property
    def facts(self) -> PromptFacts:
        """What the tokenizer's files say of prompts; they are read when this is first asked for."""
        return self._codec.prompt_facts

    @property
    def bos_token_id(self) -> int | None:
        """The id that a prompt begins with, if the model has one."""
        known = self.facts.bos_token_id
        return self._encoder_bos if known is None else known

    def encode(self, text: str, add_special_tokens: bool = True, *, double_bos: DoubleBosMode = "fix") -> list[int]:
        """
        Return the ids of a prompt that is no chat: as the tokenizer's `encode`, with exactly one BOS.

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
        ids = self._codec.encode(text, add_special_tokens=add_special_tokens)
        return self._with_one_bos(self._with_bos(ids, add_special_tokens), double_bos)

    def of_ids(self, ids: list[int], add_special_tokens: bool = True, *, double_bos: DoubleBosMode = "fix") -> list[int]:
        """
        Return the ids of the tokenizer's `encode` as those of a prompt, for whoever encodes in another way, a batch at once say.

        Args:
            ids: The whole prompt.
            add_special_tokens: What it was encoded with.
            double_bos: As `encode`.

        Raises:
            OptionError, DoubleBos: As `encode`.
        """
        check_double_bos(double_bos)
        return self._with_one_bos(self._with_bos(ids, add_special_tokens), double_bos)

    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[list[int]]:
        """Return the ids of several prompts. Errors as `encode`, if any of them is bad."""
        encoded = self._codec.encode_batch(texts, add_special_tokens=add_special_tokens)
        return [self.of_ids(ids, add_special_tokens) for ids in encoded]

    def encode_rendered(self, text: str) -> list[int]:
        """Return the ids of a text in which special tokens are read, and to which none are added: of a chat as it is rendered."""
        if self.support.reads_special_tokens:
            return self._bare(text)
        return encode_around(self._bare, text, self._special_texts)

    def encode_chat(
        self, messages: Sequence[Mapping[str, Any]], options: ChatOptions, *, double_bos: DoubleBosMode = "fix"
    ) -> list[int]:
        """
        Return the ids of a chat: the template writes every special token, the encoder adds none.

        Args:
            messages: Objects with role and content, a text or a list of parts, as in OpenAI's API.
            options: How they are rendered.
            double_bos: What becomes of two BOS, when a template writes one and a message another.

        Raises:
            MessageError: A message, tool or document is not possible, and where.
            ChatTemplateError: The template cannot be read, refuses the chat, fails or does too much, and in which line.
            OptionError: There is no such template or mode.
            DoubleBos: There would be two BOS, and the mode is "error".
            MissingExtra: Jinja2 or mistral_common is not installed.
            EncodeUnsupported: There is no encoder, or none for ``safe``.
        """
        check_double_bos(double_bos)
        return self._with_one_bos(self._chat_ids(self._chat(messages, options)), double_bos)

    def encode_chat_with_mask(
        self, messages: Sequence[Mapping[str, Any]], options: ChatOptions, *, double_bos: DoubleBosMode = "fix"
    ) -> tuple[list[int], list[int]]:
        """
        Return the ids of a chat and, for each, 1 if the assistant wrote it and 0 if not: what a training counts.

        A token with one character of the assistant's counts as its own. Arguments and errors as `encode_chat`; the options mark
        what is generated.

        Raises:
            OptionError: The template does not say what the assistant writes: it has no ``{% generation %}`` block; or where the
                tokens stand in the text is not known.
        """
        check_double_bos(double_bos)
        chat = self._chat(messages, options)
        ids = self._chat_ids(chat)
        mask = chat.mask(self._places(chat.shown, [self._token(token_id) for token_id in ids], 0, 0))
        once = self._with_one_bos(ids, double_bos)
        return once, mask[len(mask) - len(once) :]

    def render_chat(self, messages: Sequence[Mapping[str, Any]], options: ChatOptions) -> str:
        """
        Return the text of a chat. Arguments and errors as `encode_chat`.

        Of Mistral's own files, whose chats are never text, it is what their ids show.
        """
        chat = self._chat(messages, options)
        if chat.ids is not None:
            return b"".join(map(self._codec.token_bytes, chat.ids)).decode(errors="replace")
        return chat.shown

    def tokenize(self, text: str, add_special_tokens: bool = True) -> list[TokenString]:
        """Return the tokens of a prompt with their texts, bytes and places. Arguments and errors as `encode`."""
        ids = self.encode(text, add_special_tokens)
        plain = self._bare(text)
        more = len(ids) - len(plain)
        before = next((size for size in range(more + 1) if ids[size : size + len(plain)] == plain), 0) if more > 0 else 0
        tokens = [self._token(token_id) for token_id in ids]
        return token_strings(tokens, self._places(text, tokens, before, max(more - before, 0)))

    @property
    def _special_texts(self) -> Mapping[str, int]:
        found = self.memory.special_texts
        if found is None:
            special = self._codec.special_ids
            found = {text: token_id for text, token_id in self._codec.added_texts.items() if token_id in special}
            self.memory.special_texts = found
        return found

    def _bare(self, text: str) -> list[int]:
        """The ids of a text without special tokens around it."""
        return self._codec.encode(text, add_special_tokens=False)

    @property
    def _encoder_bos(self) -> int | None:
        """What encode puts in front of a text, if it is one id."""
        if self.memory.encoder_bos is None:
            self.memory.encoder_bos = (self._find_encoder_bos(),)
        return self.memory.encoder_bos[0]

    def _find_encoder_bos(self) -> int | None:
        try:
            bare = self._bare(PROBE)
            full = self._codec.encode(PROBE, add_special_tokens=True)
        except (EncodeUnsupported, OptionError):  # what encodes nothing adds nothing
            return None
        is_added = len(full) > len(bare) and full[1 : 1 + len(bare)] == bare
        return full[0] if is_added else None

    def _with_bos(self, ids: list[int], add_special_tokens: bool) -> list[int]:
        bos = self.facts.bos_token_id
        if add_special_tokens and bos is not None and self.facts.add_bos_token and self._encoder_bos is None:
            return [bos, *ids]
        return ids

    def _with_one_bos(self, ids: list[int], mode: DoubleBosMode) -> list[int]:
        if len(ids) < 2 or ids[0] != ids[1]:
            return ids
        known = {bos for bos in (self.bos_token_id, self._encoder_bos) if bos is not None}
        return one_bos(ids, known, mode, text_of=lambda bos: self._codec.piece(bos).text, is_first=self._first_double_bos)

    def _first_double_bos(self) -> bool:
        """Whether two BOS are met for the first time; later calls say no."""
        is_first, self.memory.met_double_bos = not self.memory.met_double_bos, True
        return is_first

    def _chat(self, messages: Sequence[Mapping[str, Any]], options: ChatOptions) -> Chat:
        return prepared(messages, options, facts=self.facts, encoder=self.support.chat, controls=self._controls_of)

    def _controls_of(self, template: ChatTemplate) -> Controls:
        """What a user must not spell in a template, remembered."""
        known = self.memory.controls
        found = known.get(template.source)
        if found is None:
            if len(known) >= MAX_TEMPLATES:
                known.clear()
            added, special = self._codec.added_texts, self._codec.special_ids
            found = Controls(added, special, template.texts, ignores_case=template.changes_case)
            known[template.source] = found
        return found

    def _chat_ids(self, chat: Chat) -> list[int]:
        if chat.ids is not None:
            return chat.ids
        if chat.disguise is None:
            return self.encode_rendered(chat.text)
        return encode_disguised(self.encode_rendered, self.support.plain, chat.text, chat.disguise, self._codec.added_texts)

    def _token(self, token_id: int) -> Token:
        special = token_id in self._codec.special_ids
        # A special token is what it is spelled as: some decoders put a space in front of it.
        data = self._codec.piece(token_id).text.encode() if special else self._codec.token_bytes(token_id)
        return Token(token_id, data, special)

    def _places(self, text: str, tokens: Sequence[Token], before: int, behind: int) -> Sequence[Place]:
        found = places(text, tokens, before=before, behind=behind)
        if found is None and self.support.offsets is not None:
            inner = self.support.offsets(text)
            if len(inner) == len(tokens) - before - behind:
                return [(0, 0)] * before + inner + [(len(text), len(text))] * behind
        return found or [(None, None)] * len(tokens)
