"""``fix_mistral_regex``: a setting by which transformers mends the pre-tokenizer of Mistral's exports that cut a text wrongly."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..huggingface_config import json_object

__all__ = ["mend_pattern"]

PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
MODELS = (None, "mistral", "mistral3", "voxtral", "ministral", "pixtral")

# Smaller vocabularies are older than the exports with the fault.
SMALLEST = 100_000


def mend_pattern(tokenizer: Any, directory: Path) -> None:
    """
    Cut a text as Mistral's own tokenizer does, if the model is one of theirs and was exported before transformers 5.

    Args:
        tokenizer: A ``tokenizers.Tokenizer``, which is changed.
        directory: Its config.json says which model it is, and which version wrote it.

    Raises:
        SourceError: config.json is damaged.
    """
    import tokenizers

    path = directory / "config.json"
    if not path.is_file() or tokenizer.pre_tokenizer is None or tokenizer.get_vocab_size() <= SMALLEST:
        return
    model = json_object(path)
    if model.get("model_type") not in MODELS or _major(model.get("transformers_version")) >= 5:
        return
    cutters = tokenizers.pre_tokenizers
    words = cutters.Split(tokenizers.Regex(PATTERN), "isolated")
    if isinstance(tokenizer.pre_tokenizer, cutters.Sequence):
        tokenizer.pre_tokenizer[0] = words
        return
    letters = tokenizer.pre_tokenizer
    if isinstance(letters, cutters.Metaspace):
        letters = cutters.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = cutters.Sequence([words, letters])


def _major(version: object) -> int:
    match = re.match(r"\d+", version) if isinstance(version, str) else None
    return int(match[0]) if match else 0
