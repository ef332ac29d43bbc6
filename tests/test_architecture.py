"""The core is pure, the surface is a list, and the top level is light."""

from __future__ import annotations

import subprocess
import sys

import detok

BANNED = {
    "asyncio",
    "multiprocessing",
    "numpy",
    "random",
    "rich",
    "selectors",
    "socket",
    "ssl",
    "subprocess",
    "tokenizers",
    "transformers",
    "typer",
    "zmq",
}


def imported_by(statement: str) -> set[str]:
    """The modules that are loaded after a statement, in a new interpreter."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())


def test_core_does_no_io() -> None:
    """Importing the core loads no module that can do I/O, and no tokenizer library."""
    loaded = imported_by("import detok.core.decoder")
    assert "detok.core.decoder" in loaded
    assert not BANNED & loaded


def test_top_level_is_light() -> None:
    """`import detok` loads no tokenizer library; `detok.load` does when it is called."""
    assert not BANNED & imported_by("import detok")


def test_production_path_knows_no_strategies() -> None:
    """What is there for comparison is loaded by nothing that decodes, encodes or serves requests."""
    code = (
        "import detok, detok.frontend.processor; t = detok.load(detok.EMBEDDED); t.stream(); t.request(stop='x'); t.encode('a')"
    )
    loaded = imported_by(code)
    assert "detok.frontend.processor" in loaded
    assert not any(name.startswith("detok.inspection") for name in loaded)


def test_public_surface_is_a_list() -> None:
    """What is public is listed once, is there, and is all that `dir` shows."""
    assert len({*detok.__all__}) == len(detok.__all__)
    assert all(hasattr(detok, name) for name in detok.__all__)
    assert dir(detok) == sorted(detok.__all__)


def test_unknown_name_is_an_attribute_error() -> None:
    """The lazy top level says no like any module."""
    assert not hasattr(detok, "lod")
