"""How `load` finds a format, what it remembers, and which odd sources it refuses: faults found by attack, each as its kind."""

from __future__ import annotations

import copy
import json
import os
import pickle
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders
from tokenizers.models import WordLevel

import detok
from detok.tokenizers import hub, loading
from tests.support.handmade import BYTE_LEVEL, byte_level_tokens, make

RANKS = "YQ== 0\nYg== 1\n"


def test_same_files_are_loaded_once(tmp_path: Path) -> None:
    """The same object, as long as nothing changed."""
    path = tmp_path / "some.tiktoken"
    path.write_text(RANKS)
    assert detok.load(path) is (kept := detok.load(str(path)))
    path.write_text(RANKS + "Yw== 2\n")
    assert detok.load(path) is not kept


def test_change_of_what_stands_beside_is_seen(tmp_path: Path) -> None:
    """The file alone says nothing of its special tokens."""
    path, beside = tmp_path / "tokenizer.model", tmp_path / "tokenizer_config.json"
    path.write_text(RANKS)
    loaded = []
    for token in ("<X>", "<YYY>"):
        beside.write_text(json.dumps({"added_tokens_decoder": {"2": {"content": token, "special": False}}}))
        loaded.append(detok.load(path))
    assert [tokenizer.decode([2]) for tokenizer in loaded] == ["<X>", "<YYY>"]


def test_replaced_file_of_the_same_age_and_size_is_seen(tmp_path: Path) -> None:
    """A deployment may keep both."""
    path, other = tmp_path / "a.tiktoken", tmp_path / "b.tiktoken"
    path.write_text("YQ== 0\n")
    other.write_text("ZA== 0\n")
    kept = detok.load(path)
    stat = path.stat()
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    os.replace(other, path)
    assert (kept.decode([0]), detok.load(path).decode([0])) == ("a", "d")


def test_settings_are_not_confused(tmp_path: Path) -> None:
    """Whatever they look like when they are printed."""

    class Tokens(dict[str, int]):
        def __repr__(self) -> str:
            return "tokens"

    path = tmp_path / "some.tiktoken"
    path.write_text(RANKS)
    texts = [detok.load(path, special_tokens=Tokens({text: 5})).decode([5], False) for text in ("<a>", "<b>")]
    assert texts == ["<a>", "<b>"]


def test_links_to_nowhere_do_not_matter(tmp_path: Path) -> None:
    """A directory may have them, a hub's cache for one."""
    make(BYTE_LEVEL, byte_level_tokens(b"a")).save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "nowhere").symlink_to("gone")
    (tmp_path / "loop").symlink_to("loop")
    assert detok.load(tmp_path).decode([0]) == "a"


@pytest.mark.parametrize("name", ["tekken_240911.json", "tokenizer.model.v3"])
def test_directory_with_a_versioned_name_is_found(name: str, tmp_path: Path) -> None:
    """Mistral's files carry versions; what is in them decides, so here the content is none."""
    (tmp_path / name).write_text("nothing")
    with pytest.raises(detok.SourceError, match=f"{name}: is of no format"):
        detok.load(tmp_path)


@pytest.mark.parametrize("pattern", hub.VOCABULARIES)
def test_what_is_fetched_from_the_hub_is_found_in_a_directory(pattern: str) -> None:
    """Two lists that have to go together: what makes a tokenizer there makes one here."""
    name = pattern.replace("*", ".v1")
    assert any(fnmatch(name, known) for known in loading.FILES)


def test_pipe_is_no_file(tmp_path: Path) -> None:
    """Reading it would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(detok.SourceError, match="is no regular file"):
        detok.load(tmp_path / "pipe")


@pytest.mark.parametrize("source", ["", "\0", "x" * 5_000, "no/such/file"])
def test_path_that_is_none_is_refused(source: str) -> None:
    """Empty, with a NUL, or longer than any path."""
    with pytest.raises(detok.SourceError, match="there is no such file or directory"):
        detok.load(source)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"special_tokens": 5}, "special_tokens"),
        ({"special_tokens": ["a"]}, "special_tokens"),
        ({"special_tokens": {"a": "1"}}, "special_tokens"),
        ({"pat_str": 5}, "pat_str"),
        ({"num_reserved_special_tokens": "x"}, "num_reserved_special_tokens"),
        ({"num_reserved_special_tokens": -5}, "num_reserved_special_tokens"),
        ({"num_reserved_special_tokens": 10**12}, "num_reserved_special_tokens"),
        ({"colour": "red"}, "colour"),
        ({"revision": 5}, "revision"),
        ({"revision": "main"}, "revision"),
        ({"mode": "fast"}, "mode"),
        ({"mode": "quick"}, "mode"),
    ],
)
def test_setting_that_cannot_be_is_named(settings: dict[str, Any], named: str, tmp_path: Path) -> None:
    """Before anything is read."""
    path = tmp_path / "some.tiktoken"
    path.write_text(RANKS)
    with pytest.raises(detok.OptionError, match=f"^{named}="):
        detok.load(path, **settings)


def test_subclass_with_a_decode_of_its_own_is_refused() -> None:
    """No rules tell what it does."""
    sentencepiece = pytest.importorskip("sentencepiece", reason="the library has the class")

    class Loud(sentencepiece.SentencePieceProcessor):  # type: ignore[misc,name-defined]  # the library has no types
        def decode(self, *arguments: Any, **options: Any) -> str:
            return "LOUD"

    with pytest.raises(detok.SourceError, match="a subclass with a decode of its own"):
        detok.load(Loud())


def test_enormous_file_is_not_read(tmp_path: Path) -> None:
    """A hole of 200 GB takes no space on the disk, but would in memory."""
    path = tmp_path / "some.tiktoken"
    path.write_text(RANKS)
    os.truncate(path, 200 << 30)
    with pytest.raises(detok.SourceError, match="bytes; no vocabulary has more than"):
        detok.load(path)


@pytest.mark.parametrize(
    ("name", "content"), [("vocab.json", '{"a": %s}' % ("9" * 5_000)), ("vocab.json", '{"\\ud800": 0, "a": 1}')]
)
def test_word_list_with_what_no_vocabulary_has_is_refused(name: str, content: str, tmp_path: Path) -> None:
    """A number of 5,000 digits, half a character."""
    (tmp_path / name).write_text(content)
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    with pytest.raises(detok.SourceError, match=name):
        detok.load(tmp_path / name)


def test_tokenizer_with_a_pattern_is_pickled() -> None:
    """The library's own Replace cannot be, so it is made anew over there."""
    library = tokenizers.Tokenizer(WordLevel({"a": 0, "b": 1, "c": 2}, unk_token="a"))
    library.decoder = decoders.Sequence([decoders.Replace(tokenizers.Regex("a+"), "b"), decoders.Fuse()])
    tokenizer = detok.load(library)
    for twin in (pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer)):
        assert twin.decode([0, 2, 0]) == tokenizer.decode([0, 2, 0]) == library.decode([0, 2, 0])
        assert twin.fingerprint == tokenizer.fingerprint
