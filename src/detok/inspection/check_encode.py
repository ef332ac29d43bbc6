"""The certificate of an encoder: hostile and real texts, encoded here and by the tokenizer's own library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from random import Random
from time import perf_counter
from typing import Any

from ..errors import OptionError
from ..tokenizers import Tokenizer
from ..tokenizers.tokenizer import EncodingLibrary
from .hostile_texts import HostileTexts
from .judge import outcome_of
from .judges import judge_of
from .shrink import shrink_sequence

__all__ = ["EncodeCertificate", "EncodeDifference", "check_encode"]

MAX_SHRUNK = 3
"""So many differences are made small and shown; the others are only counted."""


@dataclass(frozen=True, slots=True)
class EncodeDifference:
    """The smallest text found that is encoded differently."""

    text: str
    add_special_tokens: bool
    expected: tuple[int, ...]
    got: tuple[int, ...]
    error: str
    """What was raised here instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeCertificate:
    """What was encoded twice, and what came of it."""

    source: str
    encoder: str
    """What encodes here, with its version."""

    reason: str
    """Why it is none that is faster."""

    library: str
    """The judge, with its version."""

    seed: int
    texts: int
    real_texts: int
    """So many texts were given, and compared whole."""

    comparisons: int
    characters: int
    library_failures: int
    """So many comparisons the library failed, so that there was none."""

    differing: int
    differences: tuple[EncodeDifference, ...]
    """The first few that are not alike, made as small as can be."""

    unjudged: str = ""
    """What the judge could not judge, and why."""

    of_versions: str = ""
    """Why differences are differences of version, and no faults; "" if they are faults."""

    seconds: float

    @property
    def ok(self) -> bool:
        """Whether all ids were equal, but for differences of version."""
        return not self.differing or bool(self.of_versions)

    def as_dict(self) -> dict[str, Any]:
        """The certificate as plain data."""
        return {"ok": self.ok, **asdict(self)}


def check_encode(
    tokenizer: Tokenizer,
    *,
    texts: int = 1000,
    real: Sequence[str] = (),
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> EncodeCertificate:
    """
    Compare `encode` and `encode_batch` of a tokenizer with the encode of its own library, with special tokens and without.

    Args:
        tokenizer: Which encoder it has is decided first.
        texts: How many hostile texts to make.
        real: Texts that are compared as they are, and of which cuttings get into the hostile ones.
        seed: Decides all texts. Text k depends on the seed, the real texts and k alone.
        progress: Called with the number of hostile texts that are done.

    Raises:
        OptionError: The tokenizer is encoded by its own library alone.
        EncodeUnsupported: It is not encoded at all.
    """
    began = perf_counter()
    judge = judge_of(tokenizer)
    library = judge.library
    if not isinstance(library, EncodingLibrary):
        accepted = f"{tokenizer.source} is encoded by {library.name} itself, and there is nothing to compare"
        raise OptionError(option="encode", value=True, accepted=accepted)
    run = _Run(tokenizer, library)
    for text in real:
        run.compare(text)
    hostile = HostileTexts(tokenizer, real)
    for number in range(texts):
        run.compare(hostile.text(Random(f"{seed}/{number}")))
        if progress is not None:
            progress(number + 1)
    return EncodeCertificate(
        source=tokenizer.source,
        encoder=tokenizer.encoder.name,
        reason=tokenizer.encoder.reason,
        library=library.name,
        seed=seed,
        texts=texts,
        real_texts=len(real),
        comparisons=run.comparisons,
        characters=run.characters,
        library_failures=run.library_failures,
        differing=run.differing,
        differences=tuple(run.differences),
        unjudged=judge.unjudged,
        of_versions=judge.of_versions,
        seconds=perf_counter() - began,
    )


class _Run:
    """Counts, and the differences so far."""

    def __init__(self, tokenizer: Tokenizer, library: EncodingLibrary) -> None:
        self.comparisons = self.characters = self.library_failures = self.differing = 0
        self.differences: list[EncodeDifference] = []
        self._tokenizer = tokenizer
        self._library = library

    def compare(self, text: str) -> None:
        """Encode one text with special tokens and without."""
        self.characters += len(text)
        for adds in (True, False):
            expected = self._expected(text, adds)
            if expected is None:
                self.library_failures += 1
                continue
            self.comparisons += 1
            if any(got != expected for got in self._outcomes(text, adds)):
                self.differing += 1
                self._note(text, adds)

    def _note(self, text: str, adds: bool) -> None:
        if len(self.differences) == MAX_SHRUNK:
            return

        def fails(characters: Sequence[str]) -> bool:
            shorter = "".join(characters)
            expected = self._expected(shorter, adds)
            return expected is not None and any(got != expected for got in self._outcomes(shorter, adds))

        text = "".join(shrink_sequence(text, fails))
        expected = self._expected(text, adds) or []
        got = next(got for got in self._outcomes(text, adds) if got != expected)
        error = got if isinstance(got, str) else ""
        ids = () if isinstance(got, str) else tuple(got)
        difference = EncodeDifference(text, adds, tuple(expected), ids, error)
        if difference not in self.differences:
            self.differences.append(difference)

    def _outcomes(self, text: str, adds: bool) -> Iterator[list[int] | str]:
        """What the tokenizer says, alone and in a batch; if it raises, the error stands for the ids."""
        yield outcome_of(lambda: self._tokenizer.encode(text, add_special_tokens=adds))
        yield outcome_of(lambda: self._tokenizer.encode_batch([text, ""], add_special_tokens=adds)[0])

    def _expected(self, text: str, adds: bool) -> list[int] | None:
        outcome = outcome_of(lambda: self._library.encode(text, add_special_tokens=adds))
        return None if isinstance(outcome, str) else outcome
