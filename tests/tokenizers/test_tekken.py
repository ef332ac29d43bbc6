"""Tekken: tekken.json and mistral_common's objects, judged by ``Tekkenizer.decode``."""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer
from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

import detok
from detok.inspection import check
from detok.tokenizers import tekken
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
from tests.support.vocabularies import real

REAL = {"240718": "tekken_240718.json", "240911": "tekken_240911.json"}
PIECES = [bytes([byte]) for byte in range(256)] + [b" x", b"\x82x", b"\xef\xbf\xbd", b"\xe3\x81", b"a\xf0\x9f", b"left out"]
NAMES = ["<unk>", "<s>", "</s>", "[é]"]
SPECIALS = 6
SIZE = len(PIECES) - 1 + SPECIALS


def content(**changes: Any) -> dict[str, Any]:
    """A small tekken.json; what is None is left out."""
    value: dict[str, Any] = {
        "config": {
            "pattern": r"\S+|\s+",
            "num_vocab_tokens": len(PIECES),
            "default_vocab_size": SIZE,
            "default_num_special_tokens": SPECIALS,
            "version": "v11",
        },
        "vocab": [
            {"rank": rank, "token_bytes": base64.b64encode(piece).decode(), "token_str": None}
            for rank, piece in enumerate(PIECES)
        ],
        "special_tokens": [{"rank": rank, "token_str": name, "is_control": True} for rank, name in enumerate(NAMES)],
        "version": 1,
        "type": "Tekken",
    }
    value["config"].update(changes.pop("config", {}))
    return {name: part for name, part in {**value, **changes}.items() if part is not None}


def written(folder: Path, value: Any) -> Path:
    """A file with a value as JSON."""
    path = folder / "tekken.json"
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return path


@cache
def subject(name: str) -> detok.Tokenizer:
    """The tokenizer of a real file, or of the small one."""
    if name in REAL:
        return tekken.from_file(real("mistral-common") / REAL[name])
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = tekken.from_file(written(Path(folder), content()))
        tokenizer.library.tokens()  # reads the file
        return tokenizer


SUBJECTS = [*REAL, "small"]


@pytest.mark.parametrize("name", SUBJECTS)
@given(data=st.data())
def test_laws(name: str, data: st.DataObject) -> None:
    """Streams equal the library's decode for every list and split; they can be kept, and go on behind a prompt."""
    assert_laws(subject(name), data)


@pytest.mark.parametrize("name", SUBJECTS)
def test_check_finds_no_difference(name: str) -> None:
    """The certificate, over lists that are made to hurt."""
    assert_check_finds_nothing(subject(name), lists=150)


@pytest.mark.parametrize("name", ["240718", "small"])
@given(data=st.data())
def test_token_bytes_tile_the_text(name: str, data: st.DataObject) -> None:
    """Law 10."""
    assert_token_bytes_tile(subject(name), subject(name).encode("x")[-1], data)


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("bytes_and_specials", [(0xE3, 0x81, 257, 0xFF, -5, 256), (0xF0, 0x9F, 0xED, 0xA0, 260, -3)])
def test_step_gives_out_all_that_is_certain(bytes_and_specials: tuple[int, ...], skip: bool) -> None:
    """Law 3, by brute force over a few ids at a time."""
    assert_earliest(subject("small"), [SPECIALS + rank for rank in bytes_and_specials], skip_special_tokens=skip)


def test_pickled_tokenizer_is_the_same() -> None:
    """Of a file and of an object."""
    assert_pickled_is_the_same(subject("240718"))
    assert_pickled_is_the_same(tekken.from_object(Tekkenizer.from_file(real("mistral-common") / REAL["240718"])))


def test_priming_reads_only_the_end_of_a_prompt() -> None:
    """Of words, all of which are bytes here, and of parts of characters."""
    for ids in ([256], [0xE3, 0x81, 0x82], [0xFF]):
        assert_priming_reads_only_the_end(subject("small"), [SPECIALS + rank for rank in ids])
    assert_priming_reads_only_the_end(subject("240911"), subject("240911").encode("Hello, world", add_special_tokens=False))


def test_special_token_splits_a_character() -> None:
    """Skipped or not; its neighbours on either side are incomplete, and each is one U+FFFD."""
    tokenizer = subject("small")
    euro = [SPECIALS + byte for byte in b"\xe2\x82\xac"]
    assert tokenizer.decode(euro) == "€"
    assert tokenizer.decode([*euro[:2], 1, euro[2]]) == "��"
    assert tokenizer.decode([*euro[:2], 1, euro[2]], skip_special_tokens=False) == "�<s>�"
    stream = tokenizer.stream()
    assert [stream.step(token_id) for token_id in (*euro[:2], 1, euro[2])] == ["", "", "�", "�"]


