"""Where ids come from when nobody says it."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from detok.cli.options import is_piped, read_chunks


def test_terminal_and_nothing_are_no_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a standard input, and with one that is no more than a device, nothing is led in."""
    monkeypatch.setattr(sys, "stdin", None)
    assert not is_piped()
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert not is_piped()


def test_file_and_memory_are_led_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is, and so is what a program put in the place of standard input."""
    (tmp_path / "ids").write_text("1")
    with open(tmp_path / "ids") as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert is_piped()
    monkeypatch.setattr(sys, "stdin", io.StringIO("1"))
    assert is_piped()


def test_chunks_come_as_they_are_there() -> None:
    """A read does not wait until it has all that it asked for."""
    readable, writable = os.pipe()
    with open(readable, "rb") as reader, open(writable, "wb", buffering=0) as writer:
        chunks = read_chunks(reader)
        for data in (b"1 ", b"2"):
            writer.write(data)
            assert next(chunks) == data
        writer.close()
        assert list(chunks) == []
