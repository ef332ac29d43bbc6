"""
Who judges a tokenizer: its own library; for a directory of Hugging Face's, AutoTokenizer of transformers.

A file is what the tokenizers library says. A directory is what AutoTokenizer makes of all its files, so that the tokenizer that
detok built of it cannot be its own judge.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import DetokError, MissingExtra
from ..tokenizers import Tokenizer
from ..tokenizers.auto.classes import FOLLOWED
from ..tokenizers.auto.judge import AutoJudge
from ..tokenizers.huggingface import HuggingFaceLibrary
from ..tokenizers.tokenizer import Library

__all__ = ["Judge", "judge_of"]


@dataclass(frozen=True, slots=True)
class Judge:
    """A library, and what its verdict is worth."""

    library: Library
    unjudged: str = ""
    """What it could not judge, and why; "" if it judges all."""

    of_versions: str = ""
    """Why differences are differences of version and no faults; "" if they are faults."""


def judge_of(tokenizer: Tokenizer) -> Judge:
    """Return who judges a tokenizer. AutoTokenizer loads the directory again, which takes seconds for the largest."""
    own = tokenizer.library
    directory = own.directory if isinstance(own, HuggingFaceLibrary) else None
    if directory is None:
        return Judge(own)
    try:
        found = AutoJudge(directory)
    except MissingExtra:
        why = "what AutoTokenizer makes of the directory, since transformers is not installed"
        return Judge(own, unjudged=why)
    except DetokError as error:
        return Judge(own, unjudged=f"what AutoTokenizer makes of the directory, since {error}")
    if not found.is_older:
        return Judge(found)
    followed = ".".join(map(str, FOLLOWED))
    return Judge(found, of_versions=f"detok follows transformers {followed}, and the installed one is older")
