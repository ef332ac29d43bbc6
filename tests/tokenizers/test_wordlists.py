"""Plain lists: GPT-2's, CLIP's and BERT's, against the tokenizers object and the classes of transformers for the same files."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.inspection import check
from detok.tokenizers.wordlist_files import LETTERS
from detok.tokenizers.wordlists import from_directory, from_file
from tests.support.kinds import assert_check_finds_nothing, assert_pickled_is_the_same
from tests.support.laws import any_id
from tests.support.vocabularies import load_tokenizer, real

START, END = "<|startoftext|>", "<|endoftext|>"
TEXTS = ("Hello, world! It's naïve — 日本語 🦜.", "a photo of  a cat\n\n", "don't <|endoftext|> [MASK] é", "")


def saved(folder: Path, vocabulary: Sequence[str] | Mapping[str, int], merges: Sequence[str], **beside: Any) -> Path:
    """A folder with a vocab.json and a merges.txt, and further JSON files."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = vocabulary if isinstance(vocabulary, Mapping) else {entry: place for place, entry in enumerate(vocabulary)}
    (folder / "vocab.json").write_text(json.dumps(ids))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{merge}\n" for merge in merges))
    for name, content in beside.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def gpt2(folder: Path, **beside: Any) -> Path:
    """GPT-2's kind, small: all letters, two merges, its special token."""
    return saved(folder, [*LETTERS, "he", "Ġhe", END], ["h e", "Ġ he"], **beside)


def clip(folder: Path, **beside: Any) -> Path:
    """CLIP's kind, small."""
    merges = ["h e</w>", "c a", "ca t</w>"]
    entries = [*LETTERS, *(f"{letter}</w>" for letter in LETTERS), "he</w>", "ca", "cat</w>", START, END]
    return saved(folder, entries, merges, **beside)


BERT_LINES = [
    "[PAD]",
    "[unused0]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *".,!?'-—é日",
    "hello",
    "##lo",
    "do",
    "not",
    "n",
    "##t",
    "world",
]


def bert(folder: Path, **beside: Any) -> Path:
    """BERT's kind, small."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(BERT_LINES) + "\n")
    for name, content in beside.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def real_gpt2(folder: Path) -> Path:
    """50,000 entries out of a tokenizer.json that has no list beside it."""
    model = json.loads(load_tokenizer("gpt-neox").to_str())["model"]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    return saved(folder, model["vocab"], merges)


def real_bert(folder: Path) -> Path:
    """30,522 entries, the same way."""
    vocabulary = json.loads(load_tokenizer("minilm").to_str())["model"]["vocab"]
    folder.mkdir()
    (folder / "vocab.txt").write_text("".join(f"{entry}\n" for entry in sorted(vocabulary, key=vocabulary.__getitem__)))
    return folder


def real_clip(folder: Path) -> Path:
    """CLIP's own 49,408 entries, as transformers keeps them."""
    lines = gzip.decompress((real("clip") / "bpe_simple_vocab_16e6.txt.gz").read_bytes()).decode().split("\n")[1:48895]
    entries = [*LETTERS, *(f"{letter}</w>" for letter in LETTERS), *(line.replace(" ", "") for line in lines), START, END]
    return saved(folder, entries, lines)


MAKERS: Mapping[str, tuple[Callable[[Path], Path], str]] = {
    "gpt2": (gpt2, "GPT2Tokenizer"),
    "clip": (clip, "CLIPTokenizer"),
    "bert": (bert, "BertTokenizer"),
    "real gpt2": (real_gpt2, "GPT2Tokenizer"),
    "real clip": (real_clip, "CLIPTokenizer"),
    "real bert": (real_bert, "BertTokenizer"),
}
EACH = pytest.mark.parametrize("name", MAKERS)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[detok.Tokenizer, Any]]:
    """A tokenizer, and the class of transformers that reads the same directory."""

    @cache
    def load(name: str) -> tuple[detok.Tokenizer, Any]:
        make, kind = MAKERS[name]
        folder = make(tmp_path_factory.mktemp("lists") / "it")
        return from_directory(folder), getattr(transformers, kind).from_pretrained(folder, local_files_only=True)

    return load


