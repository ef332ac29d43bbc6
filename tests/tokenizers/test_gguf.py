"""GGUF: every kind against llama.cpp's own answers, the reader against the package gguf, and what can be wrong with a file."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import pickle
import shutil
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError
from itertools import pairwise
from pathlib import Path
from random import Random
from time import process_time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.core.decoding.rules import byte_level_spelling
from detok.inspection import check
from detok.tokenizers.gguf import GGUFTokenizer, from_file
from detok.tokenizers.gguf_merging import merge
from detok.tokenizers.gguf_reader import read
from scripts import fetch_vocabularies
from tests.support.kinds import assert_check_finds_nothing, assert_pickled_is_the_same
from tests.support.laws import any_id

gguf: Any = pytest.importorskip("gguf")

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
Entries = Sequence[tuple[str, int]]
BYTES = [(f"<0x{byte:02X}>", BYTE) for byte in b"\n A\x80\xa9\xc3\xe2\x82\xac\xf0\x9f\x98\xff"]
RECORDED = Path(__file__).parent.parent / "cases" / "gguf.json"
"""What llama.cpp of llama-cpp-python 0.3.36 answers; `test_llama_cpp_itself` writes it anew with DETOK_RECORD=1."""


def of_bytes(*pieces: bytes) -> Entries:
    """Normal entries in the byte alphabet, bytes that are no UTF-8 too."""
    spelling = {byte_level_spelling(chr(code)): bytes([code]) for code in range(0x80)}
    # The UTF-8 of U+0080 and on has a lead byte and a continuation byte, each with a letter of its own.
    spelling |= {
        letter: bytes([byte])
        for code in range(0x80, 0x800)
        for letter, byte in zip(byte_level_spelling(chr(code)), chr(code).encode(), strict=True)
    }
    letters = {byte: letter for letter, byte in spelling.items()}
    letters |= {bytes([byte]): chr(byte) for byte in (0xC0, 0xC1, *range(0xE0, 0x100))}
    return [("".join(letters[bytes([byte])] for byte in piece), NORMAL) for piece in pieces]


VOCABULARIES: Mapping[str, tuple[str, Entries, Mapping[str, Any]]] = {
    "gpt2": (
        "gpt2",
        [
            *of_bytes(
                b"a", b"b", b"ab", b" a", b"\n", b" ", b"  ", b"\xc3", b"\xa9", b"\xe2\x82", b"\xac ", b"\xff", "\ufffd".encode()
            ),
            *[
                ("▁é ü", USER_DEFINED),
                (" spaced ", USER_DEFINED),
                ("<|endoftext|>", CONTROL),
                ("<unk>", UNKNOWN),
                ("[PAD1]", UNUSED),
            ],
            *[("?", 0), ("日a", NORMAL), ("é b", NORMAL), ("<0x41>", BYTE), ("", NORMAL), (" <s>", CONTROL), (".", NORMAL)],
            *of_bytes(b" '", b"s"),
        ],
        {"pre": "gpt-2", "bos_token_id": 15, "eos_token_id": 15, "add_bos_token": True},
    ),
    "gpt2, types set right by the text": (
        "gpt2",
        [
            *of_bytes(b"a", b"b", b"ab", b"\n"),
            *[("<|im_end|>", USER_DEFINED), ("<|end|>", NORMAL), ("<|return|>", NORMAL), ("<|call|>", USER_DEFINED)],
            *[("<|channel|>", CONTROL), ("<|message|>", CONTROL), ("<|fim_prefix|>", NORMAL), ("<fim_suffix>", USER_DEFINED)],
            *[("<|fim_middle|>", USER_DEFINED), ("<PAD>", NORMAL), ("<|repo_name|>", NORMAL), ("<|file_sep|>", USER_DEFINED)],
            *[("</s>", NORMAL), ("<eos>", NORMAL)],
        ],
        {"pre": "llama-bpe", "bos_token_id": 4, "fim_mid_token_id": 12},
    ),
    "gpt2, spelled as SentencePiece": (
        "gpt2",
        [("<s>", CONTROL), *BYTES, ("▁", NORMAL), ("▁a", NORMAL), ("Ġa", NORMAL), ("é", NORMAL)],
        {"pre": "sarvam-moe", "add_space_prefix": True, "bos_token_id": 0, "eos_token_id": 0},
    ),
    "llama": (
        "llama",
        [
            *[("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), *BYTES, ("▁", NORMAL), ("▁▁", NORMAL), ("▁a", NORMAL)],
            *[
                ("a", NORMAL),
                ("é", NORMAL),
                ("▁<PRE>", USER_DEFINED),
                ("▁user▁", USER_DEFINED),
                (" raw", NORMAL),
                ("▁x▁y", NORMAL),
            ],
            *[("", NORMAL), ("unused", UNUSED), (".", NORMAL)],
        ],
        {},
    ),
    "llama, without a space in front": (
        "llama",
        [
            *[("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", NORMAL), *BYTES, ("▁", NORMAL), ("▁▁", NORMAL), ("▁a", NORMAL)],
            *[("a", NORMAL), ("<|tool_response>", NORMAL), ("<end_of_turn>", USER_DEFINED)],
        ],
        {"add_space_prefix": False},
    ),
    "gemma4": (
        "gemma4",
        [
            *[
                ("<pad>", CONTROL),
                ("<eos>", CONTROL),
                ("<bos>", CONTROL),
                ("<unk>", UNKNOWN),
                *BYTES,
                ("▁", NORMAL),
                ("▁▁", NORMAL),
            ],
            *[("▁a", NORMAL), ("a", NORMAL), ("</s>", USER_DEFINED), ("<|tool_response>", CONTROL), ("<turn|>", USER_DEFINED)],
            *[("\n", NORMAL), ("▁b", USER_DEFINED)],
        ],
        {"bos_token_id": 2, "eos_token_id": 1},
    ),
    "bert": (
        "bert",
        [
            *[("[PAD]", CONTROL), ("[UNK]", UNKNOWN), ("[CLS]", CONTROL), ("[SEP]", CONTROL), ("[MASK]", CONTROL)],
            *[(text, NORMAL) for text in ("▁hello", "▁world", "ing", "▁.", "▁'", "▁s", "▁é", "##x")],
            ("[unused1]", UNUSED),
        ],
        {"bos_token_id": 2, "seperator_token_id": 3, "padding_token_id": 0, "mask_token_id": 4, "unknown_token_id": 1},
    ),
    "t5": (
        "t5",
        [
            *[("<pad>", CONTROL), ("</s>", CONTROL), ("<unk>", UNKNOWN)],
            *[(text, NORMAL) for text in ("▁", "▁a", "a", "▁▁", "é", "\n")],
            *[("<extra_id_0>", USER_DEFINED), ("▁b▁", USER_DEFINED), ("<0xC3>", BYTE), ("<0xA9>", BYTE)],
        ],
        {"add_space_prefix": True, "eos_token_id": 1, "unknown_token_id": 2, "padding_token_id": 0},
    ),
    "rwkv": (
        "rwkv",
        [
            ("<s>", CONTROL),
            *[
                (text, NORMAL)
                for text in (r"\x00", r"\n", r"\t", r"\r", " a", "a", r"\xc3", r"\xa9", r"\xe2\x82", r"\xac\\", r"\'")
            ],
            *[("é", NORMAL), (r"\xff", NORMAL), ("[PAD]", UNUSED), (r"\x41b", USER_DEFINED)],
        ],
        {"bos_token_id": 0, "eos_token_id": 0},
    ),
}
"""Every kind, with entries chosen to hurt: parts of characters, spaces at an edge, each type, texts that llama.cpp knows."""

CLEANED = ("gpt2", "gpt2, types set right by the text", "gemma4", "bert")
"""Where ``llama_detokenize`` removes spaces in front of punctuation."""

KINDS = pytest.mark.parametrize("name", VOCABULARIES)
VALUE_TYPES = {bool: "BOOL", int: "UINT32", str: "STRING", float: "FLOAT64"}


def write(path: Path, kind: str | None, entries: Entries, **values: Any) -> Path:
    """Write a GGUF file with a vocabulary, by the package gguf; a value of None leaves the key out."""
    writer = gguf.GGUFWriter(path, "llama")
    # Without these llama.cpp loads nothing.
    for key in ("context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count"):
        writer.add_uint32(f"llama.{key}", 8)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    given: dict[str, Any] = {
        "model": kind,
        "tokens": [text.encode() for text, _ in entries],
        "token_type": [entry_type for _, entry_type in entries],
        "scores": [-float(place) for place in range(len(entries))],
        "merges": ["a b"] if kind in ("gpt2", "gemma4") else None,
        **values,
    }
    for key, value in given.items():
        if isinstance(value, list):
            writer.add_array(f"tokenizer.ggml.{key}", value)
        elif value is not None:
            whole = key if "." in key else f"tokenizer.ggml.{key}"
            writer.add_key_value(whole, value, gguf.GGUFValueType[VALUE_TYPES[type(value)]])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


@cache
def folder() -> Path:
    """For files that one run makes once."""
    path = Path(tempfile.mkdtemp(prefix="detok-gguf-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@cache
def made(name: str, clean_spaces: bool = False) -> GGUFTokenizer:
    """A tokenizer of `VOCABULARIES`."""
    kind, entries, values = VOCABULARIES[name]
    path = folder() / f"{name}.gguf"
    if not path.exists():
        write(path, kind, entries, **values)
    return from_file(path, clean_spaces=clean_spaces)


def recorded(name: str) -> Sequence[Mapping[str, Any]]:
    answers: Mapping[str, Sequence[Mapping[str, Any]]] = json.loads(RECORDED.read_text())
    return answers[name]


@KINDS
def test_decode_is_what_llama_cpp_answered(name: str) -> None:
    """One-shot and streamed id by id, special tokens shown and not: its pieces, and with its clean-up what it detokenizes."""
    tokenizer, cleaned = made(name), made(name, clean_spaces=name in CLEANED)
    for case in recorded(name):
        ids, skips = case["ids"], not case["special"]
        stream = tokenizer.stream(skip_special_tokens=skips)
        assert "".join(map(stream.step, ids)) + stream.finish() == case["pieces"]
        assert tokenizer.decode(ids, skip_special_tokens=skips) == case["pieces"]
        assert cleaned.decode(ids, skip_special_tokens=skips) == case["detokenized"]


@KINDS
@given(data=st.data())
def test_laws_hold(name: str, data: st.DataObject) -> None:
    """Any split equals one-shot; a prompt is context only; a snapshot goes on; ids that do not exist are passed over."""
    tokenizer, skips = made(name), data.draw(st.booleans())
    some_id = any_id(tokenizer, -1, tokenizer.vocab_size, 1 << 40)
    steps = data.draw(st.lists(st.lists(some_id, max_size=4), min_size=1, max_size=6))
    every = [token_id for ids in steps for token_id in ids]
    whole = tokenizer.library.decode(every, skip_special_tokens=skips)
    stream, text = tokenizer.stream(skip_special_tokens=skips), ""
    for ids in steps:
        text += stream.extend(ids)
        assert whole.startswith(text)
        stream = tokenizer.restore(json.loads(json.dumps(stream.snapshot())))
    assert text + stream.finish() == whole == tokenizer.decode(every, skip_special_tokens=skips)
    after = tokenizer.stream(prompt_ids=steps[0], skip_special_tokens=skips)
    before = tokenizer.library.decode(steps[0], skip_special_tokens=skips)
    rest = "".join(map(after.extend, steps[1:])) + after.finish()
    assert before + rest == whole or not whole.startswith(before)


@KINDS
def test_check_finds_no_difference(name: str) -> None:
    """The certificate over hostile lists; where nothing encodes, without cuttings of texts."""
    tokenizer = made(name)
    assert_check_finds_nothing(tokenizer, lists=200)


def test_first_piece_alone_loses_its_space() -> None:
    """A special token in front counts as the first, skipped or not; so does an entry without text."""
    tokenizer = made("llama")
    bos, unused, word = 1, tokenizer.vocab_size - 2, 18
    assert tokenizer.piece(word).data == b" a"
    assert [tokenizer.decode(ids) for ids in ([word, word], [bos, word], [unused, word])] == ["a a", " a", " a"]
    assert tokenizer.stream(prompt_ids=[bos]).step(word) == " a"
    assert tokenizer.token_bytes(word) == b" a"


def test_special_ids_are_those_that_are_not_printed() -> None:
    """Control and unknown entries; user-defined ones are added, but printed."""
    tokenizer = made("gpt2")
    assert {tokenizer.piece(token_id).text for token_id in tokenizer.special_ids} == {"<|endoftext|>", "<unk>", " <s>"}
    assert {tokenizer.piece(token_id).text for token_id in tokenizer.added_ids - tokenizer.special_ids} == {"▁é ü", " spaced "}
    assert tokenizer.vocab_size == len(tokenizer.ids) == 27


def test_what_else_the_file_says_is_kept(tmp_path: Path) -> None:
    """The chat template, the ids of special tokens, the model's name; not the large arrays."""
    values = {"general.name": "Tiny", "tokenizer.chat_template": "{{ messages }}", "eos_token_id": 2, "add_bos_token": False}
    metadata = from_file(write(tmp_path / "a.gguf", "llama", VOCABULARIES["llama"][1], **values)).metadata
    assert metadata["tokenizer.chat_template"] == "{{ messages }}"
    assert metadata["general.name"] == "Tiny"
    assert metadata["tokenizer.ggml.eos_token_id"] == 2
    assert metadata["tokenizer.ggml.add_bos_token"] is False
    assert not {"tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type"} & metadata.keys()


