"""Names on the hub: what is one, what is taken from the cache, what is fetched, and how to get what is not there. No network."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import constants, errors
from huggingface_hub.utils._paths import filter_repo_objects
from huggingface_hub.utils._validators import validate_repo_id
from hypothesis import example, given
from hypothesis import strategies as st

import detok
from detok.tokenizers.hub import from_name, looks_like_hub_name

COMMIT = "0123456789abcdef0123456789abcdef01234567"
Download = Callable[..., str]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a hub that nobody may ask."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path


def cached(cache: Path, *names: str, name: str = "Own/Model", branch: str = "main") -> Path:
    """A snapshot in the cache, as huggingface_hub keeps it."""
    folder = cache / f"models--{name.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / branch).write_text(COMMIT)
    snapshot = folder / "snapshots" / COMMIT
    for file in names:
        (snapshot / file).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / file).write_text("{}")
    return snapshot


@pytest.fixture
def hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A hub that has one tokenizer; the calls that reach it."""
    calls: list[dict[str, Any]] = []
    real: Download = huggingface_hub.snapshot_download

    def download(name: str, **settings: Any) -> str:
        if settings.get("local_files_only"):
            return real(name, **settings)
        calls.append({"name": name, **settings})
        return str(cached(cache / "fetched", "tokenizer.json", name=name))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return calls


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[(text, True) for text in ("Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B", "a/b", "_a/b_", "01-ai/Yi_1.5")],
        *[
            (text, False)
            for text in ("gpt2", "", "/", "a/", "/b", "a/b/c", "./b", "../b", "~/b", "a b/c", "a/b c", "ä/b", "a/b\n")
        ],
        *[(text, False) for text in ("a--b/c", "a/b..c", "-a/b", "a/-b", "a/b-", "a/b.", ".a/b", "a/b.git", "a/" + "b" * 97)],
        *[(text, False) for text in ("models/tokenizer.json", "x/tokenizer.model", "x/y.gguf", "https://x/y", "a\\b/c")],
    ],
)
def test_hub_name_is_told_from_a_path(text: str, expected: bool) -> None:
    """Owner and name, of the hub's characters, without the ending of a tokenizer's file."""
    assert looks_like_hub_name(text) is expected


def test_path_that_is_there_is_no_hub_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory goes first."""
    monkeypatch.chdir(tmp_path)
    assert looks_like_hub_name("Own/Model")
    (tmp_path / "Own" / "Model").mkdir(parents=True)
    assert not looks_like_hub_name("Own/Model")


@given(st.text() | st.from_regex(r"[\w./-]{1,20}/[\w./-]{1,20}", fullmatch=True))
@example("a/b\0")
def test_what_looks_like_a_name_is_one_for_the_library(text: str) -> None:
    """And no text raises."""
    if looks_like_hub_name(text):
        validate_repo_id(text)


@pytest.mark.parametrize(
    "file", ["tokenizer.json", "tokenizer.model", "tokenizer.model.v3", "tekken.json", "qwen.tiktoken", "vocab.txt"]
)
def test_cache_is_enough(cache: Path, file: str) -> None:
    """Nobody is asked for what is there."""
    snapshot = cached(cache, file, "config.json")
    assert from_name("Own/Model") == snapshot


def test_directory_from_the_cache_can_be_loaded(cache: Path) -> None:
    """It is one as any other."""
    snapshot = cached(cache, "vocab.txt")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (snapshot / name).write_bytes((detok.EMBEDDED / name).read_bytes())
    tokenizer = detok.load(from_name("Own/Model"))
    assert tokenizer.decode(tokenizer.encode("Hello!")) == "Hello!"


def test_revision_is_looked_for_in_the_cache(cache: Path) -> None:
    """A branch or a commit; another one is not there."""
    snapshot = cached(cache, "tokenizer.json", branch="dev")
    assert from_name("Own/Model", revision="dev") == from_name("Own/Model", revision=COMMIT) == snapshot
    with pytest.raises(detok.SourceError, match="is not in the cache"):
        from_name("Own/Model", revision="main")


def test_what_is_not_in_the_cache_is_fetched(hub: list[dict[str, Any]]) -> None:
    """Tokenizer files only: no weights, no code."""
    assert (from_name("Own/Model", revision="dev") / "tokenizer.json").is_file()
    (call,) = hub
    assert (call["name"], call["revision"]) == ("Own/Model", "dev")
    wanted = ["tokenizer.json", "tokenizer_config.json", "merges.txt", "tekken.json", "tokenizer.model.v7", "chat_template.jinja"]
    others = ["model.safetensors", "tokenization_own.py", "pytorch_model.bin", "README.md", "original/params.json", "a.gguf"]
    assert [*filter_repo_objects([*wanted, *others], allow_patterns=call["allow_patterns"])] == wanted


def test_snapshot_without_a_tokenizer_is_filled_up(cache: Path, hub: list[dict[str, Any]]) -> None:
    """Another program may have cached the configuration only."""
    cached(cache, "config.json")
    assert (from_name("Own/Model") / "tokenizer.json").is_file()
    assert len(hub) == 1


def test_repository_without_a_tokenizer_says_what_it_has(cache: Path) -> None:
    """With what was expected."""
    cached(cache, "config.json", "chat_template.jinja")
    with pytest.raises(
        detok.SourceError, match=r"Own/Model: has no tokenizer, only chat_template.jinja, config.json; one of token"
    ):
        from_name("Own/Model")


def test_offline_without_it_says_how_to_get_it(cache: Path) -> None:
    """HF_HUB_OFFLINE is honoured, and named."""
    with pytest.raises(detok.SourceError) as caught:
        from_name("Own/Model")
    assert str(caught.value) == (
        f"Own/Model: is not in the cache {cache}, and HF_HUB_OFFLINE forbids asking the hub; "
        "load it once where there is a network and bring that folder along, or give a directory with its tokenizer files"
    )


def failing(error: Exception) -> Download:
    """A hub that answers with an error."""

    def download(name: str, **settings: Any) -> str:
        if settings.get("local_files_only"):
            raise errors.LocalEntryNotFoundError("not there")
        raise error

    return download


def made(kind: type[Exception]) -> Exception:
    """An error of the library, without the answer of a server that it asks for."""
    return kind.__new__(kind)


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (made(errors.GatedRepoError), r"is gated; accept its terms on https://huggingface.co/Own/Model, then: hf auth login"),
        (made(errors.RepositoryNotFoundError), "the hub has no such name, or it is private; mind the spelling"),
        (made(errors.RevisionNotFoundError), "has no revision 'x'; see https://huggingface.co/Own/Model/commits/main"),
        (errors.HFValidationError("bad"), "is no name on the hub; owner/name was expected"),
        (
            caused(errors.LocalEntryNotFoundError("see"), ConnectionError("no route")),
            r"the hub is out of reach \(LocalEntryNotFoundError: ConnectionError: no route\); load it once",
        ),
        (TimeoutError("too slow"), r"the hub is out of reach \(TimeoutError: too slow\)"),
    ],
)
def test_answer_of_the_hub_is_explained(cache: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str) -> None:
    """With what to do."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", failing(error))
    with pytest.raises(detok.SourceError, match=message):
        from_name("Own/Model", revision="x")


def test_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """huggingface_hub comes with tokenizers."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(detok.MissingExtra, match=r"the hub name 'Own/Model' needs .* pip install 'detok\[hf\]'"):
        from_name("Own/Model")
