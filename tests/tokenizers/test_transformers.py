"""Tokenizers of transformers: fast ones by rules, Python ones by rules where they are a join, else by windows."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st
from transformers import ByT5Tokenizer, PerceiverTokenizer, PreTrainedTokenizer, PreTrainedTokenizerFast, Wav2Vec2CTCTokenizer

import detok
from detok.inspection import check
from detok.inspection.strategies import by_strategy, open_stream, own_strategy
from detok.tokenizers import Tokenizer
from detok.tokenizers.opaque import OpaqueTokenizer
from detok.tokenizers.tokenizer import Mode
from detok.tokenizers.transformers import from_directory, from_object
from tests.support.handmade import BYTE_LEVEL, WORDPIECE, byte_level_tokens, make
from tests.support.kinds import assert_earliest, assert_laws, assert_priming_reads_only_the_end


class Made(PreTrainedTokenizer):
    """A Python tokenizer over a list of tokens, which joins them with spaces, as transformers does if a class says nothing."""

    def __init__(self, tokens: Sequence[str], **settings: Any) -> None:
        self._ids = {token: token_id for token_id, token in enumerate(tokens)}
        self.asked = 0
        super().__init__(**{"unk_token": "<unk>", "eos_token": "</s>", **settings})  # type: ignore[no-untyped-call]

    @property
    def vocab_size(self) -> int:
        """How many tokens there are."""
        self.asked += 1
        return len(self._ids)

    def get_vocab(self) -> dict[str, int]:
        """All tokens."""
        self.asked += 1
        return {**self._ids, **self.added_tokens_encoder}

    @property
    def all_special_ids(self) -> list[int]:
        """The special ids, which are looked up each time."""
        self.asked += 1
        return super().all_special_ids

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return text.split()

    def _convert_token_to_id(self, token: str) -> int:
        return self._ids.get(token, self._ids["<unk>"])

    def _convert_id_to_token(self, index: int) -> str:
        return {token_id: token for token, token_id in self._ids.items()}[index]


class Concatenated(Made):
    """Joins tokens with nothing between them."""

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """One after another."""
        return "".join(tokens)


class Hyphenated(Made):
    """No join that is known: a mark takes the space away that would follow it, and the text is stripped."""

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """By the whole text."""
        return " ".join(tokens).replace("++ ", "").strip()


class Marked(Made):
    """The same with the mark of CTRL, PhoBERT and BERTweet."""

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """By the whole text."""
        return " ".join(tokens).replace("@@ ", "").strip()


class Pieces(Made):
    """As those that have a SentencePiece model."""

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """By the whole text."""
        return "".join(tokens).replace("▁", " ").strip()


class Words(Made):
    """As XLM and FlauBERT."""

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """By the whole text."""
        return "".join(tokens).replace("</w>", " ").strip()


class Failing(Made):
    """Raises at a token that it does not like."""

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Fail, or join."""
        if "b" in tokens[:-1]:
            raise ValueError("b")
        return "-".join(tokens)


TOKENS = ["<unk>", "</s>", "a", "b++", "c", "é", " ", "d ", "++", ".", "\ufffd", "<0xC3>", "e++"]
MARKED = [token.replace("++", "@@") for token in TOKENS]


