"""
vLLM's engine core, of which detok is the only front: no HTTP between the two, and one message a step for all requests.

What speaks with the core is in `vllm_core_client`; here is what an engine of detok makes of it, without a line of vLLM.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from itertools import count
from math import isnan
from typing import Any, NamedTuple, Protocol

from ..core.request.logprobs import Logprob
from ..errors import DuplicateRequest, EngineError
from .base import EngineOutput, EngineRequest
from .dialect import finish_reason
from .sampling import prompt_of, sampling_of
from .vllm_core_stats import CoreStats, MetricsRegistry

__all__ = ["Core", "Refusal", "VllmCoreEngine"]

# vLLM's FinishReason, an integer on the wire.
_REASONS = ("stop", "length", "abort", "error", "repetition")

# What vLLM's own servers write for a number that JSON has not.
_LEAST = -9999.0

logger = logging.getLogger("detok.engines")


class Refusal(ValueError):
    """vLLM does not take a request, and says why."""

    def __init__(self, message: str, *, param: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.param, self.status = message, param, status


class Core(Protocol):
    """An engine core that runs, and what validates requests for it."""

    model: str
    """What it was started with."""
    max_model_len: int
    """Tokens of prompt and output together."""

    @property
    def dead(self) -> bool:
        """Whether its process has ended, though nobody asked it to."""
        ...

    async def make(self, request_id: str, prompt: list[int], sampling: dict[str, Any]) -> Any:
        """
        Return a request as the core takes it, with all that the model's generation_config.json and vLLM's defaults add.

        Raises:
            Refusal: It cannot be.
        """
        ...

    async def add(self, request: Any) -> None:
        """Send a request."""
        ...

    async def step(self) -> Any:
        """Return the next `EngineCoreOutputs`; raise if there will be none."""
        ...

    async def abort(self, request_ids: list[str]) -> None:
        """Have the core stop requests."""
        ...

    def shutdown(self) -> None:
        """End the core's processes, which takes a moment. A `step` that somebody waits for raises."""
        ...


