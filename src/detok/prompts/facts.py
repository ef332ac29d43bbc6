"""What the prompts layer asks of a tokenizer, and what a format tells it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["ChatEncoder", "PlainEncoder", "PromptFacts", "PromptSupport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFacts:
    """What a tokenizer's files say of prompts."""

    bos_token_id: int | None = None
    eos_token_ids: tuple[int, ...] = ()
    """Every id that ends what a model writes, the tokenizer's own first."""

    special_tokens: Mapping[str, str] = field(default_factory=dict)
    """The texts of special tokens by their names, as a template knows them: ``bos_token``, ``eos_token`` …"""

    chat_templates: Mapping[str, str] = field(default_factory=dict)
    """Jinja templates by their names; the usual one is called "default"."""

    add_bos_token: bool = False
    """Whether a prompt begins with BOS, even if the library's encode adds none."""


class PlainEncoder(Protocol):
    """Text to ids, as if some tokens of the vocabulary could not be written as text."""

    def __call__(self, text: str, *, control: frozenset[str], before: str | None, after: str | None) -> list[int]:
        """
        Encode a part of a text.

        Args:
            text: The part.
            control: The added tokens that are not to be read.
            before, after: That token of these which stands beside the part; None at the border of the whole text.
        """
        ...


class ChatEncoder(Protocol):
    """What makes ids of a chat without a template. User text cannot spell a special token there."""

    def __call__(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None,
        continue_final_message: bool,
        options: Mapping[str, Any],
    ) -> list[int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSupport:
    """What a format knows of prompts. What takes time is a function, asked at the first use."""

    facts: Callable[[], PromptFacts] = PromptFacts
    plain: PlainEncoder | None = None
    """None: this tokenizer cannot keep a special token's text from becoming the token."""

    reads_special_tokens: bool = True
    """Whether encode turns the text of a special token into its id. If not, the text around them is encoded piece by piece."""

    offsets: Callable[[str], list[tuple[int, int]]] | None = None
    """
    Where each token of a text stands, by the library, without special tokens around it. For what a normaliser changes: elsewhere
    the bytes of the tokens tell it better.
    """

    chat: Callable[[], ChatEncoder] | None = None
    """What makes ids of chats that have no template."""
