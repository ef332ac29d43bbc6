"""What an engine is to a frontend: something that takes requests and gives batches of new ids."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..core.request.logprobs import Logprob
from ..core.request.request import FinishReason

__all__ = ["Engine", "EngineOutput", "EngineRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """A request as an engine sees it: ids, and how to sample."""

    request_id: str
    prompt_ids: Sequence[int]
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """`max_tokens`, `temperature`, `seed` and so on, by vLLM's names. What an engine does not know it ignores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOutput:
    """What one step of an engine gave one request."""

    request_id: str
    token_ids: Sequence[int] = ()
    logprobs: Sequence[Logprob | float | None] | None = None
    """One for each id, or none at all."""
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    error: str | None = None
    """With ``finish_reason="error"``: what went wrong, in the engine's words."""


class Engine(Protocol):
    """An engine. Its outputs come in batches, one a step, for all requests together."""

    async def submit(self, request: EngineRequest) -> None:
        """Begin a request; its outputs come from `outputs`. Raises what says that it cannot be."""
        ...

    def outputs(self) -> AsyncIterator[list[EngineOutput]]:
        """Give batches until the engine is closed. One consumer at a time."""
        ...

    async def abort(self, request_ids: Sequence[str]) -> None:
        """Stop these requests; for ids that it does not know, or that have ended, it does nothing."""
        ...

    async def close(self) -> None:
        """End all requests and let go of connections. `outputs` ends."""
        ...
