"""The turn format of a chat: the model's, for this request's tools and after its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..prompts.turn_formats import detect_format, turn_after, turn_for
from ..tokenizers import Tokenizer
from ..turns.formats import TurnFormat
from .config import ModelConfig
from .forced_calls import is_forced
from .logs import logger

__all__ = ["model_format", "turn_of"]


def model_format(name: str, config: ModelConfig, tokenizer: Tokenizer, template: str | None = None) -> TurnFormat | None:
    """
    Return the format of a model; "auto" says in the log which it is.

    Args:
        name: The model's.
        config: What it is set to.
        tokenizer: Its own.
        template: The chat template that it is set to, if it is not the tokenizer's.

    Raises:
        OptionError: There is no such format.
    """
    if config.channels != "auto":
        return config.turn_format
    found = detect_format(tokenizer, template)
    fields = {"model": name, "channels": found.name, "because": found.because}
    logger.info("channels", extra={"fields": fields})
    return found.format


def turn_of(
    turn: TurnFormat,
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    *,
    tools: Sequence[dict[str, Any]] | None,
    tool_choice: str | dict[str, Any] | None,
) -> TurnFormat:
    """
    Return the format for what follows a prompt.

    Args:
        turn: The model's.
        tokenizer: The model's.
        prompt: Its ids.
        tools, tool_choice: Of the request.
    """
    made = turn_for(turn, tools=tools, looks_for_calls=tool_choice != "none", forced=is_forced(tool_choice))
    return turn_after(made, tokenizer, prompt)