class VllmCoreEngine:
    """
    vLLM 0.32's engine core as an engine. It belongs to one event loop.

    A core that dies ends all requests with an error, and `died` says so: it is not started again here.

    Args:
        core: One that runs.
    """

    def __init__(self, core: Core) -> None:
        self.name = f"vllm-core ({core.model})"
        self.max_model_len = core.max_model_len
        self._core = core
        self._numbers = count()
        # The core knows a request by an id of its own, so that late outputs of one that was aborted are never those of another.
        self._inner: dict[str, str] = {}
        self._outer: dict[str, _Open] = {}
        self._failure: str | None = None
        self._closed = False
        self._stats = CoreStats()
        self._uncounted = 0

    @property
    def died(self) -> str | None:
        """Why there will be no output any more, if nobody asked for that."""
        if self._failure is None and not self._closed and self._core.dead:
            self._failure = _DIED
        return self._failure

    def watch(self, registry: MetricsRegistry, **labels: str) -> None:
        """Add the scheduler's statistics to metrics, under vLLM's names."""
        self._stats.watch(registry, **labels)

    async def submit(self, request: EngineRequest) -> None:
        """Begin a request. See `Engine.submit`."""
        if self._closed:
            raise EngineError("the engine is closed", engine=self.name)
        if self.died:
            raise EngineError(_DIED, engine=self.name, status=503)
        name = request.request_id
        if name in self._inner:
            raise DuplicateRequest(name)
        prompt, sampling = prompt_of(request), sampling_of(request)
        inner = self._inner[name] = f"{name}-{next(self._numbers)}"
        try:
            made = await self._core.make(inner, prompt, sampling)
            if self._inner.get(name) != inner:
                return  # aborted meanwhile
            self._outer[inner] = _Open(name, sampling.get("logprobs"), sampling.get("prompt_logprobs"))
            await self._core.add(made)
        except Refusal as error:
            self._forget(name, inner)
            refused = EngineError(error.message, engine=self.name, status=error.status, type="BadRequestError", param=error.param)
            raise refused from error
        except BaseException as error:
            if self._forget(name, inner):
                await self._tell([inner])
            if not isinstance(error, Exception):
                raise
            logger.exception("submitting %s to %s failed", name, self.name)
            raise EngineError("the engine did not take the request; detok's log says why", engine=self.name) from error

    async def outputs(self) -> AsyncIterator[list[EngineOutput]]:
        """Give batches, one a step. See `Engine.outputs`."""
        while not self._closed:
            try:
                step = await self._core.step()
            except Exception as error:
                if self._closed:
                    return
                logger.exception("%s has died", self.name)
                self._failure = _DIED
                names, self._inner, self._outer = [*self._inner], {}, {}
                if names:
                    yield [EngineOutput(request_id=name, finish_reason="error", error=_DIED, error_status=503) for name in names]
                raise EngineError(_DIED, engine=self.name, status=503) from error
            batch, broken = self._batch(step.outputs)
            self._count(step)
            if broken:
                await self._tell(broken)
            if batch:
                yield batch

    async def abort(self, request_ids: Sequence[str]) -> None:
        """Stop requests. See `Engine.abort`."""
        found = [inner for name in dict.fromkeys(request_ids) if (inner := self._inner.get(name)) is not None]
        sent = [inner for inner in found if inner in self._outer]
        for name in request_ids:
            self._forget(name, self._inner.get(name))
        await self._tell(sent)

    async def close(self) -> None:
        """Abort all requests and end the core. See `Engine.close`."""
        if self._closed:
            return
        await self.abort([*self._inner])
        self._closed = True
        await asyncio.to_thread(self._core.shutdown)

    def _forget(self, name: str, inner: str | None) -> bool:
        """Take out a request; say whether the core may have it."""
        if inner is None or self._inner.get(name) != inner:
            return False
        del self._inner[name]
        return self._outer.pop(inner, None) is not None

    async def _tell(self, inner: list[str]) -> None:
        if inner and not self._core.dead:
            await self._core.abort(inner)

    def _count(self, step: Any) -> None:
        try:
            self._stats.take(step)
        except Exception:
            # Statistics of a version that has others are no reason to end requests.
            if not self._uncounted:
                logger.exception("the statistics of %s cannot be read; this is said once", self.name)
            self._uncounted += 1

    def _batch(self, rows: Sequence[Any]) -> tuple[list[EngineOutput], list[str]]:
        """Return what a step gave the requests that are still open, and which of them the core has to stop."""
        outer = self._outer
        batch, broken = [], []
        for row in rows:
            one = outer.get(row.request_id)
            if one is None:
                continue
            if row.finish_reason is None and row.new_logprobs is None and row.new_prompt_logprobs_tensors is None:
                batch.append(EngineOutput(request_id=one.name, token_ids=row.new_token_ids, cached_tokens=_cached(row)))
                continue
            try:
                output = _output(one, row)
            except Exception:
                logger.exception("an output of %s for %s cannot be read", self.name, one.name)
                output = EngineOutput(request_id=one.name, finish_reason="error", error=_UNREADABLE)
                broken.append(row.request_id)
            batch.append(output)
            if output.finish_reason is not None:
                self._forget(one.name, row.request_id)
        return batch, broken


_UNREADABLE = "an output of the engine cannot be read; detok's log says why"
_DIED = "the engine has died"


class _Open(NamedTuple):
    """A request that the core has."""

    name: str
    logprobs: int | None
    prompt_logprobs: int | None
    """How many alternatives were asked for; -1 for all."""


def _output(one: _Open, row: Any) -> EngineOutput:
    """Return a row that says more than its ids."""
    word = None if row.finish_reason is None else _REASONS[row.finish_reason]
    reason, stop = finish_reason(word, row.stop_reason)
    return EngineOutput(
        request_id=one.name,
        token_ids=row.new_token_ids,
        logprobs=_logprobs(row.new_logprobs, one.logprobs),
        prompt_logprobs=_logprobs(row.new_prompt_logprobs_tensors, one.prompt_logprobs),
        cached_tokens=_cached(row),
        finish_reason=reason,
        stop_reason=stop,
        error="the engine ended the request with an error" if reason == "error" else None,
    )


def _cached(row: Any) -> int | None:
    """What the core's first row of a request says of its prompt."""
    return getattr(getattr(row, "prefill_stats", None), "num_cached_tokens", None)


def _logprobs(arrays: Sequence[Any] | None, asked: int | None) -> list[Logprob] | None:
    """
    Return the entry of each token.

    Args:
        arrays: Ids, logprobs and ranks, and what is of no use here. The first two have a row for each token, which begins with
            the token itself and goes on with the alternatives: as many as the request of the step that asked for most has.
        asked: How many alternatives this request asked for; -1 for all.
    """
    if arrays is None or asked is None:
        return None
    columns = None if asked == -1 else asked + 1
    entries = []
    for ids, numbers, rank in zip(*(part.tolist() for part in arrays[:3]), strict=True):
        own, *others = (_LEAST if isnan(number) else max(number, _LEAST) for number in numbers[:columns])
        entries.append(Logprob(own, rank, tuple(zip(ids[1:columns], others, strict=True))))
    return entries
