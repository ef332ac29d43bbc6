"""Random directories of tokenizers: every file that transformers reads, each by chance, often contradicting the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from detok.data import sample, tokenizer_directory
from tests.support.vocabularies import real

Json = dict[str, Any]

STANDARD = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
OTHERS = ("image_token", "think_token", "boi_token", "word_delimiter_token")
# What real files name, and what is in none.
STRINGS = ("<s>", "</s>", "<unk>", "<pad>", "<mask>", "[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]", "<|endoftext|>", "<|im_end|>")
STRANGERS = ("<new>", "<image>", "<think>", " x ", "ab", "é", "<bos>", "<eos>", "</tool_call>", "<extra_id_0>", "İ", "▁y")
CLASSES = {
    "byte level": ("Qwen2Tokenizer", "Qwen2TokenizerFast", "GPT2Tokenizer", "GPTNeoXTokenizerFast", "CohereTokenizer"),
    "spaced": ("LlamaTokenizer", "LlamaTokenizerFast", "GemmaTokenizer", "GemmaTokenizerFast", "CodeLlamaTokenizer"),
    "WordPiece": ("BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "ElectraTokenizerFast", "MobileBertTokenizer"),
    "Unigram": ("T5Tokenizer", "T5TokenizerFast", "XLMRobertaTokenizerFast", "XLMRobertaTokenizer"),
    "words": (),
}
MORE_BYTE_LEVEL = ("RobertaTokenizer", "BartTokenizerFast", "Qwen3_5Tokenizer", "LlamaTokenizer")
ANY_CLASS = ("PreTrainedTokenizerFast", "TokenizersBackend", "PreTrainedTokenizer", "NoSuchTokenizer", "BloomTokenizerFast")
MODELS = (
    "llama",
    "qwen2",
    "qwen3",
    "gemma3",
    "gpt2",
    "bert",
    "t5",
    "mistral",
    "olmo2",
    "phi3",
    "internlm2",
    "nonesuch",
    "cohere",
)
MORE_MODELS = (
    "xlm-roberta",
    "roberta",
    "mbart",
    "albert",
    "deberta-v2",
    "gpt_neox",
    "falcon",
    "parakeet_ctc",
    "pegasus",
    "whisper",
)
"""Whose classes have no rules here, so that transformers makes their tokenizers."""

LISTED = {
    "byte level": ("Qwen2Tokenizer", "GPT2Tokenizer", "GPTNeoXTokenizerFast", "CohereTokenizer", "RobertaTokenizerFast"),
    "WordPiece": ("BertTokenizer", "DistilBertTokenizerFast", "ElectraTokenizer"),
}
"""The classes that read word lists."""

REAL = {
    "pgn": "byte level",
    "minilm": "WordPiece",
    "pix2tex": "byte level",
    "gpt-neox": "byte level",
    "mistral-v1": "spaced",
    "qwen3": "byte level",
    "llama3": "byte level",
    "gemma3": "spaced",
    "nepali-unigram": "Unigram",
}


@dataclass
class Directory:
    """A directory, and what was written into it."""

    path: Path
    kind: str
    files: dict[str, Json | str] = field(default_factory=dict)

    def write(self) -> Path:
        """Write all files."""
        self.path.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            (self.path / name).write_text(text, encoding="utf-8")
        return self.path


def random_directory(rng: Random, path: Path, *, real_one: bool = False) -> Directory:
    """Make a directory, not yet written."""
    if real_one:
        name = rng.choice(sorted(REAL))
        kind, content = REAL[name], _real(name)
    else:
        kind = rng.choice(sorted(CLASSES))
        content = json.loads(_small(kind))
    vocabulary = _texts(content)
    if not real_one or rng.random() < 0.5:
        _change(rng, content, vocabulary)
    made = Directory(path, kind, {"tokenizer.json": content})
    names = [*STRINGS, *STRANGERS, *rng.choices(vocabulary, k=8), *(token["content"] for token in content["added_tokens"][:20])]
    chance = Chance(rng, names)
    as_lists = kind in LISTED and not real_one and rng.random() < 0.25
    if as_lists:
        made.files = _lists(content, kind)
    if as_lists or rng.random() < 0.85:
        config = _config(chance, kind, content)
        made.files["tokenizer_config.json"] = {**config, "tokenizer_class": rng.choice(LISTED[kind])} if as_lists else config
    if rng.random() < 0.3:
        made.files["special_tokens_map.json"] = _map(chance)
        if "added_tokens_decoder" in made.files.get("tokenizer_config.json", {}) and rng.random() < 0.3:
            made.files["special_tokens_map.json"] = {
                name: chance.stranger() for name in (*STANDARD[:4], "additional_special_tokens")
            }
    if rng.random() < 0.2:
        texts = rng.sample(names, 3)
        made.files["added_tokens.json"] = {text: len(vocabulary) + at for at, text in enumerate(texts)}
    if rng.random() < 0.4 and not as_lists:  # a model whose class reads other lists than there are has a vocabulary of two tokens
        made.files["config.json"] = _model(rng)
    return made


@dataclass
class Chance:
    """Chooses tokens."""

    rng: Random
    names: Sequence[str]

    def text(self) -> str:
        """The text of some token."""
        return self.rng.choice(self.names)

    def token(self, *, marked: bool = True) -> Any:
        """A token as a file has it: mostly a string, else an object."""
        if self.rng.random() < 0.7:
            return self.text()
        mark = {"__type": "AddedToken"} if marked else {}
        return {**mark, "content": self.text(), **self.flags(), **({"special": self.rng.random() < 0.7} if marked else {})}

    def flags(self) -> Json:
        """The flags of a token but that which makes it special."""
        return {name: self.rng.random() < 0.15 for name in ("lstrip", "rstrip", "single_word")} | {
            "normalized": self.rng.random() < 0.3
        }

    def stranger(self) -> Any:
        """What stands where a token may stand: an object without transformers' mark, or no token at all."""
        unmarked = {"content": self.text(), **self.flags()}
        marked = {"__type": "AddedToken", "content": self.text(), "normalized": None}
        return self.rng.choice([unmarked, marked, {"a": 1}, "", 5, True, [self.text()], None])

    def some(self, make: Callable[[], Any], most: int = 3) -> list[Any]:
        """A list of up to so many."""
        return [make() for _ in range(self.rng.randint(0, most))]