def test_without_types_all_entries_are_normal(tmp_path: Path) -> None:
    """As llama.cpp takes it."""
    path = write(tmp_path / "a.gguf", "llama", [("<0x41>", BYTE), ("▁a", NORMAL), ("<s>", CONTROL)], token_type=None)
    assert from_file(path).decode([0, 1, 2]) == "<0x41> a<s>"


def raising(name: str) -> str:
    raise PackageNotFoundError(name)


def test_library_says_who_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    """llama.cpp where it is installed, and else that it is not."""
    import detok.tokenizers.gguf_judge as judge

    monkeypatch.setattr(judge, "version", raising)
    kind, entries, values = VOCABULARIES["t5"]
    path = write(folder() / "judged.gguf", kind, entries, **values)
    assert from_file(path).library.name == "llama.cpp's rule as detok reads it (llama-cpp-python is not installed to judge)"
    monkeypatch.setattr(judge, "version", lambda name: "0.0")
    assert from_file(path).library.name == "llama.cpp (llama-cpp-python 0.0)"


class FakeLlamaCpp:
    """Stands in for the module ``llama_cpp``: its pieces are the hexadecimal of their id, many times over."""

    def __init__(self, loads: bool) -> None:
        self._loads = loads
        self.__name__ = "llama_cpp"

    def llama_backend_init(self) -> None:
        pass

    def llama_model_default_params(self) -> SimpleNamespace:
        return SimpleNamespace(vocab_only=False)

    def llama_model_load_from_file(self, path: bytes, settings: SimpleNamespace) -> object:
        assert settings.vocab_only
        return path if self._loads else None

    def llama_model_get_vocab(self, model: object) -> object:
        return model

    def llama_token_to_piece(self, _: object, token_id: int, buffer: Any, room: int, strips: int, special: bool) -> int:
        piece = (b"" if strips else b" ") + (b"%x" % token_id) * 300 + b"!" * special
        if len(piece) > room:
            return -len(piece)
        buffer[: len(piece)] = piece
        return len(piece)


