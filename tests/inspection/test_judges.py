"""A file is judged by the tokenizers library, a directory by AutoTokenizer of the transformers that is installed."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import detok
from detok.inspection import check, check_encode
from detok.inspection.judges import judge_of
from detok.tokenizers.auto import judge as auto_judge
from detok.tokenizers.huggingface import HuggingFaceLibrary
from tests.cli.support import run

pytestmark = pytest.mark.filterwarnings("ignore")

Make = Callable[..., Path]


@pytest.fixture
def directory(tmp_path: Path) -> Make:
    """Makes directories of the embedded tokenizer, each with a configuration of its own."""

    def make(name: str, **config: Any) -> Path:
        path = tmp_path / name
        path.mkdir()
        shutil.copy(detok.EMBEDDED / "tokenizer.json", path)
        (path / "tokenizer_config.json").write_text(json.dumps(config))
        return path

    return make


def wrongly_built(directory: Make) -> detok.Tokenizer:
    """As if detok had not seen that a token is special."""
    tokenizer = detok.load(directory("ours"))
    library = tokenizer.library
    assert isinstance(library, HuggingFaceLibrary)
    library.directory = directory("theirs", pad_token="<think>")
    return tokenizer


def test_judge_of_a_directory_is_auto_tokenizer_and_of_a_file_the_library(directory: Make) -> None:
    """With its class and its version."""
    path = directory("a", tokenizer_class="GPT2Tokenizer")
    transformers = pytest.importorskip("transformers", reason="transformers is the judge")
    found = judge_of(detok.load(path))
    assert found.library.name.startswith(f"transformers {transformers.__version__}, GPT2Tokenizer, over tokenizers ")
    assert (found.unjudged, found.of_versions) == ("", "")
    assert judge_of(detok.load(path / "tokenizer.json")).library.name.startswith("tokenizers ")
    certificate = check(detok.load(path), lists=40)
    assert certificate.ok
    assert certificate.library == found.library.name


def test_directory_that_is_built_wrongly_is_found_out(directory: Make) -> None:
    """The tokenizer that was built is not its own judge."""
    tokenizer = wrongly_built(directory)
    certificate = check(tokenizer, ids=[39, 4094, 39])
    assert not certificate.ok
    assert {one.skip_special_tokens for one in certificate.differences} == {True}


def test_differences_from_an_older_version_are_no_faults(directory: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are counted and shown, and the exit code is 0."""
    monkeypatch.setattr(auto_judge, "version", lambda name: "5.0.0rc1")
    tokenizer = wrongly_built(directory)
    certificate = check(tokenizer, ids=[39, 4094, 39])
    assert certificate.ok
    assert certificate.differing
    assert "transformers 5.24, and the installed one is older" in certificate.of_versions
    monkeypatch.setattr("detok.cli.options.load", lambda source: tokenizer)
    result = run("check", "x", "--ids", "39 4094 39")
    assert result.exit_code == 0
    assert "differences of version" in result.stdout


def test_without_transformers_the_certificate_says_what_was_not_judged(directory: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library judges what it can."""
    path = directory("a")
    monkeypatch.setitem(sys.modules, "transformers", None)
    for certificate in (check(detok.load(path), lists=20), check_encode(detok.load(path), texts=5)):
        assert certificate.ok
        assert certificate.library.startswith("tokenizers ")
        assert "transformers is not installed" in certificate.unjudged
    assert "not judged" in run("check", str(path), "--lists", "5").stdout
    assert "not judged" in run("check", str(path), "--lists", "5", "--encode").stdout


def test_directory_that_transformers_refuses_is_judged_by_the_library(directory: Make) -> None:
    """And it says why."""
    path = directory("a", bos_token={"content": "<think>"})
    certificate = check(detok.load(path), lists=20)
    assert certificate.ok
    assert "refuses it" in certificate.unjudged
