"""The texts and vocabularies that are measured: the package's own samples, and real vocabularies, fetched at the first use."""

from __future__ import annotations

from functools import cache

from tokenizers import Tokenizer

from detok.data import sample
from scripts.fetch_vocabularies import fetch

__all__ = ["NINE_SCRIPTS", "at_least", "english", "hugging_face", "ids_of", "nine_scripts", "path_of"]

# Cyrillic, Greek, Arabic, Devanagari, Thai, Burmese, Hangul, Japanese (three at once) and Han.
NINE_SCRIPTS = ("russian", "greek", "arabic", "hindi", "thai", "burmese", "korean", "japanese", "chinese")


def english() -> str:
    """Return English prose."""
    return sample("english")


def nine_scripts(characters: int | None = None) -> str:
    """Return a text in nine scripts with emoji; `characters` of each, or all."""
    return "\n".join(sample(name)[:characters] for name in (*NINE_SCRIPTS, "emoji"))


def path_of(vocabulary: str) -> str:
    """Return the path of a real tokenizer.json."""
    return str(fetch(vocabulary) / "tokenizer.json")


@cache
def hugging_face(vocabulary: str) -> Tokenizer:
    """Load it with the library whose one-shot decode is the truth, without the truncation of its training."""
    tokenizer = Tokenizer.from_file(path_of(vocabulary))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def ids_of(vocabulary: str, text: str) -> list[int]:
    """Return the ids of a text, without special tokens."""
    ids: list[int] = hugging_face(vocabulary).encode(text, add_special_tokens=False).ids
    return ids


def at_least(count: int, ids: list[int]) -> list[int]:
    """Repeat a text's ids as a whole, so that they never end inside a character."""
    return ids * -(-count // len(ids))