@pytest.mark.parametrize("loads", [True, False])
def test_installed_llama_cpp_is_asked(monkeypatch: pytest.MonkeyPatch, loads: bool) -> None:
    """Piece by piece, with as much room as it wants; if it does not load the file there is no judgement."""
    import detok.tokenizers.gguf_judge as judge

    monkeypatch.setattr(judge, "version", lambda name: "0.0")
    monkeypatch.setitem(sys.modules, "llama_cpp", FakeLlamaCpp(loads))
    kind, entries, values = VOCABULARIES["t5"]
    library = from_file(write(folder() / "judged.gguf", kind, entries, **values)).library
    if not loads:
        with pytest.raises(RuntimeError, match="does not load"):
            library.decode([1], skip_special_tokens=True)
        return
    assert library.decode([], skip_special_tokens=True) == ""
    assert library.decode([2, 99, 12], skip_special_tokens=True) == "2" * 300 + " " + "c" * 300
    assert library.decode([2], skip_special_tokens=False) == "2" * 300 + "!"


@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma4"])
def test_pickled_tokenizer_is_the_same(name: str) -> None:
    """With what the file says besides."""
    tokenizer = made(name)
    assert_pickled_is_the_same(tokenizer)
    assert pickle.loads(pickle.dumps(tokenizer)).metadata == tokenizer.metadata


