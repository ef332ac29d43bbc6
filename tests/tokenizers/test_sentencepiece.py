"""SentencePiece: nine rules of decoding, judged by ``DecodeIds``, on real models and on models with every kind of piece."""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import sentencepiece as library
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.tokenizers import sentencepiece
from detok.tokenizers.sentencepiece_model import ModelSettings, fault_of, read_settings, with_controls_shown
from tests.support.handmade import FALLBACK as HF_FALLBACK
from tests.support.handmade import FUSE as HF_FUSE
from tests.support.handmade import UNDERSCORE, byte_tokens, make, sequence, strip
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
from tests.support.spm import BYTES, CONTROL, NORMAL, UNIGRAM, UNKNOWN, UNUSED, USER_DEFINED, field, model, with_denormalizer
from tests.support.vocabularies import real

REAL = {
    "mistral v1": ("mistral-common", "tokenizer.model.v1"),
    "mistral v2": ("mistral-common", "mistral_instruct_tokenizer_240216.model.v2"),
    "mistral v3": ("mistral-common", "mistral_instruct_tokenizer_240323.model.v3"),
    "mistral v7": ("mistral-common", "mistral_instruct_tokenizer_241114.model.v7"),
    "botchan unigram": ("sentencepiece", "botchan_en_unigram_1000.model"),
    "botchan bpe": ("sentencepiece", "botchan_en_bpe_1000.model"),
    "kyoto": ("sentencepiece", "kyoto_ja_unigram_8000.model"),
}

HEAD = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), ("▁c", CONTROL)]
WORDS = [("▁", NORMAL), ("▁▁", NORMAL), ("▁x", NORMAL), ("x▁y▁", NORMAL), ("�", NORMAL), ("é", NORMAL), ("y", UNUSED)]
SYMBOLS = [("▁<u>", USER_DEFINED), ("<v>▁", USER_DEFINED)]
MADE = {
    f"dummy prefix {prefix}, extra whitespace {extra}, unknown {surface!r}": model(
        [*HEAD, *BYTES, *WORDS, *SYMBOLS], add_dummy_prefix=prefix, remove_extra_whitespaces=extra, unk_surface=surface
    )
    for prefix, extra, surface in [
        *product((False, True), (False, True), (None, "▁?▁")),
        (True, False, ""),
        (True, True, ""),
        (True, True, " "),
        (None, None, None),
    ]
}
MADE["no bytes"] = model([*HEAD, *WORDS, *SYMBOLS])
MADE["no unknown piece"] = model([*HEAD[1:], *BYTES, *WORDS])
MADE["the unknown piece begins with a space"] = model([("▁<unk>", UNKNOWN), *HEAD[1:], *BYTES, *WORDS], unk_surface="")


@cache
def subject(name: str) -> detok.Tokenizer:
    """The tokenizer of a real or a made model, or of the one with a denormalizer."""
    if name in REAL:
        vocabulary, file = REAL[name]
        return sentencepiece.from_file(real(vocabulary) / file)
    content = with_denormalizer() if name == "denormalizer" else MADE[name]
    return sentencepiece.from_object(processor(content))


def processor(content: bytes) -> library.SentencePieceProcessor:
    """The library's own object."""
    return library.SentencePieceProcessor(model_proto=content)


def piece_ids(tokenizer: detok.Tokenizer, *texts: str) -> list[int]:
    """The ids of pieces."""
    tokens = tokenizer.library.tokens()
    return [tokens[text] for text in texts]


SUBJECTS = [*REAL, *MADE, "denormalizer"]


@pytest.mark.parametrize("name", SUBJECTS)
@given(data=st.data())
def test_laws(name: str, data: st.DataObject) -> None:
    """Streams equal DecodeIds for every list and split; they can be kept, and go on behind a prompt."""
    assert_laws(subject(name), data)


@pytest.mark.parametrize("name", SUBJECTS)
def test_check_finds_no_difference(name: str) -> None:
    """The certificate, over lists that are made to hurt."""
    assert_check_finds_nothing(subject(name), lists=150)


