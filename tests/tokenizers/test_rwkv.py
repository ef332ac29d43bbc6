"""RWKV's world list, judged by the ``rwkv`` package: its bytes, its trie."""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rwkv.rwkv_tokenizer import TRIE_TOKENIZER  # type: ignore[import-untyped]  # it has no types

import detok
from detok.tokenizers import rwkv
from tests.support.kinds import (
    TEXTS,
    assert_check_finds_nothing,
    assert_earliest,
    assert_laws,
    assert_pickled_is_the_same,
    assert_priming_reads_only_the_end,
    assert_token_bytes_tile,
    mutated,
)
from tests.support.laws import any_id
from tests.support.vocabularies import real

END = {"<|endoftext|>": 0}
LITERALS = [bytes([byte]) if byte >= 0x80 else chr(byte) for byte in range(256)]
LITERALS += [" x", "あ", b"\x82x", "\ufffd", b"\xe3\x81", "aaa", "aa", "it's", 'say "it\'s"', "a\\b", "\u2028", b"a'\""]


def listed(literals: Any = LITERALS) -> bytes:
    """A list, as `repr` writes it."""
    lines = []
    for token_id, literal in enumerate(literals, 1):
        length = len(literal.encode()) if isinstance(literal, str) else len(literal)
        lines.append(f"{token_id} {literal!r} {length}\r\n")
    return "".join(lines).encode()


def written(folder: Path, content: bytes) -> Path:
    """A file."""
    path = folder / "vocabulary.txt"
    path.write_bytes(content)
    return path


@cache
def world() -> TRIE_TOKENIZER:
    """The package's own tokenizer of the real list; it takes some seconds to make."""
    return TRIE_TOKENIZER(str(real("rwkv-world") / "rwkv_vocab_v20230424.txt"))


@cache
def subject(name: str) -> detok.Tokenizer:
    """A tokenizer of the real list, or of the small one, with the end of text or without."""
    if name == "world":
        world()
        tokenizer = rwkv.from_file(real("rwkv-world") / "rwkv_vocab_v20230424.txt")
        tokenizer.library._tokenizer = world  # type: ignore[attr-defined]  # made once for all tests
        return tokenizer
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = rwkv.from_file(written(Path(folder), listed()), special_tokens=END if name == "small" else {})
        tokenizer.library.tokens()  # reads the file
        return tokenizer


@pytest.mark.parametrize("name", ["world", "small"])
@given(data=st.data())
def test_laws(name: str, data: st.DataObject) -> None:
    """Streams equal the bytes of the package, decoded lossily, for every list and split."""
    assert_laws(subject(name), data)


@pytest.mark.parametrize("name", ["world", "small"])
def test_check_finds_no_difference(name: str) -> None:
    """The certificate, over lists that are made to hurt."""
    assert_check_finds_nothing(subject(name), lists=150)


@pytest.mark.parametrize("name", ["world", "small"])
@given(data=st.data())
def test_token_bytes_tile_the_text(name: str, data: st.DataObject) -> None:
    """Law 10."""
    assert_token_bytes_tile(subject(name), subject(name).encode("x")[0], data)


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("ids", [[0xE4, 0x82, 259, 0x100, 257, 0], [0xF1, 0xA0, 0xEE, 0xA1, 0x42, 0]])
def test_step_gives_out_all_that_is_certain(ids: list[int], skip: bool) -> None:
    """Law 3, by brute force over a few ids at a time."""
    assert_earliest(subject("small"), ids, skip_special_tokens=skip)


def test_pickled_tokenizer_is_the_same(tmp_path: Path) -> None:
    """Of a file and of the package's object."""
    path = written(tmp_path, listed())
    assert_pickled_is_the_same(rwkv.from_file(path, special_tokens=END))
    assert_pickled_is_the_same(rwkv.from_object(TRIE_TOKENIZER(str(path))))


def test_priming_reads_only_the_end_of_a_prompt() -> None:
    """Of words and of parts of characters."""
    for ids in ([257], [0xE4, 0x82, 0x83], [0x100]):
        assert_priming_reads_only_the_end(subject("small"), ids)


@given(data=st.data())
def test_text_is_the_packages_own_where_it_is_valid(data: st.DataObject) -> None:
    """Its `decode` makes one U+FFFD of everything else."""
    tokenizer = subject("world")
    ids = data.draw(st.lists(st.sampled_from(tokenizer.ids[:300]) | any_id(tokenizer), max_size=10))
    if (theirs := world().decode(ids)) != "\ufffd":
        assert tokenizer.decode(ids) == theirs


def test_table_is_the_packages_own() -> None:
    """All 65,529 tokens, from file and from object."""
    tokenizer = subject("world")
    assert {token_id: tokenizer.token_bytes(token_id) for token_id in tokenizer.ids} == world().idx2token
    of_object = rwkv.from_object(world())
    assert of_object.fingerprint == tokenizer.fingerprint
    assert of_object.description == "RawBytes; 65,529 ids, 0 added"
    assert (tokenizer.ids[0], tokenizer.vocab_size, tokenizer.special_ids) == (1, 65530, frozenset())


@pytest.mark.parametrize("text", TEXTS)
def test_encode_is_greedy_and_goes_there_and_back(text: str) -> None:
    """The same ids as the package's trie; `add_special_tokens` adds none."""
    tokenizer = subject("world")
    ids = tokenizer.encode(text)
    assert ids == world().encode(text) == tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(ids) == text