def _lists(content: Json, kind: str) -> dict[str, Json | str]:
    """The vocabulary of a tokenizer.json as the lists that older classes read."""
    vocabulary = content["model"]["vocab"]
    if kind == "WordPiece":
        return {"vocab.txt": "".join(f"{text}\n" for text in sorted(vocabulary, key=vocabulary.__getitem__))}
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in content["model"]["merges"]]
    return {"vocab.json": vocabulary, "merges.txt": "\n".join(["#version: 0.2", *merges]) + "\n"}


def _config(chance: Chance, kind: str, content: Json) -> Json:
    rng = chance.rng
    config: Json = {}
    if rng.random() < 0.7:
        classes = (*CLASSES[kind], *(MORE_BYTE_LEVEL if kind == "byte level" else ()))
        config["tokenizer_class"] = rng.choice(ANY_CLASS if rng.random() < 0.4 or not classes else classes)
    for name in STANDARD:
        if rng.random() < 0.35:
            config[name] = None if rng.random() < 0.15 else chance.token()
    for name in OTHERS:
        if rng.random() < 0.08:
            config[name] = chance.token()
    if rng.random() < 0.3:
        mapped = {name: chance.token() for name in rng.sample([*OTHERS, "eos_token"], rng.randint(0, 2))}
        config["extra_special_tokens"] = rng.choice([mapped, chance.some(chance.token), None])
    if rng.random() < 0.3:
        config["additional_special_tokens"] = chance.some(chance.token)
    if rng.random() < 0.1:
        config["model_specific_special_tokens"] = {name: chance.token() for name in rng.sample(OTHERS, rng.randint(0, 2))}
    if rng.random() < 0.45:
        config["added_tokens_decoder"] = _decoder(chance, content)
    if rng.random() < 0.3:
        config["clean_up_tokenization_spaces"] = rng.choice((True, False, None))
    for name, values in SETTINGS.items():
        if rng.random() < 0.12:
            config[name] = rng.choice(values)
    if rng.random() < 0.25:
        # What transformers passes over, since it is no token, or since another file counts.
        config |= {name: chance.stranger() for name in rng.sample([*OTHERS, "sot_token", "prefix_token"], rng.randint(1, 3))}
    items = list(config.items())
    rng.shuffle(items)
    return dict(items)


