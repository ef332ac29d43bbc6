"""The texts and vocabularies that are measured: the package's own samples, and real vocabularies, fetched at the first use."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from sysconfig import get_path

from tokenizers import Tokenizer

from detok.data import sample
from scripts.fetch_vocabularies import fetch

__all__ = ["NINE_SCRIPTS", "at_least", "english", "hugging_face", "ids_of", "nine_scripts", "path_of", "unseen"]

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


def unseen(vocabulary: str, tokens: int) -> Iterator[str]:
    """
    Yield texts of so many tokens that nobody has seen before: code and docstrings of Python's own library, none of them twice.

    Encoders keep the words that they have met, so that a text that was encoded once is no measure.
    """
    root = Path(get_path("stdlib"))
    files = [file for file in sorted(root.rglob("*.py")) if not any(part.endswith("-packages") for part in file.parts)]
    library = hugging_face(vocabulary)
    rest: list[int] = []
    for file in files:
        rest += library.encode(file.read_text(encoding="utf-8", errors="replace"), add_special_tokens=False).ids
        for begin in range(0, len(rest) - tokens + 1, tokens):
            yield library.decode(rest[begin : begin + tokens], skip_special_tokens=False)
        rest = rest[len(rest) - len(rest) % tokens :]
    raise ValueError("the library has no more texts; ask for fewer rounds")