# The reader


def every_type(path: Path, **settings: Any) -> Path:
    """A file with a value of every type, alone and in an array."""
    numbers: dict[str, float] = {
        "UINT8": 200,
        "INT8": -5,
        "UINT16": 60_000,
        "INT16": -300,
        "UINT32": 1 << 31,
        "INT32": -(1 << 31),
    }
    numbers |= {"UINT64": 1 << 63, "INT64": -(1 << 62), "FLOAT32": 0.5, "FLOAT64": 0.1, "BOOL": True}
    writer = gguf.GGUFWriter(path, "llama", **settings)
    for name, value in numbers.items():
        writer.add_key_value(f"one.{name}", value, gguf.GGUFValueType[name])
    arrays: dict[str, list[float]] = {"INT32": [-1, 2, 3], "FLOAT32": [0.5, -1.0], "BOOL": [True, False]}
    for name, values in arrays.items():
        writer.add_key_value(f"many.{name}", values, gguf.GGUFValueType.ARRAY, sub_type=gguf.GGUFValueType[name])
    writer.add_string("a.string", "é\n日")
    writer.add_array("many.strings", ["", "é", "x" * 300])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("order", ["LITTLE", "BIG"])
def test_reader_equals_the_package(tmp_path: Path, order: str) -> None:
    """Every type of value, in both byte orders."""
    path = every_type(tmp_path / "a.gguf", endianess=gguf.GGUFEndian[order])
    values = read(path)
    fields = {key: field for key, field in gguf.GGUFReader(path).fields.items() if not key.startswith("GGUF.")}
    assert list(values) == list(fields)
    for key, field in fields.items():
        value: Any = values[key]
        if key == "many.strings":
            value = [text.decode() for text in value]
        assert (list(value) if key.startswith("many.") else value) == field.contents(), key


@cache
def small() -> bytes:
    """A whole file."""
    return every_type(folder() / "every.gguf").read_bytes()


def refused(data: bytes) -> str:
    """Why a file with this content is refused."""
    path = folder() / "bad.gguf"
    path.write_bytes(data)
    with pytest.raises(detok.SourceError) as caught:
        from_file(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value)


def header(keys: int, *, version: int = 3) -> bytes:
    """The beginning of a file that says it has so many keys."""
    return b"GGUF" + version.to_bytes(4, "little") + bytes(8) + keys.to_bytes(8, "little")


def number(value: int, size: int = 8) -> bytes:
    return value.to_bytes(size, "little")


KEY = number(1) + b"k"
BAD_CONTENT = {
    "empty": (b"", "does not begin with GGUF"),
    "of another kind": (b"PK\x03\x04" + bytes(100), "does not begin with GGUF"),
    "only the magic": (b"GGUF", "ends at 4 bytes in the middle of the header"),
    "of version 1": (header(0, version=1), "is a GGUF file of version 1;"),
    "of a version to come": (header(0, version=77), "is a GGUF file of version 77;"),
    "of a version to come, big-endian": (b"GGUF" + (9).to_bytes(4, "big") + bytes(16), "is a GGUF file of version 9;"),
    "with too many keys": (header(1 << 60), f"{1 << 60} keys should follow byte 24"),
    "without its key": (header(1) + bytes(8), "ends at 32 bytes in the middle of the header: 1 keys"),
    "with a long key": (header(1) + number(1 << 63) + bytes(90), f"a string of {1 << 63} bytes"),
    "with an unknown type": (header(1) + KEY + number(13, 4) + bytes(90), "a value of the unknown type 13 at 'k'"),
    "with an unknown type in an array": (header(1) + KEY + number(9, 4) + number(99, 4) + number(0), "unknown type 99 at 'k'"),
    "with arrays in arrays": (header(1) + KEY + number(9, 4) + number(9, 4) + number(1), "has an array of arrays at 'k'"),
    "with too many strings": (
        header(1) + KEY + number(9, 4) + number(8, 4) + number(1 << 60),
        f"{1 << 60} strings should follow",
    ),
    "with too few strings": (header(1) + KEY + number(9, 4) + number(8, 4) + number(2) + number(5) + bytes(8), "'k': 2 strings"),
    "with a long string": (header(1) + KEY + number(9, 4) + number(8, 4) + number(1) + number(9), "'k': 1 strings should"),
    "with too many numbers": (header(1) + KEY + number(9, 4) + number(0, 4) + number(1 << 62), f"{1 << 62} numbers should"),
    "with a key twice": (header(2) + (KEY + number(0, 4) + b"1") * 2, "has the key 'k' twice"),
}


