"""Two tokenizers that differ in one part are said to differ in that part, and two equal ones in none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import detok
from detok.inspection import Comparison, compare
from tests.support.handmade import BYTE_LEVEL, METASPACE, WORDPIECE, byte_level_tokens, make, sequence

TEMPLATE = "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"
WORDS = ["[UNK]", "a", "##b", ".", "'", "s", "[SEP]", "<x>"]


def directory(path: Path, decoder: Any = WORDPIECE, tokens: list[str] | None = None, **config: Any) -> detok.Tokenizer:
    """A tokenizer of a directory; keywords are what its tokenizer_config.json says."""
    path.mkdir(parents=True)
    library = make(decoder, tokens or WORDS, special=["[SEP]"], added=["<x>"])
    content = json.loads(library.to_str())
    content["pre_tokenizer"] = {"type": "Whitespace"}
    (path / "tokenizer.json").write_text(json.dumps(content))
    (path / "tokenizer_config.json").write_text(json.dumps({"eos_token": "[SEP]", "chat_template": TEMPLATE, **config}))
    return detok.load(path)


CASES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "clean-up": ({"clean_up_tokenization_spaces": True}, {"clean-up"}),
    "special flags": ({"pad_token": "<x>"}, {"special flags"}),
    "a token more": ({"pad_token": "<new>"}, {"added tokens"}),
    "the end": ({"eos_token": "<x>"}, {"special flags", "end"}),
    "the template": ({"chat_template": TEMPLATE + "!"}, {"template"}),
    "more templates": (
        {"chat_template": [{"name": "default", "template": TEMPLATE}, {"name": "tool_use", "template": "x"}]},
        {"template"},
    ),
    "the decoder": ({"decoder": {**WORDPIECE, "prefix": "#"}}, {"decoder"}),
    "the vocabulary": ({"tokens": [*WORDS[:1], "c", *WORDS[2:]]}, {"vocabulary", "encoder"}),
    "nothing": ({"model_max_length": 7}, set()),
}


def compared(path: Path, changes: dict[str, Any], **options: Any) -> Comparison:
    """A tokenizer and the same with changes."""
    base: dict[str, Any] = {"clean_up_tokenization_spaces": False, "decoder": {**WORDPIECE, "cleanup": False}}
    return compare(directory(path / "one", **base), directory(path / "other", **{**base, **changes}), lists=60, **options)


@pytest.mark.parametrize("what", CASES)
def test_cause_is_the_part_that_differs(what: str, tmp_path: Path) -> None:
    """That and no other, with an example that is small."""
    changes, causes = CASES[what]
    found = compared(tmp_path, changes)
    assert set(found.causes) == causes
    assert found.ok is (not causes)
    assert {one.cause for one in found.disagreements} == causes
    assert all(len(json.loads(one.given)) <= 2 for one in found.disagreements if one.kind == "decode")
    assert found.as_dict()["causes"] == dict(found.causes)


def test_equal_tokenizers_agree_however_they_were_loaded(tmp_path: Path) -> None:
    """A file and its directory too, if the files beside it change nothing; what only one has is not compared."""
    one = directory(tmp_path / "one", METASPACE, ["[UNK]", "▁a", "b", "[SEP]", "<x>"])
    found = compare(one, detok.load(tmp_path / "one" / "tokenizer.json"), lists=30)
    assert found.ok
    assert found.causes == {}
    assert any(said.startswith("chats, since") for said in found.not_compared)


def test_encoder_is_a_cause() -> None:
    """The same tokens and the same decoder, but texts are cut otherwise."""
    content = json.loads(make(BYTE_LEVEL, [*byte_level_tokens(b"a", b"b", b"ab"), "<s>"], special=["<s>"], model="BPE").to_str())
    content["model"]["merges"] = []
    one = _loaded(content)
    content["model"]["merges"] = ["a b"]
    found = compare(one, _loaded(content), lists=40)
    assert set(found.causes) == {"encoder"}


def test_tokenizer_without_an_encoder_is_compared_by_its_texts() -> None:
    """And it is said that encode was not compared."""
    tokens = byte_level_tokens(b"a", b" b", b"\xc3", b"\xa9")
    one = detok.load(make(sequence(BYTE_LEVEL), tokens))

    def refuses(text: str, *, add_special_tokens: bool) -> list[int]:
        raise detok.EncodeUnsupported("this kind", instead="nothing")

    other = detok.load(make(BYTE_LEVEL, tokens))
    other._encoder = refuses
    found = compare(one, other, lists=30)
    assert found.ok
    assert found.texts == 0
    assert "encode, since" in found.not_compared[0]


def test_progress_counts_lists_and_texts(tmp_path: Path) -> None:
    """So that a bar can be drawn."""
    seen: list[int] = []
    compared(tmp_path, {}, progress=seen.append)
    assert seen == [*range(1, 121)]


def _loaded(content: Any) -> detok.Tokenizer:
    import tokenizers

    return detok.load(tokenizers.Tokenizer.from_str(json.dumps(content)))
