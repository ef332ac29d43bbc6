"""Clean-up and the tokens of a configuration, as transformers itself has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.tokenizers.huggingface_config import FORCED_CLEAN_UP, TokenizerConfig
from tests.support.handmade import BPE, BYTE_LEVEL, METASPACE, WORDPIECE, byte_level_tokens, make
from tests.support.laws import cuts, split
from tests.support.vocabularies import REAL_NAMES, real

KINDS: dict[str, tuple[Any, list[str], str]] = {
    "WordPiece": (
        {**WORDPIECE, "cleanup": False},
        ["[UNK]", "a", "##b", ".", "'", "s", "n", "##'t", "do", "not", "[SEP]"],
        "WordLevel",
    ),
    "Metaspace": (METASPACE, ["<unk>", "▁a", "▁", ".", "'", "s", "▁n", "'t", "[SEP]"], "WordLevel"),
    "BPE": (BYTE_LEVEL, [*byte_level_tokens(b"a", b" ", b".", b"'", b"s", b"\xe3", b"\x81"), "[SEP]"], "BPE"),
    "BPEDecoder": (BPE, ["a</w>", ".</w>", "'</w>", "s", "n</w>", "'t</w>", "[SEP]"], "WordLevel"),
}


def directory(folder: Path, kind: str, **config: Any) -> Path:
    """A tokenizer's directory as a hub has it."""
    decoder, tokens, model = KINDS[kind]
    folder.mkdir(exist_ok=True)
    make(decoder, tokens, special=["[SEP]"], model=model).save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **config}))
    return folder


def transformers_tokenizer(folder: Path) -> Any:
    """What transformers makes of a directory."""
    transformers = pytest.importorskip("transformers", reason="transformers judges clean-up and configuration")
    return transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)


CONFIGS: list[dict[str, Any]] = [
    {},
    {"clean_up_tokenization_spaces": True},
    {"clean_up_tokenization_spaces": False},
    {"clean_up_tokenization_spaces": True, FORCED_CLEAN_UP: True},
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("config", CONFIGS, ids=["silent", "on", "off", "forced"])
@pytest.mark.parametrize("kind", KINDS)
def test_directory_decodes_as_transformers_does(kind: str, config: dict[str, Any], tmp_path: Path) -> None:
    """For every list: with the configuration's clean-up, and streamed at any split."""
    folder = directory(tmp_path / "tokenizer", kind, **config)
    theirs, ours = transformers_tokenizer(folder), detok.load(folder)

    @given(st.lists(st.sampled_from(ours.ids), max_size=10), cuts, st.booleans())
    def same(ids: list[int], places: list[int], skip: bool) -> None:
        stream = ours.stream(skip_special_tokens=skip)
        text = "".join(map(stream.extend, split(ids, places))) + stream.finish()
        assert text == theirs.decode(ids, skip_special_tokens=skip)

    same()


@pytest.mark.parametrize("kind", KINDS)
def test_explicit_argument_always_wins(kind: str, tmp_path: Path) -> None:
    """True cleans up, False does not, whatever the model is and the configuration says."""
    on = detok.load(directory(tmp_path / "on", kind, clean_up_tokenization_spaces=True))
    off = detok.load(directory(tmp_path / "off", kind, clean_up_tokenization_spaces=False))
    ids = {"WordPiece": [1, 3], "Metaspace": [1, 2, 3], "BPE": [0, 1, 2], "BPEDecoder": [0, 1]}[kind]
    for tokenizer in (on, off):
        assert tokenizer.decode(ids, clean_up_tokenization_spaces=True) == "a."
        assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == "a ."


@pytest.mark.parametrize(
    ("version", "config", "model", "expected"),
    [
        ("4.44.2", {}, "BPE", True),
        ("4.45.0", {}, "BPE", False),
        ("4.57.1", {"clean_up_tokenization_spaces": True}, "BPE", True),
        ("5.0.0", {"clean_up_tokenization_spaces": True}, "BPE", False),
        ("5.24.0", {"clean_up_tokenization_spaces": True, FORCED_CLEAN_UP: True}, "BPE", True),
        ("5.24.0", {"clean_up_tokenization_spaces": True}, "WordPiece", True),
        ("5.24.0", {}, "WordPiece", False),
        ("5.0.0rc1", {"clean_up_tokenization_spaces": False}, "Unigram", False),
    ],
)
def test_rules_are_those_of_the_installed_version(version: str, config: dict[str, Any], model: str, expected: bool) -> None:
    """The default changed in 4.45, and BPE was left out in 5.0."""
    assert TokenizerConfig(config).cleans_up(model, version) is expected


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "config",
    [
        {"eos_token": "</s>", "pad_token": {"__type": "AddedToken", "content": "<pad>", "lstrip": True}},
        {"additional_special_tokens": ["<a>", "a"], "eos_token": "."},
        {"extra_special_tokens": {"image_token": "<img>"}, "bos_token": None},
        {"added_tokens_decoder": {"20": {"content": "<x>", "special": True}, "9": {"content": "<y>", "special": False}}},
        {"added_tokens_decoder": {"3": {"content": ".", "special": True}}, "unk_token": "<unk>"},
    ],
)
def test_tokens_of_the_configuration_are_added_as_transformers_does(config: dict[str, Any], tmp_path: Path) -> None:
    """Same ids, same pieces, same specials."""
    folder = directory(tmp_path / "tokenizer", "Metaspace", **config)
    theirs, ours = transformers_tokenizer(folder), detok.load(folder)
    assert len(ours.ids) == len(theirs)
    for token_id in ours.ids:
        assert ours.piece(token_id).text == theirs.convert_ids_to_tokens(token_id)
        for skip in (True, False):
            ids = [1, token_id, 2]
            assert ours.decode(ids, skip) == theirs.decode(ids, skip_special_tokens=skip)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("declares", "expected"), [(False, {"▁n", "▁a", "[SEP]"}), (True, {"s", "[SEP]"})])
