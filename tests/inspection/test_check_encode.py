"""The certificate of an encoder: it finds what differs, makes it small, and says what was tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import tokenizers

import detok
from detok.inspection import check_encode
from detok.tokenizers.reading import is_panic
from tests.support.vocabularies import real_tokenizer

FILE = detok.EMBEDDED / "tokenizer.json"


class PanicException(BaseException):
    """As Rust's arrives."""


class Broken:
    """An encoder with a fault."""

    def __init__(self, fault: Callable[[str], list[int] | None]) -> None:
        self._library = tokenizers.Tokenizer.from_file(str(FILE))
        self._fault = fault

    def __call__(self, text: str, *, add_special_tokens: bool) -> list[int]:
        found = self._fault(text)
        return self._library.encode(text, add_special_tokens=add_special_tokens).ids if found is None else found


def broken(fault: Callable[[str], list[int] | None]) -> detok.Tokenizer:
    """The embedded tokenizer with a fault in its encoder."""
    tokenizer = detok.load(tokenizers.Tokenizer.from_file(str(FILE)))
    tokenizer._encoder = Broken(fault)
    return tokenizer


@pytest.mark.parametrize("name", ["mistral-v1", "minilm"])
def test_real_encoder_is_certified(name: str) -> None:
    """The fast one where it was chosen, the library's where not; each text with special tokens and without."""
    certificate = check_encode(real_tokenizer(name), texts=150)
    assert certificate.ok, certificate.differences
    assert (certificate.texts, certificate.comparisons, certificate.library_failures) == (150, 300, 0)
    assert certificate.library.endswith(f"over tokenizers {tokenizers.__version__}")
    assert certificate.encoder.split()[0] in ("fastokens", "tokenizers")
    assert certificate.as_dict()["ok"] is True


def test_difference_is_found_and_made_small() -> None:
    """An encoder that stumbles over a tab: the smallest text is one tab."""
    certificate = check_encode(broken(lambda text: [0] if "\t" in text else None), texts=100)
    assert not certificate.ok
    assert certificate.differing > 2
    assert {difference.text for difference in certificate.differences} == {"\t"}
    assert {difference.add_special_tokens for difference in certificate.differences} == {True, False}
    first = certificate.differences[0]
    assert (first.got, first.error) == ((0,), "")
    assert first.expected == tuple(tokenizers.Tokenizer.from_file(str(FILE)).encode("\t").ids)


def test_encoder_that_raises_differs() -> None:
    """With an error that is one, or with a panic; the error is shown."""

    def raises(text: str) -> list[int] | None:
        if "\t" in text:
            raise ValueError("no tabs")
        if "\n" in text:
            raise PanicException
        return None

    certificate = check_encode(broken(raises), texts=100)
    errors = {difference.error for difference in certificate.differences}
    assert errors & {"raised ValueError: no tabs", "raised PanicException"}
    assert is_panic(PanicException())
    with pytest.raises(KeyboardInterrupt):
        check_encode(broken(_interrupts), texts=1)


def _interrupts(text: str) -> list[int] | None:
    raise KeyboardInterrupt


def test_batch_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that is encoded rightly alone, and wrongly in company."""
    tokenizer = detok.load(tokenizers.Tokenizer.from_file(str(FILE)))

    def batch(self: detok.Tokenizer, texts: Sequence[str], add_special_tokens: bool = True) -> list[list[int]]:
        return [self.encode(text, add_special_tokens) + [7] * ("x" in text) for text in texts]

    monkeypatch.setattr(detok.Tokenizer, "encode_batch", batch)
    certificate = check_encode(tokenizer, texts=0, real=["a", "an x"])
    assert [difference.text for difference in certificate.differences] == ["x", "x"]


def test_texts_that_the_library_refuses_are_not_compared() -> None:
    """There is nothing to equal."""
    certificate = check_encode(broken(lambda text: None), texts=0, real=["a", "\ud800"])
    assert (certificate.comparisons, certificate.library_failures, certificate.real_texts) == (2, 2, 2)


def test_same_seed_is_the_same_certificate() -> None:
    """Another one tries other texts."""
    tokenizer = detok.load(FILE)
    found = [check_encode(tokenizer, texts=20, seed=seed).characters for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]


def test_progress_is_told() -> None:
    """After every hostile text."""
    told: list[int] = []
    check_encode(detok.load(FILE), texts=3, progress=told.append)
    assert told == [1, 2, 3]


def test_tokenizer_that_its_own_library_encodes_has_nothing_to_compare(tmp_path: Path) -> None:
    """Said at once."""
    path = tmp_path / "some.tiktoken"
    path.write_text("YQ== 0\n")
    with pytest.raises(detok.OptionError, match="there is nothing to compare"):
        check_encode(detok.load(path))