@pytest.mark.parametrize("kind", BAD_CONTENT)
def test_damaged_file_is_refused(kind: str) -> None:
    """The error names the file, what was found where, and what would be accepted."""
    content, found = BAD_CONTENT[kind]
    message = refused(content)
    assert found in message
    assert message.endswith("a GGUF file of version 2 or 3 was expected, whole at least up to its tensors")


def test_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """A directory, or nothing at all."""
    for path in (tmp_path, tmp_path / "nowhere.gguf"):
        with pytest.raises(detok.SourceError, match="cannot be read"):
            from_file(path)


def test_file_cut_off_anywhere_is_refused() -> None:
    """At every byte."""
    for size in range(len(small())):
        assert "GGUF" in refused(small()[:size])


def test_header_that_lies_costs_no_memory() -> None:
    """What a file says it has is believed only as far as the file is long."""
    path = folder() / "liar.gguf"
    for content, _ in BAD_CONTENT.values():
        path.write_bytes(content)
        tracemalloc.start()
        with pytest.raises(detok.SourceError):
            from_file(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        tracemalloc.stop()


A = [("<unk>", UNKNOWN), ("a", NORMAL), ("<0x0A>", BYTE)]
BAD_VOCABULARIES: Mapping[str, tuple[str | None, Entries, Mapping[str, Any], str]] = {
    "no model": (
        None,
        A,
        {},
        "has no tokenizer.ggml.model, so there is no vocabulary in it; a GGUF file with a vocabulary was exp",
    ),
    "a later part": (None, A, {"split.no": 2}, "is part 3 of a model in several files, so there is no vocabulary in it"),
    "an unknown model": (
        "quantum",
        A,
        {},
        "kind 'quantum'; a GGUF file with a vocabulary was expected, its tokenizer.ggml.model one of gpt2",
    ),
    "a model that is no text": ("llama", A, {"model": 5}, "has a vocabulary of the unknown kind 5;"),
    "no entries": ("llama", A, {"tokens": None}, "has no tokenizer.ggml.tokens"),
    "entries that are no text": ("llama", A, {"tokens": [1, 2]}, "has something else than strings as tokenizer.ggml.tokens"),
    "few types": (
        "llama",
        A,
        {"token_type": [1, 1]},
        "has 3 entries in tokenizer.ggml.tokens but only 2 in tokenizer.ggml.token_type",
    ),
    "types that are texts": (
        "llama",
        A,
        {"token_type": ["x"] * 3},
        "has a tokenizer.ggml.token_type that is no array of integers",
    ),
    "types that are fractions": (
        "llama",
        A,
        {"token_type": [0.5] * 3},
        "has a tokenizer.ggml.token_type that is no array of integers",
    ),
    "an entry twice": ("llama", [*A, ("a", CONTROL)], {}, "has the entry 'a' twice, as id 1 and id 3; every entry"),
    "a byte that is none": (
        "llama",
        [*A, ("b", BYTE)],
        {},
        "the entry 'b' (id 3) has the type of a byte but is none; bytes are <0x00>",
    ),
}


@pytest.mark.parametrize("problem", BAD_VOCABULARIES)
def test_file_without_a_usable_vocabulary_is_refused(tmp_path: Path, problem: str) -> None:
    """With what it has instead."""
    kind, entries, values, found = BAD_VOCABULARIES[problem]
    with pytest.raises(detok.SourceError) as caught:
        from_file(write(tmp_path / "bad.gguf", kind, entries, **values))
    assert found in str(caught.value)


def test_file_with_no_entries_at_all_is_refused() -> None:
    """An empty array, which the package does not write."""
    model = number(20) + b"tokenizer.ggml.model" + number(8, 4) + number(5) + b"llama"
    tokens = number(21) + b"tokenizer.ggml.tokens" + number(9, 4) + number(8, 4) + number(0)
    assert "has empty tokenizer.ggml.tokens" in refused(header(2) + model + tokens)


@given(data=st.data())
def test_mutated_file_raises_only_our_errors(data: st.DataObject) -> None:
    """A file with a stretch of bytes cut, doubled or changed loads and works, or is refused with a detok error."""
    name = data.draw(st.sampled_from(sorted(VOCABULARIES)))
    made(name)
    whole = (folder() / f"{name}.gguf").read_bytes()
    start = data.draw(st.integers(0, len(whole)))
    end = min(len(whole), start + data.draw(st.integers(0, 20)))
    middle = data.draw(st.sampled_from([b"", whole[start:end] * 2]) | st.binary(max_size=12))
    path = folder() / "mutated.gguf"
    path.write_bytes(whole[:start] + middle + whole[end:])
    with suppress(detok.DetokError):
        tokenizer = from_file(path)
        assert isinstance(tokenizer.decode(range(100), skip_special_tokens=False), str)
        assert isinstance(tokenizer.encode("ab é\n"), list)


@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_raise_only_our_errors(content: bytes, begins_well: bool) -> None:
    """Whatever it is, with a right beginning too."""
    refused(b"GGUF" + number(3, 4) + content if begins_well else content)


# Encoding


def test_gpt2_encodes_by_merges() -> None:
    """With the special tokens that the file asks for; a special token that stands in the text is one token."""
    tokenizer = made("gpt2")
    assert tokenizer.encode("ab a<|endoftext|>") == [15, 2, 5, 0, 15]
    assert tokenizer.encode("ab\n", add_special_tokens=False) == [2, 4]


def test_llama_encodes_by_scores() -> None:
    """Best pair first; a space in front, and behind each special token; what is no entry is spelled in bytes."""
    tokenizer = made("llama")
    ids = tokenizer.encode("a  a€<s>a")
    assert [tokenizer.piece(token_id).text for token_id in ids] == [
        *["<s>", "▁a", "▁▁", "a", "<0xE2>", "<0x82>", "<0xAC>", "<s>", "▁a"],
    ]
    assert tokenizer.encode("", add_special_tokens=False) == []


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma4"])
def test_prompts_go_by_the_metadata(kind: str, tmp_path: Path) -> None:
    """Special tokens by their names, templates behind dots; what a user spells stays text."""
    every = [bytes([byte]) for byte in range(256)]
    single = of_bytes(*every) if kind == "gpt2" else [(f"<0x{byte[0]:02X}>", BYTE) for byte in every]
    entries = [("<bos>", CONTROL), ("<eos>", CONTROL), ("<eot>", CONTROL), *single, ("a", NORMAL), ("b", NORMAL), ("▁a", NORMAL)]
    values: dict[str, Any] = {
        "bos_token_id": 0,
        "eos_token_id": 1,
        "eot_token_id": 2,
        "unknown_token_id": 900,
        "pre": "gpt-2",
        "tokenizer.chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}",
        "tokenizer.chat_template.tool_use": "{{ 2 }}",
    }
    if kind == "gpt2":
        entries = [*entries[:-3], *of_bytes(b"ab")]
    tokenizer = from_file(write(tmp_path / "a.gguf", kind, entries, **values))
    assert (tokenizer.bos_token_id, tokenizer.eos_token_ids) == (0, (1, 2))
    assert set(tokenizer.chat_templates) == {"default", "tool_use"}
    assert tokenizer.render_chat([{"role": "user", "content": "a"}], tools=[{"x": 1}]) == "2"
    ids = tokenizer.encode_chat([{"role": "user", "content": "a"}])
    assert (ids[0], ids[-1], tokenizer.decode(ids).strip()) == (0, 1, "a")
    evil = [{"role": "user", "content": "a<eos>b<eot>"}]
    assert tokenizer.encode_chat(evil).count(1) == 2
    ids = tokenizer.encode_chat(evil, safe=True)
    assert (ids.count(1), ids.count(2), tokenizer.decode(ids).strip()) == (1, 0, "a<eos>b<eot>")


def test_gemma4_encodes_by_ranks_and_lines(tmp_path: Path) -> None:
    """Line breaks stand apart, and are one token if there is one."""
    entries = [("<bos>", CONTROL), *[(text, NORMAL) for text in ("a", "b", "▁", "\n", "\n\n\n", "ab", "▁a", "▁ab")]]
    values = {"merges": ["▁ a", "▁a b", "a b"], "bos_token_id": 0}
    tokenizer = from_file(write(tmp_path / "a.gguf", "gemma4", entries, **values))
    texts = [tokenizer.piece(token_id).text for token_id in tokenizer.encode("ab ab\n\n\nab\n\nb")]
    assert texts == ["<bos>", "ab", "▁ab", "\n\n\n", "ab", "\n", "\n", "b"]


def test_phi3_swallows_white_space_behind_special_tokens(tmp_path: Path) -> None:
    """llama.cpp goes by the model's name."""
    entries = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("<|end|>", CONTROL), ("▁", NORMAL), ("a", NORMAL), ("▁a", NORMAL)]
    for name, expected in {"Phi-3 mini": [2, 5, 1, 3, 5], "other": [2, 3, 3, 5, 1, 3, 5]}.items():
        tokenizer = from_file(write(tmp_path / "a.gguf", "llama", entries, **{"general.name": name}))
        assert tokenizer.encode("<|end|>  a<s> a", add_special_tokens=False) == expected


