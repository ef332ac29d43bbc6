"""`detok.load`: what it takes, what it says of it, and what it refuses with which words."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from tests.support.handmade import BYTE_LEVEL, CTC, METASPACE, WORDPIECE, byte_level_tokens, make, replace, sequence, strip
from tests.support.laws import subject
from tests.support.vocabularies import REAL_NAMES, load_tokenizer


def written(path: Path, content: Any) -> Path:
    """A file with a value as JSON."""
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.fixture
def content() -> dict[str, Any]:
    """A small tokenizer.json."""
    tokens = [*byte_level_tokens(b"a", b" b", b"\xc3", b"\xa9"), "<s>"]
    value: dict[str, Any] = json.loads(make(BYTE_LEVEL, tokens, special=["<s>"]).to_str())
    return value


def test_file_directory_path_and_object_are_the_same(tmp_path: Path, content: dict[str, Any]) -> None:
    """One tokenizer, loaded from whatever holds it."""
    import tokenizers

    path = written(tmp_path / "tokenizer.json", content)
    sources: list[Any] = [path, str(path), tmp_path, str(tmp_path), tokenizers.Tokenizer.from_file(str(path))]
    loaded = [detok.load(source) for source in sources]
    assert {tokenizer.decode([0, 2, 4, 3, 1]) for tokenizer in loaded} == {"aé b"}
    # That of a file goes by its bytes, that of a directory by those of all its vocabularies, that of an object by all its pieces.
    assert len({tokenizer.fingerprint for tokenizer in loaded[:4]}) == 1
    assert loaded[4].fingerprint != loaded[0].fingerprint
    written(tmp_path / "vocab.json", {"a": 0})
    assert detok.load(path).fingerprint == loaded[0].fingerprint != detok.load(tmp_path).fingerprint
    (tmp_path / "vocab.json").unlink()
    assert {tokenizer.description for tokenizer in loaded} == {"ByteLevel; 5 ids, 1 added"}
    assert {tokenizer.vocab_size for tokenizer in loaded} == {5}
    assert {tokenizer.special_ids for tokenizer in loaded} == {frozenset({4})}


def test_restored_request_ends_where_the_tokenizer_that_restores_it_does(tmp_path: Path, content: dict[str, Any]) -> None:
    """Ends decode nothing, so the fingerprint does not cover them; those that the caller gave are in the snapshot."""
    made = []
    for end in (0, 1):
        (tmp_path / str(end)).mkdir()
        written(tmp_path / str(end) / "tokenizer.json", content)
        written(tmp_path / str(end) / "generation_config.json", {"eos_token_id": end})
        made.append(detok.load(tmp_path / str(end)))
    one, other = made
    assert one.fingerprint == other.fingerprint
    assert (one.eos_token_ids, other.eos_token_ids) == ((0,), (1,))
    for ends, restored, kept in ((None, one, 1), (None, other, 2), ([0], other, 1), ([1], one, 2)):
        request = one.request(eos_token_ids=ends)
        output = restored.restore_request(json.loads(json.dumps(request.snapshot()))).feed([0, 1])
        assert (output.finish_reason, output.tokens_kept) == ("stop", kept)


def test_object_is_not_changed(content: dict[str, Any]) -> None:
    """The caller's own tokenizer stays as it was."""
    import tokenizers

    library = tokenizers.Tokenizer.from_str(json.dumps(content))
    library.enable_truncation(2)
    before = library.to_str()
    detok.load(library).encode("aaa")
    assert library.to_str() == before