@pytest.mark.parametrize("name", ["mistral v1", "botchan unigram", next(iter(MADE))])
@given(data=st.data())
def test_token_bytes_tile_the_text(name: str, data: st.DataObject) -> None:
    """Law 10."""
    tokenizer = subject(name)
    assert_token_bytes_tile(tokenizer, tokenizer.encode("x", add_special_tokens=False)[-1], data)


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize(
    "texts",
    [
        ("<0xE3>", "<0x81>", "<0x82>", "<0xFF>", "▁x", "</s>"),
        ("<0xF0>", "<0x9F>", "<0xED>", "<0xA0>", "<0x41>", "�"),
        ("▁", "▁▁", "▁x", "▁c", "<0x20>", "<unk>"),
        ("x▁y▁", "▁<u>", "<s>", "<0xC3>", "<0xA9>", "y"),
    ],
)
@pytest.mark.parametrize("name", [name for name in MADE if name.endswith(("unknown None", "True, unknown ''"))])
def test_step_gives_out_all_that_is_certain(name: str, texts: tuple[str, ...], skip: bool) -> None:
    """Law 3, by brute force over a few ids at a time."""
    tokenizer = subject(name)
    assert_earliest(tokenizer, piece_ids(tokenizer, *texts), skip_special_tokens=skip)


@pytest.mark.parametrize("name", ["mistral v1", "botchan unigram", "denormalizer", next(iter(MADE))])
def test_pickled_tokenizer_is_the_same(name: str) -> None:
    """The denormalizer too."""
    assert_pickled_is_the_same(subject(name))


@pytest.mark.parametrize("name", ["mistral v7", next(iter(MADE))])
def test_priming_reads_only_the_end_of_a_prompt(name: str) -> None:
    """Of words, and of a long byte run, which its lead bytes cut into pieces."""
    tokenizer = subject(name)
    for texts in (["<0xE3>", "<0x81>", "<0x82>"], ["<0x41>"], ["<0xFF>"]):
        assert_priming_reads_only_the_end(tokenizer, piece_ids(tokenizer, *texts))
    assert_priming_reads_only_the_end(tokenizer, [tokenizer.vocab_size - 1])


SAME_BYTES = [
    ("E3 81", "��", "��", "�"),
    ("FF 41", "�A", "��", "�A"),
    ("E3 81 82 FF", "あ�", "����", "あ�"),
    ("E3 81 </s> 82", "���", "あ", "あ"),
    ("F0 9F 98 ▁x", "��� x", "��� x", "� x"),
    ("E0 80 41", "��A", "���", "��A"),
    ("20 ▁x", "  x", " x", "  x"),
]
"""The same bytes under three rules: SentencePiece, ByteFallback of Hugging Face, bytes in a row."""


@pytest.mark.parametrize(("spelled", "by_sentencepiece", "by_byte_fallback", "by_bytes"), SAME_BYTES)
def test_same_bytes_differ_by_rule(spelled: str, by_sentencepiece: str, by_byte_fallback: str, by_bytes: str) -> None:
    """One U+FFFD a bad byte, or a byte of a bad run, or a maximal subpart; what ends a run; what is a first space."""
    from detok.tokenizers import tiktoken

    parts = spelled.split(" ")
    texts = [part if len(part) > 2 or "▁" in part else f"<0x{part}>" for part in parts]
    ours = subject("mistral v1")
    ids = [token_id if (token_id := ours.library.tokens().get(text)) is not None else 0 for text in texts]
    assert ours.decode(ids) == by_sentencepiece == ours.library.decode(ids, skip_special_tokens=True)

    tokens = [*byte_tokens(bytes(range(256))), "▁x", "</s>"]
    decoder = sequence(UNDERSCORE, HF_FALLBACK, HF_FUSE, strip(1, 0))
    fallback = detok.load(make(decoder, tokens, special=["</s>"]))
    ids = [tokens.index(text) for text in texts]
    assert fallback.decode(ids) == by_byte_fallback == fallback.library.decode(ids, skip_special_tokens=True)

    import tiktoken as peer

    ranks = {bytes([byte]): byte for byte in range(256)} | {b" x": 256}
    encoding = peer.Encoding("bytes", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"</s>": 257})
    raw = tiktoken.from_object(encoding)
    assert raw.decode(ids) == by_bytes == raw.library.decode(ids, skip_special_tokens=True)