@pytest.mark.parametrize("mode", ["auto", "slow"])
def test_byt5_becomes_rules(mode: Mode) -> None:
    """Its bytes are joined, and what is invalid vanishes; the certificate is clean."""
    tokenizer = from_object(ByT5Tokenizer(), mode=mode)
    assert tokenizer.stream().exact
    assert tokenizer.description.startswith("RawBytes; 384 ids, 128 added; encoded by the Python code of ByT5Tokenizer")
    assert tokenizer.library.name == f"transformers {transformers.__version__}, ByT5Tokenizer"
    assert tokenizer.encode("é") == [0xC3 + 3, 0xA9 + 3, 1]
    assert tokenizer.encode("é", add_special_tokens=False) == [0xC3 + 3, 0xA9 + 3]
    assert (tokenizer.token_bytes(0xC3 + 3), tokenizer.token_bytes(1)) == (b"\xc3", b"</s>")
    assert {0, 1, 2, 383} <= tokenizer.special_ids
    stream = tokenizer.stream()
    assert [stream.step(token_id) for token_id in (0xC3 + 3, 0xFF + 3, 0xC3 + 3, 1, 0xA9 + 3, 999)] == ["", "", "", "", "é", ""]
    certificate = check(tokenizer, lists=200)
    assert certificate.ok, certificate.differences
    assert (certificate.strategy, certificate.library_failures) == ("exact", 0)


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        (PerceiverTokenizer(), "RawBytes"),
        (Made(TOKENS), "JoinWithSpaces"),
        (Concatenated(TOKENS), "RawBytes"),
        (Made(TOKENS, clean_up_tokenization_spaces=True), "JoinWithSpaces, clean-up of spaces"),
        (Marked(MARKED), "JoinWithSpaces, Fuse, Replace '@@ ' by '', StripEnds"),
        (Pieces([*TOKENS, "▁", "▁a", "b▁"]), "Fuse, Replace '▁' by ' ', StripEnds"),
        (Words([*TOKENS, "a</w>", "</w>b", "</w>"]), "Fuse, Replace '</w>' by ' ', StripEnds"),
    ],
    ids=["perceiver", "spaces", "concatenation", "clean-up", "marks", "pieces", "words"],
)
def test_joins_become_rules(source: Any, rule: str) -> None:
    """Whatever the class is called."""
    tokenizer = from_object(source)
    assert tokenizer.stream().exact
    assert tokenizer.description.split("; ")[0] == rule
    certificate = check(tokenizer, lists=100)
    assert certificate.ok, certificate.differences


@cache
def joined(name: str) -> Tokenizer:
    """Tokenizers of Python code that became rules."""
    words, pieces = [*TOKENS, "a</w>", "</w>b", "</w>"], [*TOKENS, "▁", "▁a", "b▁"]
    sources = {"bytes": ByT5Tokenizer(), "spaces": Made(TOKENS), "marks": Marked(MARKED), "pieces": Pieces(pieces)}
    return from_object(sources.get(name) or Words(words))


@pytest.mark.parametrize("name", ["bytes", "spaces", "marks", "pieces", "words"])
@given(data=st.data())
def test_joins_keep_the_laws(name: str, data: st.DataObject) -> None:
    """Streams, snapshots and prompts, judged by the object's own decode."""
    assert_laws(joined(name), data)


@pytest.mark.parametrize("skips", [True, False])
def test_bytes_of_which_invalid_ones_vanish_come_out_as_early_as_can_be(skips: bool) -> None:
    """Law 3 by brute force: an incomplete character may still become nothing."""
    assert_earliest(joined("bytes"), [0x41 + 3, 0xC3 + 3, 0xA9 + 3, 0xE3 + 3, 0xFF + 3, 1], skip_special_tokens=skips)


def test_priming_reads_only_the_end_of_a_prompt() -> None:
    """Of bytes and of words."""
    assert_priming_reads_only_the_end(joined("bytes"), [0xE3 + 3, 0x81 + 3, 0x82 + 3])
    assert_priming_reads_only_the_end(joined("spaces"), [2, 4])


def test_what_is_no_join_is_streamed_by_windows() -> None:
    """It says so, `decode` is its own, and its certificate counts how often a stream differs."""
    source = Hyphenated(TOKENS)
    tokenizer = from_object(source)
    assert isinstance(tokenizer, OpaqueTokenizer)
    assert not tokenizer.stream().exact
    assert tokenizer.description == (
        "windows of ids; 13 ids, 2 added; known only by the Python code of Hyphenated, which encodes, and decodes one or two "
        "windows at each step; not exact"
    )
    ids = tokenizer.encode("a b++ c a")
    assert ids == [2, 3, 4, 2]
    assert tokenizer.decode(ids) == source.decode(ids) == "a bc a"
    stream = tokenizer.stream()
    # The mark is out, and the text gets no longer when it goes: what a window cannot know.
    assert [*map(stream.step, ids), stream.finish()] == ["a", " b++", "", "a", ""]
    certificate = check(tokenizer, lists=100)
    assert certificate.strategy == "window"
    assert 0 < certificate.differing < certificate.comparisons
    assert 0 < certificate.differing_lists <= 100
    assert not any(difference.kind == "one-shot" for difference in certificate.differences)