Loaded = Callable[[str], tuple[detok.Tokenizer, Any]]


@EACH
def test_encode_is_that_of_transformers(loaded: Loaded, name: str) -> None:
    """With special tokens and without."""
    tokenizer, theirs = loaded(name)
    for text in TEXTS:
        for special in (True, False):
            assert tokenizer.encode(text, add_special_tokens=special) == theirs.encode(text, add_special_tokens=special)


@EACH
@given(data=st.data())
def test_decode_is_that_of_transformers(loaded: Loaded, name: str, data: st.DataObject) -> None:
    """One-shot and streamed in any split; a prompt is context only."""
    tokenizer, theirs = loaded(name)
    skips = data.draw(st.booleans())
    some_id = any_id(tokenizer) | st.sampled_from(sorted(tokenizer.added_ids)) | st.sampled_from(tokenizer.ids[:300])
    steps = data.draw(st.lists(st.lists(some_id, max_size=4), min_size=1, max_size=5))
    every = [token_id for ids in steps for token_id in ids]
    whole = theirs.decode(every, skip_special_tokens=skips)
    assert tokenizer.decode(every, skip_special_tokens=skips) == whole
    stream, text = tokenizer.stream(skip_special_tokens=skips), ""
    for ids in steps:
        text += stream.extend(ids)
        assert whole.startswith(text)
    assert text + stream.finish() == whole
    after, before = tokenizer.stream(steps[0], skip_special_tokens=skips), theirs.decode(steps[0], skip_special_tokens=skips)
    rest = "".join(map(after.extend, steps[1:])) + after.finish()
    assert before + rest == whole or not whole.startswith(before)


@EACH
def test_check_finds_no_difference(loaded: Loaded, name: str) -> None:
    """The certificate over hostile lists."""
    tokenizer, _ = loaded(name)
    assert_check_finds_nothing(tokenizer, lists=200)


@EACH
def test_special_ids_are_those_of_transformers(loaded: Loaded, name: str) -> None:
    """The usual names, where no file says others."""
    tokenizer, theirs = loaded(name)
    assert tokenizer.special_ids == frozenset(theirs.all_special_ids)
    assert tokenizer.vocab_size == len(theirs)


@pytest.mark.parametrize("name", ["gpt2", "clip", "bert"])
def test_pickled_tokenizer_is_the_same(loaded: Loaded, name: str) -> None:
    """In another process."""
    assert_pickled_is_the_same(loaded(name)[0])


def test_clip_list_decodes_as_clip_does(tmp_path: Path) -> None:
    """The list alone gives the same ids; the space behind the last word stays, as in CLIP's own decode."""
    path = real("clip") / "bpe_simple_vocab_16e6.txt.gz"
    tokenizer, saved_by_transformers = from_file(path), from_directory(real_clip(tmp_path))
    assert tokenizer.vocab_size == 49_408
    for text in TEXTS:
        assert tokenizer.encode(text) == saved_by_transformers.encode(text)
    ids = tokenizer.encode("a photo of a cat")
    assert tokenizer.decode(ids) == "a photo of a cat "
    assert saved_by_transformers.decode(ids) == "a photo of a cat"
    assert tokenizer.decode(ids, skip_special_tokens=False) == f"{START}a photo of a cat {END}"
    plain = tmp_path / "list.txt"
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    assert from_file(plain).fingerprint == tokenizer.fingerprint
    assert check(tokenizer, lists=200).differing == 0