def test_kinds_of_pieces() -> None:
    """Control pieces are special, bytes have data, the unknown piece is shown as its surface, and every id has exact bytes."""
    tokenizer = subject("dummy prefix True, extra whitespace False, unknown '▁?▁'")
    assert tokenizer.special_ids == tokenizer.added_ids == {1, 2, 3}
    byte, unknown, user = piece_ids(tokenizer, "<0x41>", "<unk>", "▁<u>")
    assert tokenizer.piece(byte) == detok.Piece("<0x41>", data=b"A")
    assert tokenizer.piece(unknown) == detok.Piece("<unk>")
    assert tokenizer.piece(user) == detok.Piece("▁<u>")
    assert [tokenizer.token_bytes(token_id) for token_id in (byte, unknown, user)] == [b"A", "▁?▁".encode(), b" <u>"]
    assert tokenizer.decode([unknown, user]) == "▁?▁ <u>"
    assert tokenizer.vocab_size == len(tokenizer.ids) == len(tokenizer.library.tokens())
    for token_id in (-1, tokenizer.vocab_size, 1 << 40):
        assert tokenizer.vocabulary.piece(token_id) is None


def test_control_pieces_are_shown_as_user_defined_ones_would_be() -> None:
    """DecodeIds cannot show them; they end a byte run either way."""
    tokenizer = subject("dummy prefix True, extra whitespace False, unknown None")
    ids = piece_ids(tokenizer, "<s>", "▁x", "▁c", "<0xE3>", "</s>", "<0x81>")
    assert tokenizer.decode(ids) == "x��"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "<s> x c�</s>�"


def test_piece_named_like_the_unknown_one_is_its_own() -> None:
    """A normal piece of a Unigram model may have that name; it is shown as it is."""
    pieces = [("<unk>", UNKNOWN), ("a", NORMAL), ("<unk>", NORMAL)]
    ours = sentencepiece.from_object(processor(model(pieces, model_type=UNIGRAM)))
    assert ours.decode([2, 1, 0]) == "<unk>a ⁇ " == ours.library.decode([2, 1, 0], skip_special_tokens=True)


@pytest.mark.parametrize("flags", [b"", b"\x18\x00\x20\x00\x28\x00"])
def test_denormalizer_is_exact_and_said(flags: bytes) -> None:
    """It runs over the whole text, whichever whitespace rules it has; so all is held, and the description says so."""
    whole = read_settings(processor(with_denormalizer()).serialized_model_proto()).denormalizer
    charsmap = whole[: whole.rindex(b"\x18\x00\x20\x00\x28\x00")]
    pieces = [("<unk>", UNKNOWN), ("▁a", NORMAL), ("b", NORMAL), ("c", NORMAL), ("▁", NORMAL)]
    tokenizer = sentencepiece.from_object(processor(model(pieces, denormalizer=charsmap + flags)))
    stream = tokenizer.stream()
    ids = [1, 2, 3, 4, 4, 1]
    assert stream.extend(ids) == ""
    assert stream.held_because == "a rule over the text"
    expected = tokenizer.library.decode(ids, skip_special_tokens=True)
    assert stream.finish() == expected
    assert "AXYZ" in expected
    assert "all text is held to the end: the model's denormalizer" in tokenizer.description
    assert tokenizer.fingerprint != sentencepiece.from_object(processor(model(pieces))).fingerprint


