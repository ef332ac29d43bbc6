"""A module without a test is named, with the file that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import check_tests_mirror
from scripts.check_tests_mirror import main, missing


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A package with a core and a server, and no test yet."""
    for name, text in {
        "__init__.py": "",
        "core/__init__.py": '"""Nothing here."""',
        "core/one.py": "",
        "server/_two.py": '"""What it does. Tested in tests/server/test_all.py."""',
        "server/__init__.py": "def three(): ...",
    }.items():
        path = tmp_path / "src" / "detok" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def add(root: Path, *tests: str) -> None:
    """Write empty test files."""
    for name in tests:
        (root / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "tests" / name).write_text("")


def test_what_is_missing_is_named(root: Path) -> None:
    """By its own name, or by the name in the docstring; of core alone if that is asked."""
    assert missing(root, core=True) == ["src/detok/core/one.py: there is no tests/core/test_one.py"]
    assert missing(root) == [
        "src/detok/core/one.py: there is no tests/core/test_one.py",
        "src/detok/server/__init__.py: there is no tests/server/test_server.py",
        "src/detok/server/_two.py: its docstring names tests/server/test_all.py, which is not there",
    ]


def test_nothing_is_missing(root: Path) -> None:
    """A test of the module's name, or the one that its docstring names."""
    add(root, "core/test_one.py", "server/test_server.py", "server/test_all.py")
    assert missing(root) == []
    (root / "tests" / "server" / "test_all.py").rename(root / "tests" / "server" / "test_two.py")
    assert missing(root) == []


def test_docstring_does_not_help_in_core(root: Path) -> None:
    """There the name alone counts."""
    add(root, "core/test_all.py")
    (root / "src" / "detok" / "core" / "one.py").write_text('"""Tested in tests/core/test_all.py."""')
    assert missing(root, core=True) == ["src/detok/core/one.py: there is no tests/core/test_one.py"]


def test_exit_code_says_it(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """1 for something missing, 0 for nothing."""
    monkeypatch.setattr(check_tests_mirror.missing, "__defaults__", (root,))
    assert main(["--core"]) == 1
    add(root, "core/test_one.py")
    assert main(["--core"]) == 0
    assert "tests/core/test_one.py" in capsys.readouterr().out
