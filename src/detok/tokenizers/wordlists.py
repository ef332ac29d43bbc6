"""
Vocabularies that are plain lists: vocab.json with merges.txt (GPT-2, CLIP), CLIP's list of merges, BERT's vocab.txt.

Each becomes a ``tokenizers.Tokenizer``, built as the classes of ``transformers`` build theirs, with the special tokens that the
files beside it name, or else the usual ones. From there on it is as any tokenizer.json.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.decoding.cleanup import TRANSFORMERS_CLEANUP, clean_up
from ..core.decoding.rules import StripEnds
from ..errors import SourceError
from . import auto, huggingface
from .huggingface_config import TokenizerConfig, read_config
from .reading import library
from .tokenizer import Tokenizer
from .wordlist_files import (
    CLIP_MERGES,
    WORD_END,
    added_tokens,
    clip_vocabulary,
    merges_of,
    text_of,
    vocabulary_of_json,
    vocabulary_of_lines,
)

__all__ = ["from_directory", "from_file"]

ACCEPTED = "a vocab.json with a merges.txt beside it, CLIP's bpe_simple_vocab_16e6.txt.gz or BERT's vocab.txt was expected"
WITH_TRANSFORMERS = "load the directory with transformers, or give a tokenizer.json"
NAMES = ("vocab.json", "encoder.json", "vocab.txt", "bpe_simple_vocab_16e6.txt.gz")
"""Of files in a directory, the first that is there."""

START, END = "<|startoftext|>", "<|endoftext|>"
# The classes of transformers that a list is read for, and their special tokens where no file says otherwise.
GPT2 = (("GPT2Tokenizer",), {"bos_token": END, "eos_token": END, "unk_token": END})
CLIP = (("CLIPTokenizer",), {"bos_token": START, "eos_token": END, "unk_token": END, "pad_token": END})
BERT = (
    ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer", "ConvBertTokenizer"),
    {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]", "mask_token": "[MASK]"},
)
Family = tuple[Sequence[str], Mapping[str, str]]

SPACE = "Ġ"
"""The letter for a space in the byte alphabet of GPT-2."""

CLIP_PATTERN = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def from_file(path: Path) -> Tokenizer:
    """
    Load a vocab.json (with the merges.txt beside it), CLIP's list of merges or a vocab.txt; its content tells which it is.

    Raises:
        SourceError: It is none of these, damaged, has an entry or an id twice, or is of a class that does not decode like these.
        MissingExtra: The tokenizers library is not installed.
    """
    text = text_of(path, ACCEPTED)
    title, _, _ = text.partition("\n")
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        return _from_json(path, text)
    if "bpe_simple_vocab" in title:
        return _from_clip_merges(path, text)
    if title.startswith("#version"):
        raise SourceError(path, found="is a list of merges, which has no ids", accepted="give the vocab.json that it belongs to")
    return _from_lines(path, text)


def from_directory(directory: Path) -> Tokenizer:
    """Load a directory that has one of these files. Errors as `from_file`."""
    for name in NAMES:
        if (directory / name).is_file():
            return from_file(directory / name)
    raise SourceError(directory, found="the directory has no such file", accepted=ACCEPTED)


def _from_json(path: Path, text: str) -> Tokenizer:
    """As GPT2Tokenizer, or if words have an end as CLIPTokenizer."""
    vocabulary, remarks = vocabulary_of_json(path, text, ACCEPTED)
    merges_path = _merges_beside(path)
    merges = merges_of(merges_path, text_of(merges_path, ACCEPTED))
    ends_words = any(entry.endswith(WORD_END) for entry in vocabulary)
    if not ends_words:
        made = _by_class(path, lambda: _library().models.BPE(vocabulary, merges), remarks)
        if made is not None:
            return made
    if SPACE not in vocabulary:
        found = f"is no byte-level vocabulary: it has no {SPACE}, the letter for a space"
        raise SourceError(path, found=found, accepted=WITH_TRANSFORMERS)
    if ends_words:
        config = _config(path, CLIP, vocabulary)
        return _stripped(_clip(path, vocabulary, merges, config), config, path)
    config = _config(path, GPT2, vocabulary)
    tokenizers = _library()
    tokenizer = _tokenizer(path, lambda: tokenizers.models.BPE(vocabulary, merges, fuse_unk=False))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=bool(config.values.get("add_prefix_space")))
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    around = [config.values.get(f"{name}_token") if config.values.get(f"add_{name}_token") else None for name in ("bos", "eos")]
    _add_tokens(path, tokenizer, config, around)
    return huggingface.from_object(tokenizer, source=str(path), config=config, directory=path.parent, remarks=remarks)


def _by_class(path: Path, model: Callable[[], Any], remarks: Sequence[str]) -> Tokenizer | None:
    """What the class makes of a list that AutoTokenizer takes for it; None where it has none, or none that is known here."""
    directory = path.parent
    chosen = auto.class_of(directory)
    if chosen.name == auto.BACKEND:
        return None
    made = _tokenizer(path, model)
    if not auto.has_rules(chosen, made.model, of_lists=True):
        return None
    built = auto.build_of_lists(directory, chosen, made.model)
    return huggingface.of_directory(
        built, directory, source=str(path), remarks=remarks, judged=not (directory / "tokenizer.json").is_file()
    )


def _merges_beside(path: Path) -> Path:
    """The merges of a vocab.json: under the name that belongs to its own, transformers' or OpenAI's."""
    for name in (f"{path.stem.replace('vocab', 'merges')}.txt", "merges.txt", "vocab.bpe"):
        if path.with_name(name).is_file():
            return path.with_name(name)
    raise SourceError(path, found="there is no merges.txt beside it", accepted=ACCEPTED)


def _from_clip_merges(path: Path, text: str) -> Tokenizer:
    """As the SimpleTokenizer of CLIP decodes, which keeps the space behind the last word."""
    merges = merges_of(path, text, limit=CLIP_MERGES)
    vocabulary = clip_vocabulary(merges, (START, END))
    config = _config(path, CLIP, vocabulary)
    return huggingface.from_object(
        _clip(path, vocabulary, merges, config), source=str(path), config=config, directory=path.parent
    )


def _clip(path: Path, vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]], config: TokenizerConfig) -> Any:
    tokenizers = _library()
    unknown = _content(config.values.get("unk_token"))
    settings = {"unk_token": unknown} if unknown in vocabulary else {}
    tokenizer = _tokenizer(
        path, lambda: tokenizers.models.BPE(vocabulary, merges, end_of_word_suffix=WORD_END, fuse_unk=False, **settings)
    )
    normalizers, cutters, decoders = tokenizers.normalizers, tokenizers.pre_tokenizers, tokenizers.decoders
    spaces = normalizers.Replace(tokenizers.Regex(r"\s+"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), spaces, normalizers.Lowercase()])
    words = cutters.Split(tokenizers.Regex(CLIP_PATTERN), "removed", invert=True)
    tokenizer.pre_tokenizer = cutters.Sequence([words, cutters.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Replace(WORD_END, " ")])
    _add_tokens(path, tokenizer, config, [config.values.get("bos_token"), config.values.get("eos_token")])
    return tokenizer


class StrippedLibrary:
    """The one-shot decode of CLIPTokenizer: of the library, without white space at both ends."""

    def __init__(self, tokenizer: Any, *, cleans_up: bool) -> None:
        self._library = huggingface.HuggingFaceLibrary(tokenizer, cleans_up=False)
        self._cleans_up = cleans_up
        self.backend = tokenizer
        self.name = f"{self._library.name}, stripped as CLIPTokenizer of transformers does"

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Decode, without the ids at which the library raises."""
        text = self._library.decode(ids, skip_special_tokens=skip_special_tokens).strip()
        return clean_up(text, TRANSFORMERS_CLEANUP) if self._cleans_up else text

    def tokens(self) -> Mapping[str, int]:
        """Every token of the model with its id."""
        return self._library.tokens()


