"""How long a prompt may be: refused before the work is done where that is certain, cut where that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ..errors import OptionError, PromptTooLong

__all__ = ["DEFAULT_MAX_CHARACTERS", "Frame", "LengthLimits", "Truncation", "TruncationSide", "frame_of"]

DEFAULT_MAX_CHARACTERS = 1 << 22
"""Four million characters are a million tokens of English, the longest context there is."""

CHARACTERS_PER_TOKEN = 256
"""No token of a known vocabulary has more, and those that come near are runs of spaces."""

TruncationSide = Literal["left", "right"]
"""The end of a prompt that is cut off, as ``truncation_side`` of transformers and vLLM."""


class OneEncoder(Protocol):
    """A tokenizer, as far as lengths need it."""

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class Frame:
    """How many special tokens the encoder puts in front of any text, and behind it."""

    before: int = 0
    after: int = 0


def frame_of(tokenizer: OneEncoder) -> Frame:
    """Find out by encoding one text with special tokens and without."""
    bare, whole = (tokenizer.encode("a", add_special_tokens=adds) for adds in (False, True))
    for before in range(len(whole) - len(bare) + 1):
        if whole[before : before + len(bare)] == bare:
            return Frame(before, len(whole) - len(bare) - before)
    return Frame()


@dataclass(frozen=True, slots=True)
class Truncation:
    """What a request asks to be left of its prompt."""

    tokens: int
    side: TruncationSide

    def __post_init__(self) -> None:
        if type(self.tokens) is not int or self.tokens < 1:
            raise OptionError(option="truncate_prompt_tokens", value=self.tokens, accepted="it is a number of tokens, 1 or more")
        if self.side not in ("left", "right"):
            raise OptionError(option="truncation_side", value=self.side, accepted="it is 'left' or 'right'")

    def cut(self, ids: list[int], frame: Frame) -> list[int]:
        """Return so many ids; those of the frame stay, as transformers keeps them."""
        if len(ids) <= self.tokens:
            return ids
        kept = self.tokens - frame.before - frame.after
        if kept < 0:
            accepted = f"the special tokens around a prompt are {frame.before + frame.after}"
            raise OptionError(option="truncate_prompt_tokens", value=self.tokens, accepted=accepted)
        end = len(ids) - frame.after
        body = ids[end - kept : end] if self.side == "left" else ids[frame.before : frame.before + kept]
        return [*ids[: frame.before], *body, *ids[end:]]


class LengthLimits:
    """
    How long a prompt may be.

    Args:
        max_characters: Of the text. By default so many that `max_tokens` cannot be met by a longer one.
        max_tokens: Of the ids, special tokens among them.

    Raises:
        OptionError: One of them is no positive number.
    """

    def __init__(self, *, max_characters: int | None = None, max_tokens: int | None = None) -> None:
        for option, value in (("max_characters", max_characters), ("max_tokens", max_tokens)):
            if value is not None and (type(value) is not int or value < 1):
                raise OptionError(option=option, value=value, accepted="it is a number, 1 or more, or None")
        if max_characters is None:
            max_characters = DEFAULT_MAX_CHARACTERS if max_tokens is None else max_tokens * CHARACTERS_PER_TOKEN
        self.max_characters, self.max_tokens = max_characters, max_tokens

    def check_text(self, text: str) -> None:
        """
        Look at a text before it is encoded. Takes no time that grows with it.

        Raises:
            PromptTooLong: It has too many characters.
            OptionError: It is no str.
        """
        if not isinstance(text, str):
            raise OptionError(option="text", value=text, accepted="it is a str")
        if len(text) > self.max_characters:
            raise PromptTooLong(length=len(text), limit=self.max_characters, unit="characters")

    def check_ids(self, ids: Sequence[int]) -> None:
        """
        Look at what came of it.

        Raises:
            PromptTooLong: They are too many.
        """
        if self.max_tokens is not None and len(ids) > self.max_tokens:
            raise PromptTooLong(length=len(ids), limit=self.max_tokens, unit="tokens")
