"""The fastest encoder that is exact, or why there is none. What is installed here is asked; what is not, is stood in for."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import ModuleType, SimpleNamespace
from typing import Any
from weakref import WeakValueDictionary

import pytest
import tokenizers

import detok
from detok.data import sample, sample_names
from detok.data.hard_texts import HARD_TEXTS
from detok.tokenizers import encoders
from detok.tokenizers.encoders import FAST_INLINE_BYTES, PATIENCE, LibraryEncoder, corpus
from tests.support.vocabularies import load_tokenizer, real

FILE = detok.EMBEDDED / "tokenizer.json"


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees what another was told."""
    monkeypatch.setattr(encoders, "_verdicts", {})
    monkeypatch.setattr(encoders, "_in_use", WeakValueDictionary())


def library() -> tokenizers.Tokenizer:
    """The embedded tokenizer, each time another object."""
    return tokenizers.Tokenizer.from_file(str(FILE))


class StandIn(ModuleType):
    """
    A fast library that does what it is told, and counts.

    Args:
        ids: What it makes of the library's own encoder and a text.
    """

    def __init__(self, ids: Callable[[tokenizers.Tokenizer, str], list[int]] | None = None) -> None:
        super().__init__("fastokens")
        self.loaded = self.encoded = 0
        self.refuses = False
        self._ids = ids or (lambda own, text: [])
        self.Tokenizer = self

    def from_json_str(self, content: str) -> Any:
        self.loaded += 1
        if self.refuses:
            raise ValueError("no such model")
        own = tokenizers.Tokenizer.from_str(content)

        def encode(text: str, add_special_tokens: bool) -> Any:
            self.encoded += 1
            return SimpleNamespace(ids=self._ids(own, text))

        return SimpleNamespace(
            encode=encode, encode_batch=lambda texts, add_special_tokens: [encode(text, add_special_tokens) for text in texts]
        )