def test_denormalizer_that_writes_no_utf8_does_not_raise() -> None:
    """Where the library does, there is a U+FFFD."""
    whole = read_settings(processor(with_denormalizer()).serialized_model_proto()).denormalizer
    pieces = [("<unk>", UNKNOWN), ("b", NORMAL), ("c", NORMAL)]
    tokenizer = sentencepiece.from_object(processor(model(pieces, denormalizer=whole.replace(b"XYZ", b"\xffYZ"))))
    assert tokenizer.decode([1, 2]) == "�YZ"
    with pytest.raises(UnicodeDecodeError):
        tokenizer.library.decode([1, 2], skip_special_tokens=True)


def test_empty_denormalizer_is_none() -> None:
    """A specification without a map does nothing, and text flows."""
    tokenizer = sentencepiece.from_object(processor(model([("<unk>", UNKNOWN), ("▁a", NORMAL)], denormalizer=b"\x18\x01")))
    assert tokenizer.stream().step(1) == "a"


@pytest.mark.parametrize("name", ["mistral v1", "mistral v7"])
@pytest.mark.parametrize("text", TEXTS)
def test_encode_is_the_librarys_with_bos(name: str, text: str) -> None:
    """BOS in front if it is asked for, never EOS; and back again."""
    tokenizer = subject(name)
    vocabulary, file = REAL[name]
    peer = library.SentencePieceProcessor(model_file=str(real(vocabulary) / file))
    assert tokenizer.encode(text, add_special_tokens=False) == peer.encode(text)
    assert tokenizer.encode(text) == [peer.bos_id(), *peer.encode(text)]
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_encode_settings() -> None:
    """Which of BOS and EOS are special tokens is said when a model is loaded; what it does not have is not added."""
    content = model([*HEAD, *BYTES, *WORDS])
    both = sentencepiece.from_object(processor(content), add_eos_token=True)
    none = sentencepiece.from_object(processor(content), add_bos_token=False)
    assert both.encode("é")[::2] == [1, 2] or both.encode("é")[0] == 1
    assert both.encode("é")[-1] == 2
    assert none.encode("é") == none.encode("é", add_special_tokens=False)
    bare = sentencepiece.from_object(processor(model([("<unk>", UNKNOWN), ("é", NORMAL), ("▁", NORMAL)])), add_eos_token=True)
    assert bare.encode("é") == bare.encode("é", add_special_tokens=False)
    assert bare.encode("") == []


@pytest.mark.parametrize("text", ["a\ud800", 5, None])
def test_text_that_cannot_be_encoded_is_refused(text: Any) -> None:
    """As of every tokenizer."""
    with pytest.raises(detok.OptionError, match="lone surrogates"):
        subject("no bytes").encode(text)


def test_file_and_object_are_the_same() -> None:
    """And the fingerprint is of what decoding depends on."""
    path = real("mistral-common") / "tokenizer.model.v1"
    of_object = sentencepiece.from_object(library.SentencePieceProcessor(model_file=str(path)))
    of_file = sentencepiece.from_file(path)
    assert of_object.fingerprint == of_file.fingerprint != subject("mistral v3").fingerprint
    assert (of_file.source, of_object.source) == (str(path), "sentencepiece.SentencePieceProcessor")
    assert of_file.description == "SentencePiece; 32,000 ids, 2 added"
    assert of_file.library.name.startswith("sentencepiece 0.")


def test_settings_have_the_librarys_defaults() -> None:
    """Where the model says nothing."""
    assert read_settings(b"") == ModelSettings(True, True, " ⁇ ", b"")
    assert read_settings(model(HEAD, add_dummy_prefix=False, unk_surface="")) == ModelSettings(False, True, "", b"")


def test_control_pieces_become_user_defined() -> None:
    """All else stays; numbers on the outside, of which the format has none, are left out."""
    long = [("<unk>", UNKNOWN), ("x" * 300, CONTROL), ("y" * 300, CONTROL), ("a", NORMAL)]
    shown = with_controls_shown(model(long) + field(9, 1), [1])
    assert shown == model([long[0], ("x" * 300, CONTROL), *long[2:]]).replace(
        field(1, field(1, b"x" * 300) + b"\x15" + bytes(4) + field(3, CONTROL)),
        field(1, field(1, b"x" * 300) + b"\x15" + bytes(4) + field(3, CONTROL) + field(3, USER_DEFINED)),
    )
    assert processor(shown).decode([1, 2, 3]) == "x" * 300 + "a"