@given(text=st.text(alphabet="a'\"\\ xあ\u2028\ufffds", max_size=20))
def test_encode_finds_the_longest_token(text: str) -> None:
    """Wherever tokens begin alike."""
    tokenizer = subject("small")
    assert tokenizer.encode(text) == tokenizer.library._tokenizer().encode(text)  # type: ignore[attr-defined]


def test_end_of_text_is_unknown_unless_it_is_named() -> None:
    """The package knows no id 0."""
    assert subject("no end").vocabulary.piece(0) is None
    assert subject("small").special_ids == {0}
    assert subject("small").decode([0x62, 0]) == "a"
    assert subject("small").decode([0x62, 0], skip_special_tokens=False) == "a<|endoftext|>"


@pytest.mark.parametrize("text", ["a\ud800", 5, None])
def test_text_that_cannot_be_encoded_is_refused(text: Any) -> None:
    """As of every tokenizer."""
    with pytest.raises(detok.OptionError, match="lone surrogates"):
        subject("small").encode(text)


def test_byte_that_no_token_begins_with_is_named(tmp_path: Path) -> None:
    """A list need not have all bytes."""
    tokenizer = rwkv.from_file(written(tmp_path, listed(["a", "bc"])))
    assert tokenizer.encode("abca") == [1, 2, 1]
    with pytest.raises(detok.OptionError, match="no token of this list begins with its byte 0x62 at 1"):
        tokenizer.encode("ab")


@pytest.mark.parametrize("special_tokens", [{"<s>": 5}, {"<s>": -1}, {"<s>": "x"}, {"": 0}, {"\ud800": 0}, {"a": 0, "b": 0}])
def test_special_tokens_that_cannot_be_are_refused(tmp_path: Path, special_tokens: dict[str, Any]) -> None:
    """An id stands for one token."""
    with pytest.raises(detok.OptionError, match="special_tokens="):
        rwkv.from_file(written(tmp_path, listed()), special_tokens=special_tokens)


BAD_FILES = {
    "empty": (b"", "the file is empty"),
    "text": (b"hello\n", "line 1: this is no id, literal and length: 'hello'"),
    "an empty line": (b"1 'a' 1\n\n2 'b' 1\n", "line 2: this is no id"),
    "a wrong length": (b"1 'a' 1\n2 'bc' 3\n", "line 2: 'bc' has 2 bytes, not 3"),
    "characters for bytes": ("1 'é' 1\n".encode(), "'é' has 2 bytes, not 1"),
    "an id twice": (b"1 'a' 1\n1 'b' 1\n", "line 2: the id 1 stands for b'a' too"),
    "a huge id": (b"9999999999 'a' 1\n", "the id 9999999999 is beyond"),
    "a number": (b"1 5 1\n", "this is no id"),
    "an expression": (b"1 'a'+'b' 2\n", "this is no id"),
    "code": (b"1 __import__('os').system('true') 1\n", "this is no id"),
    "an open literal": (b"1 'a 1\n", "this is no id"),
    "an odd escape": (rb"1 '\d' 2" + b"\n", "this is no id"),
    "u in bytes": (rb"1 b'\u0041' 6" + b"\n", "this is no id"),
    "a lone surrogate": (rb"1 '\ud800' 3" + b"\n", "line 1: 'utf-8' codec can't encode"),
    "beyond Unicode": (rb"1 '\U00110000' 4" + b"\n", "line 1: (unicode error)"),
    "bytes beyond ASCII": ("1 b'é' 2\n".encode(), "line 1: bytes can only contain ASCII"),
    "no UTF-8": (b"1 'a' 1\n2 '\xff' 1\n", "line 2: 'utf-8' codec can't decode"),
    "a cut line": (listed()[:-4], "line 268: this is no id"),
    "a long line": (b"1 '" + b"(" * 100_000 + b"\n", "line 1: this is no id"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_file_is_named_with_what_was_found(tmp_path: Path, kind: str) -> None:
    """The error names the file, the line, and what would have been accepted."""
    content, found = BAD_FILES[kind]
    path = written(tmp_path, content)
    with pytest.raises(detok.SourceError) as caught:
        rwkv.from_file(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert found in message
    assert "an RWKV world list was expected" in message or kind == "an id twice"
    assert len(message) < 400


def loaded(content: bytes) -> None:
    """Load a file with any content, and decode with what comes of it."""
    with tempfile.TemporaryDirectory() as folder, suppress(detok.DetokError):
        assert isinstance(rwkv.from_file(written(Path(folder), content)).decode(range(300)), str)


@given(content=st.binary(max_size=200))
def test_any_bytes_raise_only_our_errors(content: bytes) -> None:
    """Whatever the file is."""
    loaded(content)


@given(data=st.data())
def test_mutated_list_raises_only_our_errors(data: st.DataObject) -> None:
    """A list with a stretch of bytes cut, doubled or changed loads, or is refused with a detok error."""
    loaded(mutated(listed(), data))


@given(data=st.data())
def test_mutated_real_list_raises_only_our_errors(data: st.DataObject) -> None:
    """The same for a part of the real one."""
    loaded(mutated((real("rwkv-world") / "rwkv_vocab_v20230424.txt").read_bytes()[:30_000], data))


def test_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A list is decoded and encoded without it; only the judge needs it."""
    monkeypatch.setitem(sys.modules, "rwkv.rwkv_tokenizer", None)
    tokenizer = rwkv.from_file(written(tmp_path, listed()))
    assert tokenizer.decode(tokenizer.encode("あ")) == "あ"
    with pytest.raises(detok.MissingExtra, match=r"pip install 'detok\[rwkv\]'"):
        tokenizer.library.decode([1], skip_special_tokens=True)