def test_clip_stream_holds_white_space_only() -> None:
    """A space comes out with the next word, since at the end there is none."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        tokenizer = from_directory(clip(Path(folder)))
    stream = tokenizer.stream()
    steps = [stream.step(tokenizer.encode(word, add_special_tokens=False)[0]) for word in ("cat", "he", "cat")]
    assert (steps, stream.held, stream.finish()) == (["cat", " he", " cat"], "", "")
    assert "white space is held until something follows it" in tokenizer.description


def test_files_beside_the_list_are_read(tmp_path: Path) -> None:
    """Special tokens, older added tokens, and how a text is prepared."""
    map_ = {"bos_token": "<s>", "pad_token": {"content": "<pad>", "lstrip": True}, "additional_special_tokens": ["<x>"]}
    config = {"add_prefix_space": True, "add_bos_token": True}
    folder = gpt2(tmp_path / "a", special_tokens_map=map_, tokenizer_config=config, added_tokens={"<s>": 259, "<tool>": 260})
    tokenizer, theirs = from_directory(folder), transformers.GPT2Tokenizer.from_pretrained(folder, local_files_only=True)
    added = {tokenizer.piece(token_id).text: token_id for token_id in sorted(tokenizer.added_ids)}
    assert added == {END: 258, "<s>": 259, "<tool>": 260, "<pad>": 261, "<x>": 262}
    assert tokenizer.special_ids == set(added.values()) - {260}
    assert tokenizer.decode(range(263)) == theirs.decode([*range(263)], skip_special_tokens=True)
    assert tokenizer.encode("he he<tool>") == theirs.encode("he he<tool>") == [259, 257, 257, 260]


def test_bert_settings_are_read(tmp_path: Path) -> None:
    """Cased or not, and clean-up of the whole text besides that of the decoder."""
    mask = {"content": "[MASK]", "special": True, "lstrip": True, "rstrip": False, "single_word": False, "normalized": False}
    config: dict[str, Any] = {"do_lower_case": False, "strip_accents": False, "clean_up_tokenization_spaces": True}
    config |= {"added_tokens_decoder": {BERT_LINES.index("[MASK]"): mask}}
    folder = bert(tmp_path / "a", tokenizer_config=config)
    tokenizer, theirs = from_file(folder / "vocab.txt"), transformers.BertTokenizer.from_pretrained(folder, local_files_only=True)
    assert tokenizer.encode("Hello do not é! [MASK]") == theirs.encode("Hello do not é! [MASK]")
    ids = [BERT_LINES.index(entry) for entry in ("do", "not", "'", "n", "##t", "!", "é", ".")]
    assert tokenizer.decode(ids) == theirs.decode(ids)
    assert tokenizer.cleans_up


def test_openai_names_are_found(tmp_path: Path) -> None:
    """encoder.json with vocab.bpe, and names with a model in front."""
    gpt2(tmp_path)
    (tmp_path / "vocab.json").rename(tmp_path / "encoder.json")
    (tmp_path / "merges.txt").rename(tmp_path / "vocab.bpe")
    assert from_directory(tmp_path).encode(" he") == [257]
    (tmp_path / "encoder.json").rename(tmp_path / "gpt2-vocab.json")
    (tmp_path / "vocab.bpe").rename(tmp_path / "gpt2-merges.txt")
    assert from_file(tmp_path / "gpt2-vocab.json").encode(" he") == [257]


BAD: Mapping[str, tuple[Mapping[str, str | bytes], str, str]] = {
    "nothing": ({"vocab.json": ""}, "vocab.json", "the file is empty"),
    "no JSON": ({"vocab.json": '{"a": 0'}, "vocab.json", "is no JSON, or only the beginning of it"),
    "an empty object": ({"vocab.json": "{}"}, "vocab.json", "is JSON but an empty object"),
    "deep": ({"vocab.json": '{"a":' * 100_000}, "vocab.json", "is no JSON"),
    "no ids": ({"vocab.json": '{"a": "b"}'}, "vocab.json", "the entry 'a' has 'b' for an id"),
    "a negative id": ({"vocab.json": '{"a": -1}'}, "vocab.json", "the entry 'a' has -1 for an id"),
    "an immense id": ({"vocab.json": '{"a": 99999999999}'}, "vocab.json", "the entry 'a' has 99999999999 for an id"),
    "a bool for an id": ({"vocab.json": '{"a": true}'}, "vocab.json", "the entry 'a' has True for an id"),
    "no merges": ({"vocab.json": '{"Ġ": 0}'}, "vocab.json", "there is no merges.txt beside it"),
    "one id for two": ({"vocab.json": '{"Ġ": 0, "a": 0}', "merges.txt": ""}, "vocab.json", "the file is empty"),
    "no bytes": ({"vocab.json": '{"a": 0}', "merges.txt": "#version"}, "vocab.json", "is no byte-level vocabulary: it has no Ġ"),
    "a merge of one": (
        {"vocab.json": '{"Ġ": 0}', "merges.txt": "#version\na\n"},
        "vocab.json",
        "line 2 is 'a'; a merge is two parts",
    ),
    "a merge of three": ({"vocab.json": '{"Ġ": 0}', "merges.txt": "a b c\n"}, "vocab.json", "line 1 is 'a b c'"),
    "strange merges": ({"vocab.json": '{"Ġ": 0}', "merges.txt": "a b\n"}, "vocab.json", "the tokenizers library refuses it"),
    "merges alone": (
        {"merges.txt": "#version: 0.2\na b\n"},
        "merges.txt",
        "is a list of merges, which has no ids; give the vocab.json",
    ),
    "no UTF-8": ({"vocab.txt": b"[UNK]\n\xff\n"}, "vocab.txt", "line 2 is no UTF-8"),
    "no unknown": ({"vocab.txt": "a\nb\n"}, "vocab.txt", "has no line '[UNK]', as a vocab.txt has"),
    "half a gzip": ({"a.gz": gzip.compress(b"x" * 1000)[:20]}, "a.gz", "cannot be unpacked"),
    "damaged gzip": ({"a.gz": gzip.compress(b"x" * 1000)[:-9] + b"123456789"}, "a.gz", "cannot be unpacked"),
    "a bomb": ({"a.gz": gzip.compress(bytes(70_000_000))}, "a.gz", "unpacks to more than 67,108,864 bytes"),
    "another class": (
        {"vocab.txt": "[UNK]\n", "tokenizer_config.json": '{"tokenizer_class": "BertJapaneseTokenizer"}'},
        "vocab.txt",
        "tokenizer_config.json beside it says BertJapaneseTokenizer; load the directory with transformers",
    ),
    "a configuration that is no JSON": ({"vocab.txt": "[UNK]\n", "tokenizer_config.json": "["}, "vocab.txt", "is no JSON object"),
    "a strange configuration": (
        {"vocab.txt": "[UNK]\n", "tokenizer_config.json": '{"added_tokens_decoder": [1]}'},
        "vocab.txt",
        "added_tokens_decoder is invalid",
    ),
    "a strange special token": (
        {"vocab.txt": "[UNK]\n", "tokenizer_config.json": '{"cls_token": "$x"}'},
        "vocab.txt",
        "the tokenizers library refuses '$x' around a text",
    ),
    "a gap": (
        {"vocab.txt": "[UNK]\n", "added_tokens.json": '{"<x>": 7}'},
        "vocab.txt",
        "the added token '<x>' should have the id 7, but 1 is next; added tokens must follow",
    ),
}


# Files that the library loads, though they look damaged; what is said of them, and whether it is the same at each load.
STRANGE: dict[str, tuple[dict[str, str], str]] = {
    "a line twice": (
        {"vocab.txt": "[UNK]\na\nb\na\n"},
        "line 4 of vocab.txt is 'a', as line 2 is, so that the id 1 has no token",
    ),
    "many lines twice": (
        {"vocab.txt": "[UNK]\na\nb \na\n\u3000\n\nb\n\xa0\nx\u2028y\n"},
        "line 4 of vocab.txt is 'a', as line 2 is, so that the id 1 has no token, and 3 more",
    ),
    "ends of lines": ({"vocab.txt": "[UNK]\r\na\rb\r\nc\x1c\n"}, "4 ids"),
    "an entry twice": (
        {"vocab.json": '{"Ġ": 0, "a": 1, "b": 2, "a": 5}', "merges.txt": "#version\n"},
        "vocab.json has 'a' twice, and the last one counts",
    ),
    "a merge twice": ({"vocab.json": '{"Ġ": 0, "a": 1, "b": 2, "ab": 3}', "merges.txt": "a b\na b\n"}, "4 ids"),
    "a title below": ({"vocab.json": '{"Ġ": 0, "a": 1, "b": 2, "ab": 3}', "merges.txt": "a b\n#version: x\n"}, "4 ids"),
    "a large id": ({"vocab.json": '{"Ġ": 0, "a": 4294967295, "b": 2}', "merges.txt": "#version\n"}, "3 ids"),
    "an added token with a gap": ({"vocab.txt": "[UNK]\na\n", "added_tokens.json": '{"<x>": 7}'}, "6 added"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("problem", STRANGE)
def test_strange_file_is_loaded_as_its_library_loads_it(tmp_path: Path, problem: str) -> None:
    """With a word on what is strange; AutoTokenizer is the judge."""
    files, remark = STRANGE[problem]
    named = "BertTokenizer" if "vocab.txt" in files else "GPT2Tokenizer"
    for file, content in files.items():
        (tmp_path / file).write_bytes(content.encode())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": named}))
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path), local_files_only=True)
    ours = detok.load(tmp_path)
    ids = [*ours.ids, *range(12)]
    assert {token_id: piece and piece.text for token_id in ids for piece in [ours.vocabulary.piece(token_id)]} == {
        token_id: theirs.convert_ids_to_tokens(token_id) for token_id in ids
    }
    assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
    assert ours.encode("a ab b") == theirs.encode("a ab b")
    assert remark.replace("4 ids", "ids").replace("3 ids", "ids") in ours.description


def test_shared_id_is_loaded_with_a_note(tmp_path: Path) -> None:
    """The library decodes one of the two, and not always the same."""
    (tmp_path / "vocab.json").write_text('{"Ġ": 0, "a": 1, "b": 1}')
    (tmp_path / "merges.txt").write_text("#version\n")
    tokenizer = detok.load(tmp_path)
    assert "two tokens have the id 1: 'a' and 'b'; which of them is decoded may change" in tokenizer.description
    assert tokenizer.decode([1]) in ("a", "b")


@pytest.mark.parametrize("problem", BAD)
def test_bad_file_is_refused(tmp_path: Path, problem: str) -> None:
    """With the file, what was found, and what would be accepted."""
    files, name, found = BAD[problem]
    for file, content in files.items():
        (tmp_path / file).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(detok.SourceError) as caught:
        from_file(tmp_path / name)
    assert str(tmp_path) in str(caught.value)
    assert found in str(caught.value)


def test_directory_without_a_list_is_refused(tmp_path: Path) -> None:
    """And so is a path that is not there."""
    with pytest.raises(detok.SourceError, match="the directory has no such file"):
        from_directory(tmp_path)
    with pytest.raises(detok.SourceError, match="cannot be read"):
        from_file(tmp_path / "vocab.txt")


def test_missing_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tokenizers nothing is built."""
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(detok.MissingExtra, match=r"pip install 'detok\[hf\]'"):
        from_directory(bert(tmp_path))


@given(data=st.data(), name=st.sampled_from(["gpt2", "clip", "bert"]))
def test_mutated_file_raises_only_our_errors(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, name: str) -> None:
    """A stretch of bytes cut, doubled or changed in any of the files."""
    folder = MAKERS[name][0](tmp_path_factory.mktemp("mutated"))
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    whole = path.read_bytes()
    start = data.draw(st.integers(0, len(whole)))
    end = min(len(whole), start + data.draw(st.integers(0, 20)))
    path.write_bytes(
        whole[:start] + data.draw(st.sampled_from([b"", whole[start:end] * 2]) | st.binary(max_size=8)) + whole[end:]
    )
    with suppress(detok.DetokError):
        tokenizer = from_directory(folder)
        assert isinstance(tokenizer.decode(range(400)), str)
        assert isinstance(tokenizer.encode("he cat"), list)


@given(st.binary(max_size=100))
def test_random_bytes_raise_only_our_errors(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Under each name."""
    for name in ("vocab.json", "vocab.txt", "merges.txt"):
        path = tmp_path_factory.mktemp("random") / name
        path.write_bytes(content)
        with suppress(detok.DetokError):
            assert isinstance(from_file(path).decode(range(100)), str)