def test_kinds_of_tokens() -> None:
    """Special tokens are text, the others bytes; places without a name get one; tokens that there is no room for are left out."""
    tokenizer = subject("small")
    assert tokenizer.special_ids == tokenizer.added_ids == {*range(SPECIALS)}
    assert [tokenizer.piece(token_id).text for token_id in (3, 4, 5)] == ["[é]", "<SPECIAL_4>", "<SPECIAL_5>"]
    assert tokenizer.piece(3) == detok.Piece("[é]", special=True, added=True)
    assert tokenizer.piece(SPECIALS + 0xFF) == detok.Piece("\\xff", data=b"\xff")
    assert tokenizer.token_bytes(3) == "[é]".encode()
    assert tokenizer.vocab_size == len(tokenizer.ids) == SIZE == len(tokenizer.library.tokens())
    assert tokenizer.vocabulary.piece(SIZE) is None
    assert tokenizer.description == f"RawBytes, split by specials; {SIZE} ids, {SPECIALS} added"
    assert tokenizer.library.name.startswith("mistral-common 1.")


@pytest.mark.parametrize("name", REAL)
def test_old_file_has_the_librarys_special_tokens(name: str) -> None:
    """A file of version 3 does not name them."""
    tokenizer = subject(name)
    theirs = Tekkenizer.from_file(real("mistral-common") / REAL[name])
    assert [tokenizer.piece(token_id).text for token_id in range(1000)] == [
        theirs.id_to_piece(token_id) for token_id in range(1000)
    ]
    of_object = tekken.from_object(theirs)
    assert of_object.fingerprint == tokenizer.fingerprint
    assert of_object.special_ids == tokenizer.special_ids
    assert of_object.ids == tokenizer.ids
    assert all(of_object.vocabulary.piece(token_id) is None for token_id in (-1, theirs.n_words))


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("text", TEXTS)
def test_encode_is_the_librarys_with_bos(name: str, text: str) -> None:
    """BOS in front if it is asked for; special tokens in a text stay text; and back again."""
    tokenizer = subject(name)
    ids = tokenizer.encode(text)
    assert ids[:1] == [1]
    assert ids[1:] == tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode(tokenizer.encode("<s>[INST]")) == "<s>[INST]"


@pytest.mark.parametrize("text", ["a\ud800", 5, None])
def test_text_that_cannot_be_encoded_is_refused(text: Any) -> None:
    """As of every tokenizer."""
    with pytest.raises(detok.OptionError, match="lone surrogates"):
        subject("small").encode(text)


def test_text_that_the_library_gives_up_on_is_refused() -> None:
    """A million spaces are too much for its engine."""
    with pytest.raises(detok.OptionError, match="tiktoken has to be able to split it"):
        subject("240718").encode(" " * 1_000_000)


@pytest.mark.parametrize("make", [MistralTokenizer.v1, MistralTokenizer.v3, lambda: MistralTokenizer.v3(is_tekken=True)])
def test_objects_of_mistral_common(make: Any) -> None:
    """A MistralTokenizer and what is in it are the same."""
    whole = make()
    inner = whole.instruct_tokenizer.tokenizer
    tokenizer = tekken.from_object(whole)
    assert tokenizer.fingerprint == tekken.from_object(inner).fingerprint
    assert tokenizer.source == "mistral_common MistralTokenizer"
    assert isinstance(inner, (Tekkenizer, SentencePieceTokenizer))
    for text in TEXTS:
        ids = inner.encode(text, bos=True, eos=False)
        assert tokenizer.encode(text) == ids
        assert tokenizer.decode(ids) == inner.decode(ids, SpecialTokenPolicy.IGNORE) == text
    certificate = check(tokenizer, lists=50)
    assert certificate.ok, certificate.differences


def test_settings_go_to_what_is_inside() -> None:
    """A SentencePieceTokenizer takes those of its kind, a Tekkenizer none."""
    spm = tekken.from_object(MistralTokenizer.v1(), add_bos_token=False)
    assert spm.encode("x") == spm.encode("x", add_special_tokens=False)
    with pytest.raises(TypeError, match="add_bos_token"):
        tekken.from_object(MistralTokenizer.v3(is_tekken=True), add_bos_token=False)


