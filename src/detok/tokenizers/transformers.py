"""
Tokenizers of ``transformers``: fast ones by their ``tokenizers.Tokenizer``, Python ones by their own code.

The judge is always the object's own ``decode``. Nothing that the hot path touches is asked of the object again: its length,
special ids, added tokens and vocabulary, which are slow properties there, are read once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.metadata import version
from itertools import groupby, islice
from pathlib import Path
from typing import Any, cast

from ..core.decoding.rules import Replace, Rule, StripEnds
from ..core.options import DecodeOptions
from ..core.vocabulary import Vocabulary
from ..errors import OptionError, SourceError
from ..prompts.facts import PromptSupport
from . import huggingface
from .formats import format_of_object
from .huggingface_config import FORCED_CLEAN_UP, TokenizerConfig
from .huggingface_plain import PlainPieces
from .opaque import OpaqueTokenizer, TokenVocabulary
from .prompt_files import facts_of_object
from .python_joins import equals_library, find_join
from .reading import Once, library, utf8, with_version
from .tokenizer import Mode, Tokenizer, check_mode

__all__ = ["from_directory", "from_object"]

ACCEPTED = "a directory that transformers can read without running code from it was expected"


class OwnLibrary:
    """The object's own decode, without the ids that it does not have."""

    def __init__(self, source: Any, vocabulary: Vocabulary, tokens: Mapping[str, int]) -> None:
        self.name = f"{with_version('transformers')}, {_class_name(source)}"
        self._source = source
        self._vocabulary = vocabulary
        self._tokens = tokens

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Decode, with the clean-up that the object is set to."""
        known = [token_id for token_id in ids if self._vocabulary.piece(token_id) is not None]
        text: str = self._source.decode(known, skip_special_tokens=skip_special_tokens)
        return text

    def tokens(self) -> Mapping[str, int]:
        """Every token with its id."""
        return self._tokens


class FastLibrary(OwnLibrary):
    """The decode of an object that runs on the ``tokenizers`` library."""

    @property
    def backend(self) -> Any:
        """The ``tokenizers.Tokenizer`` in it."""
        return self._source.backend_tokenizer


class OwnDecode:
    """The object's own decode; with `spaces_between_special_tokens`, vLLM's way over its tokens, which knows no clean-up."""

    def __init__(self, source: Any, vocabulary: TokenVocabulary) -> None:
        self._source = source
        self._vocabulary = vocabulary
        self._added = {vocabulary.tokens[token_id] for token_id in vocabulary.added}

    def __call__(self, ids: Sequence[int], options: DecodeOptions, /) -> str:
        """Decode ids that the vocabulary has."""
        spaces = options.spaces_between_special_tokens
        if spaces is not None:
            skipped = self._vocabulary.special if options.skip_special_tokens else frozenset()
            tokens = [self._vocabulary.tokens[token_id] for token_id in ids if token_id not in skipped]
            return join_segments(tokens, added=self._added, to_string=self._source.convert_tokens_to_string, spaces=spaces)
        told = {}
        if options.clean_up_tokenization_spaces is not None:
            told["clean_up_tokenization_spaces"] = options.clean_up_tokenization_spaces
        text: str = self._source.decode(list(ids), skip_special_tokens=options.skip_special_tokens, **told)
        return text


class OwnEncoder:
    """The object's own encode."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __call__(self, text: str, *, add_special_tokens: bool) -> list[int]:
        utf8(text)
        ids: list[int] = self._source.encode(text, add_special_tokens=add_special_tokens, verbose=False)
        return ids


