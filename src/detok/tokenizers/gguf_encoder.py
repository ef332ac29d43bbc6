"""
Text to ids for a GGUF vocabulary: gpt2 by the package ``tokenizers``, llama and gemma4 by `gguf_merging`, the others not.

The pre-tokenizers are those of ``llm_tokenizer_bpe`` in llama.cpp's ``src/llama-vocab.cpp`` that are plain regular expressions,
which are those of the models' own tokenizers. Each is tried against llama.cpp's own vocabulary tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import EncodeUnsupported, SourceError
from .gguf_merging import MergingEncoder
from .gguf_pieces import CONTROL, UNKNOWN, USER_DEFINED
from .huggingface_plain import PlainPieces
from .reading import Once, library, utf8
from .tokenizer import Encoder

__all__ = ["PRE_TOKENIZERS", "Entries", "encoder_of"]

_ENDINGS = "'s|'t|'re|'ve|'m|'ll|'d"
_ANY_CASE_ENDINGS = "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
_GPT2 = _ENDINGS + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = _ANY_CASE_ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _REST
_QWEN2 = _ANY_CASE_ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _REST
_QWEN35 = _ANY_CASE_ENDINGS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}" + _REST.replace(r"\p{L}", r"\p{L}\p{M}")


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """How a text is cut before merging."""

    patterns: tuple[str, ...]
    """Applied one after another; what a pattern matches and what stands between its matches are pieces."""

    ignores_merges: bool = False
    """Whether a piece that is an entry is taken whole."""

    adds_bos: bool = False
    """Where the file does not say."""


PRE_TOKENIZERS: Mapping[str, PreTokenizer] = {
    **dict.fromkeys(("gpt-2", "phi-2", "mpt", "olmo", "exaone4", "granite-docling"), PreTokenizer((_GPT2,))),
    **dict.fromkeys(("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone"), PreTokenizer((r"\p{N}", _GPT2))),
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral"), PreTokenizer((_LLAMA3,), True, True)),
    **dict.fromkeys(("dbrx", "smaug-bpe"), PreTokenizer((_LLAMA3,))),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "megrez"), PreTokenizer((_QWEN2,))),
    "qwen35": PreTokenizer((_QWEN35,)),
    "falcon": PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]")),
    "deepseek-coder": PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}")),
}
"""By `tokenizer.ggml.pre`."""


@dataclass(frozen=True, slots=True)
class Entries:
    """The vocabulary of a file, as far as encoding needs it."""

    kind: str
    texts: Sequence[bytes]
    ids: Mapping[bytes, int]
    types: Sequence[int]
    values: Mapping[str, Any]
    """All that the file says."""

    source: str

    def value(self, name: str, default: Any = None) -> Any:
        """What the file says under a name of the vocabulary's own."""
        return self.values.get(f"tokenizer.ggml.{name}", default)

    @property
    def added(self) -> list[bytes]:
        """The entries that are found in a text as they stand."""
        return [text for text, kind in zip(self.texts, self.types, strict=True) if kind in (CONTROL, UNKNOWN, USER_DEFINED)]


def encoder_of(entries: Entries) -> Encoder:
    """Return what encodes, or what says that nothing here does and what to use."""
    pre, merges, scores = entries.value("pre"), entries.value("merges"), entries.value("scores")
    match entries.kind:
        case "gpt2" if isinstance(pre, str) and pre in PRE_TOKENIZERS and isinstance(merges, list):
            adds_bos = PRE_TOKENIZERS[pre].adds_bos
            return LazyEncoder(Once(_byte_level, entries, PRE_TOKENIZERS[pre]), entries, adds_bos=adds_bos)
        case "gemma4" if isinstance(merges, list):
            return LazyEncoder(Once(_ranked, entries), entries, adds_bos=True)
        case "llama" if scores is not None and len(scores) >= len(entries.texts):
            return LazyEncoder(Once(_scored, entries), entries, adds_bos=True, bos=1, eos=2)
        case "gpt2":
            return NoEncoder(f"a GGUF vocabulary with the pre-tokenizer {pre!r}")
    return NoEncoder(f"a GGUF vocabulary of the kind {entries.kind}")