def test_opaque_tokenizers_have_no_other_strategies() -> None:
    """No rules, and no DecodeStream: the error says why."""
    tokenizer = from_object(Hyphenated(TOKENS))
    assert by_strategy(tokenizer, "window+printable").decode([2, 4]) == "a c"
    assert own_strategy(tokenizer) == "window"
    assert not open_stream(tokenizer, "window", lookback=3).exact
    with pytest.raises(detok.OptionError, match=r"detok\.inspection\.strategies\.open_stream"):
        tokenizer.decode([2], strategy="window")
    for strategy, why in (("exact", "known only by its own decode"), ("decodestream", "is none")):
        with pytest.raises(detok.OptionError, match=why):
            open_stream(tokenizer, cast(Any, strategy))


def test_opaque_tokenizers_treat_unknown_ids_as_the_options_say() -> None:
    """In `decode` as in a stream."""
    tokenizer = from_object(Hyphenated(TOKENS))
    ids = [2, 99, 4, -1]
    assert tokenizer.decode(ids) == "a c"
    assert tokenizer.decode(ids, unknown_ids="replace") == "a\ufffd c\ufffd"
    assert tokenizer.stream(unknown_ids="replace").extend(ids) == "a\ufffd c\ufffd"
    with pytest.raises(detok.UnknownTokenId) as error:
        tokenizer.decode(ids, unknown_ids="error")
    assert error.value.position == 1
    with pytest.raises(detok.UnknownTokenId) as error:
        tokenizer.stream(unknown_ids="error").extend(ids)
    assert error.value.position == 1


def test_opaque_tokenizers_segment_at_added_tokens_as_vllm_does() -> None:
    """With `spaces_between_special_tokens` given; without, as the installed transformers does it."""
    source = Hyphenated(TOKENS)
    source.add_tokens(["<x>", "<y>"])
    tokenizer = from_object(source)
    x, y = sorted(tokenizer.added_ids - tokenizer.special_ids)
    ids = [2, x, y, 3, 4, 1]
    assert tokenizer.decode(ids, skip_special_tokens=False) == source.decode(ids)
    for skips, spaces, text in [
        (False, True, "a <x> <y> bc </s>"),
        (False, False, "a<x><y>bc</s>"),
        (True, False, "a<x><y>bc"),
    ]:
        assert tokenizer.decode(ids, skip_special_tokens=skips, spaces_between_special_tokens=spaces) == text
    stream = tokenizer.stream(spaces_between_special_tokens=False)
    assert [*map(stream.step, [2, x, y, 2]), stream.finish()] == ["a", "<x>", "<y>", "a", ""]


def test_opaque_tokenizers_heed_clean_up() -> None:
    """As the object does: by its attribute, or as told."""
    tokenizer = from_object(Hyphenated(TOKENS, clean_up_tokenization_spaces=True))
    assert tokenizer.decode([2, 9]) == "a."
    assert tokenizer.decode([2, 9], clean_up_tokenization_spaces=False) == "a ."


def test_opaque_tokenizers_know_bytes_as_well_as_they_can() -> None:
    """A token alone, and the byte of a byte token only where the decode knows of bytes too."""
    tokenizer = from_object(Hyphenated(TOKENS))
    assert [tokenizer.token_bytes(token_id) for token_id in (2, 5, 6, 1, 11)] == [b"a", "é".encode(), b"", b"</s>", b"<0xC3>"]
    assert tokenizer.token_text(5) == "é"
    assert tokenizer.token_bytes(2) == b"a"
    with pytest.raises(detok.UnknownTokenId):
        tokenizer.token_bytes(99)

    class Bytes(Hyphenated):
        """Knows of byte tokens."""

        def convert_tokens_to_string(self, tokens: list[str]) -> str:
            """One byte token is all that is known here."""
            return super().convert_tokens_to_string(tokens).replace("<0xC3>", "\ufffd")

    assert from_object(Bytes(TOKENS)).token_bytes(11) == b"\xc3"


