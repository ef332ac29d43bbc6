"""Which class of transformers a directory gets: AutoTokenizer itself is the judge."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

import detok
from detok.tokenizers import auto
from detok.tokenizers.auto.classes import FOLLOWED, _table
from tests.support.handmade import BYTE_LEVEL, METASPACE, byte_level_tokens, make

pytestmark = pytest.mark.filterwarnings("ignore")

UNKNOWN = ("NoSuchTokenizer", "InternLM2TokenizerFast", "PreTrainedTokenizer", "PreTrainedTokenizerFast", "LlamaTokenizer")


@pytest.fixture
def named_by_transformers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Asks AutoTokenizer which class it takes, without making one; None if it refuses the directory."""
    transformers = pytest.importorskip("transformers", minversion="5.24", reason="transformers is the judge")
    from transformers.tokenization_mistral_common import MistralCommonBackend

    def name(cls: Any, /, *_: object, **__: object) -> str:
        return str(cls.__name__)

    monkeypatch.setattr(transformers.PreTrainedTokenizerBase, "from_pretrained", classmethod(name))
    monkeypatch.setattr(MistralCommonBackend, "from_pretrained", classmethod(name))

    def ask(path: Path) -> str | None:
        try:
            found = transformers.AutoTokenizer.from_pretrained(str(path), local_files_only=True, trust_remote_code=False)
        except Exception:  # transformers raises whatever its parts raise
            return None
        return found if isinstance(found, str) else type(found).__name__  # RagTokenizer is made of two

    return ask


def written(path: Path, **files: Any) -> Path:
    """A directory with files, their names without the ending."""
    for name, content in files.items():
        if content is not None:
            (path / f"{name}.json").write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("part", range(4))
def test_class_is_that_of_auto_tokenizer(part: int, tmp_path: Path, named_by_transformers: Any) -> None:
    """For every kind of model there is, and names of classes from everywhere."""
    rng = Random(part)
    table = _table()
    # A bare configuration of nougat is none; transformers has no class by its type then.
    models = [*sorted({*table["models"], *table["configurations"]} - {"nougat"})[part::4], "nonesuch", ""]
    classes = [*table["classes"], *UNKNOWN]
    decoder, tokens = (BYTE_LEVEL, byte_level_tokens(b"a")) if part % 2 else (METASPACE, ["▁a"])
    make(decoder, tokens).save(str(tmp_path / "tokenizer.json"))
    if part >= 2:
        (tmp_path / "tekken.json").write_text("{}")
    judged = 0
    for number, model in enumerate(models):
        named = rng.choice([None, rng.choice(classes), rng.choice(UNKNOWN), table["models"].get(model)])
        config = {} if named is None else {"tokenizer_class": named}
        if rng.random() < 0.1:
            config["auto_map"] = rng.choice([{"AutoTokenizer": ["x.Slow", None]}, ["x.Slow", "x.Fast"], {"AutoModel": "x.Y"}])
        description = {"model_type": model} if number % 7 else {"model_type": model, "tokenizer_class": rng.choice(classes)}
        path = written(tmp_path, config=description, tokenizer_config=config)
        expected = named_by_transformers(path)
        if expected is None:
            continue
        judged += 1
        assert auto.class_of(path).name == expected, (description, config)
    assert judged > len(models) * 0.7


@pytest.mark.parametrize("auto_map", [{"AutoTokenizer": ["own.A", None]}, {"AutoTokenizer": [None, "own.B"]}, ["own.A", None]])
def test_code_of_its_own_is_refused_and_not_run(auto_map: Any, tmp_path: Path, named_by_transformers: Any) -> None:
    """As AutoTokenizer refuses it without trust_remote_code; the tokenizer.json alone is still good for something."""
    make(BYTE_LEVEL, byte_level_tokens(b"a")).save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "own.py").write_text("raise SystemExit('code was run')")
    written(tmp_path, tokenizer_config={"auto_map": auto_map})
    assert named_by_transformers(tmp_path) is None
    with pytest.raises(detok.SourceError, match="code of its own"):
        detok.load(tmp_path)
    assert detok.load(tmp_path / "tokenizer.json").decode([0]) == "a"


def test_code_of_its_own_does_not_count_where_transformers_has_the_class(tmp_path: Path, named_by_transformers: Any) -> None:
    """As AutoTokenizer does without trust_remote_code."""
    make(BYTE_LEVEL, byte_level_tokens(b"a")).save(str(tmp_path / "tokenizer.json"))
    config = {"auto_map": {"AutoTokenizer": ["own.Slow", None]}, "tokenizer_class": "GPT2Tokenizer"}
    written(tmp_path, tokenizer_config=config)
    assert named_by_transformers(tmp_path) == auto.class_of(tmp_path).name == "GPT2Tokenizer"


def test_table_is_of_the_version_that_is_followed() -> None:
    """And of the installed transformers, if that is the same."""
    table = _table()
    assert tuple(map(int, table["transformers"].split(".")[:2])) == FOLLOWED
    transformers = pytest.importorskip("transformers", reason="transformers wrote the table")
    if transformers.__version__ != table["transformers"]:
        pytest.skip(f"transformers {transformers.__version__} is installed, and the table is of {table['transformers']}")
    from scripts.transformers_classes import facts

    assert facts() == table
