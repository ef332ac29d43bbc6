"""What a directory becomes: special tokens however they came, classes that rebuild, with transformers and without."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
import tokenizers
from tokenizers import AddedToken

import detok
from detok.tokenizers import auto
from tests.support.against_auto import differences
from tests.support.handmade import BYTE_LEVEL, byte_level_tokens, make
from tests.support.vocabularies import real

pytestmark = pytest.mark.filterwarnings("ignore")

NAMES = ["</s>", "<think>", "</tool_call>", "<x>"]


def content() -> dict[str, Any]:
    """A small tokenizer.json with a special token and some that are only added."""
    tokens = [*byte_level_tokens(b"a", b"b", b"!"), *NAMES]
    value: dict[str, Any] = json.loads(make(BYTE_LEVEL, tokens, special=["</s>"], added=NAMES).to_str())
    return value


def directory(path: Path, **files: Any) -> Path:
    """A directory with it, and other files by their names without the ending."""
    for name, value in {"tokenizer": content(), **files}.items():
        (path / f"{name}.json").write_text(json.dumps(value))
    return path


# The cases of public reports: what a configuration makes special.
MADE_SPECIAL: dict[str, dict[str, Any]] = {
    "a named token": {"tokenizer_config": {"eos_token": "</tool_call>"}},
    "another one": {"tokenizer_config": {"pad_token": "</tool_call>"}},
    "a name of its own": {"tokenizer_config": {"call_token": "</tool_call>"}},
    "a mapping": {"tokenizer_config": {"extra_special_tokens": {"call_token": "</tool_call>"}}},
    "a mapping of a class": {"tokenizer_config": {"model_specific_special_tokens": {"call_token": "</tool_call>"}}},
    "a map beside": {"special_tokens_map": {"eos_token": "</tool_call>"}},
    "additional ones of a class": {
        "tokenizer_config": {"additional_special_tokens": ["</tool_call>"], "tokenizer_class": "Qwen2Tokenizer"}
    },
}
NOT_SPECIAL: dict[str, dict[str, Any]] = {
    "additional ones that are there already": {"tokenizer_config": {"additional_special_tokens": ["</tool_call>"]}},
    "a map that is not read": {
        "tokenizer_config": {"added_tokens_decoder": {}},
        "special_tokens_map": {"eos_token": "</tool_call>"},
    },
    "a flag": {"tokenizer_config": {"call_token": True}},
    "an object without transformers' mark": {"tokenizer_config": {"call_token": {"content": "</tool_call>", "special": True}}},
    "a map of nonsense that is not read": {
        "tokenizer_config": {"added_tokens_decoder": {}},
        "special_tokens_map": {"eos_token": 5, "additional_special_tokens": [None, {"a": 1}], "call_token": ["</tool_call>"]},
    },
    "nonsense that a map covers": {
        "tokenizer_config": {"eos_token": ["</tool_call>"]},
        "special_tokens_map": {"eos_token": "</s>", "pad_token": {"a": 1}},
    },
}


@pytest.mark.parametrize("case", MADE_SPECIAL | NOT_SPECIAL)
def test_special_is_what_the_configuration_makes_special(case: str, tmp_path: Path) -> None:
    """As AutoTokenizer has it, in text, in ids and in encode."""
    path = directory(tmp_path, **(MADE_SPECIAL | NOT_SPECIAL)[case])
    tokenizer = detok.load(path)
    assert tokenizer.decode([0, 5, 1]) == ("ab" if case in MADE_SPECIAL else "a</tool_call>b")
    assert (5 in tokenizer.special_ids) is (case in MADE_SPECIAL)
    assert not list(differences(path, Random(case)))


def test_named_token_that_does_not_exist_gets_the_next_id(tmp_path: Path) -> None:
    """In transformers' order, which is not that of the file."""
    path = directory(tmp_path, tokenizer_config={"x_token": "<3>", "eos_token": "<2>", "bos_token": "<1>", "pad_token": "a"})
    tokenizer = detok.load(path)
    assert [tokenizer.piece(token_id).text for token_id in (7, 8, 9)] == ["<1>", "<2>", "<3>"]
    assert tokenizer.eos_token_ids == (8,)
    assert not list(differences(path, Random(0)))