def test_opaque_tokenizers_are_told_apart_by_what_they_decode_to() -> None:
    """A snapshot goes on with an equal tokenizer, and is refused by another, though its tokens are the same."""
    tokenizer, twin = from_object(Hyphenated(TOKENS)), from_object(Hyphenated(TOKENS))
    other = from_object(Hyphenated(TOKENS, clean_up_tokenization_spaces=True))
    assert tokenizer.fingerprint == twin.fingerprint != other.fingerprint
    stream = tokenizer.stream([2])
    stream.step(10)
    snapshot = json.loads(json.dumps(stream.snapshot()))
    assert twin.restore(snapshot).step(2) == stream.step(2) == " \ufffd a"
    with pytest.raises(detok.SnapshotError):
        other.restore(snapshot)


def test_a_decode_that_raises_is_held_in_a_stream() -> None:
    """No list of ids makes a stream raise; `decode` raises what the tokenizer raises."""
    tokenizer = from_object(Failing(["<unk>", "</s>", "a", "b"]))
    stream = tokenizer.stream()
    assert [*map(stream.step, [2, 3, 2]), stream.finish()] == ["a", "-b", "", ""]
    with pytest.raises(ValueError, match="b"):
        tokenizer.decode([2, 3, 2])
    assert check(tokenizer, ids=[3, 2]).library_failures == 1


def test_a_decode_that_mostly_raises_is_believed_to_be_no_join() -> None:
    """Too little was compared; and a token that no UTF-8 can spell joins nothing."""

    class Broken(Made):
        """Raises at everything but one token."""

        def convert_tokens_to_string(self, tokens: list[str]) -> str:
            """Fail."""
            if tokens != ["a"]:
                raise ValueError(tokens)
            return "a"

    for source in (Broken(TOKENS), Concatenated([*TOKENS, "\ud800"])):
        tokenizer = from_object(source)
        assert own_strategy(tokenizer) == "window"
        assert tokenizer.notes == ()
        assert tokenizer.decode([2]) == "a"


@pytest.mark.parametrize("source", [ByT5Tokenizer(), Hyphenated(TOKENS), Marked(MARKED)], ids=["bytes", "opaque", "marks"])
def test_tokenizers_of_python_code_are_pickled(source: Any) -> None:
    """A stream goes on in another process."""
    tokenizer = from_object(source)
    stream = tokenizer.stream()
    stream.step(10)
    twin = pickle.loads(pickle.dumps(tokenizer))
    assert twin.restore(stream.snapshot()).extend([2, 4]) == stream.extend([2, 4])


def test_slow_properties_are_asked_once() -> None:
    """A stream asks the object for nothing but to decode."""
    source = Hyphenated(TOKENS)
    tokenizer = from_object(source)
    stream = tokenizer.stream(skip_special_tokens=False)
    source.asked = 0
    stream.extend([2, 3, 4, 1, 99] * 100)
    stream.finish()
    assert (tokenizer.vocab_size, len(tokenizer.special_ids), len(tokenizer.added_ids)) == (13, 2, 2)
    assert source.asked == 0


def test_special_ids_are_those_that_the_decode_leaves_out(tmp_path: Path) -> None:
    """Wav2Vec2 calls its word delimiter special, and makes a space of it all the same."""
    path = tmp_path / "vocab.json"
    path.write_text(json.dumps({token: i for i, token in enumerate(["<pad>", "<s>", "</s>", "<unk>", "|", "E", "T", "A"])}))
    source = Wav2Vec2CTCTokenizer(str(path))  # type: ignore[no-untyped-call]  # transformers has few types
    tokenizer = from_object(source)
    assert 4 in source.all_special_ids
    assert tokenizer.special_ids == {0, 1, 2, 3}
    stream = tokenizer.stream()
    assert "".join([*map(stream.step, [5, 5, 4, 6, 0, 7]), stream.finish()]) == source.decode([5, 5, 4, 6, 0, 7], True)


