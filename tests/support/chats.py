"""Chat templates of real models, rendered by transformers, which has the last word on them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from transformers import AutoTokenizer

from tests.support.vocabularies import real

__all__ = ["CHATS", "render_of"]

CHATS = {"llama3": "<|eot_id|>", "gemma3": "<end_of_turn>", "qwen3": "<|im_end|>", "deepseek-v3": "<｜end▁of▁sentence｜>"}
"""Those with a template, and the token that ends a turn of the model."""


@functools.cache
def _library(name: str) -> Any:
    return AutoTokenizer.from_pretrained(str(real(name)), local_files_only=True)


def render_of(name: str, **variables: Any) -> Any:
    """The template of a real model as a function of messages."""
    library = _library(name)

    def render(messages: Sequence[Any], *, add_generation_prompt: bool) -> str:
        return str(
            library.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=add_generation_prompt, **variables)
        )

    return render
