"""`detok drift` reads stored conversations, and shows what they lose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import EMBEDDED, ids_text, run

IDS = [int(word) for part in ("What h", "o", "w", " are you?") for word in ids_text(part).split()]
GOOD = [int(word) for word in ids_text("All is well.").split()]


@pytest.fixture
def stored(tmp_path: Path) -> str:
    """A file of three conversations, in three forms."""
    lines = [IDS, {"id": "chat-7", "prompt_token_ids": IDS[:2], "token_ids": IDS[2:]}, {"name": "fine", "output_token_ids": GOOD}]
    path = tmp_path / "chats.jsonl"
    path.write_text("\n\n".join(map(json.dumps, lines)))
    return str(path)


def test_drift_shows_the_summary_and_the_worst(stored: str) -> None:
    """How many, where, what comes instead; the file alone is enough, with detok's own tokenizer."""
    result = run("drift", stored, "--block-size", "2")
    assert result.exit_code == 0
    for part in ("3 of", "2, 66.7%, in 2 places", "blocks of 2", "' how' 2x", "line 1: 1 places", "chat-7: 1 places", "What how"):
        assert part in result.stdout
    assert "fine" not in result.stdout
    assert run("drift", EMBEDDED.source, stored, "--worst", "0").stdout.count("places") == 1


def test_drift_as_json_is_the_report(stored: str) -> None:
    """From a pipe, too."""
    content = Path(stored).read_text()
    found = json.loads(run("drift", EMBEDDED.source, "-", "--json", stdin=content).stdout)
    assert (found["conversations"], found["drifting"], found["places"]) == (3, 2, 2)
    assert [each["name"] for each in found["worst"]] == ["line 1", "chat-7"]
    assert found == json.loads(run("drift", stored, "--json").stdout)


def test_drift_shows_few_of_many_places(tmp_path: Path) -> None:
    """And how many more there are."""
    path = tmp_path / "many.jsonl"
    path.write_text(json.dumps(IDS * 9))
    shown = run("drift", str(path)).stdout
    assert "… and 4 more" in shown


def test_drift_of_nothing_is_a_summary(tmp_path: Path) -> None:
    """A file without conversations."""
    path = tmp_path / "empty.jsonl"
    path.write_text("\n")
    result = run("drift", str(path))
    assert result.exit_code == 0
    assert "0 of 0 tokens" in result.stdout


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "no JSON"),
        ('"text"', "neither an array of ids"),
        ('{"messages": []}', "neither an array of ids"),
        ('{"token_ids": [1, "2"]}', "'token_ids' is no array of integers"),
        ('{"token_ids": 5}', "'token_ids' is no array of integers"),
        ('{"token_ids": [true]}', "'token_ids' is no array of integers"),
        ('{"token_ids": 0}', "'token_ids' is no array of integers"),
        ('{"token_ids": false}', "'token_ids' is no array of integers"),
        ('{"prompt_token_ids": "", "token_ids": []}', "'prompt_token_ids' is no array of integers"),
        ('{"token_ids": [-1]}', "'token_ids' has the id -1, and the tokenizer has none of that number"),
        ("[1, 99999999]", "'token_ids' has the id 99999999"),
        ("[1.5]", "'token_ids' is no array of integers"),
        ("[" * 100_000, "no JSON"),
        ("[" + "9" * 5000 + "]", "no JSON"),
    ],
)
def test_line_that_is_no_conversation_is_named(line: str, problem: str, tmp_path: Path) -> None:
    """The file, the line, and what is wrong with it; exit code 2."""
    path = tmp_path / "chats.jsonl"
    path.write_text(f"[1, 2]\n{line}\n")
    result = run("drift", str(path))
    assert result.exit_code == 2
    assert "line 2, column" in result.stderr
    assert problem in result.stderr


def test_drift_as_json_escapes_what_is_no_text(tmp_path: Path) -> None:
    """A lone surrogate in a name, which UTF-8 cannot spell; nulls of an API are nothing."""
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps({"id": "\ud800", "prompt_token_ids": None, "token_ids": IDS}))
    result = run("drift", str(path), "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["worst"][0]["name"] == "\ud800"


def test_line_that_is_too_long_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without a line end may be of any size."""
    monkeypatch.setattr("detok.cli.conversations.MAX_LINE", 20)
    path = tmp_path / "chats.jsonl"
    path.write_text(f"{[1] * 6}\n")
    assert run("drift", str(path)).exit_code == 0
    path.write_text(f"{[1] * 7}\n")
    assert "a line has more than 20 bytes" in run("drift", str(path)).stderr


def test_drift_wrongly_used_exits_with_2(tmp_path: Path) -> None:
    """A file that is not there, a directory, a block that cannot be."""
    assert run("drift", "no-such.jsonl").exit_code == 2
    assert run("drift", EMBEDDED.source, str(tmp_path)).exit_code == 2
    assert run("drift", "--block-size", "0").exit_code == 2