DECODERS: Sequence[Json | None] = (
    None,
    {"type": "Fuse"},
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    {"type": "WordPiece", "prefix": "##", "cleanup": False},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
    {"type": "BPEDecoder", "suffix": "</w>"},
)

SETTINGS: Mapping[str, Sequence[Any]] = {
    "add_bos_token": (True, False),
    "add_eos_token": (True,),
    "add_prefix_space": (True, False, None),
    "legacy": (True, False),
    "do_lower_case": (True, False),
    "strip_accents": (True, False, None),
    "tokenize_chinese_chars": (False,),
    "split_special_tokens": (True, False),
    "model_max_length": (7,),
    "padding_side": ("left",),
    "extra_ids": (0, 3),
    "use_fast": (True, False),
    "from_slow": (True,),
    "tokenizer_file": (None, "nowhere"),
    "auto_map": ({}, {"AutoModel": "x.Y"}),
    "trim_offsets": (True, False),
    "fix_mistral_regex": (True, False),
    "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output": (True, False),
}


def _decoder(chance: Chance, content: Json) -> Json:
    """Mostly what the tokenizer.json has; sometimes with other flags, less, more, or other ids."""
    rng = chance.rng
    found: Json = {}
    for token in content["added_tokens"]:
        if rng.random() < 0.9:
            declared = {key: value for key, value in token.items() if key != "id"}
            if rng.random() < 0.1:
                declared |= {"special": rng.random() < 0.5} | (chance.flags() if rng.random() < 0.5 else {})
            found[str(token["id"])] = declared
    for _ in range(rng.randint(0, 2)):
        found[str(rng.randrange(40_000))] = {"content": chance.text(), **chance.flags(), "special": rng.random() < 0.5}
    return found


def _map(chance: Chance) -> Json:
    rng = chance.rng
    found: Json = {name: chance.token(marked=False) for name in STANDARD if rng.random() < 0.4}
    if rng.random() < 0.3:
        found["additional_special_tokens"] = chance.some(chance.text)
    if rng.random() < 0.15:
        found["extra_special_tokens"] = rng.choice(
            [chance.some(lambda: chance.token(marked=False)), {"image_token": chance.text()}]
        )
    return found


def _model(rng: Random) -> Json:
    model: Json = {"model_type": rng.choice(MODELS if rng.random() < 0.7 else MORE_MODELS)}
    if rng.random() < 0.2:
        model["tokenizer_class"] = rng.choice(("PreTrainedTokenizerFast", "GPT2Tokenizer", "LlamaTokenizerFast"))
    return model


