"""The certificate is right about tokenizers that are right, and about those that are not."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, SupportsIndex

import pytest

import detok
from detok.inspection import Certificate, check
from detok.inspection.strategies import open_stream
from detok.tokenizers import Tokenizer
from detok.tokenizers.huggingface import HuggingFaceLibrary
from tests.support.handmade import FUSE, handmade, make, sequence, strip
from tests.support.vocabularies import real_tokenizer

EMBEDDED = detok.load(detok.EMBEDDED)


class LosesTheTail(detok.TextStream):
    """Has nothing to say at the end."""

    __slots__ = ()

    def finish(self) -> str:
        super().finish()
        return ""


class RepeatsACharacter(detok.TextStream):
    """Gives the last character of the text twice when something is held behind it."""

    __slots__ = ()

    def step(self, token_id: SupportsIndex) -> str:
        text = super().step(token_id)
        return text + text[-1:] if self.held else text

    def extend(self, token_ids: Iterable[SupportsIndex]) -> str:
        return "".join(map(self.step, token_ids))


class SplitsMatter(detok.TextStream):
    """Loses the last of three ids that come in one step."""

    __slots__ = ()

    def extend(self, token_ids: Iterable[SupportsIndex]) -> str:
        ids = list(token_ids)
        return super().extend(ids[:2] if len(ids) == 3 else ids)


class RaisesOnNegativeIds(detok.TextStream):
    """Takes a negative id for an error."""

    __slots__ = ()

    def step(self, token_id: SupportsIndex) -> str:
        if isinstance(token_id, int) and token_id < 0:
            raise IndexError(token_id)
        return super().step(token_id)

    def extend(self, token_ids: Iterable[SupportsIndex]) -> str:
        return "".join(map(self.step, token_ids))


class Planted(Tokenizer):
    """The embedded tokenizer with a bug."""

    def __init__(
        self, kind: type[detok.TextStream] = detok.TextStream, *, forgets: bool = False, shows_prompt: bool = False
    ) -> None:
        super().__init__(EMBEDDED.vocabulary, EMBEDDED.rules, encoder=EMBEDDED.encode, library=EMBEDDED.library)
        self._kind, self._forgets, self._shows_prompt = kind, forgets, shows_prompt

    def stream(self, prompt_ids: Iterable[SupportsIndex] = (), **options: Any) -> detok.TextStream:
        """A stream of the planted kind."""
        prompt = list(prompt_ids)
        stream = self._kind(super().stream([] if self._shows_prompt else prompt, **options)._node)
        if self._shows_prompt:
            stream.extend(prompt)
        return stream

    def restore(self, snapshot: object) -> detok.TextStream:
        """A stream of the planted kind."""
        return self.stream() if self._forgets else self._kind(super().restore(snapshot)._node)


@pytest.mark.parametrize(
    ("tokenizer", "kind", "most_ids"),
    [
        (Planted(LosesTheTail), "one-shot", 1),
        (Planted(RepeatsACharacter), "one-shot", 1),
        (Planted(SplitsMatter), None, 3),
        (Planted(RaisesOnNegativeIds), "one-shot", 1),
        (Planted(forgets=True), "snapshot", 2),
        (Planted(shows_prompt=True), "prompt", 1),
    ],
    ids=["loses the tail", "repeats a character", "splits matter", "raises", "forgets in a snapshot", "shows the prompt"],
)
def test_check_finds_a_planted_bug_and_makes_it_small(tokenizer: Planted, kind: str | None, most_ids: int) -> None:
    """Each bug is found in a few lists, in the simplest kind that shows it, and shrunk to an input that shows nothing else."""
    certificate = check(tokenizer, lists=60)
    assert not certificate.ok
    first = certificate.differences[0]
    assert kind in (first.kind, None)
    assert len(first.ids) <= most_ids
    assert sum(first.steps) == len(first.ids)
    assert first.expected != first.got
    # What is shown shows the bug again.
    assert not check(tokenizer, ids=first.ids).ok


def test_check_of_an_error_shows_it() -> None:
    """A stream that raises has the error in place of the text."""
    certificate = check(Planted(RaisesOnNegativeIds), ids=[-7])
    assert certificate.differences[0].got == "raised IndexError: -7"


def test_check_counts_more_than_it_shows() -> None:
    """Only the first few differences are made small; all are counted."""
    certificate = check(Planted(LosesTheTail), lists=100)
    assert len(certificate.differences) <= 3 < certificate.differing


def test_check_of_the_embedded_tokenizer_is_clean() -> None:
    """The tokenizer that comes with detok passes, and the certificate says what was done."""
    seen: list[int] = []
    certificate = check(EMBEDDED, lists=150, seed=5, progress=seen.append)
    assert certificate.ok, certificate.differences
    assert seen == list(range(1, 151))
    assert (certificate.lists, certificate.seed, certificate.library_failures) == (150, 5, 0)
    assert certificate.comparisons > certificate.splits > 10 * certificate.lists * 0.8
    assert certificate.fingerprint == EMBEDDED.fingerprint
    assert "TokenizersBackend, over tokenizers " in certificate.library


def test_check_is_the_same_for_a_seed() -> None:
    """A seed decides everything but the time; another seed is another check."""
    first, again, other = (without_time(check(Planted(LosesTheTail), lists=30, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_check_of_given_ids_tries_all_splits() -> None:
    """Three ids have four splits: in each they are streamed, put behind prompts, and taken through snapshots."""
    certificate = check(EMBEDDED, ids=[39, 318, 737])
    assert certificate.ok
    assert (certificate.lists, certificate.splits, certificate.comparisons) == (1, 32, 34)


def test_check_of_many_given_ids_tries_two_parts() -> None:
    """A long list has too many splits: it is taken whole, id by id, and in any two parts."""
    ids = EMBEDDED.encode("a" * 5 + " b" * 5 + " c" * 5)
    assert len(ids) > 8
    assert check(EMBEDDED, ids=ids).comparisons == 2 * (1 + 4 * (len(ids) + 1))


def test_check_does_not_compare_where_the_library_fails() -> None:
    """A list on which the library panics is counted, and is no difference."""
    tokenizer = detok.load(make(sequence(FUSE, strip(0, 3)), (" ", "a")))
    certificate = check(tokenizer, ids=[0])
    assert (certificate.library_failures, certificate.comparisons) == (1, 0)
    assert certificate.ok


def test_check_with_clean_up_from_the_configuration_is_clean() -> None:
    """Where the configuration turns clean-up on, the judge cleans up too."""
    tokens = ("a", " .", " n't", " ", "'", "s")
    library = make(FUSE, tokens)
    base, judge = detok.load(library), HuggingFaceLibrary(library, cleans_up=True)
    tokenizer = Tokenizer(base.vocabulary, base.rules, encoder=base.encode, library=judge, cleans_up=True)
    certificate = check(tokenizer, lists=100)
    assert certificate.ok, certificate.differences
    assert check(tokenizer, ids=[0, 1]).ok


def test_certificate_is_plain_data() -> None:
    """It goes through JSON, differences and all."""
    certificate = check(Planted(LosesTheTail), lists=30)
    found = json.loads(json.dumps(certificate.as_dict()))
    assert found["ok"] is False
    assert found["differences"][0]["expected"] == certificate.differences[0].expected


@pytest.mark.parametrize("name", ["Mistral", "CTC, Metaspace", "BPEDecoder", "Fuse, WordPiece", "ByteFallback before others"])
def test_check_of_handmade_tokenizers_is_clean(name: str) -> None:
    """Other decoders pass too."""
    certificate = check(handmade(name)[1], lists=100)
    assert certificate.ok, certificate.differences


@pytest.mark.parametrize("name", ["mistral-v1", "minilm", "pix2tex"])
def test_check_of_real_vocabularies_is_clean(name: str) -> None:
    """So do real ones."""
    certificate = check(real_tokenizer(name), lists=100)
    assert certificate.ok, certificate.differences


def without_time(certificate: Certificate) -> Certificate:
    """All of a certificate that a seed decides."""
    return replace(certificate, seconds=0.0)


def test_check_of_a_strategy_counts_how_often_it_is_wrong() -> None:
    """Streams by a window are compared with the library, `decode` is not; what differs is made small."""
    tokenizer = handmade("Mistral")[1]
    certificate = check(tokenizer, lists=100, strategy="window")
    assert certificate.strategy == "window"
    assert not certificate.ok
    assert certificate.splits == certificate.comparisons
    assert 0 < certificate.differing_lists <= min(100, certificate.differing)
    first = certificate.differences[0]
    assert first.kind == "stream"
    assert open_stream(tokenizer, "window").extend(first.ids) != first.expected
    assert not check(tokenizer, ids=first.ids, strategy="window").ok
    exact = check(tokenizer, lists=100, strategy="exact")
    assert (exact.ok, exact.strategy, exact.differing_lists) == (True, "exact", 0)


@pytest.mark.parametrize("strategy", ["window", "window+printable", "decodestream"])
def test_check_of_a_strategy_takes_snapshots_and_prompts_too(strategy: Any) -> None:
    """Each kind of stream is compared."""
    certificate = check(EMBEDDED, lists=30, strategy=strategy)
    assert certificate.comparisons > 200
    assert certificate.differing < certificate.comparisons / 10


def test_check_of_a_strategy_that_panics_shows_it() -> None:
    """The library's stream panics where its decode does on a shorter list."""
    tokenizer = detok.load(make(sequence(FUSE, strip(0, 3)), ("a", " ", "aaa")))
    certificate = check(tokenizer, ids=[2, 0], strategy="decodestream")
    assert "raised PanicException" in {difference.got for difference in certificate.differences}


def test_check_of_a_strategy_that_there_is_not_is_refused() -> None:
    """It is an error, not a difference."""
    with pytest.raises(detok.OptionError):
        check(EMBEDDED, lists=1, strategy="quick")  # type: ignore[arg-type]  # wrong on purpose