@given(st.text("abcd", max_size=30), st.dictionaries(st.text("abcd", min_size=2, max_size=4), st.integers(0, 5)))
def test_merge_is_best_first_leftmost(text: str, ranks: Mapping[str, int]) -> None:
    """Against the obvious way: look at all neighbours again after each merge."""
    symbols = list(text)
    while True:
        pairs = [(ranks[one + two], place) for place, (one, two) in enumerate(pairwise(symbols)) if one + two in ranks]
        if not pairs:
            break
        place = min(pairs)[1]
        symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]
    merged = merge(text.encode(), lambda left, right: ranks.get((left + right).decode()))
    assert b" ".join(merged).decode() == " ".join(symbols)


@pytest.mark.parametrize(("name", "kind"), [("bert", "the kind bert"), ("t5", "the kind t5"), ("rwkv", "the kind rwkv")])
def test_kind_without_an_encoder_says_what_to_use(name: str, kind: str) -> None:
    """And an unknown pre-tokenizer is named."""
    with pytest.raises(detok.EncodeUnsupported, match=rf"no encoder for a GGUF vocabulary of {kind}; load the tokenizer\.json"):
        made(name).encode("a")


def test_unknown_pre_tokenizer_is_named() -> None:
    """Guessing it would give other ids than the model was trained on."""
    with pytest.raises(detok.EncodeUnsupported, match="with the pre-tokenizer 'sarvam-moe'"):
        made("gpt2, spelled as SentencePiece").encode("a")


