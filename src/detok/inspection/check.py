"""The certificate: streams of hostile id lists, in many splits, against the tokenizer's own library."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from random import Random
from time import perf_counter
from typing import SupportsIndex

from ..ids import as_ids
from ..tokenizers import Tokenizer
from ..tokenizers.tokenizer import Library
from .certificate import Certificate, Difference, Kind
from .hostile import hostile_ids
from .judge import decoded, outcome_of
from .judges import judge_of
from .shared_ids import shared_ids
from .shrink import Steps, shrink
from .strategies import Strategy, by_strategy, own_strategy

__all__ = ["check"]

MAX_SHRUNK = 3
"""So many differences are made small and shown; the others are only counted."""

MAX_IN_ALL_SPLITS = 8
"""A list that was given is tried in all splits up to this length, which are 128; a longer one in all that have two parts."""


@dataclass(frozen=True, slots=True)
class _Case:
    kind: Kind
    skip_special_tokens: bool
    steps: Steps


def check(
    tokenizer: Tokenizer,
    *,
    lists: int = 1000,
    seed: int = 0,
    ids: Iterable[SupportsIndex] | None = None,
    strategy: Strategy | None = None,
    progress: Callable[[int], None] | None = None,
) -> Certificate:
    """
    Compare a tokenizer with its own library, and look for two tokens that have one id.

    Args:
        tokenizer: Whose `decode`, `stream`, `restore` and prompts are compared.
        lists: How many hostile lists to make.
        seed: Decides all lists and all splits. List k depends on the seed and k alone.
        ids: This one list instead, in all splits if it is short.
        strategy: How to stream, instead of the tokenizer's own way; then only streams are compared, not `decode`.
        progress: Called with the number of lists that are done.

    Raises:
        OptionError: The tokenizer has no such strategy.
    """
    began = perf_counter()
    judge = judge_of(tokenizer)
    run = _Run(tokenizer, strategy, judge.library)
    if ids is not None:
        lists = 1
        run.compare(_thorough(as_ids(ids)))
    else:
        for number in range(lists):
            rng = Random(f"{seed}/{number}")
            run.compare(_cases(rng, hostile_ids(rng, tokenizer, _length(rng))))
            if progress is not None:
                progress(number + 1)
    return Certificate(
        source=tokenizer.source,
        tokenizer=tokenizer.description,
        fingerprint=tokenizer.fingerprint,
        library=judge.library.name,
        strategy=strategy or own_strategy(tokenizer),
        seed=seed,
        lists=lists,
        splits=run.splits,
        comparisons=run.comparisons,
        library_failures=run.library_failures,
        differing=run.differing,
        differing_lists=run.differing_lists,
        differences=tuple(run.differences),
        shared_ids=shared_ids(tokenizer),
        unjudged=judge.unjudged,
        of_versions=judge.of_versions,
        notes=tokenizer.suspicions,
        seconds=perf_counter() - began,
    )


class _Run:
    """Counts, and the differences so far."""

    def __init__(self, tokenizer: Tokenizer, strategy: Strategy | None, library: Library) -> None:
        self.splits = self.comparisons = self.library_failures = self.differing = self.differing_lists = 0
        self.differences: list[Difference] = []
        self._tokenizer = tokenizer
        self._strategy = strategy
        self._library = library
        self._decoder = by_strategy(tokenizer, strategy)

    def compare(self, cases: Iterable[_Case]) -> None:
        """Compare all cases of one list."""
        failed = False
        before = self.differing
        for case in cases:
            if case.kind == "one-shot" and self._strategy is not None:
                continue
            expected = _expected(self._library, case)
            if expected is None:
                failed = failed or case.kind != "prompt"
                continue
            self.comparisons += 1
            self.splits += case.kind != "one-shot"
            if self._outcome(case) != expected:
                self.differing += 1
                self._note(case)
        self.library_failures += failed
        self.differing_lists += self.differing > before

    def _note(self, case: _Case) -> None:
        if len(self.differences) == MAX_SHRUNK:
            return

        def fails(steps: Steps) -> bool:
            other = _Case(case.kind, case.skip_special_tokens, steps)
            expected = _expected(self._library, other)
            return expected is not None and self._outcome(other) != expected

        steps = shrink(case.steps, fails, keep_first=case.kind == "prompt")
        case = _Case(case.kind, case.skip_special_tokens, steps)
        difference = Difference(
            ids=_flat(steps),
            steps=tuple(map(len, steps)),
            skip_special_tokens=case.skip_special_tokens,
            kind=case.kind,
            expected=str(_expected(self._library, case)),
            got=self._outcome(case),
        )
        if difference not in self.differences:
            self.differences.append(difference)

    def _outcome(self, case: _Case) -> str:
        """What the tokenizer says. No list of integers may make it raise; if one does, the error stands for the text."""
        return outcome_of(lambda: self._text(case))

    def _text(self, case: _Case) -> str:
        decoder, skips = self._decoder, case.skip_special_tokens
        if case.kind == "one-shot":
            return decoder.decode(_flat(case.steps), skip_special_tokens=skips)
        prompt, steps = (case.steps[0], case.steps[1:]) if case.kind == "prompt" else ((), case.steps)
        stream = decoder.stream(prompt, skip_special_tokens=skips)
        text = ""
        for ids in steps:
            text += stream.step(ids[0]) if len(ids) == 1 else stream.extend(ids)
            if case.kind == "snapshot":
                stream = decoder.restore(json.loads(json.dumps(stream.snapshot())))
        return text + stream.finish()


def _expected(library: Library, case: _Case) -> str | None:
    """What the library says; None if it fails, or if the text of the prompt is no beginning of the whole."""
    skips = case.skip_special_tokens
    whole = decoded(library, _flat(case.steps), skip_special_tokens=skips)
    if case.kind != "prompt" or whole is None:
        return whole
    before = decoded(library, case.steps[0], skip_special_tokens=skips)
    return None if before is None or not whole.startswith(before) else whole[len(before) :]


def _length(rng: Random) -> int:
    """Mostly short, as what goes wrong goes wrong early; sometimes empty, sometimes long."""
    return rng.choices((0, rng.randint(1, 8), rng.randint(1, 24), rng.randint(25, 200)), (1, 50, 45, 4))[0]


def _cases(rng: Random, ids: Sequence[int]) -> Iterator[_Case]:
    for skips in (True, False):
        yield _Case("one-shot", skips, (tuple(ids),))
        yield _Case("stream", skips, (tuple(ids),))
        yield _Case("stream", skips, _split(ids, range(1, len(ids))))
        yield _Case("stream", skips, _split(ids, sorted(rng.choices(range(len(ids) + 1), k=rng.randint(1, 5)))))
        yield _Case("prompt", skips, _split(ids, sorted(rng.choices(range(len(ids) + 1), k=rng.randint(1, 3)))))
        yield _Case("snapshot", skips, _split(ids, [rng.randint(0, len(ids))]))


def _thorough(ids: Sequence[int]) -> Iterator[_Case]:
    """The splits of one list: all of them if it is short."""
    if len(ids) <= MAX_IN_ALL_SPLITS:
        choices = product((False, True), repeat=max(0, len(ids) - 1))
        splits = [_split(ids, [place for place, cut in enumerate(cuts, 1) if cut]) for cuts in choices]
    else:
        splits = [_split(ids, cuts) for cuts in ([], range(1, len(ids)), *([place] for place in range(1, len(ids))))]
    for skips in (True, False):
        yield _Case("one-shot", skips, (tuple(ids),))
        for split in splits:
            yield _Case("stream", skips, split)
            yield _Case("prompt", skips, split)
            yield _Case("prompt", skips, ((), *split))
            yield _Case("snapshot", skips, split)


def _split(ids: Sequence[int], cuts: Iterable[int]) -> Steps:
    """The steps between cuts, which may be equal: such a step is empty."""
    return tuple(tuple(ids[begin:end]) for begin, end in pairwise([0, *cuts, len(ids)]))


def _flat(steps: Steps) -> tuple[int, ...]:
    return tuple(token_id for ids in steps for token_id in ids)
