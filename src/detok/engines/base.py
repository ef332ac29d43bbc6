"""
What an engine is to a frontend: something that takes requests and gives batches of new ids.

Where an error goes depends on when it comes. Until an engine has taken a request, it is raised where the request was submitted,
so that a server can still answer with a status; afterwards it is the request's last output, beside the ids that came before it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..core.request.ends import FinishReason
from ..core.request.logprobs import Logprob

__all__ = ["Engine", "EngineOutput", "EngineRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """A request as an engine sees it: ids, and how to sample."""

    request_id: str
    prompt_ids: Sequence[int]
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """
    `max_tokens`, `temperature`, `seed` and so on, by vLLM's names; None is as if it were not there.

    What an engine does not know it ignores, and so it does with what is detok's own matter, `stop` among them. There is one
    choice to a request: an `n` can only be 1.
    """


# Not frozen: one is made for each row of each step, and a frozen one takes three times as long to make.
@dataclass(slots=True, kw_only=True)
class EngineOutput:
    """What one step of an engine gave one request. Nobody changes it."""

    request_id: str
    token_ids: Sequence[int] = ()
    logprobs: Sequence[Logprob | float | None] | None = None
    """One for each id, or none at all."""
    prompt_logprobs: Sequence[Logprob] | None = None
    """Those of the prompt from its second id on, once, if they were asked for. Only vllm-core gives them."""
    cached_tokens: int | None = None
    """Tokens of the prompt that the engine had in its cache, if it says so: once at least, in the last output at the latest."""
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    error: str | None = None
    """With ``finish_reason="error"``: what went wrong, in the engine's words."""
    error_status: int | None = None
    """
    With it the HTTP status, if the engine said one: 400 to 499 is the request's fault.

    vLLM (a prompt that is too long, an id that is out of vocabulary) and SGLang refuse streamed requests like this, after they
    took them. So a server that wants to answer with that status waits for the first output.
    """


class Engine(Protocol):
    """An engine. Its outputs come in batches, one a step, for all requests together."""

    async def submit(self, request: EngineRequest) -> None:
        """
        Begin a request; its outputs come from `outputs`.

        It returns once the engine has taken the request, which is when it begins to answer; others can be submitted meanwhile.
        Aborted before that, it returns and no output comes. If the caller is cancelled, so is the request.

        Raises:
            UsageError: The request cannot be, and nothing was sent: its `request_id` is that of one that is running, its ids are
                none, its `n` is not 1.
            EngineError: The engine refused it, or cannot be reached, or is closed. No output comes.
        """
        ...

    def outputs(self) -> AsyncIterator[list[EngineOutput]]:
        """
        Give batches until the engine is closed. One consumer at a time.

        The last output of a request has a `finish_reason`, whatever becomes of the engine: "error" if it breaks off.
        """
        ...

    async def abort(self, request_ids: Sequence[str]) -> None:
        """
        Stop these requests; for ids that it does not know, or that have ended, it does nothing.

        When it returns, the outputs of these that nobody took are gone, and no others come: also none that says "abort", which is
        for a request that the engine stopped by itself.
        """
        ...

    async def close(self) -> None:
        """Abort all requests and let go of connections. `outputs` ends."""
        ...