@pytest.mark.parametrize(
    ("entries", "pre", "spelled"),
    [
        ([("Ġa", NORMAL), ("b", NORMAL), ("Ã", NORMAL)], "brand-new", "GPT-2's"),
        ([("Ġa", NORMAL), ("b", NORMAL), ("Ã", NORMAL)], None, "GPT-2's"),
        ([("▁a", NORMAL), ("b", NORMAL), ("Ã", NORMAL)], "brand-new", "SentencePiece's, as its entries show"),
        ([("Ġa", NORMAL), ("b", NORMAL), ("Ã", NORMAL)], ["a", "list"], "GPT-2's"),
    ],
)
def test_new_pre_tokenizer_is_decoded_and_not_encoded(entries: Any, pre: Any, spelled: str, tmp_path: Path) -> None:
    """How a text is cut says nothing of how ids are decoded; the entries show how they are spelled."""
    values = {} if pre is None else {"pre": pre}
    tokenizer = from_file(write(tmp_path / "a.gguf", "gpt2", entries, merges=["a b"], **values))
    assert tokenizer.decode([0, 1, 2]) == (" ab\ufffd" if spelled == "GPT-2's" else " abÃ")
    assert f"so that no text is encoded; the spelling is {spelled}" in tokenizer.description
    with pytest.raises(detok.EncodeUnsupported):
        tokenizer.encode("a")


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@pytest.mark.parametrize("text", ["\ud800", None, 5])
def test_text_that_cannot_be_encoded_is_refused(name: str, text: Any) -> None:
    """A lone surrogate, or no text."""
    with pytest.raises(detok.OptionError, match="without lone surrogates"):
        made(name).encode(text)


def test_merges_that_fit_nothing_are_refused(tmp_path: Path) -> None:
    """When the first text is encoded; decoding needs none."""
    tokenizer = from_file(write(tmp_path / "a.gguf", "gpt2", A, merges=["x y"], pre="gpt-2"))
    assert tokenizer.decode([1]) == "a"
    with pytest.raises(detok.SourceError, match="its merges are refused"):
        tokenizer.encode("a")


def test_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only encoding needs one."""
    tokenizer = from_file(write(tmp_path / "a.gguf", "gpt2", A, merges=["x y"], pre="gpt-2"))
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(detok.MissingExtra, match=r"pip install 'detok\[hf\]'"):
        tokenizer.encode("a")


# Real files, and llama.cpp itself: the full set

full = pytest.mark.skipif("DETOK_FULL" not in os.environ, reason="77 MB are downloaded: set DETOK_FULL=1")

REAL = (
    *("aquila", "baichuan", "bert-bge", "command-r", "deepseek-coder", "deepseek-llm", "falcon", "gemma-4", "gpt-2", "gpt-neox"),
    *("llama-bpe", "llama-spm", "mpt", "nomic-bert-moe", "phi-3", "qwen2", "qwen35", "refact", "starcoder"),
)
WITHOUT_TEXTS = ("aquila", "baichuan", "gpt-neox", "nomic-bert-moe")
REAL_CLEANED = ("aquila", "bert-bge", "falcon", "gemma-4", "gpt-2", "gpt-neox", "llama-bpe", "mpt", "refact", "starcoder")
WITHOUT_ENCODER = ("aquila", "bert-bge", "deepseek-llm", "gpt-neox", "nomic-bert-moe")


@cache
def real(name: str, clean_spaces: bool = False) -> GGUFTokenizer:
    """One of llama.cpp's own vocabularies."""
    return from_file(fetch_vocabularies.fetch("gguf") / f"ggml-vocab-{name}.gguf", clean_spaces=clean_spaces)


def texts_with_ids(name: str) -> Iterator[tuple[str, list[int]]]:
    """llama.cpp's tests of a vocabulary: each text with the ids that it is encoded to."""
    path = Path(str(real(name).source))
    texts = path.with_name(f"{path.name}.inp").read_bytes().decode().removesuffix(SEPARATOR).split(SEPARATOR)
    lines = path.with_name(f"{path.name}.out").read_text().splitlines()
    return ((text, [*map(int, line.split())]) for text, line in zip(texts, lines, strict=True))


SEPARATOR = "\n__ggml_vocab_test__\n"