@pytest.mark.parametrize(
    ("damaged", "fault"),
    [
        (b"\x0a\x05abc", "longer than what it is in"),
        (b"\x0b", "wire type 3"),
        (b"\xff" * 20, "a number without an end"),
        (b"\x0a", "a number without an end"),
        (b"\x0d\x00\x00", "longer than what it is in"),
        (b"\x09" + bytes(8), ""),
    ],
)
def test_protobuf_faults(damaged: bytes, fault: str) -> None:
    """Each is named."""
    assert fault_of(damaged).endswith(fault)
    with pytest.raises(ValueError, match="unk_surface is a number"):
        read_settings(b"\x12\x03\xe0\x02\x01")


BAD_FILES = {
    "empty": (b"", "the file is empty"),
    "text": (b"hello world", "is no protobuf, or only the beginning of one"),
    "json": (b'{"model": 1}', "is no protobuf, or only the beginning of one"),
    "ranks": (b"IQ== 0\nIg== 1\n", "the library refuses it"),
    "truncated": (MADE["no bytes"][:-3], "is no protobuf, or only the beginning of one"),
    "no pieces": (b"\x12\x00", "refuses it"),
    "no unknown piece": (model([("a", NORMAL)]), "refuses it"),
    "not all bytes": (model([("<unk>", UNKNOWN), *BYTES[:5]]), "refuses it"),
    "a piece twice": (model([("<unk>", UNKNOWN), ("a", NORMAL), ("a", NORMAL)]), "refuses it"),
    "a piece that is no UTF-8": (model([("<unk>", UNKNOWN), ("é", NORMAL)]).replace(b"\xc3\xa9", b"\xc3\x28"), "is damaged"),
    "a surface that is no UTF-8": (model(HEAD, unk_surface="é").replace(b"\xc3\xa9", b"\xc3\x28"), "is damaged"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_file_is_named_with_what_was_found(tmp_path: Path, kind: str) -> None:
    """The error names the file, what it is, and what would have been accepted."""
    content, found = BAD_FILES[kind]
    path = tmp_path / "tokenizer.model"
    path.write_bytes(content)
    with pytest.raises(detok.SourceError) as caught:
        sentencepiece.from_file(path)
    message = str(caught.value)
    assert found in message
    assert message.startswith((str(path), "sentencepiece"))
    assert "a SentencePiece model was expected" in message


def test_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """So is a directory, and a processor without a model."""
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(detok.SourceError, match="cannot be read"):
            sentencepiece.from_file(path)
    with pytest.raises(detok.SourceError, match="the processor has no model"):
        sentencepiece.from_object(library.SentencePieceProcessor())


def loaded(content: bytes) -> None:
    """Load a file with any content, and decode with what comes of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tokenizer.model")
        path.write_bytes(content)
        with suppress(detok.DetokError):
            assert isinstance(sentencepiece.from_file(path).decode(range(400), False), str)


@given(content=st.binary(max_size=200))
def test_any_bytes_raise_only_our_errors(content: bytes) -> None:
    """Whatever the file is."""
    loaded(content)


@pytest.mark.parametrize("name", ["botchan unigram", next(iter(MADE)), "denormalizer"])
@given(data=st.data())
def test_mutated_model_raises_only_our_errors(name: str, data: st.DataObject) -> None:
    """A model with a stretch of bytes cut, doubled or changed loads, or is refused with a detok error."""
    if name in REAL:
        vocabulary, file = REAL[name]
        whole = (real(vocabulary) / file).read_bytes()
    else:
        whole = MADE.get(name) or with_denormalizer()
    loaded(mutated(whole, data))


def test_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without sentencepiece installed the error says what to install."""
    path = tmp_path / "tokenizer.model"
    path.write_bytes(MADE["no bytes"])
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(detok.MissingExtra, match=r"pip install 'detok\[sentencepiece\]'"):
        sentencepiece.from_file(path)