def _stripped(tokenizer: Any, config: TokenizerConfig, path: Path) -> Tokenizer:
    source = str(path)
    base = huggingface.from_object(tokenizer, source=source, config=config, directory=path.parent)
    return Tokenizer(
        base.vocabulary,
        [*base.rules, StripEnds()],
        encoder=huggingface.encoder_of(tokenizer),
        library=StrippedLibrary(tokenizer, cleans_up=base.cleans_up),
        cleans_up=base.cleans_up,
        source=source,
        prompt_support=base.prompts.support,
    )


def _from_lines(path: Path, text: str) -> Tokenizer:
    """As BertTokenizer."""
    vocabulary, remarks = vocabulary_of_lines(path, text)
    made = _by_class(path, lambda: _library().models.WordPiece(vocabulary), remarks)
    if made is not None:
        return made
    config = _config(path, BERT, vocabulary)
    unknown = _content(config.values.get("unk_token", "[UNK]"))
    if unknown not in vocabulary:
        raise SourceError(path, found=f"has no line {unknown!r}, as a vocab.txt has", accepted=ACCEPTED)
    tokenizers = _library()
    tokenizer = _tokenizer(path, lambda: tokenizers.models.WordPiece(vocabulary, unk_token=unknown))
    strips = config.values.get("strip_accents")
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(config.values.get("tokenize_chinese_chars", True)),
        strip_accents=None if strips is None else bool(strips),
        lowercase=bool(config.values.get("do_lower_case", True)),
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece(prefix="##")
    _add_tokens(path, tokenizer, config, [config.values.get("cls_token"), config.values.get("sep_token")])
    return huggingface.from_object(tokenizer, source=str(path), config=config, directory=path.parent, remarks=remarks)