def _change(rng: Random, content: Json, vocabulary: Sequence[str]) -> None:
    """Change what is around the model of a tokenizer.json."""
    chance = Chance(rng, [*STRINGS, *STRANGERS, *rng.choices(vocabulary, k=8)])
    ids = {text: at for at, text in enumerate(vocabulary)}
    added = [token for token in content["added_tokens"] if rng.random() < 0.8]
    for text in chance.some(chance.text, 4):
        if all(token["content"] != text for token in added):
            token_id = ids.get(text, len(vocabulary) + len(added) + 10)
            added.append({"id": token_id, "content": text, **chance.flags(), "special": rng.random() < 0.6})
    for token in added:
        if rng.random() < 0.1:
            token["special"] = not token["special"]
    if added and rng.random() < 0.15:
        twice = rng.choice(added)
        added.append({**twice, "special": not twice["special"]})
    content["added_tokens"] = sorted(added, key=lambda token: int(token["id"]))
    if rng.random() < 0.3:
        content["normalizer"] = rng.choice((None, {"type": "NFC"}, {"type": "Lowercase"}))
    if rng.random() < 0.3:
        first = rng.choice(vocabulary)
        special = {first: {"id": first, "ids": [ids[first]], "tokens": [first]}}
        text = {"Sequence": {"id": "A", "type_id": 0}}
        single = [{"SpecialToken": {"id": first, "type_id": 0}}, text]
        pair = [*single, {"Sequence": {"id": "B", "type_id": 0}}]
        content["post_processor"] = {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}
    if rng.random() < 0.2:
        content["decoder"] = rng.choice(DECODERS)
    if rng.random() < 0.1:
        content["pre_tokenizer"] = rng.choice((None, {"type": "WhitespaceSplit"}, {"type": "Digits", "individual_digits": True}))
    if rng.random() < 0.1:
        sep, cls = ([text, ids[text]] for text in rng.choices(vocabulary, k=2))
        content["post_processor"] = {"type": "BertProcessing", "sep": sep, "cls": cls}
    if rng.random() < 0.15:
        content["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    if content["model"].get("type") == "BPE" and rng.random() < 0.2:
        content["model"] |= {
            name: rng.random() < 0.5 for name in ("ignore_merges", "byte_fallback", "fuse_unk") if rng.random() < 0.5
        }
    if rng.random() < 0.15:
        pad = rng.choice((*vocabulary[:20], "<pad>", "[PAD]"))
        content["padding"] = {
            "strategy": "BatchLongest",
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": ids.get(pad, 0),
            "pad_type_id": 0,
            "pad_token": pad,
        }


def _texts(content: Json) -> list[str]:
    """The tokens of a model, by id."""
    vocabulary = content["model"]["vocab"]
    if isinstance(vocabulary, list):
        return [piece for piece, _ in vocabulary]
    return sorted(vocabulary, key=vocabulary.__getitem__)


def _real(name: str) -> Json:
    content: Json = json.loads((real(name) / "tokenizer.json").read_bytes())
    return content


@cache
def _small(kind: str) -> str:
    """A tokenizer of a kind, trained on the samples."""
    import tokenizers
    from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

    if kind == "byte level":
        return (tokenizer_directory() / "tokenizer.json").read_text(encoding="utf-8")
    lines = [line for name in ("english", "french", "japanese", "code") for line in sample(name).split("\n") if line][:200]
    made: Any
    trainer: Any
    if kind == "spaced":
        made = tokenizers.Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
        made.normalizer = normalizers.Replace(" ", "▁")
        bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
        trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>", "<s>", "</s>", *bytes_], show_progress=False)
        made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    elif kind == "WordPiece":
        made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        trainer = trainers.WordPieceTrainer(vocab_size=700, special_tokens=special, show_progress=False)
        made.decoder = decoders.WordPiece()
    elif kind == "Unigram":
        made = tokenizers.Tokenizer(models.Unigram())
        made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        special = ["<s>", "<pad>", "</s>", "<unk>"]
        trainer = trainers.UnigramTrainer(vocab_size=500, special_tokens=special, unk_token="<unk>", show_progress=False)
    else:
        made = tokenizers.Tokenizer(models.WordLevel(unk_token="<unk>"))
        made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        trainer = trainers.WordLevelTrainer(vocab_size=300, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False)
    made.train_from_iterator(lines, trainer)
    content = json.loads(made.to_str())
    if kind == "spaced":
        content["added_tokens"] = [token for token in content["added_tokens"] if token["id"] < 3]
    return json.dumps(content)