class NoEncoder:
    """Says so."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __call__(self, text: str, *, add_special_tokens: bool) -> list[int]:
        instead = "load the tokenizer.json or tokenizer.model that the GGUF file was made from, or tokenize with llama-cpp-python"
        raise EncodeUnsupported(self._kind, instead=instead)


class LazyEncoder:
    """
    An encoder that is made when the first text is encoded, and the special tokens around a text.

    Args:
        encode: Makes it.
        entries: Tell which special tokens to add.
        adds_bos: Whether a text begins with the token ``bos``, where the file does not say.
        bos, eos: Their ids, where the file does not say.
    """

    def __init__(self, encode: Once, entries: Entries, *, adds_bos: bool, bos: int = -1, eos: int = -1) -> None:
        self._encode = encode
        known = range(len(entries.texts))
        # Gemma 4 begins with its bos whatever the file says: older ones say it wrongly.
        adds_bos = entries.kind == "gemma4" or bool(entries.value("add_bos_token", adds_bos))
        adds_eos = bool(entries.value("add_eos_token", False))
        self._before = [token_id for token_id in [entries.value("bos_token_id", bos)] if adds_bos and token_id in known]
        self._after = [token_id for token_id in [entries.value("eos_token_id", eos)] if adds_eos and token_id in known]

    def __call__(self, text: str, *, add_special_tokens: bool) -> list[int]:
        ids: list[int] = self._encode()(text)
        return [*self._before, *ids, *self._after] if add_special_tokens else ids

    def plain(self, text: str, *, control: frozenset[str], before: str | None, after: str | None) -> list[int]:
        """Encode a part of a text; see `PlainEncoder`."""
        ids: list[int] = self._encode().plain(text, control=control, before=before, after=after)
        return ids


class ByteLevelEncoder:
    """A ``tokenizers.Tokenizer``, as what encodes."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.plain = PlainPieces(Once.given(tokenizer))

    def __call__(self, text: str) -> list[int]:
        utf8(text)
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def _byte_level(entries: Entries, pre: PreTokenizer) -> ByteLevelEncoder:
    """Byte pair encoding over the byte alphabet."""
    tokenizers = library("tokenizers", extra="hf", purpose="encoding with a GGUF vocabulary of the kind gpt2")
    vocabulary = {text.decode(errors="replace"): token_id for text, token_id in entries.ids.items()}
    merges = [(left.decode(errors="replace"), right.decode(errors="replace")) for left, right in _merges(entries)]
    try:
        model = tokenizers.models.BPE(vocabulary, merges, ignore_merges=pre.ignores_merges)
    except Exception as error:  # the library raises Exception itself
        accepted = "every merge joins two entries to a third"
        raise SourceError(entries.source, found=f"its merges are refused: {error}", accepted=accepted) from error
    tokenizer = tokenizers.Tokenizer(model)
    cutters = tokenizers.pre_tokenizers
    cuts = [cutters.Split(tokenizers.Regex(pattern), "isolated") for pattern in pre.patterns]
    tokenizer.pre_tokenizer = cutters.Sequence([*cuts, cutters.ByteLevel(add_prefix_space=False, use_regex=False)])
    added = [text.decode(errors="replace") for text in entries.added]
    tokenizer.add_special_tokens([tokenizers.AddedToken(text, normalized=False) for text in added])
    return ByteLevelEncoder(tokenizer)


def _ranked(entries: Entries) -> MergingEncoder:
    ranks = {pair: rank for rank, pair in reversed(list(enumerate(_merges(entries))))}
    return MergingEncoder(entries.ids, lambda left, right: ranks.get((left, right)), added=entries.added, by_lines=True)


def _scored(entries: Entries) -> MergingEncoder:
    ids, scores = entries.ids, entries.value("scores")

    def priority(left: bytes, right: bytes) -> float | None:
        token_id = ids.get(left + right)
        return None if token_id is None else -scores[token_id]

    added = entries.added
    # Phi-3's tokens swallow the white space behind them, which a GGUF file has no place to say; llama.cpp goes by the name too.
    is_phi3 = any(name in str(entries.values.get("general.name")).lower() for name in ("phi-3", "phi3"))
    eats_spaces = [text for text in added if text not in (b"<unk>", b"<s>", b"<|endoftext|>")] if is_phi3 else []
    prefixes = bool(entries.value("add_space_prefix", True))
    return MergingEncoder(ids, priority, added=added, eats_spaces=eats_spaces, prefixes_space=prefixes)


def _merges(entries: Entries) -> list[tuple[bytes, bytes]]:
    """The merges, as llama.cpp reads them: the first half has at least one character, which may be a space."""
    cut = [merge[1:].partition(b" ") for merge in entries.value("merges")]
    return [(merge[:1] + left, right) for merge, (left, _, right) in zip(entries.value("merges"), cut, strict=True)]