def test_special_tokens_map_goes_first_where_no_tokens_are_declared(declares: bool, expected: set[str], tmp_path: Path) -> None:
    """What both say, special_tokens_map.json decides; with an added_tokens_decoder it is not read."""
    declared: dict[str, Any] = {"added_tokens_decoder": {}} if declares else {}
    folder = directory(tmp_path / "tokenizer", "Metaspace", eos_token="s", **declared)
    (folder / "special_tokens_map.json").write_text(json.dumps({"eos_token": "▁n", "bos_token": {"content": "▁a"}}))
    tokenizer, theirs = detok.load(folder), transformers_tokenizer(folder)
    assert {tokenizer.piece(token_id).text for token_id in tokenizer.special_ids} == expected
    assert {*theirs.all_special_tokens, "[SEP]"} == expected
    assert tokenizer.eos_token_ids == (theirs.eos_token_id,)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "special_tokens_map.json"])
@pytest.mark.parametrize("content", ["", "[1]", '{"a":'])
def test_damaged_configuration_is_named(name: str, content: str, tmp_path: Path) -> None:
    """The error names the file beside the tokenizer, not the tokenizer."""
    folder = directory(tmp_path / "tokenizer", "BPE")
    (folder / name).write_text(content)
    with pytest.raises(detok.SourceError, match=f"{name}: is no JSON object"):
        detok.load(folder)


@pytest.mark.parametrize(
    "config",
    [
        {"added_tokens_decoder": [1, 2]},
        {"added_tokens_decoder": {"x": {"content": "q"}}},
        {"added_tokens_decoder": {"3": None}},
        {"additional_special_tokens": 5},
        {"additional_special_tokens": "<x>"},
        {"additional_special_tokens": [{"content": None}]},
        {"bos_token": "\ud800"},
        {"bos_token": ["a"]},
    ],
)
def test_impossible_tokens_of_a_configuration_are_named(config: dict[str, Any], tmp_path: Path) -> None:
    """The error names file and field, instead of adding a token that nobody meant."""
    folder = directory(tmp_path / "tokenizer", "BPE", **config)
    with pytest.raises(detok.SourceError, match=rf"tokenizer_config\.json: {next(iter(config))} is invalid"):
        detok.load(folder)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in REAL_NAMES if name not in ("gpt-neox", "nepali-unigram", "pgn", "pix2tex")])
def test_real_directory_decodes_as_transformers_does(name: str) -> None:
    """Every real directory with a configuration, on a text and on ids from all over the vocabulary."""
    folder = real(name)
    theirs, ours = transformers_tokenizer(folder), detok.load(folder)
    text = "Hello , world ! I do n't know ' it ' . naïve 日本語 🦜 </s>"
    lists = [theirs(text)["input_ids"], list(range(0, ours.vocab_size, 997)), sorted(ours.added_ids)[:60]]
    for ids in lists:
        for skip in (True, False):
            assert ours.decode(ids, skip) == theirs.decode(ids, skip_special_tokens=skip)
