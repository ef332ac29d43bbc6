"""What starts a process is measured in one of its own, and compared with another checkout in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import imports


def test_each_command_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against itself too: a ratio is there."""
    monkeypatch.setattr(imports, "COMMANDS", {"python -c pass": ["-c", "pass"]})
    (row,) = imports.imports(1, imports.HERE, byte_code=False).rows
    assert row.cells[0] == "python -c pass"
    assert row.cells[2] == "1.0x"
    assert row.record["ratio"]["median"] > 0
    assert row.record["seconds"]["median"] > 0


def test_command_that_fails_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be a fast one."""
    monkeypatch.setattr(imports, "COMMANDS", {"broken": ["-c", "raise SystemExit(3)"]})
    with pytest.raises(RuntimeError, match="ended with 3"):
        imports.imports(1, None, byte_code=True)


def test_other_checkout_is_what_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its `src` comes first on the path of the process."""
    (tmp_path / "detok.py").write_text("raise SystemExit(4)")
    monkeypatch.setattr(imports, "COMMANDS", {"import detok": ["-c", "import detok"]})
    with pytest.raises(RuntimeError, match="ended with 4"):
        imports.imports(1, tmp_path, byte_code=False)