def test_name_without_a_token_takes_no_place_in_the_order(tmp_path: Path) -> None:
    """A null, whose name a mapping has too, does not come before the tokens that a file names after it."""
    config = {"think_token": None, "image_token": "<1>", "extra_special_tokens": {"think_token": "<2>"}}
    path = directory(tmp_path, tokenizer_config=config)
    assert [detok.load(path).piece(token_id).text for token_id in (7, 8)] == ["<1>", "<2>"]
    assert not list(differences(path, Random(0)))


def test_empty_token_around_a_text_of_word_lists(tmp_path: Path) -> None:
    """It has the id of the unknown token, as transformers looks it up."""
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n")
    config = {"tokenizer_class": "DistilBertTokenizer", "bos_token": "", "add_bos_token": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert not list(differences(tmp_path, Random(0)))


def test_word_lists_of_a_class_without_rules_are_made_by_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is installed; else the refusal says which class it is."""
    words = {text: at for at, text in enumerate(["<pad>", "<s>", "</s>", "<unk>", "|", "a", "b"])}
    for name, value in {"vocab": words, "tokenizer_config": {"tokenizer_class": "Wav2Vec2CTCTokenizer"}}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    tokenizer = detok.load(tmp_path)
    assert tokenizer.decode([5, 5, 4, 0, 6]) == "a b"
    assert tokenizer.built.startswith("transformers ")
    monkeypatch.setitem(sys.modules, "transformers", None)
    (tmp_path / "vocab.json").write_text(json.dumps({**words, "c": 7}))
    with pytest.raises(detok.SourceError, match=r"vocab\.json: there is no merges\.txt beside it"):
        detok.load(tmp_path)


@pytest.mark.parametrize("model", ["parakeet_ctc", "lasr_ctc"])
def test_special_of_a_class_with_its_own_decode_is_what_it_leaves_out(model: str, tmp_path: Path) -> None:
    """These write a token once that comes twice in a row, and leave out what was added as special, named or not."""
    path = directory(tmp_path, tokenizer_config={"eos_token": "<x>"}, config={"model_type": model})
    content = json.loads((path / "tokenizer.json").read_text())
    content["model"] = {"type": "Unigram", "unk_id": 0, "vocab": [[text, -1.0] for text in ["<unk>", "a", "b", "c", *NAMES[:2]]]}
    content["added_tokens"] = [
        {
            "id": at,
            "content": text,
            "special": special,
            "normalized": False,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
        }
        for at, text, special in ((0, "<unk>", True), (4, NAMES[0], True), (5, NAMES[1], False))
    ]
    (path / "tokenizer.json").write_text(json.dumps(content))
    tokenizer = detok.load(path)
    assert {0, 4} <= tokenizer.special_ids
    assert 5 not in tokenizer.special_ids
    assert not [difference for difference in differences(path, Random(0)) if "special" in difference]


def special_once() -> tokenizers.Tokenizer:
    """A token that was special is added again as not special."""
    library = tokenizers.Tokenizer.from_str(json.dumps(content()))
    library.add_tokens([AddedToken("</s>", special=False, normalized=False)])
    return library


def test_token_that_was_special_once_stays_special(tmp_path: Path) -> None:
    """The library keeps the set of what was special; an object, a file that lists it twice, a directory that says otherwise."""
    library = special_once()
    twice = content()
    twice["added_tokens"].append({**twice["added_tokens"][0], "special": False})
    declared = {"added_tokens_decoder": {"3": {"content": "</s>", "special": False, "normalized": False}}}
    (tmp_path / "file.json").write_text(json.dumps(twice))
    loaded = [
        detok.load(library),
        detok.load(tmp_path / "file.json"),
        detok.load(directory(tmp_path, tokenizer_config=declared)),
    ]
    assert library.get_added_tokens_decoder()[3].special is False
    for tokenizer in loaded:
        assert tokenizer.decode([0, 3, 2]) == "a!" == library.decode([0, 3, 2])
        assert tokenizer.decode([0, 3, 2], skip_special_tokens=False) == "a</s>!"
        assert tokenizer.special_ids == {3}
        assert tokenizer.piece(3).special


@pytest.mark.parametrize("text", ["", " ", "\u0120", "<0xC3>"])
def test_special_once_is_seen_though_the_decoder_gives_nothing(text: str) -> None:
    """A token whose text the decoder eats is tried beside others."""
    decoder = {"type": "Strip", "content": " ", "start": 9, "stop": 0}
    token = text or "  "
    library = make(decoder, ["a", "b", token], special=[token])
    for special in (True, False):
        library.add_tokens([AddedToken(token, special=special, normalized=False)])
        tokenizer = detok.load(library)
        for ids in ([0, 2, 1], [2], [2, 2, 0]):
            for skip in (True, False):
                assert tokenizer.decode(ids, skip) == library.decode(ids, skip_special_tokens=skip)


@pytest.mark.parametrize(("name", "kind"), [("mistral-v1", "LlamaTokenizer"), ("minilm", "BertTokenizer")])
def test_real_directory_is_what_auto_tokenizer_makes_of_it(name: str, kind: str) -> None:
    """By the class that its configuration names."""
    folder = real(name)
    assert auto.class_of(folder).name == kind
    assert not list(differences(folder, Random(name), lists=30))


def test_class_without_rules_is_made_by_transformers(tmp_path: Path) -> None:
    """Which is in the fingerprint; and a class with rules is not, whether transformers is there or not."""
    transformers = pytest.importorskip("transformers", reason="it makes the tokenizer")
    embedded = json.loads((detok.EMBEDDED / "tokenizer.json").read_text(encoding="utf-8"))
    path = directory(tmp_path, tokenizer=embedded, tokenizer_config={"tokenizer_class": "WhisperTokenizer"})
    tokenizer = detok.load(path)
    assert tokenizer.built == f"transformers {transformers.__version__}"
    again = detok.load(detok.EMBEDDED)
    assert (again.built, len(again.fingerprint)) == ("", len(tokenizer.fingerprint))
    with pytest.raises(detok.OptionError, match="transformers makes this WhisperTokenizer"):
        detok.load(path, encoder="tokenizers")


@pytest.mark.parametrize(
    ("config", "remark"),
    [
        ({"tokenizer_class": "WhisperTokenizer"}, "WhisperTokenizer takes only the vocabulary out of a tokenizer.json"),
        ({"tokenizer_class": "Wav2Vec2CTCTokenizer"}, "Wav2Vec2CTCTokenizer is Python code"),
        ({"tokenizer_class": "BertTokenizer"}, "BertTokenizer makes a WordPiece model of another kind"),
        ({"tokenizer_class": "PreTrainedTokenizerFast"}, ""),
    ],
)
def test_without_transformers_the_description_says_what_may_differ(
    config: dict[str, Any], remark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tokenizer.json is read as it is, and decodes."""
    path = directory(tmp_path, tokenizer_config=config)
    monkeypatch.setitem(sys.modules, "transformers", None)
    tokenizer = detok.load(path)
    assert tokenizer.decode([0, 1]) == "ab"
    assert remark in tokenizer.description
    assert ("install transformers" in tokenizer.description) is bool(remark)


def test_rules_need_no_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes in use are built alike with transformers and without."""
    path = directory(tmp_path, tokenizer_config={"tokenizer_class": "WhisperTokenizer"}, config={"model_type": "gemma3"})
    with_it = {name: detok.load(real(name)) for name in ("pgn", "mistral-v1")}
    monkeypatch.setitem(sys.modules, "transformers", None)
    for name, tokenizer in with_it.items():
        assert detok.load(real(name)).fingerprint == tokenizer.fingerprint
    assert detok.load(path).ids


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"config": [1]}, "config.json: is no JSON object"),
        ({"added_tokens": {"<y>": "x"}}, "added_tokens.json: is no object of ids"),
        ({"tokenizer_config": {"model_specific_special_tokens": ["<x>"]}}, "model_specific_special_tokens is invalid"),
        ({"special_tokens_map": {"eos_token": 5}}, r"special_tokens_map.json: eos_token is invalid"),
    ],
)
def test_damaged_file_is_named(files: dict[str, Any], said: str, tmp_path: Path) -> None:
    """Each error names its file."""
    with pytest.raises(detok.SourceError, match=said):
        detok.load(directory(tmp_path, **files))


def test_byte_order_mark_is_called_so(tmp_path: Path) -> None:
    """In any of the files, as transformers refuses it too."""
    path = directory(tmp_path, tokenizer_config={})
    for name in ("generation_config", "tokenizer_config", "special_tokens_map", "added_tokens", "config"):
        file = path / f"{name}.json"
        before = file.read_bytes() if file.exists() else b"{}"
        file.write_bytes(b"\xef\xbb\xbf" + before)
        with pytest.raises(detok.SourceError, match=rf"^{re.escape(str(file))}: starts with a byte order mark [^/]*$"):
            _ = detok.load(path).eos_token_ids
        file.write_bytes(before)
    assert detok.load(path).decode([0])