def test_other_object_is_refused() -> None:
    """With its kind."""
    with pytest.raises(detok.SourceError, match="has a dict; a Tekkenizer or SentencePieceTokenizer was expected"):
        tekken.from_object({})


def vocabulary(**changes: Any) -> list[Any]:
    """The vocabulary with another first token."""
    return [{"rank": 0, "token_bytes": "AA==", "token_str": None, **changes}, *content()["vocab"][1:]]


BAD_FILES: dict[str, tuple[Any, str]] = {
    "empty": (b"", "the file is empty"),
    "text": (b"hello", "is no JSON"),
    "cut": (json.dumps(content()).encode()[:-9], "only the beginning of it"),
    "deep": (b"[" * 100_000, "is no JSON"),
    "a list": ([1], "a field is missing or wrong (TypeError"),
    "another object": ({"model": {}}, "a field is missing or wrong (KeyError: 'config')"),
    "no vocabulary": (content(vocab=None), "KeyError: 'vocab'"),
    "a vocabulary that is none": (content(vocab=5), "TypeError"),
    "too few tokens": (content(vocab=content()["vocab"][:-2]), "do not go with"),
    "too many ids": (content(config={"default_vocab_size": 1 << 40}), "do not go with"),
    "too many special tokens": (content(config={"default_num_special_tokens": 1 << 40}), "do not go with"),
    "a count that is no number": (content(config={"default_num_special_tokens": "6"}), "TypeError"),
    "a token that is none": (content(vocab=[5] * 300), "TypeError"),
    "no base64": (content(vocab=vocabulary(token_bytes="A!==")), "Only base64 data is allowed"),
    "a cut token": (content(vocab=vocabulary(token_bytes="AA")), "Incorrect padding"),
    "a wrong rank": (content(vocab=vocabulary(rank=7)), "rank 7 stands at place 0"),
    "no bytes in front": (content(vocab=vocabulary(token_bytes="IHg=")), "the first 256 tokens are not the bytes in order"),
    "no special tokens": (content(special_tokens=None), "special_tokens is not there, which version v11 has"),
    "an odd version": (content(special_tokens=None, config={"version": "new"}), "ValueError: invalid literal"),
    "too many names": (content(special_tokens=[{"token_str": str(i)} for i in range(7)]), "7 different special tokens, not 6"),
    "a name twice": (content(special_tokens=[{"token_str": "<s>"}] * 2), "5 different special tokens, not 6"),
    "a name that is none": (content(special_tokens=[{"token_str": 5}]), "AttributeError"),
    "a name with a lone surrogate": (content(special_tokens=[{"token_str": "\ud800"}]), "UnicodeEncodeError"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_file_is_named_with_what_was_found(tmp_path: Path, kind: str) -> None:
    """The error names the file, what is wrong in it, and what would have been accepted."""
    value, found = BAD_FILES[kind]
    path = written(tmp_path, value)
    with pytest.raises(detok.SourceError) as caught:
        tekken.from_file(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert found in message
    assert "a tekken.json was expected" in message


def loaded(whole: bytes) -> None:
    """Load a file with any content, and decode with what comes of it."""
    with tempfile.TemporaryDirectory() as folder, suppress(detok.DetokError):
        assert isinstance(tekken.from_file(written(Path(folder), whole)).decode(range(300), False), str)


@given(whole=st.binary(max_size=200))
def test_any_bytes_raise_only_our_errors(whole: bytes) -> None:
    """Whatever the file is."""
    loaded(whole)


@given(data=st.data())
def test_mutated_file_raises_only_our_errors(data: st.DataObject) -> None:
    """A file with a stretch of bytes cut, doubled or changed loads, or is refused with a detok error."""
    loaded(mutated(json.dumps(content()).encode(), data))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(data=st.data())
def test_file_with_any_values_raises_only_our_errors(data: st.DataObject) -> None:
    """Well-formed JSON with other values where they count."""
    value = content()
    place = data.draw(st.sampled_from([value, value["config"], value["vocab"][3], value["special_tokens"][1]]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(JSON)
    loaded(json.dumps(value).encode())


def test_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file is decoded without it; encode says what to install."""
    for module in ("tekken", "base"):
        monkeypatch.setitem(sys.modules, f"mistral_common.tokens.tokenizers.{module}", None)
    tokenizer = tekken.from_file(written(tmp_path, content()))
    assert tokenizer.decode([SPECIALS + 0x61]) == "a"
    with pytest.raises(detok.MissingExtra, match=r"pip install 'detok\[mistral\]'"):
        tokenizer.encode("a")
