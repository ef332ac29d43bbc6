"""
What detok can load: a row a format, told apart by content, not by name.

A row says how a file or an object of the format is recognised, without importing its library, and which module makes a
tokenizer of it; that is imported when the row was chosen, and has ``from_file(path)``, ``from_object(source)``, or both.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

__all__ = ["FORMATS", "HEAD", "Format", "format_of_bytes", "format_of_object"]

HEAD = 1 << 16
"""So many bytes at the beginning of a file are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One kind of tokenizer."""

    name: str
    module: str
    """Of this package."""

    library: str
    """The distribution that judges it."""

    extra: str
    """Of detok, which brings what is needed."""

    reads_itself: bool = False
    """Whether files are read and decoded without any library; encoding may need one all the same."""

    since: str = "0.1.0"
    """The version of detok that could load it first."""

    file: Callable[[bytes], bool] | None = None
    """Whether the first `HEAD` bytes of a file are of this format."""

    objects: tuple[str, ...] = ()
    """Classes, as module prefix and name, of which objects are of this format: an object or one of its bases."""

    def decodes_itself(self, source: object) -> bool:
        """Whether the class of an object of this format stands below the library's, and has a decode of its own."""
        classes = {tuple(wanted.split(":")) for wanted in self.objects}
        for kind in type(source).__mro__:
            if (kind.__module__.partition(".")[0], kind.__name__) in classes:
                return False
            if any(name.lower().startswith("decode") for name in vars(kind)):
                return True
        return False

    def load(self) -> Any:
        """Import the module that makes tokenizers of this format."""
        return import_module(f"{__package__}.{self.module}")


def _is_json_object(head: bytes) -> bool:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def _matches(pattern: bytes) -> Callable[[bytes], bool]:
    search = re.compile(pattern).match
    return lambda head: search(head) is not None


def _is_tekken(head: bytes) -> bool:
    return _is_json_object(head) and re.search(rb'"(token_bytes|default_vocab_size|num_vocab_tokens)"\s*:', head) is not None


def _is_ranks_json(head: bytes) -> bool:
    return _is_json_object(head) and re.search(rb'"(pat_str|bpe_ranks)"\s*:\s*"', head) is not None


def _is_vocab_json(head: bytes) -> bool:
    return re.match(rb'[\xef\xbb\xbf\s]*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\d+\s*[,}]', head) is not None


# A ModelProto: its pieces (field 1, a length, and in it field 1 again), or one of its specs (fields 2 and 3), come first. No text
# begins with the control characters that are the tags of the specs.
_LENGTH = rb"[\x80-\xff]{0,4}[\x00-\x7f]"
_is_sentencepiece = _matches(rb"\n" + _LENGTH + rb"\n" + _LENGTH + rb"|[\x12\x1a]" + _LENGTH + rb"[\x08-\x7a]")


def _is_word_list(head: bytes) -> bool:
    lines = head.split(b"\n")[:5000]
    return any(line.strip() in (b"[UNK]", b"[PAD]", b"[CLS]") for line in lines)


FORMATS: tuple[Format, ...] = (
    Format(
        name="GGUF",
        module="gguf",
        library="llama-cpp-python",
        extra="gguf",
        reads_itself=True,
        file=lambda head: head[:4] == b"GGUF",
    ),
    Format(
        name="Tekken",
        module="tekken",
        library="mistral-common",
        extra="mistral",
        reads_itself=True,
        file=_is_tekken,
        objects=("mistral_common:Tekkenizer", "mistral_common:MistralTokenizer", "mistral_common:SentencePieceTokenizer"),
    ),
    Format(
        name="tiktoken JSON",
        module="tiktoken",
        library="tiktoken",
        extra="tiktoken",
        reads_itself=True,
        file=_is_ranks_json,
    ),
    Format(
        name="vocab.json with merges.txt",
        module="wordlists",
        library="tokenizers",
        extra="hf",
        file=_is_vocab_json,
    ),
    Format(
        name="tokenizer.json",
        module="huggingface",
        library="tokenizers",
        extra="hf",
        file=_is_json_object,
        objects=("tokenizers:Tokenizer",),
    ),
    Format(
        name="SentencePiece",
        module="sentencepiece",
        library="sentencepiece",
        extra="sentencepiece",
        file=_is_sentencepiece,
        objects=("sentencepiece:SentencePieceProcessor",),
    ),
    Format(
        name="RWKV world list",
        module="rwkv",
        library="rwkv",
        extra="rwkv",
        reads_itself=True,
        file=_matches(rb"(?:\xef\xbb\xbf)?\d+ (b?'|b?\").*['\"] \d+\r?\n"),
        objects=("rwkv:TRIE_TOKENIZER", "rwkv_tokenizer:TRIE_TOKENIZER"),
    ),
    Format(
        name="tiktoken ranks",
        module="tiktoken",
        library="tiktoken",
        extra="tiktoken",
        reads_itself=True,
        file=_matches(rb"(?:\xef\xbb\xbf)?[A-Za-z0-9+/]*={0,2} \d+\r?(\n|$)"),
        objects=("tiktoken:Encoding",),
    ),
    Format(
        name="CLIP merges",
        module="wordlists",
        library="tokenizers",
        extra="hf",
        file=lambda head: head[:2] == b"\x1f\x8b" or head.lstrip()[:20].startswith((b"#version", b'"bpe_simple_vocab')),
    ),
    Format(
        name="BERT vocab.txt",
        module="wordlists",
        library="tokenizers",
        extra="hf",
        file=_is_word_list,
    ),
    Format(
        name="transformers",
        module="transformers",
        library="transformers",
        extra="transformers",
        objects=("transformers:PreTrainedTokenizerBase",),
    ),
)


def format_of_bytes(head: bytes) -> Format | None:
    """The format of a file that begins with ``head``; the first row that fits."""
    return next((row for row in FORMATS if row.file is not None and row.file(head)), None)


def format_of_object(source: object) -> Format | None:
    """The format of an object, by the classes that it is of."""
    bases = [(base.__module__.partition(".")[0], base.__name__) for base in type(source).__mro__]
    for row in FORMATS:
        for wanted in row.objects:
            package, _, name = wanted.partition(":")
            if (package, name) in bases:
                return row
    return None