def test_encode_ignores_truncation_and_padding_of_a_file(tmp_path: Path, content: dict[str, Any]) -> None:
    """Some files carry what their training cut; a prompt is encoded whole and without padding."""
    content["truncation"] = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
    content["padding"] = {
        "strategy": {"Fixed": 8},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 4,
        "pad_type_id": 0,
        "pad_token": "<s>",
    }
    content["pre_tokenizer"] = {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": False}
    tokenizer = detok.load(written(tmp_path / "tokenizer.json", content))
    assert tokenizer.encode("aaa") == [0, 0, 0]


@pytest.mark.parametrize("name", REAL_NAMES)
def test_real_tokenizer_round_trips(name: str) -> None:
    """encode is the library's own; decode gives the text back where the library does."""
    library, tokenizer = load_tokenizer(name), subject(name)
    text = "The quick brown fox — naïve café, 日本語 🦜!"
    ids = tokenizer.encode(text, add_special_tokens=False)
    library.no_truncation()
    library.no_padding()
    assert ids == library.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(ids) == library.decode(ids)
    assert f"{len(tokenizer.ids):,} ids, {len(tokenizer.added_ids):,} added" in tokenizer.description


def test_holes_count_for_the_size() -> None:
    """The size is one more than the highest id; an id in a hole is unknown."""
    tokenizer = detok.load(make(BYTE_LEVEL, ["a", "b", "c"], holes=[1, 2]))
    assert (tokenizer.vocab_size, tokenizer.ids) == (5, (0, 3, 4))
    assert tokenizer.decode([0, 1, 3]) == "ab"


def test_special_with_normalised_content_is_what_the_library_says() -> None:
    """An added token that is looked up by its normalised content is shown, and not skipped, if the library does so."""
    library = make(None, ["a", "<EOS>"], normalizer={"type": "Lowercase"})
    import tokenizers

    library.add_special_tokens([tokenizers.AddedToken("<EOS>", normalized=True, special=True)])
    tokenizer = detok.load(library)
    for skip in (True, False):
        assert tokenizer.decode([0, 1], skip) == library.decode([0, 1], skip_special_tokens=skip)


def test_old_metaspace_without_prefix_space_loads(tmp_path: Path) -> None:
    """A form that newer libraries refuse; the first word keeps its space."""
    value = json.loads(make(METASPACE, ["▁a", "b"]).to_str())
    value["decoder"] = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": False}
    assert detok.load(written(tmp_path / "old.json", value)).decode([0, 1, 0]) == " ab a"


def test_untagged_decoder_loads(tmp_path: Path) -> None:
    """Old files leave out the type where the fields tell it."""
    value = json.loads(make(WORDPIECE, ["a", "##b"]).to_str())
    del value["decoder"]["type"]
    try:
        tokenizer = detok.load(written(tmp_path / "old.json", value))
    except detok.SourceError:
        pytest.skip("this version of tokenizers reads tagged decoders only")
    assert tokenizer.decode([0, 1, 0]) == "ab a"


@pytest.mark.parametrize(
    ("decoder", "described"),
    [
        (None, "JoinWithSpaces; 2 ids"),
        (CTC, "CTC; 2 ids"),
        (sequence(replace("a", "b"), strip(1, 0)), "Replace 'a' by 'b', Strip; 2 ids"),
        (replace("a+", "b", regex=True), "Replace /a+/ by 'b'; 2 ids"),
        (sequence(), "plain concatenation; 2 ids"),
    ],
)
def test_description_says_which_rules_were_compiled(decoder: Any, described: str) -> None:
    """One line, for a log."""
    tokenizer = detok.load(make(decoder, ["a", "b"]))
    assert tokenizer.description.startswith(described)
    assert tokenizer.description in repr(tokenizer)


def test_fingerprint_is_of_what_decoding_depends_on(content: dict[str, Any]) -> None:
    """Another piece, another rule or another special flag gives another one; what only encoding uses does not."""
    import tokenizers

    def fingerprint(value: dict[str, Any]) -> str:
        return detok.load(tokenizers.Tokenizer.from_str(json.dumps(value))).fingerprint

    changed = []
    for change in range(4):
        value = json.loads(json.dumps(content))
        match change:
            case 0:
                value["model"]["vocab"]["z"] = 9
            case 1:
                value["decoder"] = None
            case 2:
                value["added_tokens"][0]["special"] = False
            case _:
                value["pre_tokenizer"] = {"type": "Whitespace"}
        changed.append(fingerprint(value))
    assert changed[3] == fingerprint(content)
    assert len({*changed}) == 4


BAD_FILES = {
    "empty": ("", "is empty"),
    "text": ("hello", "is of no format that detok knows; it begins with b'hello'"),
    "truncated": ('{"model": {"type": "BPE", "vocab": {"a": 0', "only the beginning of it"),
    "a list": ([1, 2], "is of no format that detok knows"),
    "another object": ({"bos_token": "<s>"}, "it has no \"model\", only 'bos_token'"),
    "an empty object": ({}, "only nothing"),
    "an odd model": ({"model": {"type": "Nonsense"}}, "the tokenizers library refuses it"),
    "deep": ('{"a":' * 100_000, "is no JSON"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_file_is_named_with_what_was_found(tmp_path: Path, kind: str) -> None:
    """The error names the file, what it is, and what would have been accepted."""
    value, found = BAD_FILES[kind]
    path = written(tmp_path / f"{kind}.json", value)
    with pytest.raises(detok.SourceError) as caught:
        detok.load(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert found in message
    assert "a tokenizer.json of the Hugging Face tokenizers library was expected" in message or "give the path of" in message


def test_binary_file_is_refused(tmp_path: Path) -> None:
    """Bytes that are no text."""
    path = tmp_path / "model.bin"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(detok.SourceError, match="is of no format that detok knows"):
        detok.load(path)


@pytest.mark.parametrize("nested", [False, True])
def test_unknown_decoder_is_named(tmp_path: Path, content: dict[str, Any], nested: bool) -> None:
    """A type that nobody knows is never guessed, at whatever depth."""
    decoder: dict[str, Any] = {"type": "Quantum", "spin": 1}
    content["decoder"] = {"type": "Sequence", "decoders": [decoder]} if nested else decoder
    with pytest.raises(detok.UnknownDecoder, match=r"unknown decoder type .Quantum.; known are .*ByteLevel"):
        detok.load(written(tmp_path / "tokenizer.json", content))


def test_decoder_written_in_python_is_refused() -> None:
    """Its text could only be guessed."""
    import tokenizers

    class Custom:
        def decode(self, tokens: list[str]) -> str:
            return "".join(tokens)

        def decode_chain(self, tokens: list[str]) -> list[str]:
            return tokens

    library = make(None, ["a"])
    library.decoder = tokenizers.decoders.Decoder.custom(Custom())
    with pytest.raises(detok.UnknownDecoder, match="written in Python"):
        detok.load(library)


@pytest.mark.parametrize("vocabulary", [{"a": 0, "b": 1, "c": 1}, {"a": 0, "b": 1, "c": 1, "d": 3}, {"x": 1, "y": 1}])
def test_two_tokens_with_one_id_are_loaded_with_a_note(
    tmp_path: Path, content: dict[str, Any], vocabulary: dict[str, int]
) -> None:
    """As the library loads them: both are encoded, one is decoded; the note names both."""
    import tokenizers

    content["model"]["vocab"], content["added_tokens"], content["model"]["unk_token"] = vocabulary, [], next(iter(vocabulary))
    path = written(tmp_path / "tokenizer.json", content)
    found = detok.load(path)
    shared = sorted(token for token, token_id in vocabulary.items() if token_id == 1)
    assert f"two tokens have the id 1: {shared[0]!r} and {shared[1]!r}" in found.description
    assert found.decode([1]) in shared
    library = tokenizers.Tokenizer.from_file(str(path))
    assert detok.load(library).decode([1, 0]) == library.decode([1, 0])


def test_large_ids_cost_no_more_than_small_ones(tmp_path: Path, content: dict[str, Any]) -> None:
    """An id of 32 bits is looked up, streamed, encoded and made hostile lists of; no table is as long as the range."""
    import tracemalloc

    from detok.inspection import check

    last = (1 << 32) - 1
    tokens = content["model"]["vocab"]
    content["model"]["vocab"] = {**tokens, "z": last}
    content["pre_tokenizer"] = {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": False}
    path = written(tmp_path / "tokenizer.json", content)
    tracemalloc.start()
    tokenizer = detok.load(path)
    assert tokenizer.vocab_size == 1 << 32
    assert tokenizer.stream().extend([last, 0]) == tokenizer.decode([last, 0]) == "za"
    assert tokenizer.encode("za") == [last, 0]
    plain = tokenizer._prompt_memory.support.plain
    assert plain is not None
    assert plain("za", control=frozenset({"<s>"}), before=None, after=None) == [last, 0]
    assert plain("za", control=frozenset(), before="<s>", after=None) == [last, 0]
    assert check(tokenizer, lists=20).ok
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 << 20


def test_errors_name_the_file_and_the_byte_order_mark(tmp_path: Path, content: dict[str, Any]) -> None:
    """Which no parser's "expected value" says."""
    path = tmp_path / "tokenizer.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(content).encode())
    with pytest.raises(detok.SourceError, match=rf"^{re.escape(str(path))}: starts with a byte order mark [^/]*$"):
        detok.load(path)
    content["decoder"] = {"type": "Replace", "pattern": {"Regex": "(["}, "content": "x"}
    written(path, content)
    with pytest.raises(detok.SourceError, match=r"tokenizer\.json: .*\(\["):
        detok.load(path)


def test_byte_order_mark_counts_as_the_library_of_the_format_has_it(tmp_path: Path) -> None:
    """tiktoken passes over it; a vocab.txt has it in its first token; the others refuse it, and so it is called by its name."""
    mark = b"\xef\xbb\xbf"

    def loaded(name: str, content: bytes) -> detok.Tokenizer:
        path = tmp_path / name
        path.write_bytes(mark + content)
        return detok.load(path)

    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    refused = {
        "tekken.json": b'{"config": {"default_vocab_size": 256}, "vocab": [{"rank": 0, "token_bytes": "AA=="}]}',
        "vocab.json": b'{"a": 0, "b": 1}',
        "rwkv_vocab.txt": b"1 'a' 1\n2 'b' 1\n",
    }
    for name, content in refused.items():
        with pytest.raises(detok.SourceError, match=rf"/{name}: starts with a byte order mark"):
            loaded(name, content)
    ranks = b"".join(b"%s %d\n" % (b64encode(bytes([byte])), byte) for byte in range(256))
    assert loaded("a.tiktoken", ranks).decode([*b"abc"]) == "abc"
    lines = " ".join(b64encode(bytes([byte])).decode() for byte in range(256))
    told = {"pat_str": ".", "special_tokens": {"<s>": 256}, "bpe_ranks": f"! 0 {lines}"}
    assert loaded("ranks.json", json.dumps(told).encode()).decode([*b"abc", 256], skip_special_tokens=False) == "abc<s>"
    words = loaded("vocab.txt", b"[PAD]\n[UNK]\n[CLS]\n[SEP]\nhello\n")
    assert words.decode([0, 4], skip_special_tokens=False) == "\ufeff[PAD] hello"
    assert "vocab.txt starts with a byte order mark, which is a part of its first token" in words.description


def test_directory_without_a_tokenizer_says_what_it_has(tmp_path: Path) -> None:
    """And an empty one says so, and a path that is not there."""
    with pytest.raises(detok.SourceError, match=r"the directory has none of tokenizer\.json, .*; it is empty; download"):
        detok.load(tmp_path)
    written(tmp_path / "config.json", {})
    with pytest.raises(detok.SourceError, match=r"only config\.json; download the tokenizer's files"):
        detok.load(tmp_path)
    missing = rf"/nowhere: there is no such file or directory: {re.escape(str(tmp_path))} has no 'nowhere'; give the path"
    with pytest.raises(detok.SourceError, match=missing):
        detok.load(tmp_path / "nowhere")


def test_mistyped_path_is_told_with_near_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that could be a name on the hub, which is asked first."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "qwen3").mkdir(parents=True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(detok.SourceError, match=r"has no 'qwen-3'; did you mean models/qwen3\? Else give the path"):
        detok.load("./models/qwen-3")
    with pytest.raises(detok.SourceError, match=r"^modles/qwen3: is not in the cache .*; or did you mean models/qwen3\?$"):
        detok.load("modles/qwen3")
    with pytest.raises(detok.SourceError, match=r"^nobody/nothing: is not in the cache .* tokenizer files$"):
        detok.load("nobody/nothing")


@pytest.mark.parametrize("source", [None, 5, ["a"], object()])
def test_source_of_another_kind_is_refused(source: Any) -> None:
    """With its type, and what would do."""
    with pytest.raises(detok.SourceError, match="is no kind of tokenizer that detok knows; give the path"):
        detok.load(source)


@given(st.data())
def test_mutated_file_raises_only_our_errors(data: st.DataObject) -> None:
    """A real file with a stretch of bytes cut, doubled or changed loads, or is refused with a detok error."""
    import tempfile

    whole = (detok.EMBEDDED / "tokenizer.json").read_bytes()
    start = data.draw(st.integers(0, len(whole)) | st.integers(0, 2000))
    end = min(len(whole), start + data.draw(st.integers(0, 50)))
    middle = data.draw(st.sampled_from([b"", whole[start:end] * 2]) | st.binary(max_size=8))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        path.write_bytes(whole[:start] + middle + whole[end:])
        with suppress(detok.DetokError):
            assert isinstance(detok.load(path).decode(range(50)), str)


def test_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: dict[str, Any]) -> None:
    """Without tokenizers installed the error says what to install."""
    import sys

    path = written(tmp_path / "tokenizer.json", content)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(detok.MissingExtra, match=r"pip install 'detok\[hf\]'"):
        detok.load(path)
    with pytest.raises(ImportError):
        detok.load(tmp_path)
