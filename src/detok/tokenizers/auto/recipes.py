"""
What the classes of transformers build of a tokenizer.json, if they do not take it as it is.

Of the file such a class takes the vocabulary, the merges, the post-processor and the padding; its normaliser, its pre-tokenizer
and its decoder are its own, and so are the special tokens where no file names any. Each recipe here is the ``__init__`` of a
class of transformers 5.24, told by its facts. The model is not built again but shared with the file's: its switches are set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .settings import OLD_EXTRA
from .tokens import Named

__all__ = ["RECIPES", "Parts", "Recipe", "put_around"]

Values = dict[str, Any]

PATTERNS = {
    "Qwen2Tokenizer": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "Qwen3_5Tokenizer": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+"
    ),
}
"""How Qwen's classes cut a text before they merge."""

END_OF_TEXT = "<|endoftext|>"


@dataclass(frozen=True, slots=True)
class Parts:
    """What a class takes out of a tokenizer.json, or of word lists."""

    model: Any
    """Of ``tokenizers.models``, as the file has it."""

    pieces: Callable[[], list[tuple[str, float]]]
    """Gives the pieces of a Unigram model with their scores."""

    charsmap: Callable[[], bytes | None]
    """Gives SentencePiece's table of characters, if the file's normaliser has one."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a class builds its tokenizer."""

    model: str
    """The kind of model that it makes; a file with another kind is not for it."""

    defaults: Mapping[str, Any]
    """Its keywords, where no file says otherwise."""

    make: Callable[[Parts, Values], Any]
    """Makes the ``tokenizers.Tokenizer``, without added tokens and post-processor."""

    finish: Callable[[Any, Named, Values], None] | None = None
    """What it does when the tokens have been added."""

    prepare: Callable[[Values], None] | None = None
    """What it does to its keywords first."""

    reads_lists: bool = False
    """Whether it reads word lists too: vocab.json with merges.txt, or vocab.txt."""

    def fits(self, model: Any) -> bool:
        """Whether the model of a file becomes its own by setting switches; merges that were made with affixes do not."""
        affixes = [getattr(model, name, None) for name in ("continuing_subword_prefix", "end_of_word_suffix")]
        return type(model).__name__ == self.model and (self.model != "BPE" or not any(affixes))


def _tokenizers() -> Any:
    import tokenizers

    return tokenizers


def _bpe(parts: Parts, *, fuse_unk: bool, byte_fallback: bool = False, unk_token: str | None = None) -> Any:
    """A tokenizer with the file's merges, and the switches of a class."""
    model = parts.model
    model.dropout = None
    model.unk_token = unk_token
    model.continuing_subword_prefix = None
    model.end_of_word_suffix = None
    model.fuse_unk = fuse_unk
    model.byte_fallback = byte_fallback
    model.ignore_merges = False
    return _tokenizers().Tokenizer(model)


def _byte_level(parts: Parts, values: Values, *, normalizer: Any = None, before: Any = None, use_regex: bool = True) -> Any:
    library = _tokenizers()
    tokenizer = _bpe(parts, fuse_unk=False)
    letters = library.pre_tokenizers.ByteLevel(add_prefix_space=bool(values.get("add_prefix_space")), use_regex=use_regex)
    tokenizer.pre_tokenizer = letters if before is None else library.pre_tokenizers.Sequence([before, letters])
    tokenizer.decoder = library.decoders.ByteLevel()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    return tokenizer


def _llama(parts: Parts, values: Values) -> Any:
    library = _tokenizers()
    prefixes = values["add_prefix_space"] is None or bool(values["add_prefix_space"])
    scheme = "never" if not prefixes else "always" if values["legacy"] else "first"
    tokenizer = _bpe(parts, fuse_unk=True, byte_fallback=True)
    tokenizer.pre_tokenizer = library.pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme, split=False)
    tokenizer.decoder = _spaced_decoder(strips=prefixes)
    return tokenizer


def _gemma(parts: Parts, values: Values) -> Any:
    library = _tokenizers()
    tokenizer = _bpe(parts, fuse_unk=True, byte_fallback=True, unk_token=str(values["unk_token"]))
    tokenizer.pre_tokenizer = library.pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.normalizer = library.normalizers.Replace(" ", "▁")
    tokenizer.decoder = _spaced_decoder(strips=False)
    return tokenizer


def _spaced_decoder(*, strips: bool) -> Any:
    decoders = _tokenizers().decoders
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence([*steps, decoders.Strip(content=" ", left=1)] if strips else steps)