def test_a_tokenizer_of_nothing_but_specials_is_loaded() -> None:
    """Then it cannot be tried out what the decode leaves out, and what the object says is believed."""
    tokenizer = from_object(Made(["<unk>", "</s>"]))
    assert tokenizer.special_ids == {0, 1}
    assert tokenizer.decode([0, 1]) == ""


def test_a_class_that_does_not_tell_its_vocabulary_is_refused() -> None:
    """With its name."""

    class Silent(Made):
        """Has no list of tokens."""

        def get_vocab(self) -> dict[str, int]:
            """Told only while it is made."""
            if self.asked > 9:
                raise NotImplementedError
            return super().get_vocab()

    silent = Silent(TOKENS)
    silent.asked = 10

    with pytest.raises(detok.SourceError, match="Silent: the class does not tell its vocabulary"):
        from_object(silent)


Model = Literal["WordLevel", "BPE"]


def fast(model: Model = "WordLevel", kind: type[Any] = PreTrainedTokenizerFast, library: Any = None, **settings: Any) -> Any:
    """A fast tokenizer, by default of words."""
    if library is None:
        library = make(WORDPIECE | {"cleanup": False}, ["a", "n't", ".", "##b", "<s>"], special=["<s>"], model=model)
    return kind(tokenizer_object=library, **settings)


@pytest.mark.parametrize("cleans_up", [True, False])
def test_fast_tokenizers_become_rules(cleans_up: bool) -> None:
    """With the clean-up that the object is set to, and itself as the judge and the encoder."""
    source = fast(clean_up_tokenization_spaces=cleans_up)
    tokenizer = from_object(source)
    assert tokenizer.decode([0, 4, 3, 2, 1]) == source.decode([0, 3, 2, 1]) == ("ab.n't" if cleans_up else "ab . n't")
    assert tokenizer.encode("a") == source.encode("a")
    assert tokenizer.library.name.endswith(", PreTrainedTokenizerFast") or tokenizer.library.name.endswith("TokenizersBackend")
    certificate = check(tokenizer, lists=150)
    assert certificate.ok, certificate.differences
    assert not open_stream(pickle.loads(pickle.dumps(tokenizer)), "decodestream").exact
    with pytest.raises(detok.OptionError, match="lone surrogates"):
        tokenizer.encode("\ud800")


def test_fast_tokenizers_with_bpe_are_not_cleaned_up_unless_they_insist() -> None:
    """The rule of transformers 5."""
    insists = {"clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output": True}
    for settings, text in ((dict[str, Any](), "a ."), (insists, "a.")):
        source = fast("BPE", clean_up_tokenization_spaces=True, **settings)
        assert from_object(source).decode([0, 2]) == source.decode([0, 2]) == text


def test_fast_tokenizers_with_a_decode_of_their_own_are_tried() -> None:
    """Rules only if they say the same."""

    class Shouting(PreTrainedTokenizerFast):
        """Says the same in capitals."""

        def _decode(self, *args: Any, **settings: Any) -> str:
            return super()._decode(*args, **settings).upper()

    class Same(PreTrainedTokenizerFast):
        """Says the same."""

        def _decode(self, *args: Any, **settings: Any) -> str:
            return super()._decode(*args, **settings)

    loud, same = from_object(fast(kind=Shouting)), from_object(fast(kind=Same))
    assert loud.decode([0, 3]) == "AB"
    assert open_stream(loud, "window").extend([0, 3]) == "AB"
    assert (own_strategy(loud), own_strategy(same)) == ("window", "exact")
    assert same.decode([0, 3]) == "ab"


def test_modes_that_contradict_the_object_are_refused() -> None:
    """With the reason; and a mode that there is not."""
    assert from_object(fast(), mode="fast").stream().exact
    for source, mode, why in (
        (fast(), "slow", "runs on the tokenizers library"),
        (ByT5Tokenizer(), "fast", "ByT5Tokenizer is a Python tokenizer and has no fast form"),
        (fast(), "quick", "'auto', 'fast', 'slow'"),
    ):
        with pytest.raises(detok.OptionError, match=why):
            from_object(source, mode=mode)  # type: ignore[arg-type]  # one of them is wrong on purpose


