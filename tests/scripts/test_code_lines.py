"""Lines are counted as Python reads them, not as they look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.code_lines import Count, by_layer, count, main

SOURCE = '''"""A docstring,
of two lines. Any."""

from typing import Any  # a comment after code, with Any in it

NAME: Any = """text that is code,
# not a comment
"""
"""What NAME is."""


# A comment line.
class One:
    "A docstring."

    async def two(self) -> "Any":
        return [
            1,

            # inside a bracket
            2,
        ]
'''


def test_code_is_what_is_left() -> None:
    """Strings that are values count with all their lines, strings that are statements do not, blank lines never do."""
    assert count(SOURCE) == Count(files=1, code=10, comments=2, functions=1, any=2)
    assert count("") == Count(files=1)


def test_layers_are_folders_and_modules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is below a folder is added up; the largest comes first, the total last."""
    (tmp_path / "core" / "deep").mkdir(parents=True)
    (tmp_path / "core" / "deep" / "a.py").write_text("x = 1\ny = 2\n")
    (tmp_path / "core" / "b.py").write_text(SOURCE)
    (tmp_path / "errors.py").write_text("def f(): ...\n")
    assert by_layer(tmp_path) == {"core/": Count(2, 12, 2, 1, 2), "errors.py": Count(1, 1, 0, 1, 0)}
    assert main([str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["core/", "errors.py", "total"]
    assert lines[-1].split()[1:6] == ["3", "13", "2", "2", "2"]
    assert main([str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[str(tmp_path)]["core/"]["code"] == 12


def test_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not an empty table."""
    with pytest.raises(SystemExit):
        main([str(tmp_path / "none")])
    assert "there is no folder" in capsys.readouterr().err
