"""
GGUF files: the vocabulary of llama.cpp, of the kinds gpt2, llama, gemma4, bert, t5 and rwkv.

Every entry stands for bytes of its own, whatever its neighbours are (``llama_token_to_piece``), and the bytes of all of them are
one text. The first piece of a list loses a leading space where `tokenizer.ggml.add_space_prefix` is set (``llama_detokenize``).
That function also removes spaces in front of punctuation, for bert and many gpt2 vocabularies: this corrupts code, and no text
that llama.cpp generates has it, so it is done only if it is asked for.

Nothing but Python is needed to load and decode. The package ``tokenizers`` encodes, llama-cpp-python judges if it is installed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.decoding.cleanup import TRANSFORMERS_CLEANUP
from ..core.decoding.rules import RawBytes, Replace, byte_of
from ..core.vocabulary import Piece
from ..errors import SourceError
from ..prompts.facts import PromptFacts, PromptSupport
from .gguf_encoder import PRE_TOKENIZERS, Entries, encoder_of
from .gguf_judge import LlamaCpp
from .gguf_pieces import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    Spelling,
    byte_level,
    corrected,
    escaped,
    piece_bytes,
    spaced,
)
from .gguf_reader import Value, read
from .prompt_files import facts_by_ids
from .reading import Once
from .tokenizer import Tokenizer

__all__ = ["GGUFTokenizer", "from_file"]

KINDS: Mapping[str, Spelling] = {
    "gpt2": byte_level,
    "llama": spaced,
    "gemma4": spaced,
    "bert": spaced,  # the converter writes "▁word" for a word, and what WordPiece writes "##part" without a prefix
    "t5": spaced,
    "rwkv": escaped,
}
SPACED_PRE_TOKENIZERS = {"gemma4", "granite-embed-multi-311m", "sarvam-moe"}
"""Of gpt2, these values of `tokenizer.ggml.pre` mean SentencePiece's spelling."""

CLEAN_SPACES = tuple(pair for pair in TRANSFORMERS_CLEANUP if pair[0] != " n't")
"""What ``llama_detokenize`` does to the whole text, on request."""

TEMPLATE = "tokenizer.chat_template"
ADDED = (CONTROL, UNKNOWN, USER_DEFINED)
PREFIX = "tokenizer.ggml."
ARRAYS = {PREFIX + name for name in ("tokens", "token_type", "merges", "scores", "precompiled_charsmap")}
ACCEPTED = f"a GGUF file with a vocabulary was expected, its tokenizer.ggml.model one of {', '.join(KINDS)}"


class GGUFVocabulary:
    """The entries of a GGUF file; a piece is made when its id is met."""

    def __init__(self, entries: Sequence[bytes], types: Sequence[int], spelling: Spelling) -> None:
        self._entries = entries
        self._types = types
        self._spelling = spelling
        self._pieces: dict[int, Piece] = {}

    def piece(self, token_id: int) -> Piece | None:
        """The piece behind ``token_id``, or None."""
        piece = self._pieces.get(token_id)
        if piece is None and 0 <= token_id < len(self._entries):
            entry, kind = self._entries[token_id], self._types[token_id]
            piece = Piece(
                entry.decode(errors="replace"),
                special=kind in (CONTROL, UNKNOWN),
                added=kind in ADDED,
                data=piece_bytes(entry, kind, self._spelling),
            )
            self._pieces[token_id] = piece
        return piece

    def __len__(self) -> int:
        return len(self._entries)

    def ids(self) -> Iterable[int]:
        """All ids; there are no holes."""
        return range(len(self._entries))

    def added_ids(self) -> Iterable[int]:
        """The ids of entries that are control, unknown or user-defined."""
        return [token_id for token_id, kind in enumerate(self._types) if kind in ADDED]


