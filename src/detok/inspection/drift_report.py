"""Drift over stored conversations: how many would be encoded again to other ids, what that costs, and the worst of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from heapq import nlargest
from typing import Any

from ..prompts.drift import DEFAULT_BLOCK_SIZE, Drift, check_block_size, drift_of
from ..tokenizers import Tokenizer

__all__ = ["DriftReport", "StoredConversation", "drift_report"]

COMMON = 10
"""So many of the texts that drift most often are named."""


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """The ids of one conversation, as they were sampled, and what to call it."""

    name: str
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """What encoding all conversations again would change."""

    source: str
    block_size: int
    conversations: int
    drifting: int
    """So many of them are encoded to other ids."""

    tokens: int
    places: int
    lost_tokens: int
    """So many tokens in whole blocks of a prefix cache are lost, in all conversations together."""

    common: tuple[tuple[str, int], ...]
    """Texts at which ids differ most often, and how often; of the places that were described."""

    worst: tuple[tuple[str, Drift], ...]
    """The conversations that lose most, by name."""

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        data = asdict(self)
        data["common"] = [{"text": text, "count": count} for text, count in self.common]
        data["worst"] = [{"name": name, **drift.as_dict()} for name, drift in self.worst]
        return data


def drift_report(
    tokenizer: Tokenizer,
    conversations: Iterable[StoredConversation],
    *,
    block_size: int = DEFAULT_BLOCK_SIZE,
    worst: int = 3,
) -> DriftReport:
    """
    Encode the text of each conversation again.

    Args:
        tokenizer: Decodes and encodes.
        conversations: Read one at a time; only the worst are kept.
        block_size: Tokens in a block of the prefix cache.
        worst: So many are described.

    Raises:
        OptionError: There is no such block size.
    """
    check_block_size(block_size)
    count = drifting = tokens = places = lost = 0
    common: Counter[str] = Counter()
    kept: list[tuple[str, Drift]] = []
    for conversation in conversations:
        drift = drift_of(tokenizer, conversation.ids, block_size=block_size, encode=tokenizer.encode_rendered)
        count += 1
        tokens += drift.tokens
        if drift:
            drifting += 1
            places += drift.count
            lost += drift.lost_tokens
            common.update(place.text for place in drift.places)
            kept = nlargest(worst, [*kept, (conversation.name, drift)], key=lambda each: (each[1].lost_tokens, each[1].count))
    return DriftReport(
        source=tokenizer.source,
        block_size=block_size,
        conversations=count,
        drifting=drifting,
        tokens=tokens,
        places=places,
        lost_tokens=lost,
        common=tuple(common.most_common(COMMON)),
        worst=tuple(kept),
    )
