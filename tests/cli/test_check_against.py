"""`detok check --against`: two services disagree, and one command says why."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import detok
from tests.cli.support import EMBEDDED, run

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """The embedded tokenizer with a special token more."""
    path = tmp_path / "changed"
    path.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(detok.EMBEDDED / name, path)
    config: dict[str, Any] = json.loads((path / "tokenizer_config.json").read_text())
    (path / "tokenizer_config.json").write_text(json.dumps({**config, "mask_token": "<think>"}))
    return path


def test_two_that_disagree_are_shown_by_cause(changed: Path) -> None:
    """With an example, and the exit code 1."""
    result = run("check", EMBEDDED.source, "--against", str(changed), "--lists", "80")
    assert result.exit_code == 1
    assert "they disagree by special flags" in result.stdout
    assert "'<think>'" in result.stdout
    found = json.loads(run("check", "--against", str(changed), "--lists", "80", "--json").stdout)
    assert found["ok"] is False
    assert set(found["causes"]) == {"special flags"}


def test_two_that_agree_exit_with_0(tmp_path: Path) -> None:
    """However they were loaded."""
    copy = tmp_path / "copy"
    shutil.copytree(detok.EMBEDDED, copy, ignore=shutil.ignore_patterns("*.py", "samples", "__pycache__"))
    result = run("check", EMBEDDED.source, "--against", str(copy), "--lists", "20")
    assert result.exit_code == 0
    assert "✓ no difference found" in result.stdout


def test_what_is_not_compared_is_said() -> None:
    """A file has no chat template."""
    result = run("check", EMBEDDED.source, "--against", str(detok.EMBEDDED / "tokenizer.json"), "--lists", "5")
    assert result.exit_code == 0
    assert "not compared" in result.stdout


@pytest.mark.parametrize("as_json", [False, True])
def test_fingerprint_answers_equal_or_not_shown_equal(as_json: bool) -> None:
    """Equal is shown by it, and the rest is not."""
    options = ["--json"] if as_json else []
    for fingerprint, said, code in [(EMBEDDED.fingerprint, "equal", 0), ("0" * 32, "not shown equal", 1)]:
        result = run("check", "--against", fingerprint, *options)
        assert result.exit_code == code
        assert (json.loads(result.stdout)["result"] if as_json else result.stdout.strip()) == said


@pytest.mark.parametrize("option", [["--encode"], ["--ids", "1"], ["--text", "x"], ["--strategy", "window"]])
def test_other_kinds_of_check_do_not_go_with_it(option: list[str]) -> None:
    """It has ids and texts of its own."""
    result = run("check", "--against", EMBEDDED.source, *option)
    assert result.exit_code == 2
    assert "--against compares two tokenizers" in result.stderr