@pytest.fixture
def honest(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """One that gives the library's own ids."""
    module = StandIn(lambda own, text: own.encode(text).ids)
    monkeypatch.setitem(sys.modules, "fastokens", module)
    return module


@pytest.mark.parametrize("name", ["llama3", "qwen3", "gemma3", "mistral-v1", "gpt-neox"])
def test_fastokens_is_taken_where_it_is_exact(name: str) -> None:
    """For the files of the models that most people run, with the library's ids on every sample."""
    pytest.importorskip("fastokens", reason="it is what is asked")
    # Not the directory: LlamaTokenizer gives mistral-v1 a pre-tokenizer that fastokens does not know.
    tokenizer = detok.load(real(name) / "tokenizer.json")
    assert tokenizer.encoder.name.startswith("fastokens ")
    assert (tokenizer.encoder.reason, tokenizer.encoder.inline_bytes) == ("", FAST_INLINE_BYTES)
    assert "encoded by" not in tokenizer.description
    texts = [sample(sample_name) for sample_name in sample_names()]
    for adds in (True, False):
        expected = [load_tokenizer(name).encode(text, add_special_tokens=adds).ids for text in texts]
        assert [tokenizer.encode(text, add_special_tokens=adds) for text in texts] == expected
        assert tokenizer.encode_batch(texts, add_special_tokens=adds) == expected


@pytest.mark.parametrize(("name", "why"), [("minilm", "does not load it (normalizer"), ("pix2tex", "does not encode")])
def test_refusal_has_its_reason_in_the_description(name: str, why: str, tmp_path: Path) -> None:
    """From when it is known: nobody waits for a choice who only decodes."""
    pytest.importorskip("fastokens", reason="it is what is asked")
    # Files of its own: what is loaded is remembered, and another test may have asked it.
    tokenizer = detok.load(shutil.copytree(real(name), tmp_path / name))
    assert "encoded by" not in tokenizer.description
    assert tokenizer.encoder.name == f"tokenizers {tokenizers.__version__}"
    assert tokenizer.encoder.refused
    assert why in tokenizer.encoder.reason
    assert f"; encoded by tokenizers {tokenizers.__version__}, since fastokens" in tokenizer.description
    assert why in tokenizer.description


def test_without_fastokens_the_library_encodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """And `encoder` says how to get it; the description does not insist."""
    monkeypatch.setitem(sys.modules, "fastokens", None)
    tokenizer = detok.load(library())
    assert tokenizer.encoder.name.startswith("tokenizers ")
    assert "pip install 'detok[fast]'" in tokenizer.encoder.reason
    assert tokenizer.description == "ByteLevel; 4,096 ids, 5 added"
    with pytest.raises(detok.MissingExtra, match=r"detok\[fast\]"):
        detok.load(FILE, encoder="fastokens")


def test_choice_waits_until_it_pays(honest: StandIn) -> None:
    """A few texts are encoded by the library; when there were many, or when somebody asks, there is a choice."""
    tokenizer = detok.load(library())
    tokenizer.encode("a" * (PATIENCE - 1))
    tokenizer.encode_batch(["b"])
    counts = [honest.loaded]
    tokenizer.encode("c")
    assert [*counts, honest.loaded] == [0, 1]
    other = detok.load(library())
    assert other.encoder.name.startswith("fastokens")


def test_one_wrong_id_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoder that errs on one hard text is not taken, and the text is named."""
    trap = HARD_TEXTS[3]
    monkeypatch.setitem(sys.modules, "fastokens", StandIn(lambda own, text: [1] if text == trap else own.encode(text).ids))
    tokenizer = detok.load(library())
    assert not tokenizer.encoder.name.startswith("fastokens")
    assert f"encodes {trap!r} differently" in tokenizer.encoder.reason
    assert tokenizer.encode(trap) == library().encode(trap).ids
    with pytest.raises(detok.OptionError, match=r"^encoder='fastokens' is invalid; .*differently; take 'auto'"):
        detok.load(library(), encoder="fastokens")


def test_encoder_that_raises_on_the_corpus_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it raises."""
    monkeypatch.setitem(sys.modules, "fastokens", StandIn(lambda own, text: [1 // len(text)]))
    assert "does not encode '' (integer division" in detok.load(library()).encoder.reason


def test_verdict_is_remembered_by_content(honest: StandIn) -> None:
    """A tokenizer in use is shared, one that was dropped is loaded again but not judged again, and so is a refusal."""
    first, second = detok.load(library()), detok.load(library())
    assert first.encoder == second.encoder
    judged = honest.encoded
    assert (honest.loaded, judged) == (1, 2 * len(corpus(library())))
    del first, second
    assert detok.load(library()).encoder.name.startswith("fastokens")
    assert (honest.loaded, honest.encoded) == (2, judged)
    honest.refuses = True
    other = library()
    other.add_tokens(["something else"])
    assert "does not load it (no such model)" in detok.load(other).encoder.reason
    assert "does not load it (no such model)" in detok.load(other).encoder.reason
    assert honest.loaded == 3


def test_many_threads_make_one_choice(honest: StandIn) -> None:
    """Whoever comes while it is made waits for it."""
    tokenizer, start = detok.load(library()), Barrier(8)

    def ask(_: int) -> str:
        start.wait()
        return tokenizer.encoder.name

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1
    assert honest.loaded == 1


def test_what_the_fast_encoder_refuses_the_library_encodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that no text of the corpus reaches, alone and in a batch."""
    module = StandIn(lambda own, text: [1 // 0] if text == "limit" else own.encode(text).ids)
    monkeypatch.setitem(sys.modules, "fastokens", module)
    tokenizer = detok.load(library(), encoder="fastokens")
    expected = [library().encode(text).ids for text in ("a", "limit")]
    assert [tokenizer.encode("a"), tokenizer.encode("limit")] == expected
    assert tokenizer.encode_batch(["a", "limit"]) == expected


@pytest.mark.parametrize("encoder", ["tokenizers", "fastokens"])
@pytest.mark.parametrize("bad", ["a\ud800b", None, b"x", 5])
def test_what_is_no_text_is_named_by_every_encoder(encoder: Any, bad: Any) -> None:
    """Half of a surrogate pair, or no str at all."""
    pytest.importorskip("fastokens", reason="it is what is asked")
    tokenizer = detok.load(FILE, encoder=encoder)
    with pytest.raises(detok.OptionError, match=r"^text="):
        tokenizer.encode(bad)
    with pytest.raises(detok.OptionError, match=r"^text="):
        tokenizer.encode_batch(["a", bad])


@pytest.mark.parametrize("change", ["truncates", "pads", "encodes special tokens"])
def test_object_with_settings_that_no_json_has_keeps_its_library(change: str, honest: StandIn) -> None:
    """What it was set to holds for every text, alone or in a batch."""
    source = library()
    if change == "truncates":
        source.enable_truncation(2)
    elif change == "pads":
        source.enable_padding(length=9)
    else:
        source.encode_special_tokens = True
    tokenizer = detok.load(source)
    assert "truncates, pads or encodes special tokens" in tokenizer.encoder.reason
    texts = ["a", "a longer text <|im_end|>"]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_batch(texts) == [source.encode(text).ids for text in texts]
    assert not honest.loaded


def test_padding_to_the_longest_does_not_reach_across_a_batch() -> None:
    """The library pads a batch to one length; each text here is encoded as if it were alone."""
    source = library()
    source.enable_padding()
    assert detok.load(source).encode_batch(["a", "a longer text"]) == [
        library().encode(text).ids for text in ("a", "a longer text")
    ]


def test_part_that_is_written_in_python_keeps_the_library() -> None:
    """There is no JSON of it that another library could read."""
    pytest.importorskip("fastokens", reason="without it there is nothing to refuse")

    class Halves:
        def split(self, number: int, text: Any) -> list[Any]:
            return [text[: len(str(text)) // 2], text[len(str(text)) // 2 :]]

        def pre_tokenize(self, pretokenized: Any) -> None:
            pretokenized.split(self.split)

    source = library()
    source.pre_tokenizer = tokenizers.pre_tokenizers.PreTokenizer.custom(Halves())
    tokenizer = detok.load(source)
    assert "no form as JSON" in tokenizer.encoder.reason
    assert tokenizer.encode("abcd") == source.encode("abcd").ids


@pytest.mark.parametrize("name", ["llama3", "minilm", "mistral-v1", "nepali-unigram", "claude"])
def test_library_encoder_gives_the_ids_of_plain_encode(name: str) -> None:
    """It asks the library in another way, which keeps no lock and counts no offsets, for the same ids."""
    source = load_tokenizer(name)
    source.no_truncation()
    source.no_padding()
    texts = corpus(source)[::7]
    for adds in (True, False):
        expected = [source.encode(text, add_special_tokens=adds).ids for text in texts]
        assert LibraryEncoder(source).batch(texts, add_special_tokens=adds) == expected


def test_corpus_has_the_tokens_of_the_vocabulary() -> None:
    """Its special tokens, whole and with a fault, and long texts; the same each time."""
    texts = corpus(library())
    assert texts == corpus(library())
    for token in library().get_added_tokens_decoder().values():
        assert any(f"{token.content}{token.content}\n" in text for text in texts)
    assert set(HARD_TEXTS) <= set(texts)
    assert max(map(len, texts)) > 50_000


def test_corpus_of_a_vocabulary_with_many_added_tokens_is_bounded() -> None:
    """Some have them by the thousand."""
    source = library()
    source.add_tokens([f"extra{number}" for number in range(3000)])
    assert len(corpus(source)) < 5000


def test_same_file_with_another_encoder_is_another_tokenizer() -> None:
    """And the same with the same."""
    plain = detok.load(FILE, encoder="tokenizers")
    assert plain is detok.load(FILE, encoder="tokenizers")
    assert plain is not detok.load(FILE)
    assert plain.encoder.name.startswith("tokenizers")
    assert plain.encoder.reason == ""


def test_encoder_that_there_is_not_is_named(tmp_path: Path) -> None:
    """An unknown one, and one for a format whose library encodes alone."""
    with pytest.raises(detok.OptionError, match=r"^encoder='quick' is invalid; it is one of 'auto', 'tokenizers', 'fastokens'"):
        detok.load(FILE, encoder="quick")  # type: ignore[arg-type]  # that is the point
    path = tmp_path / "some.tiktoken"
    path.write_text("YQ== 0\n")
    with pytest.raises(detok.OptionError, match=r"^encoder="):
        detok.load(path, encoder="tokenizers")
    assert detok.load(path).encoder.name.startswith("tiktoken")


def test_directory_has_the_choice_too(tmp_path: Path) -> None:
    """With the tokens that its configuration adds."""
    pytest.importorskip("fastokens", reason="it is what is asked")
    (tmp_path / "tokenizer.json").write_bytes(FILE.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"additional_special_tokens": ["<extra>"]}))
    tokenizer = detok.load(tmp_path, encoder="fastokens")
    assert tokenizer.encoder.name.startswith("fastokens")
    assert tokenizer.encode("a<extra>b")[1] == max(tokenizer.special_ids)


def test_pickled_tokenizer_encodes_the_same(honest: StandIn) -> None:
    """The choice is made anew, since the other process may have other libraries; one that was named stays."""
    tokenizer = detok.load(library())
    assert tokenizer.encoder.name.startswith("fastokens")
    twin = pickle.loads(pickle.dumps(tokenizer._encoder))
    assert twin.maybe_info is None
    assert twin("abc", add_special_tokens=True) == tokenizer.encode("abc")
    plain = pickle.loads(pickle.dumps(detok.load(FILE, encoder="tokenizers")._encoder))
    assert plain.info.name.startswith("tokenizers")
