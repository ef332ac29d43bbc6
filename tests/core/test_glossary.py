"""The words of core are few: a class that one of its modules takes from another is in the glossary, or one of a named group."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "src" / "detok" / "core"
GLOSSARY = ROOT / "docs" / "glossary.md"

MAX_NOUNS = 15

# Each group is one noun of the glossary. It has all classes of its modules, and those that are named; "State" stands for the
# values in which the members of any group, or a noun, keep where they stand.
GROUPS: dict[str, tuple[set[str], set[str]]] = {
    "option": ({"options", "request.options"}, set()),
    "output": ({"request.output", "request.logprobs"}, set()),
    "error": (set(), {"TooManyStates"}),
    "decoder kind": ({"decoding.rules"}, set()),
    "stage": (
        {
            "decoding.stages",
            "decoding.joiners",
            "decoding.tail",
            "decoding.text_rules",
            "decoding.byte_runs",
            "decoding.rewriter",
        },
        {"Stages"},
    ),
    "follower": ({"request.followers"}, set()),
}
STATES = {"Branch", "Broken", "Cursor", "End", "MayBeLast", "Pending", "Run", "Undecided"}
"""Classes whose name does not end in State, and that are the state of something."""

ENTRY = re.compile(r"^- \*\*(?P<noun>[\w -]+)\*\*(?: \((?P<classes>`\w+`(?:, `\w+`)*)\))?: (?P<text>.+)$")


def classes_of(core: Path) -> dict[tuple[str, ...], set[str]]:
    """The classes that each module defines; a module is its path in core."""
    found = {}
    for path in core.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found[_module(path, core)] = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    return found


def _module(path: Path, core: Path) -> tuple[str, ...]:
    parts = path.relative_to(core).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def shared_classes(core: Path = CORE) -> dict[str, str]:
    """Each class that one module of core imports from another, and the module that defines it."""
    classes = classes_of(core)
    return {name: ".".join(module) for module, name in _imports(core) if name in classes.get(module, ())}


def _imports(core: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """All names that modules of core import from core, with the module that each comes from."""
    for path in core.rglob("*.py"):
        folder = path.relative_to(core).parent.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and 1 <= node.level <= len(folder) + 1:
                base = folder[: len(folder) - node.level + 1]
                module = (*base, *(node.module.split(".") if node.module else ()))
                yield from ((module, alias.name) for alias in node.names)


def group_of(name: str, module: str) -> str | None:
    """The group that a class belongs to; "state" for the state of one."""
    if name in STATES or name.endswith("State"):
        return "state"
    return next((group for group, (modules, names) in GROUPS.items() if module in modules or name in names), None)


def nouns(glossary: Path = GLOSSARY) -> dict[str, set[str]]:
    """The nouns of the section "core", each with the classes that it names."""
    section = re.search(r"^## core$(.*?)(?=^## |\Z)", glossary.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert section, "docs/glossary.md has no section core"
    found = {}
    for line in section[1].strip().splitlines():
        if line.startswith("- "):
            entry = ENTRY.match(line)
            assert entry, f"an entry is `- **noun** (`Class`): sentence. Example: …`, on one line, not: {line}"
            assert ". Example: " in entry["text"], f"{entry['noun']} has no example"
            found[entry["noun"]] = set(re.findall(r"`(\w+)`", entry["classes"] or ""))
    return found


def test_core_has_few_nouns() -> None:
    """A sentence and an example each, on one line."""
    assert 0 < len(nouns()) <= MAX_NOUNS


def test_each_shared_class_is_a_word_of_the_glossary() -> None:
    """Or it belongs to a group, or is the state of something."""
    known = set().union(*nouns().values())
    unknown = {name: module for name, module in shared_classes().items() if name not in known and group_of(name, module) is None}
    assert unknown == {}


def test_groups_are_nouns() -> None:
    """Each group with a class in core is a noun itself."""
    used = {group_of(name, module) for name, module in shared_classes().items()} - {None, "state", "error"}
    assert used <= nouns().keys()


def test_glossary_names_no_class_that_is_gone() -> None:
    """And the tables here do not either."""
    classes = classes_of(CORE)
    there = set().union(*classes.values())
    modules = {".".join(module) for module in classes}
    assert set().union(*nouns().values()) <= there
    assert set().union(STATES, *(names for _, names in GROUPS.values())) <= there
    assert set().union(*(wanted for wanted, _ in GROUPS.values())) <= modules


def test_class_without_a_word_is_found(tmp_path: Path) -> None:
    """A new class that another module takes is reported, one that stays at home is not."""
    (tmp_path / "request").mkdir()
    (tmp_path / "one.py").write_text("class Widget: ...\nclass Home: ...\n")
    (tmp_path / "request" / "two.py").write_text("from ..one import Widget\nfrom ...errors import DetokError\n")
    assert shared_classes(tmp_path) == {"Widget": "one"}
    assert group_of("Widget", "one") is None
    assert group_of("WidgetState", "one") == "state"