def _qwen(pattern: str) -> Callable[[Parts, Values], Any]:
    def make(parts: Parts, values: Values) -> Any:
        library = _tokenizers()
        words = library.pre_tokenizers.Split(library.Regex(pattern), "isolated")
        return _byte_level(parts, values, normalizer=library.normalizers.NFC(), before=words, use_regex=False)

    return make


def _gpt2(parts: Parts, values: Values) -> Any:
    return _byte_level(parts, values)


def _gpt_neox(parts: Parts, values: Values) -> Any:
    return _byte_level(parts, values, normalizer=_tokenizers().normalizers.NFC())


def _cohere(parts: Parts, values: Values) -> Any:
    library = _tokenizers()
    digits = library.pre_tokenizers.Digits(individual_digits=True)
    return _byte_level(parts, values, normalizer=library.normalizers.NFC(), before=digits)


def _bert(parts: Parts, values: Values) -> Any:
    library = _tokenizers()
    model = parts.model
    model.unk_token = str(values["unk_token"])
    model.continuing_subword_prefix = "##"
    model.max_input_chars_per_word = 100
    tokenizer = library.Tokenizer(model)
    strips = values["strip_accents"]
    tokenizer.normalizer = library.normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(values["tokenize_chinese_chars"]),
        strip_accents=None if strips is None else bool(strips),
        lowercase=bool(values["do_lower_case"]),
    )
    tokenizer.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = library.decoders.WordPiece(prefix="##")
    return tokenizer


def _unigram(parts: Parts, unk_id: int, scheme: str) -> Any:
    library = _tokenizers()
    tokenizer = library.Tokenizer(library.models.Unigram(parts.pieces(), unk_id=unk_id, byte_fallback=False))
    charsmap = parts.charsmap()
    if charsmap is not None:
        tokenizer.normalizer = library.normalizers.Precompiled(charsmap)
    cutters = library.pre_tokenizers
    spaces = cutters.Metaspace(replacement="▁", prepend_scheme=scheme)
    tokenizer.pre_tokenizer = cutters.Sequence([cutters.WhitespaceSplit(), spaces])
    tokenizer.decoder = library.decoders.Metaspace(replacement="▁", prepend_scheme=scheme)
    return tokenizer


def _t5(parts: Parts, _: Values) -> Any:
    return _unigram(parts, 2, "always")


def _t5_tokens(values: Values) -> None:
    """The sentinels, which count unless the files list special tokens of their own."""
    extra, count = values.get(OLD_EXTRA), int(values["extra_ids"])
    if extra is None or not any("<extra_id_" in str(token) for token in extra):
        values[OLD_EXTRA] = [*(extra or []), *(f"<extra_id_{number}>" for number in range(count))]


def _xlm_roberta(parts: Parts, values: Values) -> Any:
    return _unigram(parts, 3, "always" if values["add_prefix_space"] else "never")


def _roberta_around(tokenizer: Any, named: Named, _: Values) -> None:
    sep, cls = ((text, tokenizer.token_to_id(text)) for text in (str(named.text("sep_token")), str(named.text("cls_token"))))
    tokenizer.post_processor = _tokenizers().processors.RobertaProcessing(sep, cls)


def _xlm_around(tokenizer: Any, named: Named, _: Values) -> None:
    _template(tokenizer, [named.text("bos_token")], [named.text("eos_token")])


def _bert_around(tokenizer: Any, named: Named, _: Values) -> None:
    """Of a token that is taken away, its usual id is left."""
    fallback = (("cls_token", 2), ("sep_token", 3))
    tokens = [(str(named.text(name)), _id_of(tokenizer, named, named.text(name), usual)) for name, usual in fallback]
    tokenizer.post_processor = _tokenizers().processors.TemplateProcessing(
        single=[tokens[0][0], "$A", tokens[1][0]], special_tokens=tokens
    )


def _t5_around(tokenizer: Any, named: Named, _: Values) -> None:
    """The end of a text has the id of whatever token the files call ``eos_token``."""
    tokens = [("</s>", _id_of(tokenizer, named, named.text("eos_token"), None))]
    tokenizer.post_processor = _tokenizers().processors.TemplateProcessing(single=["$A", "</s>"], special_tokens=tokens)


def _template(tokenizer: Any, before: Sequence[str | None], after: Sequence[str | None]) -> None:
    tokens = [(str(text), tokenizer.token_to_id(str(text))) for text in dict.fromkeys((*before, *after))]
    single = [*map(str, before), "$A", *map(str, after)]
    tokenizer.post_processor = _tokenizers().processors.TemplateProcessing(single=single, special_tokens=tokens)


