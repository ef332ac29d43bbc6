"""`detok decode` is the one-shot decode."""

from __future__ import annotations

import json

import pytest

from tests.cli.support import EMBEDDED, ids_text, run


def test_decode_is_the_text_and_nothing_else() -> None:
    """From arguments, which add up, or from a pipe; no line end is added."""
    first, *rest = ids_text("Zoë 🫶").split()
    assert run("decode", "--ids", first, "--ids", " ".join(rest)).stdout == "Zoë 🫶"
    assert run("decode", stdin=ids_text("Zoë 🫶")).stdout == "Zoë 🫶"


def test_decode_as_json_has_ids_and_text() -> None:
    """For machines, on one line."""
    result = run("decode", "--ids", "[39, 999999]", "--json")
    assert json.loads(result.stdout) == {"ids": [39, 999999], "text": "H"}


def test_decode_takes_the_options_of_decoding() -> None:
    """As `stream` does."""
    special = min(EMBEDDED.special_ids)
    assert run("decode", "--ids", str(special), "--keep-special-tokens").stdout != ""
    assert run("decode", "--ids", "999999", "--unknown-ids", "error").exit_code == 2


def test_decode_of_what_is_no_id_says_nothing_but_the_error() -> None:
    """All or nothing."""
    result = run("decode", "--ids", "39 x")
    assert (result.stdout, result.exit_code) == ("", 2)
    assert "--ids, line 1, column 4: 'x' is no token id" in result.stderr


def test_decode_without_ids_says_how_to_give_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not wait for a terminal."""
    monkeypatch.setattr("detok.cli.options.is_piped", lambda: False)
    result = run("decode")
    assert (result.stdout, result.exit_code) == ("", 2)
    assert result.stderr == 'detok: there are no ids; give --ids "1 2 3", --file PATH, or a pipe\n'