class OwnPlain:
    """The object's own encode, told to read no special tokens; what it says of the text's beginning counts for every part."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __call__(self, text: str, *, control: frozenset[str], before: str | None, after: str | None) -> list[int]:
        """Encode a part of a text; see `PlainEncoder`."""
        utf8(text)
        ids: list[int] = self._source.encode(text, add_special_tokens=False, split_special_tokens=True, verbose=False)
        return ids


def from_object(source: Any, *, mode: Mode = "auto", name: str | None = None) -> Tokenizer:
    """
    Make a `Tokenizer` of a tokenizer of transformers, which must not be changed any more.

    Args:
        source: A ``PreTrainedTokenizerBase``.
        mode: "fast" and "slow" insist on an implementation. Slow is Python code: it encodes, and unless its decode is a plain
        join
            it decodes a window or two at each step.
        name: What to call it; by default its ``name_or_path``, or its class.

    Raises:
        OptionError: The object is no such implementation.
        SourceError: It does not tell its vocabulary; or as `huggingface.from_object`, as UnknownDecoder.
    """
    check_mode(mode)
    kind = _class_name(source)
    name = name or getattr(source, "name_or_path", "") or kind
    if getattr(source, "is_fast", False):
        if mode == "slow":
            why = f"{kind} runs on the tokenizers library and is no Python code; take 'auto' or 'fast'"
            raise OptionError(option="mode", value=mode, accepted=why)
        return _from_fast(source, name)
    if mode == "fast":
        why = f"{kind} is a Python tokenizer and has no fast form; take 'auto' or 'slow', or give a tokenizer.json"
        raise OptionError(option="mode", value=mode, accepted=why)
    if kind == "MistralCommonBackend" and (inner := format_of_object(source.tokenizer)):
        # It only wraps a tokenizer of mistral-common, which is loaded as what it is.
        return cast(Tokenizer, inner.load().from_object(source.tokenizer))
    return _from_python(source, name)


def from_directory(directory: Path, *, mode: Mode = "auto") -> Tokenizer:
    """
    Load a directory through transformers' AutoTokenizer: for those without a tokenizer.json, and for ``mode="slow"``.

    Only what is in the directory is read, and code from it is never run.

    Raises:
        MissingExtra: transformers is not installed.
        SourceError: transformers refuses the directory.
        OptionError: What it makes of it is not the implementation that was asked for.
    """
    check_mode(mode)
    if not directory.is_dir():
        raise SourceError(directory, found="there is no such directory", accepted=ACCEPTED)
    transformers = library("transformers", extra="transformers", purpose=f"the tokenizer in {directory}")
    try:
        source = transformers.AutoTokenizer.from_pretrained(
            str(directory), local_files_only=True, trust_remote_code=False, use_fast=mode != "slow"
        )
    except Exception as error:  # transformers raises whatever its parts raise
        wants_code = "trust_remote_code" in str(error)
        found = "it needs code of its own to be run" if wants_code else f"transformers refuses it: {error}"
        raise SourceError(directory, found=found, accepted=ACCEPTED) from error
    tokenizer = from_object(source, mode=mode, name=str(directory))
    tokenizer.built = with_version("transformers")
    return tokenizer


def _from_fast(source: Any, name: str) -> Tokenizer:
    """By the rules of its ``tokenizers.Tokenizer``; but if it has a decode of its own, by those rules that say the same."""
    backend = source.backend_tokenizer
    flags = {flag: getattr(source, flag, False) for flag in ("clean_up_tokenization_spaces", FORCED_CLEAN_UP)}
    base = huggingface.from_object(backend, source=name, config=TokenizerConfig(flags, version("transformers")))
    judge = FastLibrary(source, base.vocabulary, backend.get_vocab(with_added_tokens=False))
    candidates: list[Sequence[Rule]] = [base.rules]
    if suffix := getattr(backend.model, "end_of_word_suffix", None):
        candidates.append([*base.rules, Replace(suffix, " "), StripEnds()])  # as CLIPTokenizer wraps its decode
    for rules in candidates:
        tokenizer = Tokenizer(
            base.vocabulary,
            rules,
            encoder=OwnEncoder(source),
            library=judge,
            cleans_up=base.cleans_up,
            source=name,
            prompt_support=PromptSupport(facts=Once(facts_of_object, source), plain=PlainPieces(Once.given(backend))),
        )
        if not _decodes_itself(source) or equals_library(tokenizer):
            return tokenizer
    return _from_python(source, name)


def _from_python(source: Any, name: str) -> Tokenizer:
    """By rules if its decode is a plain join, else by windows."""
    kind = _class_name(source)
    try:
        listed = dict(source.get_vocab())
        added = {token_id: str(token) for token_id, token in source.added_tokens_decoder.items()}
        tokens = {token_id: token for token, token_id in listed.items()} | added
        special = _skipped_ids(source, tokens, added)
        if not all(isinstance(token_id, int) and isinstance(token, str) for token_id, token in tokens.items()):
            raise TypeError("get_vocab maps strings to integers")
    except Exception as error:  # of foreign code
        found = f"the class does not tell its vocabulary ({error!r})"
        raise SourceError(kind, found=found, accepted="get_vocab, added_tokens_decoder and all_special_ids are needed") from error
    vocabulary = TokenVocabulary(tokens, special=special, added=frozenset(added))
    own_decode = OwnDecode(source, vocabulary)
    judge = OwnLibrary(source, vocabulary, listed)
    prompt_support = PromptSupport(facts=Once(facts_of_object, source), plain=OwnPlain(source))
    join = find_join(
        vocabulary,
        own_decode,
        encoder=OwnEncoder(source),
        library=judge,
        cleans_up=bool(getattr(source, "clean_up_tokenization_spaces", False)),
        source=name,
        remarks=[f"encoded by the Python code of {kind}", "decoded by rules that equal it on every id and on random lists"],
        prompt_support=prompt_support,
    )
    if join is not None:
        return join
    cost = f"known only by the Python code of {kind}, which encodes, and decodes one or two windows at each step"
    return OpaqueTokenizer(
        vocabulary,
        own_decode,
        encoder=OwnEncoder(source),
        library=judge,
        source=name,
        remarks=[cost, "not exact"],
        prompt_support=prompt_support,
    )


def _skipped_ids(source: Any, tokens: Mapping[int, str], added: Collection[int]) -> frozenset[int]:
    """
    The ids that the object's decode really leaves out.

    Not all of `all_special_ids` are: the word delimiter of Wav2Vec2 is one of them, and becomes a space all the same. And others
    are, which were added as special and have no name.
    """
    special = frozenset(token_id for token_id in source.all_special_ids if token_id in tokens)

    def text_of(*ids: int, skips: bool = True) -> str | None:
        try:
            return str(source.decode(list(ids), skip_special_tokens=skips))
        except Exception:  # of foreign code, which need not be able to decode just any ids
            return None

    others = (token_id for token_id in tokens if token_id not in special and token_id not in added)
    # Two different ones, since a decode may write a token once that comes twice in a row.
    first, *then = [*islice((token_id for token_id in others if text_of(token_id)), 2)] or (None,)
    nothing = None if first is None else text_of(first, *then)
    if first is None or nothing is None:
        return special
    found = {token_id for token_id in special if text_of(first, token_id, *then) in (nothing, None)}
    kept = text_of(first, *then, skips=False)
    for token_id in {*added} - special:
        if text_of(first, token_id, *then) == nothing and text_of(first, token_id, *then, skips=False) not in (kept, None):
            found.add(token_id)
    return frozenset(found)


def _decodes_itself(source: Any) -> bool:
    """Whether somebody else than transformers' base classes has a word in the decode: a class, or a wrap of the backend's."""
    if any("decode" in getattr(one, "__dict__", ()) for one in (source, getattr(source, "backend_tokenizer", None))):
        return True
    bases = {"TokenizersBackend", "PreTrainedTokenizerFast", "PreTrainedTokenizerBase"}
    own = [kind for kind in type(source).__mro__ if kind.__name__ not in bases]
    return any(name in vars(kind) for kind in own for name in ("decode", "_decode", "clean_up_tokenization"))


def _class_name(source: Any) -> str:
    return type(source).__name__


def join_segments(tokens: Iterable[str], *, added: Collection[str], to_string: Callable[[list[str]], str], spaces: bool) -> str:
    """
    Return the text of tokens, segmented at added tokens as vLLM does it for Python tokenizers, and transformers did up to 4.57.

    An added token stands for itself; what stands between two of them becomes text together.

    Args:
        tokens: Surface strings.
        added: Those of the added vocabulary.
        to_string: The tokenizer's own ``convert_tokens_to_string``.
        spaces: Whether the segments are joined with a space, which is vLLM's `spaces_between_special_tokens`.

    >>> join_segments(["a", "b", "<x>", "<y>", "c"], added={"<x>", "<y>"}, to_string="".join, spaces=True)
    'ab <x> <y> c'
    """
    segments: list[str] = []
    for is_added, group in groupby(tokens, added.__contains__):
        between = list(group)
        segments += between if is_added else [to_string(between)]
    return (" " if spaces else "").join(segments)