def _config(path: Path, family: Family, vocabulary: Mapping[str, int]) -> TokenizerConfig:
    """
    What the files beside a list say, and what is usual where they are silent and the vocabulary has it.

    Raises:
        SourceError: One of them is damaged, or says that the tokenizer is of a class outside the family.
    """
    classes, usual = family
    values = dict(read_config(path.parent).values)
    kind = str(values.get("tokenizer_class") or classes[0]).removesuffix("Fast")
    if kind not in classes:
        raise SourceError(path, found=f"tokenizer_config.json beside it says {kind}", accepted=WITH_TRANSFORMERS)
    values |= {name: token for name, token in usual.items() if name not in values and token in vocabulary}
    if not values.get("added_tokens_decoder"):
        named = {_content(values.get(name)) for name in values if name.endswith("_token")}
        values["added_tokens_decoder"] = {
            token_id: {"content": token, "special": token in named} for token, token_id in added_tokens(path.parent).items()
        }
    return TokenizerConfig(values)


def _add_tokens(path: Path, tokenizer: Any, config: TokenizerConfig, around: Sequence[Any]) -> None:
    """Add what the configuration names to the vocabulary, and the special tokens around a text."""
    tokenizer.add_tokens(config.missing_tokens(tokenizer))
    for token_id, token in config.values["added_tokens_decoder"].items():
        found = tokenizer.token_to_id(_content(token))
        if found != int(token_id):
            found = f"the added token {_content(token)!r} should have the id {token_id}, but {found} is next"
            raise SourceError(path, found=found, accepted="added tokens must follow the vocabulary without a gap")
    ids = {_content(token): tokenizer.token_to_id(_content(token)) for token in around if token}
    before, after = ([_content(token)] if token and ids[_content(token)] is not None else [] for token in around)
    if not before and not after:
        return
    processors = _library().processors
    try:
        specials = [(token, ids[token]) for token in {*before, *after}]
        tokenizer.post_processor = processors.TemplateProcessing(single=[*before, "$A", *after], special_tokens=specials)
    except Exception as error:  # the library raises Exception itself
        found = f"the tokenizers library refuses {' and '.join(map(repr, [*before, *after]))} around a text: {error}"
        raise SourceError(path, found=found, accepted="mend tokenizer_config.json beside it") from error


def _content(token: Any) -> str:
    return str(token.get("content", "")) if isinstance(token, Mapping) else str(token)


def _library() -> Any:
    return library("tokenizers", extra="hf", purpose="a vocabulary that is a plain list")


def _tokenizer(path: Path, model: Callable[[], Any]) -> Any:
    try:
        return _library().Tokenizer(model())
    except Exception as error:  # the library raises Exception itself
        raise SourceError(path, found=f"the tokenizers library refuses it: {error}", accepted=ACCEPTED) from error