def test_a_wrapper_of_mistral_common_is_loaded_as_what_it_wraps() -> None:
    """By the module for those."""
    mistral_common = pytest.importorskip("mistral_common")
    from transformers.tokenization_mistral_common import MistralCommonBackend

    path = Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"
    source = MistralCommonBackend(str(path))
    tokenizer = from_object(source)
    ids = source.encode("naïve 🦜")
    assert tokenizer.stream().exact
    assert tokenizer.decode(ids) == source.decode(ids, skip_special_tokens=True)


def test_a_name_is_what_the_object_calls_itself_or_what_is_given() -> None:
    """It is the source of the tokenizer."""
    assert from_object(Made(TOKENS)).source == "Made"
    assert from_object(Made(TOKENS, name_or_path="org/made")).source == "org/made"
    assert from_object(Made(TOKENS), name="mine").source == "mine"


def written(directory: Path, **config: Any) -> Path:
    """A directory with a tokenizer_config.json."""
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    return directory


@pytest.mark.parametrize("mode", ["auto", "slow"])
def test_directory_of_a_python_class_is_loaded(tmp_path: Path, mode: Mode) -> None:
    """By its name, if it is one of transformers' own."""
    tokenizer: Tokenizer = from_directory(written(tmp_path, tokenizer_class="ByT5Tokenizer"), mode=mode)
    assert (tokenizer.source, tokenizer.vocab_size) == (str(tmp_path), 384)
    assert tokenizer.decode(tokenizer.encode("Zoë")) == "Zoë"


def test_directory_in_a_mode_that_it_has_not_is_refused(tmp_path: Path) -> None:
    """As an object is."""
    with pytest.raises(detok.OptionError, match="no fast form"):
        from_directory(written(tmp_path, tokenizer_class="ByT5Tokenizer"), mode="fast")


def test_directory_with_code_is_refused_and_its_code_is_not_run(tmp_path: Path) -> None:
    """Whatever it is."""
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Mine: pass\n")
    written(tmp_path, tokenizer_class="Mine", auto_map={"AutoTokenizer": ["mine.Mine", None]})
    with pytest.raises(detok.SourceError, match="needs code of its own to be run"):
        from_directory(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    """Not there, or with nothing in it; and a mode that there is not."""
    with pytest.raises(detok.SourceError, match="no such directory"):
        from_directory(tmp_path / "nothing")
    with pytest.raises(detok.SourceError, match="transformers refuses it"):
        from_directory(tmp_path)
    with pytest.raises(detok.OptionError):
        from_directory(tmp_path, mode="quick")  # type: ignore[arg-type]  # wrong on purpose


def test_directory_without_transformers_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And how to get it."""
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(detok.MissingExtra, match=r"detok\[transformers\]"):
        from_directory(tmp_path)


def test_byte_level_fast_tokenizer_behind_a_prompt() -> None:
    """A character that straddles the border belongs to the output, as for any tokenizer.json."""
    library = make(BYTE_LEVEL, byte_level_tokens(b"a\xc3", b"\xa9"))
    assert from_object(fast(library=library)).stream([0]).extend([1]) == "é"


def test_clip_object_whose_backend_is_wrapped_is_exact(tmp_path: Path) -> None:
    """transformers puts a decode of its own on the backend of CLIPTokenizer, which no class shows."""
    transformers = pytest.importorskip("transformers", reason="transformers has the class")
    words = ["<|startoftext|>", "<|endoftext|>", "a", "b", "a</w>", "b</w>", "ab</w>", "!</w>", "\u00c3", "\u00a9</w>"]
    (tmp_path / "vocab.json").write_text(json.dumps({word: place for place, word in enumerate(words)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b</w>\n")
    tokenizer = detok.load(transformers.CLIPTokenizer(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt")))
    assert tokenizer.stream().exact
    assert tokenizer.decode([4, 5, 6]) == "a b ab"
    assert check(tokenizer, lists=200).ok
