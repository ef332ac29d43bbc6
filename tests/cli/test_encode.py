"""`detok encode` is the tokenizer's own encode."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from detok.tokenizers import Tokenizer
from tests.cli.support import EMBEDDED, run


def test_encode_gives_ids_that_decode_takes() -> None:
    """There and back."""
    ids = run("encode", "Zoë 🫶\n").stdout
    assert [*map(int, ids.split())] == EMBEDDED.encode("Zoë 🫶\n")
    assert run("decode", stdin=ids).stdout == "Zoë 🫶\n"


def test_encode_with_one_argument_knows_a_tokenizer_from_a_text() -> None:
    """What is there is a tokenizer, and the text comes from the pipe; what is not is the text."""
    expected = " ".join(map(str, EMBEDDED.encode("Hi"))) + "\n"
    assert run("encode", EMBEDDED.source, "Hi").stdout == expected
    assert run("encode", EMBEDDED.source, stdin="Hi").stdout == expected
    assert run("encode", "Hi").stdout == expected
    assert run("encode", stdin="Hi").stdout == expected


def test_encode_as_json_can_be_streamed() -> None:
    """One line, one object."""
    result = run("encode", "Hi", "--json")
    assert json.loads(result.stdout) == {"ids": EMBEDDED.encode("Hi")}
    assert run("stream", stdin=result.stdout).stdout == "Hi"


def test_encode_without_special_tokens_hands_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The flag reaches the library."""
    asked: list[bool] = []

    def encode(self: Tokenizer, text: str, add_special_tokens: bool = True) -> list[int]:
        asked.append(add_special_tokens)
        return []

    monkeypatch.setattr(Tokenizer, "encode", encode)
    run("encode", "Hi", "--no-special-tokens")
    run("encode", "Hi")
    assert asked == [False, True]


def test_encode_of_what_is_no_text_names_the_place() -> None:
    """Bytes that are no UTF-8 have line and column, in characters."""
    result = run("encode", stdin=b"a\n\xc3\xab\xff")
    assert (result.stdout, result.exit_code) == ("", 2)
    assert result.stderr == "detok: standard input, line 2, column 2: the byte 0xff is no UTF-8\n"
    assert run("encode", "a\udcff").stderr == "detok: the text is no UTF-8 at character 2\n"


def test_encode_without_text_says_how_to_give_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not wait for a terminal."""
    monkeypatch.setattr("detok.cli.options.is_piped", lambda: False)
    result = run("encode")
    assert (result.stdout, result.exit_code) == ("", 2)
    assert result.stderr == "detok: there is no text; give it as an argument or through a pipe\n"


def test_encode_with_a_path_that_is_no_tokenizer_says_so(tmp_path: Path) -> None:
    """A directory without a tokenizer.json is no text."""
    result = run("encode", str(tmp_path), stdin="Hi")
    assert result.exit_code == 2
    assert "the directory has none of tokenizer.json" in result.stderr
