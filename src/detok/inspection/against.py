"""
Two tokenizers on the same hostile ids and texts: where they disagree, and by which of their parts.

That answers "two services disagree": what one decodes to a text, or makes of a text or a chat, and the other does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from time import perf_counter
from typing import Any, Literal

from ..tokenizers import Tokenizer
from .causes import Cause, facts_that_differ, why_decoded_differently, why_encoded_differently
from .hostile import hostile_ids
from .hostile_texts import HostileTexts
from .judge import outcome_of
from .shrink import shrink_sequence

__all__ = ["Comparison", "Disagreement", "compare"]

SHOWN = 2
"""Of each cause, so many examples are made small and shown; the others are only counted."""

CHATS: Sequence[Sequence[Mapping[str, str]]] = (
    ({"role": "user", "content": "Hello"},),
    ({"role": "system", "content": " Be brief.\n"}, {"role": "user", "content": "a\n\nb "}),
    ({"role": "user", "content": "1"}, {"role": "assistant", "content": " 2 "}, {"role": "user", "content": "3"}),
)
"""Conversations that both render."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One thing about which two tokenizers disagree, made as small as can be."""

    cause: Cause
    kind: Literal["fact", "decode", "encode", "chat"]
    given: str
    """What was given to both, as Python writes it: ids, a text, a chat; or which fact it is."""

    one: str
    other: str
    options: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What was compared, and what came of it."""

    one: str
    other: str
    fingerprints: tuple[str, str]
    seed: int
    lists: int
    texts: int
    comparisons: int
    causes: Mapping[str, int]
    """How many comparisons came out different, by cause."""

    disagreements: tuple[Disagreement, ...]
    """Some of each cause."""

    not_compared: tuple[str, ...] = ()
    """What could not be compared, and why."""

    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the two agreed in everything."""
        return not self.causes

    def as_dict(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return {"ok": self.ok, **asdict(self)}


def compare(
    one: Tokenizer,
    other: Tokenizer,
    *,
    lists: int = 1000,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """
    Compare two tokenizers.

    Args:
        one, other: Any two; they need not be of one library.
        lists: How many hostile id lists and how many hostile texts to try, half of them made for either.
        seed: Decides all of them.
        progress: Called with the number of lists and texts that are done, up to twice ``lists``.
    """
    began = perf_counter()
    run = _Run(one, other)
    run.facts()
    for number in range(lists):
        rng = Random(f"{seed}/{number}")
        run.decode(hostile_ids(rng, (one, other)[number % 2], rng.randint(1, 24)))
        if progress is not None:
            progress(number + 1)
    texts = run.encode_texts(seed, lists, progress)
    run.chats()
    return Comparison(
        one=one.source,
        other=other.source,
        fingerprints=(one.fingerprint, other.fingerprint),
        seed=seed,
        lists=lists,
        texts=texts,
        comparisons=run.comparisons,
        causes=dict(run.causes.most_common()),
        disagreements=tuple(run.found),
        not_compared=tuple(run.not_compared),
        seconds=perf_counter() - began,
    )


class _Run:
    """Counts, and the disagreements so far."""

    def __init__(self, one: Tokenizer, other: Tokenizer) -> None:
        self.comparisons = 0
        self.causes: Counter[str] = Counter()
        self.found: list[Disagreement] = []
        self.not_compared: list[str] = []
        self._both = one, other

    def facts(self) -> None:
        """Compare what stands in the files: vocabularies, flags, ends, templates. What only one says is not compared."""
        for cause, name, one, other in facts_that_differ(*self._both):
            self.comparisons += 1
            self._note(Disagreement(cause, "fact", name, one, other))

    def decode(self, ids: Sequence[int]) -> None:
        """Decode a list by both, with special tokens and without."""
        for skips in (True, False):
            self.comparisons += 1

            def differs(some: Sequence[int], skips: bool = skips) -> bool:
                one, other = (_decoded(tokenizer, some, skips) for tokenizer in self._both)
                return one != other

            if not differs(ids):
                continue
            small = list(shrink_sequence(ids, differs))
            one, other = (_decoded(tokenizer, small, skips) for tokenizer in self._both)
            cause = why_decoded_differently(*self._both, small, skip_special_tokens=skips)
            options = f"skip_special_tokens={skips}"
            self._note(Disagreement(cause, "decode", str(small), repr(one), repr(other), options))

    def encode_texts(self, seed: int, count: int, progress: Callable[[int], None] | None) -> int:
        """Encode hostile texts by both; return how many there were."""
        refused = [(one.source, said) for one in self._both if isinstance(said := _encoded(one, "a", False), str)]
        if refused:
            self.not_compared += [f"encode, since {source} {said.removeprefix('raised ')}" for source, said in refused]
            return 0
        makers = [HostileTexts(tokenizer) for tokenizer in self._both]
        for number in range(count):
            rng = Random(f"{seed}/{number}")
            self._encode(makers[number % 2].text(rng))
            if progress is not None:
                progress(count + number + 1)
        return count

    def _encode(self, text: str) -> None:
        for adds in (False, True):
            self.comparisons += 1

            def differs(characters: Sequence[str], adds: bool = adds) -> bool:
                one, other = (_encoded(tokenizer, "".join(characters), adds) for tokenizer in self._both)
                return one != other

            if not differs(text):
                continue
            small = "".join(shrink_sequence(text, differs))
            one, other = (_encoded(tokenizer, small, adds) for tokenizer in self._both)
            cause = why_encoded_differently(*self._both, small)
            self._note(Disagreement(cause, "encode", repr(small), str(one), str(other), f"add_special_tokens={adds}"))
            if not adds:
                return  # with special tokens it differs by the same

    def chats(self) -> None:
        """Render conversations by both, if both have a template."""
        without = [one.source for one in self._both if not one.prompt_facts.chat_templates]
        if without:
            self.not_compared.append(f"chats, since {' and '.join(without)} has no template")
            return
        for chat in CHATS:
            self.comparisons += 1
            one, other = (outcome_of(lambda made=made, chat=chat: made.render_chat(chat)) for made in self._both)  # type: ignore[misc]
            if one != other:
                self._note(Disagreement("template", "chat", str(list(chat)), repr(one), repr(other)))

    def _note(self, found: Disagreement) -> None:
        self.causes[found.cause] += 1
        same = [known for known in self.found if known.cause == found.cause and known.kind == found.kind]
        if len(same) < SHOWN and found not in same:
            self.found.append(found)


def _decoded(tokenizer: Tokenizer, ids: Sequence[int], skips: bool) -> str:
    return outcome_of(lambda: tokenizer.decode(ids, skip_special_tokens=skips))


def _encoded(tokenizer: Tokenizer, text: str, adds: bool) -> list[int] | str:
    """The ids; of a text that is refused, why."""
    return outcome_of(lambda: tokenizer.encode(text, add_special_tokens=adds))