@full
@pytest.mark.parametrize("name", [name for name in REAL if name not in WITHOUT_TEXTS])
def test_vocabulary_tests_of_llama_cpp(name: str) -> None:
    """Each text comes back from its ids, one-shot and in every split in two, three and all parts; and goes to them."""
    tokenizer, rng = real(name), Random(1)
    for text, ids in texts_with_ids(name):
        if name == "bert-bge":
            # Encoding lost case, accents and spaces; each word but the first part of one has a space in front.
            text = tokenizer.decode(ids)
            assert text == "".join(
                tokenizer.token_bytes(token_id).decode() for token_id in ids if token_id not in tokenizer.special_ids
            )
        assert tokenizer.decode(ids) == text
        cuts = [sorted((rng.randint(0, len(ids)), place)) for place in range(len(ids) + 1)]
        for parts in ([[token_id] for token_id in ids], *([ids[:one], ids[one:two], ids[two:]] for one, two in cuts)):
            stream = tokenizer.stream()
            assert "".join(map(stream.extend, parts)) + stream.finish() == text
        if name not in WITHOUT_ENCODER:
            assert tokenizer.encode(text, add_special_tokens=False) == ids


@full
@pytest.mark.parametrize("name", REAL)
def test_check_of_a_real_vocabulary_finds_no_difference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over 2,000 hostile lists; by llama.cpp itself if it is installed."""
    if name in WITHOUT_ENCODER:
        monkeypatch.setattr("detok.inspection.hostile.sample_names", lambda: ())
    certificate = check(real(name), lists=2000)
    assert (certificate.differing, certificate.library_failures, certificate.shared_ids) == (0, 0, ())


@full
def test_largest_vocabulary_loads_at_once() -> None:
    """262,144 entries and 514,906 merges in less than half a second of the processor's time; the best of three."""
    path = Path(str(real("gemma-4").source))

    def seconds() -> float:
        began = process_time()
        from_file(path).decode(range(100))
        return process_time() - began

    assert min(seconds() for _ in range(3)) < 0.5


@full
def test_reader_equals_the_package_on_a_real_file() -> None:
    """Every key."""
    path = Path(str(real("llama-spm").source))
    values = read(path)
    for key, field in gguf.GGUFReader(path).fields.items():
        if not key.startswith("GGUF."):
            value: Any = values[key]
            value = [text.decode() for text in value] if key == "tokenizer.ggml.tokens" else value
            assert (value if isinstance(value, (str, int, float)) else list(value)) == field.contents(), key


@full
@pytest.mark.parametrize("name", [*VOCABULARIES, *REAL])
def test_llama_cpp_itself(name: str) -> None:
    """Pieces, ``llama_detokenize`` and ``llama_tokenize`` over hostile lists and texts, where llama-cpp-python is installed."""
    llama_cpp: Any = pytest.importorskip("llama_cpp")
    load, clean = (made, CLEANED) if name in VOCABULARIES else (real, REAL_CLEANED)
    tokenizer, cleaned = load(name), load(name, clean_spaces=name in clean)
    assert "llama-cpp-python" in tokenizer.library.name
    vocabulary = tokenizer.library._model()._vocabulary  # type: ignore[attr-defined]  # the library's own pointer
    rng, answers = Random(0), []
    for _ in range(12 if name in VOCABULARIES else 500):
        ids = rng.choices(tokenizer.ids, k=rng.randint(1, 14))
        for special in (True, False):
            pieces = tokenizer.library.decode(ids, skip_special_tokens=not special)
            buffer = ctypes.create_string_buffer(1 << 16)
            array = (llama_cpp.llama_token * len(ids))(*ids)
            size = llama_cpp.llama_detokenize(vocabulary, array, len(ids), buffer, len(buffer), False, special)
            detokenized = buffer.raw[:size].decode(errors="replace")
            assert tokenizer.decode(ids, skip_special_tokens=not special) == pieces
            assert cleaned.decode(ids, skip_special_tokens=not special) == detokenized
            answers.append({"ids": ids, "special": special, "pieces": pieces, "detokenized": detokenized})
    if name in VOCABULARIES and "DETOK_RECORD" in os.environ:
        others = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
        RECORDED.write_text(json.dumps({**others, name: answers}, ensure_ascii=False, indent=None, separators=(",", ":")) + "\n")
    if name in REAL and name not in WITHOUT_ENCODER:
        for text in hostile_texts(tokenizer, rng):
            data = text.encode()
            array = (llama_cpp.llama_token * (len(data) + 9))()
            count = llama_cpp.llama_tokenize(vocabulary, data, len(data), array, len(array), True, True)
            assert tokenizer.encode(text) == [*array[:count]], text


def hostile_texts(tokenizer: detok.Tokenizer, rng: Random) -> Iterator[str]:
    """Cuttings of the samples in twenty languages, special tokens, spaces, and characters from all over."""
    from detok.data import sample, sample_names

    samples = [sample(name) for name in sample_names()]
    specials = [tokenizer.piece(token_id).text for token_id in sorted(tokenizer.added_ids)[:200]]

    def cutting() -> str:
        text = rng.choice(samples)
        at = rng.randrange(len(text))
        return text[at : at + rng.randint(1, 60)]

    makers: Sequence[Callable[[], str]] = (
        cutting,
        lambda: rng.choice(specials),
        lambda: "".join(rng.choices(" \n\t\r'sStT.,!12345\u00a0\u3000abcABCé", k=rng.randint(1, 12))),
        lambda: "".join(chr(rng.choice((rng.randrange(32, 0xD800), rng.randrange(0xE000, 0x20000)))) for _ in range(5)),
    )
    return ("".join(rng.choice(makers)() for _ in range(rng.randint(1, 5))) for _ in range(300))
