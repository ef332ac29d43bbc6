"""The core is pure, short and tested by name; the surface is a list; the top level and the command's help are light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

import detok
from scripts.check_tests_mirror import missing
from scripts.code_lines import count

CORE = Path(detok.__file__).parent / "core"

MAX_FUNCTION = 60
MAX_MODULE = 350
"""Maximum code lines: no comments, no docstrings, no blank lines."""

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

HEAVY = BANNED | {"ast", "dataclasses", "difflib", "hashlib", "inspect", "json", "pathlib", "re", "typing", "unicodedata"}
"""What `import detok` does without: the libraries, and what costs most in Python's own."""

# typer imports `subprocess`, and that `selectors`.
BEYOND_HELP = BANNED - {"random", "selectors", "subprocess", "typer"} | {"httpx", "jinja2", "msgspec", "starlette", "uvicorn"}
"""What `detok --help` does without: all but typer, and what that imports."""


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
    """`import detok` loads no tokenizer library, no layer and nothing heavy; `detok.load` does when it is called."""
    loaded = imported_by("import detok")
    assert not HEAVY & loaded
    assert [name for name in loaded if name.startswith("detok.")] == []


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_is_light(argument: str) -> None:
    """`detok --help` imports no command and no layer."""
    statement = f"from detok.cli.app import app; app(['{argument}'], standalone_mode=False)"
    code = f"import sys; before = set(sys.modules); {statement}; print('|', *sorted(set(sys.modules) - before))"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    loaded = set(shown.rpartition("|")[2].split())
    ours = {name for name in loaded if name.startswith("detok.")}
    assert ours == {"detok.cli", "detok.cli.app", "detok.cli.output", "detok.errors"}
    assert not BEYOND_HELP & loaded


def test_layers_are_attributes() -> None:
    """A layer is there when it is asked for, without an import of its own."""
    code = "import detok; assert detok.errors.DetokError is detok.DetokError; print(detok.inspection.__name__)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "detok.inspection\n"


def test_type_checkers_see_the_same_surface() -> None:
    """What is imported for type checkers is what is imported when it is asked for, from the same modules."""
    tree = ast.parse(Path(detok.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert len(imports) == len(block.body)
    seen = {alias.name: f"{'.' * node.level}{node.module}" for node in imports for alias in node.names}
    assert seen == detok._MODULE_OF
    assert {*seen, "__version__"} == {*detok.__all__}


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


def test_each_module_of_core_has_its_test() -> None:
    """Of its name, in the folder of its name."""
    assert missing(core=True) == []


def functions_of(source: str) -> Iterator[tuple[str, int]]:
    """The name of each function, and how many code lines it has."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, count(dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))).code


def test_code_of_core_is_short() -> None:
    """Each function and each module is small enough to be read at once."""
    sources = {str(path.relative_to(CORE)): path.read_text(encoding="utf-8") for path in sorted(CORE.rglob("*.py"))}
    assert len(sources) > 20
    found = [(place, name, lines) for place, source in sources.items() for name, lines in functions_of(source)]
    assert [one for one in found if one[2] > MAX_FUNCTION] == []
    assert {place for place, source in sources.items() if count(source).code > MAX_MODULE} == set()


def test_lines_of_a_function_are_counted() -> None:
    """Without its docstring, and with the functions in it."""
    source = """
class One:
    def first(self):
        "What."
        def inner():
            return 1

        return inner
"""
    assert dict(functions_of(source)) == {"first": 4, "inner": 2}
