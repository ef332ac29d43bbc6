"""Exports that look broken are named: they decode as their library does, and nothing is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import detok
from tests.cli.support import run
from tests.support.handmade import BYTE_LEVEL, METASPACE, WORDPIECE, byte_level_tokens, make, replace, sequence
from tests.support.vocabularies import REAL_NAMES, real_tokenizer

SPACED = sequence(replace("▁", " "), {"type": "ByteFallback"}, {"type": "Fuse"})
GPT2_PIECES = [*(f"t{number}" for number in range(300)), *(f"Ġw{number}" for number in range(200)), "Hello", "!", "ĠHow"]
LLAMA_PIECES = [*(f"t{number}" for number in range(300)), *(f"▁w{number}" for number in range(200))]

CASES: dict[str, tuple[Any, list[str], list[str], str, str]] = {
    "byte-level pieces, SentencePiece's decoder": (
        SPACED,
        GPT2_PIECES,
        [],
        "",
        "its pieces are in GPT-2's byte alphabet and its decoder is for another, so that 'Ġw0' is written as 'Ġw0'",
    ),
    "SentencePiece's pieces, byte-level decoder": (BYTE_LEVEL, LLAMA_PIECES, [], "", "in SentencePiece's spelling"),
    "added tokens of bytes": (BYTE_LEVEL, ["a", "café"], ["café"], "", "added tokens do not come back: 'café' as 'caf\ufffd'"),
    "many of them": (
        BYTE_LEVEL,
        ["a", "é", "éé", "ééé", "éa", "aé"],
        ["é", "éé", "ééé", "éa", "aé"],
        "",
        "'ééé' as '\ufffd\ufffd\ufffd' and 2 more",
    ),
    "a template's marker": (
        BYTE_LEVEL,
        ["a", "<|im_end|>"],
        ["<|im_end|>"],
        "{{ '<|im_start|>' + messages[0].role + '<|im_end|>' }}",
        "its chat template names tokens that do not exist: <|im_start|>",
    ),
    "a template's byte order mark": (
        BYTE_LEVEL,
        ["a"],
        [],
        "\ufeff{{ messages }}",
        "its chat template starts with a byte order mark, which stands at the beginning of every prompt",
    ),
    "a template's name": (BYTE_LEVEL, ["a"], [], "{{- bos_token }}{{ messages }}", "that do not exist: bos_token"),
}
CLEAN: dict[str, tuple[Any, list[str], list[str], str]] = {
    "byte-level": (BYTE_LEVEL, [*GPT2_PIECES, "▁", "<｜end▁of▁sentence｜>"], ["<｜end▁of▁sentence｜>"], ""),
    "SentencePiece": (SPACED, [*LLAMA_PIECES, "<0x0A>", "▁<PRE>", "  "], ["<0x0A>", "▁<PRE>", "  "], ""),
    "Metaspace": (METASPACE, LLAMA_PIECES, [], ""),
    "WordPiece": (WORDPIECE, ["[UNK]", "a", "##b", "[SEP]"], ["[SEP]"], ""),
    "a template's own tags": (
        BYTE_LEVEL,
        byte_level_tokens(b"a"),
        [],
        "<tools>{{ '<|' + messages[0].role + '|>' }}{{ eos_token if eos_token else '' }}[INST]",
    ),
}


def directory(path: Path, decoder: Any, tokens: list[str], added: list[str], template: str) -> Path:
    """A tokenizer's directory."""
    path.mkdir()
    make(decoder, tokens, added=added).save(str(path / "tokenizer.json"))
    (path / "tokenizer_config.json").write_text(json.dumps({"chat_template": template} if template else {}))
    return path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_suspicious_export_is_named(name: str, tmp_path: Path) -> None:
    """In the description and in a line of the check, whose exit code it does not change."""
    *made, said = CASES[name]
    path = directory(tmp_path / "tokenizer", *made)
    tokenizer = detok.load(path)
    assert len(tokenizer.suspicions) == 1
    assert said in tokenizer.suspicions[0]
    assert said in tokenizer.description
    result = run("check", str(path), "--lists", "10")
    assert result.exit_code == 0
    assert "suspicious" in result.stdout
    assert json.loads(run("check", str(path), "--lists", "10", "--json").stdout)["notes"] == list(tokenizer.suspicions)


@pytest.mark.parametrize("name", CLEAN)
def test_usual_export_is_not_suspicious(name: str, tmp_path: Path) -> None:
    """Whatever its decoder does to spaces, and whatever tags its template writes as text."""
    assert detok.load(directory(tmp_path / "tokenizer", *CLEAN[name])).suspicions == ()


@pytest.mark.parametrize("name", REAL_NAMES)
def test_real_vocabulary_is_not_suspicious(name: str) -> None:
    """None of them is a broken export."""
    assert real_tokenizer(name).suspicions == ()


def test_impossible_template_is_no_matter_of_the_description(tmp_path: Path) -> None:
    """It is refused when a chat is made."""
    path = directory(tmp_path / "tokenizer", BYTE_LEVEL, ["a"], [], "")
    (path / "tokenizer_config.json").write_text(json.dumps({"chat_template": 5}))
    assert detok.load(path).suspicions == ()
