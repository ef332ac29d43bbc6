"""What a check found, as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from .shared_ids import SharedId

__all__ = ["Certificate", "Difference", "Kind"]

Kind = Literal["one-shot", "stream", "prompt", "snapshot"]
"""What is compared with the library: `decode`; a stream; a stream behind a prompt, which is the first step; a stream that is
taken to JSON and back after every step."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The smallest input found on which a tokenizer and its library differ."""

    ids: tuple[int, ...]
    steps: tuple[int, ...]
    """How many ids each step takes; for the kind "prompt" the first are the prompt's."""

    skip_special_tokens: bool
    kind: Kind
    expected: str
    got: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What was compared, and what came of it."""

    source: str
    tokenizer: str
    """Its description: the rules, and the size of the vocabulary."""

    fingerprint: str
    library: str
    """The judge, with its version."""

    strategy: str = "exact"
    """That of the streams. None but "exact" promises anything."""

    seed: int
    lists: int
    splits: int
    """How many times a list was cut into steps and streamed."""

    comparisons: int
    library_failures: int
    """So many lists made the library fail, and were not compared."""

    differing: int
    """So many comparisons came out different."""

    differing_lists: int = 0
    """On so many lists at least one of them did."""

    differences: tuple[Difference, ...]
    """The first few that are not alike, made as small as can be."""

    shared_ids: tuple[SharedId, ...]
    unjudged: str = ""
    """What the judge could not judge, and why."""

    of_versions: str = ""
    """Why differences are differences of version, and no faults; "" if they are faults."""

    notes: tuple[str, ...] = ()
    """What is suspicious about the tokenizer itself. It is equal to its library all the same."""

    seconds: float

    @property
    def ok(self) -> bool:
        """Whether there is nothing to complain of."""
        return (not self.differing or bool(self.of_versions)) and not self.shared_ids

    def as_dict(self) -> dict[str, Any]:
        """The certificate as plain data."""
        return {"ok": self.ok, **asdict(self)}
