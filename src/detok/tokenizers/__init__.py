"""One module for each file format or library, and `load`, which finds the right one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import SourceError
from .tokenizer import Tokenizer

__all__ = ["Tokenizer", "load"]

ACCEPTED = "give a tokenizer.json, a directory with one, or a tokenizers.Tokenizer"


def load(source: str | os.PathLike[str] | Any) -> Tokenizer:
    """
    Make a `Tokenizer` of what is there.

    Args:
        source: The path of a tokenizer.json (judged by the tokenizers library alone), of a directory with one (its
            tokenizer_config.json and special_tokens_map.json count too, as in transformers), or a ``tokenizers.Tokenizer``.

    Raises:
        SourceError: It is none of these, or damaged; the message says what was found.
        UnknownDecoder: Its decoder has a type that detok does not know.
        MissingExtra: A library is needed that is not installed.
    """
    from . import huggingface

    if not isinstance(source, (str, os.PathLike)):
        if huggingface.is_tokenizer_object(source):
            return huggingface.from_object(source)
        kind = f"{type(source).__module__}.{type(source).__qualname__}"
        raise SourceError(kind, found="is no kind of tokenizer that detok knows", accepted=ACCEPTED)
    path = Path(source)
    if path.is_dir():
        if (path / "tokenizer.json").is_file():
            return huggingface.from_directory(path)
        names = sorted(entry.name for entry in path.iterdir())[:6]
        raise SourceError(
            path, found=f"the directory has no tokenizer.json, only {', '.join(names) or 'nothing'}", accepted=ACCEPTED
        )
    if path.is_file():
        return huggingface.from_file(path)
    raise SourceError(path, found="there is no such file or directory", accepted=ACCEPTED)