class GGUFTokenizer(Tokenizer):
    """A `Tokenizer` that kept what else the file says."""

    metadata: Mapping[str, Value]
    """Every key of the file but the large arrays of the vocabulary: `tokenizer.chat_template`, `tokenizer.ggml.eos_token_id` …"""

    def __init__(self, *arguments: Any, metadata: Mapping[str, Value], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.metadata = metadata


def from_file(path: Path, *, clean_spaces: bool = False) -> GGUFTokenizer:
    """
    Load the vocabulary of a GGUF file; the tensors behind it are not read.

    Args:
        path: The file; of a model in several files, the first.
        clean_spaces: Remove spaces in front of punctuation, as ``llama_detokenize`` does for bert and many gpt2 vocabularies.

    Raises:
        SourceError: It is no GGUF file, damaged, or has no vocabulary of a known kind.
    """
    values = read(path)
    kind = _kind(path, values)
    entries = _entries(path, values)
    spelling, remarks = _spelling(kind, values, entries)
    ids = _places(path, entries)
    types = corrected(_types(path, values, entries), ids, values)
    if spelling is not escaped:
        _check_bytes(path, entries, types)
    drops_space = bool(values.get(PREFIX + "add_space_prefix", kind == "llama"))
    clean_up = CLEAN_SPACES if clean_spaces else ()
    vocabulary = GGUFVocabulary(entries, types, spelling)
    encoder = encoder_of(Entries(kind, entries, ids, types, values, str(path)))
    metadata = {key: value for key, value in values.items() if key not in ARRAYS}
    return GGUFTokenizer(
        vocabulary,
        [RawBytes(drops_first_space=drops_space), *(Replace(pattern, content) for pattern, content in clean_up)],
        encoder=encoder,
        library=LlamaCpp(path, vocabulary, drops_first_space=drops_space, clean_spaces=clean_up),
        source=str(path),
        remarks=remarks,
        metadata=metadata,
        prompt_support=PromptSupport(facts=Once(_facts, metadata, entries), plain=getattr(encoder, "plain", None)),
    )


def _spelling(kind: str, values: Mapping[str, Value], entries: Sequence[bytes]) -> tuple[Spelling, list[str]]:
    """
    Return how entries are spelled, and what is to be said of it.

    A pre-tokenizer says how a text is cut before it is encoded; of those that are newer than detok it is not known. For decoding
    only the spelling counts, and of gpt2 the entries themselves show it: nearly all are SentencePiece's, or none.
    """
    pre = values.get(PREFIX + "pre")
    if kind != "gpt2" or (isinstance(pre, str) and pre in PRE_TOKENIZERS):
        return KINDS[kind], []
    if isinstance(pre, str) and pre in SPACED_PRE_TOKENIZERS:
        return spaced, []
    is_spaced = sum(entry.startswith("▁".encode()) for entry in entries) > sum(
        entry.startswith("Ġ".encode()) for entry in entries
    )
    spelled = "SentencePiece's, as its entries show" if is_spaced else "GPT-2's"
    named = "no pre-tokenizer is named" if pre is None else f"the pre-tokenizer {pre!r} is not known"
    return spaced if is_spaced else byte_level, [f"{named}, so that no text is encoded; the spelling is {spelled}"]


def _facts(metadata: Mapping[str, Value], entries: Sequence[bytes]) -> PromptFacts:
    """What the metadata say: ids of special tokens by their names, and templates, named ones behind a further dot."""

    def named(name: str) -> int | None:
        token_id = metadata.get(f"{PREFIX}{name}_token_id")
        return token_id if isinstance(token_id, int) and 0 <= token_id < len(entries) else None

    names = [("unk_token", "unknown"), ("pad_token", "padding"), ("sep_token", "seperator"), ("cls_token", "cls")]
    facts = facts_by_ids(
        lambda token_id: entries[token_id].decode(errors="replace"),
        named("bos"),
        [named("eos"), named("eot"), named("eom")],
        {name: named(field) for name, field in names},
    )
    found = {
        key.removeprefix(TEMPLATE).removeprefix(".") or "default": text for key, text in metadata.items() if _is_template(key)
    }
    return replace(facts, chat_templates={name: text for name, text in found.items() if isinstance(text, str)})


def _is_template(key: str) -> bool:
    return key == TEMPLATE or key.startswith(f"{TEMPLATE}.")


def _kind(path: Path, values: Mapping[str, Value]) -> str:
    kind = values.get(PREFIX + "model")
    if kind is None:
        part = values.get("split.no")
        found = f"is part {part + 1} of a model in several files" if isinstance(part, int) and part else f"has no {PREFIX}model"
        raise SourceError(path, found=f"{found}, so there is no vocabulary in it", accepted=ACCEPTED)
    if not isinstance(kind, str) or kind not in KINDS:
        raise SourceError(path, found=f"has a vocabulary of the unknown kind {kind!r}", accepted=ACCEPTED)
    return kind


def _entries(path: Path, values: Mapping[str, Value]) -> list[bytes]:
    entries = values.get(PREFIX + "tokens")
    if not isinstance(entries, list) or not entries:
        found = "no" if entries is None else "empty" if entries == [] else "something else than strings as"
        raise SourceError(path, found=f"has {found} {PREFIX}tokens", accepted=ACCEPTED)
    if b"" in entries:
        # llama.cpp gives an empty entry a name, so that each has one of its own.
        return [entry or b"[EMPTY_%d]" % token_id for token_id, entry in enumerate(entries)]
    return entries


def _types(path: Path, values: Mapping[str, Value], entries: Sequence[bytes]) -> Sequence[int]:
    """The type of each entry; where the file has none, all are normal."""
    types: Any = values.get(PREFIX + "token_type")
    if types is None:
        return [NORMAL] * len(entries)
    if not isinstance(types, array) or types.typecode in "fd":
        raise SourceError(path, found=f"has a {PREFIX}token_type that is no array of integers", accepted=ACCEPTED)
    if len(types) < len(entries):
        found = f"has {len(entries)} entries in {PREFIX}tokens but only {len(types)} in {PREFIX}token_type"
        raise SourceError(path, found=found, accepted=ACCEPTED)
    return types[: len(entries)]


def _places(path: Path, entries: Sequence[bytes]) -> Mapping[bytes, int]:
    """Where each entry stands. Two equal ones would be one token with two ids, which llama.cpp does not load either."""
    ids = {entry: token_id for token_id, entry in enumerate(entries)}
    if len(ids) < len(entries):
        first, entry = next((token_id, entry) for token_id, entry in enumerate(entries) if ids[entry] != token_id)
        found = f"has the entry {entry.decode(errors='replace')!r} twice, as id {first} and id {ids[entry]}"
        raise SourceError(path, found=found, accepted="every entry of a vocabulary may occur once")
    return ids


def _check_bytes(path: Path, entries: Sequence[bytes], types: Sequence[int]) -> None:
    for token_id, kind in enumerate(types):
        if kind == BYTE and byte_of(entries[token_id].decode(errors="replace")) is None:
            found = f"the entry {entries[token_id].decode(errors='replace')!r} (id {token_id}) has the type of a byte but is none"
            raise SourceError(path, found=found, accepted="bytes are <0x00> to <0xFF>")