def put_around(tokenizer: Any, named: Named, values: Values) -> None:
    """Let the first and the last token of a text be those that the keywords ask for, as ``update_post_processor`` does."""
    around = [(name, named.text(f"{name}_token")) for name in ("bos", "eos") if values.get(f"add_{name}_token")]
    before, after = ([text for name, text in around if name == wanted and text is not None] for wanted in ("bos", "eos"))
    tokens = [(text, _id_of(tokenizer, named, text, None)) for text in (*before, *after)]
    # One string, which the library cuts at spaces: a token with a space in it is refused.
    single = " ".join([*(f"{text}:0" for text in before), "$A:0", *(f"{text}:0" for text in after)])
    tokenizer.post_processor = _tokenizers().processors.TemplateProcessing(single=single, special_tokens=tokens)


def _id_of(tokenizer: Any, named: Named, text: str | None, usual: int | None) -> int | None:
    """The id of a token; of one that does not exist, that of the unknown token."""
    if text is None:
        return usual
    found = tokenizer.token_to_id(text)
    unknown = named.text("unk_token")
    return tokenizer.token_to_id(unknown) if found is None and unknown is not None else found  # type: ignore[no-any-return]


def _add_all(tokenizer: Any, named: Named, _: Values) -> None:
    """Add every named token as special, though it is there."""
    make = _tokenizers().AddedToken
    tokenizer.add_tokens([make(text, special=True) for text in named.texts()])


def _add_all_special(tokenizer: Any, named: Named, _: Values) -> None:
    """The same, with the flags that a token brings."""
    make = _tokenizers().AddedToken
    tokenizer.add_special_tokens(
        [make(token, special=True, normalized=False) if isinstance(token, str) else token for token in named.all()]
    )


_LLAMA_TOKENS = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "add_prefix_space": None}
_GPT_TOKENS = {"unk_token": END_OF_TEXT, "bos_token": END_OF_TEXT, "eos_token": END_OF_TEXT, "add_prefix_space": False}
_QWEN_TOKENS = {"unk_token": END_OF_TEXT, "bos_token": None, "eos_token": END_OF_TEXT, "pad_token": END_OF_TEXT}
_ROBERTA_TOKENS = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "sep_token": "</s>",
    "cls_token": "<s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
}
_BERT = Recipe(
    "WordPiece",
    {
        "do_lower_case": True,
        "tokenize_chinese_chars": True,
        "strip_accents": None,
        "unk_token": "[UNK]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
    },
    _bert,
    _bert_around,
    reads_lists=True,
)

RECIPES: Mapping[str, Recipe] = {
    "LlamaTokenizer": Recipe("BPE", {**_LLAMA_TOKENS, "legacy": False}, _llama),
    "GemmaTokenizer": Recipe(
        "BPE",
        {"unk_token": "<unk>", "bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", "mask_token": "<mask>"},
        _gemma,
    ),
    "Qwen2Tokenizer": Recipe("BPE", _QWEN_TOKENS, _qwen(PATTERNS["Qwen2Tokenizer"]), _add_all, reads_lists=True),
    "Qwen3_5Tokenizer": Recipe("BPE", _QWEN_TOKENS, _qwen(PATTERNS["Qwen3_5Tokenizer"])),
    "GPT2Tokenizer": Recipe("BPE", {**_GPT_TOKENS, "pad_token": None}, _gpt2, reads_lists=True),
    "GPTNeoXTokenizer": Recipe("BPE", {**_GPT_TOKENS, "pad_token": "<|padding|>"}, _gpt_neox, put_around, reads_lists=True),
    "CohereTokenizer": Recipe(
        "BPE",
        {
            "unk_token": "<UNK>",
            "bos_token": "<BOS_TOKEN>",
            "eos_token": "<|END_OF_TURN_TOKEN|>",
            "pad_token": "<PAD>",
            "cls_token": "<CLS>",
            "sep_token": "<SEP>",
            "mask_token": "<MASK_TOKEN>",
        },
        _cohere,
        _add_all_special,
        reads_lists=True,
    ),
    "RobertaTokenizer": Recipe("BPE", _ROBERTA_TOKENS, _gpt2, _roberta_around, reads_lists=True),
    "BertTokenizer": _BERT,
    "DistilBertTokenizer": _BERT,
    "T5Tokenizer": Recipe(
        "Unigram",
        {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "extra_ids": 100},
        _t5,
        _t5_around,
        _t5_tokens,
    ),
    "XLMRobertaTokenizer": Recipe("Unigram", {**_ROBERTA_TOKENS, "add_prefix_space": True}, _xlm_roberta, _xlm_around),
}
"""By the name of the class; every other class that builds its tokenizer itself needs transformers."""
