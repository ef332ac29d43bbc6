"""What mypyc refuses is found, and named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import check_mypyc


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A package with two modules, of which mypyc refuses one."""
    core = tmp_path / "detok" / "core"
    core.mkdir(parents=True)
    for folder in (core, core.parent):
        (folder / "__init__.py").write_text("")
    (core / "good.py").write_text("def twice(number: int) -> int:\n    return 2 * number\n")
    (core / "bad.py").write_text('HALF = "a"\nOTHER = "\\ud800"\n')
    return tmp_path


def test_refused_line_is_named(source: Path) -> None:
    """File, line and reason; nothing is left beside the source."""
    names = check_mypyc.hot_modules(source, ())
    assert names == ["detok.core.bad", "detok.core.good"]
    before = sorted(source.rglob("*"))
    assert "detok/core/bad.py:2: error: Surrogate" in check_mypyc.check(names, source)
    assert sorted(source.rglob("*")) == before


def test_declared_module_is_not_compiled(source: Path) -> None:
    """The others are accepted."""
    names = check_mypyc.hot_modules(source, ["detok.core.bad"])
    assert check_mypyc.check(names, source) == ""


def test_declaration_of_a_module_that_is_gone_is_an_error(source: Path) -> None:
    """The list says nothing that is no longer so."""
    with pytest.raises(ValueError, match=r"detok\.core\.gone"):
        check_mypyc.hot_modules(source, ["detok.core.gone"])
