"""`detok formats`, and the table behind it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from detok.tokenizers.formats import FORMATS, format_of_bytes, format_of_object
from tests.cli.support import run


def test_every_row_has_a_module_and_an_extra() -> None:
    """What is listed exists: a module with a loader of each kind that the row names, and an extra of the project."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    for row in FORMATS:
        module = row.load()
        assert (row.file is None) or hasattr(module, "from_file")
        assert (not row.objects) or hasattr(module, "from_object")
        assert row.extra in project["optional-dependencies"]


def test_formats_for_machines() -> None:
    """One JSON value, a row a format."""
    rows = json.loads(run("formats", "--json").stdout)
    assert [row["format"] for row in rows] == [row.name for row in FORMATS]
    assert {row["loads"] for row in rows if row["library"] == "tokenizers"} == {True}


def test_formats_for_people() -> None:
    """A table that names the extra of what is missing."""
    assert "tokenizer.json" in run("formats").stdout


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"GGUF\x03\x00", "GGUF"),
        (b'{"config": {"pattern": "x", "num_vocab_tokens": 5}}', "Tekken"),
        (b'{"explicit_n_vocab": 50281, "pat_str": "a", "bpe_ranks": "! 0"}', "tiktoken JSON"),
        (b'{"!": 0, "\\"": 1}', "vocab.json with merges.txt"),
        (b'\xef\xbb\xbf {"version": "1.0"}', "tokenizer.json"),
        (b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02", "SentencePiece"),
        (b"1 '\\x00' 1\n2 b'\\xff' 1\n", "RWKV world list"),
        (b"IQ== 0\nIg== 1\n", "tiktoken ranks"),
        (b"[PAD]\n[unused0]\n", "BERT vocab.txt"),
        (b"", None),
        (b"hello world\n", None),
        (b"\x00\x01\x02", None),
    ],
)
def test_format_is_told_by_content(head: bytes, name: str | None) -> None:
    """Whatever the file is called."""
    row = format_of_bytes(head)
    assert (row and row.name) == name


def test_object_of_another_kind_has_no_format() -> None:
    """A class of the same name elsewhere is none."""

    class Tokenizer:
        pass

    assert format_of_object(Tokenizer()) is None
