"""An engine without a model: each request has a script, and a step gives each running request the next of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import Event, get_running_loop, sleep
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from ..core.options import check_at_least
from ..core.request.ends import FinishReason
from ..core.request.logprobs import Logprob
from ..errors import DuplicateRequest, EngineError, OptionError
from .base import EngineOutput, EngineRequest
from .sampling import sampling_of

__all__ = ["Script", "ScriptStep", "ScriptedEngine", "cut", "one_by_one", "regrouped"]


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """What one step gives a request."""

    token_ids: tuple[int, ...] = ()
    logprobs: tuple[Logprob, ...] | None = None
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    error: str | None = None
    error_status: int | None = None


Script = Sequence[ScriptStep]
"""The steps of one request; the last has a `finish_reason`."""


class ScriptedEngine(ABC):
    """
    Steps like an engine with continuous batching: up to `max_batch` requests run, the others wait in the order they came.

    Args:
        rate: Tokens a second of each request; None: as fast as they are taken.
        max_batch: So many requests run at once.
        step_tokens: So many ids a request gets in a step, as with speculative decoding; several numbers take turns. None: as the
            script has it.
    """

    has_model = False
    """Whether sampling parameters mean anything to it."""

    def __init__(
        self, *, rate: float | None = None, max_batch: int = 256, step_tokens: int | Sequence[int] | None = None
    ) -> None:
        self._rate = _checked_rate(rate)
        self._max_batch = _at_least_1("max_batch", max_batch)
        sizes = (step_tokens,) if isinstance(step_tokens, int) else () if step_tokens is None else tuple(step_tokens)
        self._sizes = tuple(_at_least_1("step_tokens", size) for size in sizes)
        self._waiting: dict[str, Iterator[ScriptStep]] = {}
        self._running: dict[str, Iterator[ScriptStep]] = {}
        self._woken = Event()
        self._closed = False

    @abstractmethod
    def script(self, request: EngineRequest) -> Script:
        """
        Return what a request will get. Raises what says that it cannot be.

        What is beyond its `max_tokens` is cut off behind this; a script that is long to make may end one id after that.
        """

    async def submit(self, request: EngineRequest) -> None:
        """
        Begin a request.

        Raises:
            DuplicateRequest: There is one of this id.
            OptionError: `max_tokens` or `n` is not possible.
            EngineError: It is closed.
        """
        if request.request_id in self._running or request.request_id in self._waiting:
            raise DuplicateRequest(request.request_id)
        if self._closed:
            raise EngineError("it is closed")
        most = sampling_of(request).get("max_tokens")
        if most is not None:
            _at_least_1("max_tokens", most)
        script = self.script(request)
        if self._sizes:
            script = regrouped(script, self._sizes)
        if most is not None:
            script = cut(script, most)
        self._waiting[request.request_id] = iter(script)
        self._woken.set()

    async def outputs(self) -> AsyncIterator[list[EngineOutput]]:
        """Give batches until the engine is closed."""
        due = get_running_loop().time()
        while True:
            await sleep(0 if self._rate is None else max(0.0, due - get_running_loop().time()))
            if self._closed:
                return
            if not (self._running or self._waiting):
                self._woken.clear()
                await self._woken.wait()
                due = get_running_loop().time()
                continue
            # Made in the moment it is taken, so that there is nothing in it that was aborted.
            outputs = self._step()
            if self._rate is not None:
                # By the clock of the whole, so that what others take in between does not add up.
                due += max(1, *(len(one.token_ids) for one in outputs)) / self._rate
            yield outputs

    def _step(self) -> list[EngineOutput]:
        while self._waiting and len(self._running) < self._max_batch:
            request_id = next(iter(self._waiting))
            self._running[request_id] = self._waiting.pop(request_id)
        outputs = []
        for request_id, steps in list(self._running.items()):
            step = next(steps)
            if step.finish_reason is not None:
                del self._running[request_id]
            outputs.append(
                EngineOutput(
                    request_id=request_id,
                    token_ids=list(step.token_ids),
                    logprobs=step.logprobs,
                    finish_reason=step.finish_reason,
                    stop_reason=step.stop_reason,
                    error=step.error,
                    error_status=step.error_status,
                )
            )
        return outputs

    async def abort(self, request_ids: Sequence[str]) -> None:
        """Stop these requests, as far as they are here."""
        for request_id in request_ids:
            self._running.pop(request_id, None)
            self._waiting.pop(request_id, None)

    async def close(self) -> None:
        """End everything; `outputs` ends."""
        self._closed = True
        self._running.clear()
        self._waiting.clear()
        self._woken.set()


def one_by_one(ids: Sequence[int]) -> list[ScriptStep]:
    """Return the script of one id a step, which ends with "stop"."""
    return [*(ScriptStep((token_id,)) for token_id in ids[:-1]), ScriptStep(tuple(ids[-1:]), None, "stop")]


def cut(script: Script, most: int) -> list[ScriptStep]:
    """Return the script with so many ids at most; if some are left out, it ends with "length"."""
    steps: list[ScriptStep] = []
    for step in script:
        here = len(step.token_ids)
        if here < most or (here == most and step.finish_reason is not None):
            steps.append(step)
            most -= here
            continue
        logprobs = None if step.logprobs is None else step.logprobs[:most]
        steps.append(ScriptStep(step.token_ids[:most], logprobs, "length"))
        break
    return steps


def regrouped(script: Script, sizes: Sequence[int]) -> list[ScriptStep]:
    """Return the same ids in steps of other sizes, which take turns."""
    ids = [token_id for step in script for token_id in step.token_ids]
    logprobs = [logprob for step in script for logprob in step.logprobs or ()]
    end = script[-1]
    steps: list[ScriptStep] = []
    remaining_ids, remaining_logprobs = iter(ids), iter(logprobs)
    for size in cycle(sizes):
        some = tuple(islice(remaining_ids, size))
        if some or not steps:
            steps.append(ScriptStep(some, tuple(islice(remaining_logprobs, size)) if logprobs else None))
        if len(some) < size:
            break
    last = steps[-1]
    steps[-1] = ScriptStep(last.token_ids, last.logprobs, end.finish_reason, end.stop_reason, end.error, end.error_status)
    return steps


def _at_least_1(option: str, value: Any) -> int:
    check_at_least(option, value, 1)
    return int(value)


def _checked_rate(rate: object) -> float | None:
    if rate is None:
        return None
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate < float("inf"):
        raise OptionError(option="rate", value=rate, accepted="it is a number of tokens a second above 0, or None")
    return float(rate)
