"""`detok check --encode` prints the certificate of an encoder."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import detok
from tests.cli.support import EMBEDDED, run


def test_check_encode_prints_the_certificate() -> None:
    """What encodes, the judge, what was tried, the result; nothing on standard error where nobody looks on."""
    result = run("check", EMBEDDED.source, "--encode", "--lists", "20", "--seed", "7")
    assert result.exit_code == 0
    assert result.stderr == ""
    for part in ("20 hostile texts", "seed 7", "✓ 0 differences", "encode of transformers", EMBEDDED.encoder.name):
        assert part in result.stdout


def test_check_encode_reads_a_text_of_yours(tmp_path: Path) -> None:
    """In pieces, beside the hostile texts."""
    path = tmp_path / "text.txt"
    path.write_text("Good morning. " * 1000)
    found = json.loads(run("check", "--encode", "--file", str(path), "--lists", "5", "--json").stdout)
    assert (found["ok"], found["texts"], found["real_texts"]) == (True, 5, 4)
    assert json.loads(run("check", "--encode", "--text", "a\tb", "--json").stdout)["comparisons"] == 2


def test_check_encode_shows_a_difference_and_exits_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that shows it again."""

    def encode(self: detok.Tokenizer, text: str, add_special_tokens: bool = True) -> list[int]:
        if "\t" in text:
            raise ValueError("no tabs")
        return [*own(self, text, add_special_tokens), *[7] * ("\n" in text)]

    own: Any = detok.Tokenizer.encode
    monkeypatch.setattr(detok.Tokenizer, "encode", encode)
    result = run("check", EMBEDDED.source, "--encode", "--text", "ab\ncd")
    assert result.exit_code == 1
    shown = {key: value.strip() for key, _, value in (line.strip().partition("  ") for line in result.stdout.splitlines())}
    assert shown["text"] == repr("\n")
    assert shown["got"] == f"{shown['expected']} 7"
    assert "raised ValueError: no tabs" in run("check", "--encode", "--text", "\t").stdout
    assert run("check", "--encode", "--lists", "30", "--json").exit_code == 1


def test_command_that_shows_it_again_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell gets the very text, quotes and spaces too."""
    own: Any = detok.Tokenizer.encode
    monkeypatch.setattr(detok.Tokenizer, "encode", lambda self, text, adds=True, **o: own(self, text, **o) + [7] * ("' " in text))
    result = run("check", EMBEDDED.source, "--encode", "--text", "it is a' b")
    shown = {key: value.strip() for key, _, value in (line.strip().partition("  ") for line in result.stdout.splitlines())}
    program, *again = shlex.split(shown["again"])
    assert (program, again[-1]) == ("detok", "' ")
    assert run(*again).exit_code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--encode", "--ids", "1"),
        ("--encode", "--strategy", "window"),
        ("--text", "a"),
        ("--encode", "--file", "no/such/file"),
        ("--encode", "--text", "\udcff"),
    ],
)
def test_check_encode_wrongly_used_exits_with_2(arguments: tuple[str, ...]) -> None:
    """Options that do not go together, a file that is not there, bytes that are no UTF-8."""
    assert run("check", *arguments).exit_code == 2
