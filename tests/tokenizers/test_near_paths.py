"""What is said of a path that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from detok.tokenizers import near_paths as module
from detok.tokenizers.near_paths import near_paths, what_is_missing


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two models of nearly one name, one of them with a file; it is where we are."""
    for name in ("qwen3", "qwen25"):
        (tmp_path / "models" / name).mkdir(parents=True)
    (tmp_path / "models" / "qwen3" / "tokenizer.json").write_text("{}")
    (tmp_path / "models" / "qwen4").symlink_to(tmp_path / "nothing")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("modles/qwen3/tokenizer.json", ["models/qwen3/tokenizer.json"]),
        ("models/QWEN-3/tokenizer.json", ["models/qwen3/tokenizer.json"]),
        ("models/qwen", ["models/qwen3", "models/qwen25"]),
        ("models/qwen3/tokeniser.json", ["models/qwen3/tokenizer.json"]),
        ("models/Qwen-3/nothing", ["models/qwen3", "models/qwen25"]),
        ("other/place", []),
        ("models/qwen3/tokenizer.json/x", []),
        ("", []),
        ("nothing/..", []),
        ("models/../modles/qwen3", ["models/qwen3"]),
        ("x" * 5000, []),
        ("a\0b", []),
        ("~nobody-has-this-home/x", []),
    ],
)
def test_near_paths_are_there_and_begin_as_the_path_does(folder: Path, text: str, near: list[str]) -> None:
    """Those that are there to their end go before the others; a link to nowhere is none."""
    assert near_paths(Path(text)) == near
    if near and text:
        assert near_paths(folder / text) == [str(folder / one) for one in near]


def test_home_is_written_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which a shell does, and Python does not."""
    monkeypatch.setenv("HOME", str(folder))
    assert near_paths(Path("~/models/qwen3")) == [str(folder / "models" / "qwen3")]


def test_what_is_missing_names_where_the_way_ends(folder: Path) -> None:
    """A folder without the name, a file on the way, a link; and nothing of what can be no path."""
    assert what_is_missing(Path("models/x/y")) == f"{folder}/models has no 'x'"
    assert (
        what_is_missing(Path("models/qwen3/tokenizer.json/y"))
        == f"{folder}/models/qwen3/tokenizer.json is a file and has nothing in it"
    )
    assert what_is_missing(Path("models/qwen4")) == f"{folder}/models/qwen4 is a link to what is not there"
    assert what_is_missing(Path("x" * 5000)) == ""


def test_folder_that_cannot_be_read_or_is_long_costs_little(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message is not worth a million names, and no error of its own."""
    monkeypatch.setattr(module, "LOOKED_AT", 1)
    assert len(near_paths(Path("models/qwen"))) <= 1

    def refused(_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.scandir", refused)
    assert near_paths(Path("models/qwen")) == []
