"""`OutputProcessor`: an engine's batches of ids in, each request's outputs out, on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from itertools import count
from time import perf_counter
from typing import Any, SupportsIndex
from uuid import uuid4

from ..core.options import check_at_least
from ..core.request.ends import FinishReason
from ..core.request.options import RequestOptions
from ..core.request.output import RequestOutput
from ..engines.base import Engine, EngineOutput, EngineRequest
from ..errors import EngineError
from ..ids import as_ids
from ..tokenizers import Tokenizer
from .aborts import Aborts
from .detokenizer import Detokenizer, InProcess
from .metrics import FrontendMetrics
from .pending import OpenRequest, Outlet, Pending

__all__ = ["OutputProcessor"]

# So many rows are decoded before others have their turn on the event loop: about 0.1 ms.
CHUNK_SIZE = 128

_Row = tuple[Any, ...]


class OutputProcessor:
    """
    Serves any number of requests from one engine. Everything of it belongs to one event loop.

    A request ends here when the engine says so, when a stop is found in its text, or when its consumer goes away. In the last two
    cases the engine is told to abort it, once; what it still sends for it is ignored.

    >>> import asyncio, detok
    >>> from detok.engines.echo import EchoEngine
    >>> async def main():
    ...     async with OutputProcessor(detok.load(detok.EMBEDDED), EchoEngine()) as frontend:
    ...         async for output in frontend.generate("Hi 🦜! END.", options=detok.RequestOptions(stop="END")):
    ...             print(repr(output.text), output.finish_reason)
    >>> asyncio.run(main())  # doctest: +ELLIPSIS
    'H' None
    ...
    '' stop

    Args:
        tokenizer: Whose ids the engine speaks.
        engine: Where ids come from. It is closed with this object.
        chunk_size: So many rows of a step are decoded at once; then others on the event loop have their turn.
        metrics: Where it counts; its own if None.
        detokenizer: Where it decodes: on the loop itself if None, or in processes of their own, by `OutOfProcess`.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        engine: Engine,
        *,
        chunk_size: int = CHUNK_SIZE,
        metrics: FrontendMetrics | None = None,
        detokenizer: Detokenizer | None = None,
    ) -> None:
        check_at_least("chunk_size", chunk_size, 1)
        self.tokenizer = tokenizer
        self.engine = engine
        self.metrics = FrontendMetrics() if metrics is None else metrics
        self._chunk_size = chunk_size
        self._detokenizer: Detokenizer = InProcess(tokenizer) if detokenizer is None else detokenizer
        self._requests: dict[str, OpenRequest] = {}
        self._name = uuid4().hex[:8]
        self._numbers = count()
        self._waiting_rows = 0
        self._fills_logprobs = False
        """A request was submitted that wants an entry for each token: from then on rows are looked at for that."""
        self._reader: asyncio.Task[None] | None = None
        self._failure: EngineError | None = None
        self._closing = asyncio.Lock()
        self._closes = False
        """`close` was called, and may cancel the reader."""
        self._closed = False
        self._aborts = Aborts(engine, self.metrics)
        if (watch := getattr(engine, "watch", None)) is not None:
            # What the engine says of itself, under the names that its own dashboards know.
            watch(
                self.metrics.registry,
                **{"model_name" if name == "model" else name: label for name, label in self.metrics.labels.items()},
            )
        self.metrics.watch(
            open_requests=lambda: len(self._requests),
            held_tokens=self._held_tokens,
            waiting_rows=lambda: self._waiting_rows,
            waiting_outputs=lambda: sum(1 for request in self._requests.values() if request.outlet),
        )

    async def generate(
        self,
        prompt: str | Sequence[SupportsIndex],
        *,
        options: RequestOptions | None = None,
        sampling: Mapping[str, Any] | None = None,
        request_id: str | None = None,
        fill_logprobs: bool = False,
    ) -> AsyncGenerator[RequestOutput, None]:
        """
        Run one request and give its outputs as they come; the last one says how it ended.

        A consumer that is slow gets several outputs as one, and nothing is lost. One that goes away (the generator is closed, or
        the task that reads it cancelled) ends the request.

        Args:
            prompt: Token ids, or a text for ``tokenizer.encode_prompt``, which sees to one BOS.
            options: Where the text ends, and how it is given.
            sampling: What the engine is told, by vLLM's names. `max_tokens` is that of the options, if it is not here.
            request_id: The beginning of the id that the engine sees.
            fill_logprobs: True: outputs have `logprobs` also where the engine gives none, with None for each number. So the
                entries tile the text whatever the engine does.

        Raises:
            OptionError, TokenTypeError, MissingExtra: The prompt or an option is not possible.
            EngineError: The engine has failed, or this object is closed. What fails later is in the last output.
            Exception: Whatever the engine raises when it does not take the request.
        """
        pending = Pending()
        given: dict[str, Any] = {"options": options, "sampling": sampling, "request_id": request_id}
        name = await self.submit(prompt, pending, **given, fill_logprobs=fill_logprobs)
        try:
            while True:
                output = await pending.get()
                yield output
                if output.finished:
                    return
        finally:
            self.drop(name)

    async def submit(
        self,
        prompt: str | Sequence[SupportsIndex],
        outlet: Outlet,
        *,
        options: RequestOptions | None = None,
        sampling: Mapping[str, Any] | None = None,
        request_id: str | None = None,
        told: Callable[[int], object] | None = None,
        fill_logprobs: bool = False,
    ) -> str:
        """
        Begin a request whose outputs are put into an outlet as they are made, without a task that waits for them.

        Whoever does so drops it when nobody reads it any more. Other arguments, and errors, as `generate`.

        Args:
            told: Called with the number of the prompt's tokens that the engine had in its cache, if it says so, before the last
                output.

        Returns:
            The id that it has here and at the engine.
        """
        options = RequestOptions() if options is None else options
        if isinstance(prompt, str):
            # A long text takes milliseconds, in which others are served.
            ids = await asyncio.to_thread(self.tokenizer.encode_prompt, prompt)
        else:
            ids = as_ids(prompt, where="prompt")
        if self._failure is not None:
            raise self._failure
        if self._reader is None:
            self._reader = asyncio.create_task(self._read())
        # With a number, so that late rows of a request that ended are never those of another.
        name = f"{request_id or self._name}-{next(self._numbers)}"
        request = OpenRequest(name, outlet, told, fills_logprobs=fill_logprobs)
        self._detokenizer.open(request.id, ids, options)
        self._requests[request.id] = request
        self._fills_logprobs = self._fills_logprobs or fill_logprobs
        sampling = {} if sampling is None else dict(sampling)
        if options.max_tokens is not None:
            sampling.setdefault("max_tokens", options.max_tokens)
        try:
            await self.engine.submit(EngineRequest(request_id=request.id, prompt_ids=ids, sampling=sampling))
        except BaseException as error:
            # Cancelled on the way: the engine may have it by now.
            if self._forget(request) and not isinstance(error, Exception):
                self._aborts.add(request.id)
            raise
        return request.id

    def drop(self, request_id: str) -> None:
        """End a request that nobody reads any more; for one that has ended it does nothing."""
        request = self._requests.get(request_id)
        if request is not None and self._forget(request):
            self._aborts.add(request_id)

    async def _read(self) -> None:
        """Take the engine's batches, as long as there are any."""
        try:
            await self._detokenizer.start()
            async for outputs in self.engine.outputs():
                for start in range(0, len(outputs), self._chunk_size):
                    await self._step(outputs[start : start + self._chunk_size])
                    self._waiting_rows = max(0, len(outputs) - start - self._chunk_size)
                    await asyncio.sleep(0)
            await self._fail(EngineError("its outputs ended"))
        except asyncio.CancelledError:
            if self._closes:
                raise
            # By a task of the engine's own that was cancelled.
            await self._fail(EngineError("its outputs were cancelled"))
        except Exception as error:
            failure = error if isinstance(error, EngineError) else EngineError(f"{type(error).__name__}: {error}")
            failure.__cause__ = None if failure is error else error
            await self._fail(failure)

    async def _step(self, outputs: Sequence[EngineOutput]) -> None:
        """Decode one slice of a batch, and hand out what is due."""
        requests, metrics = self._requests, self.metrics
        known = [one for one in outputs if one.request_id in requests]
        rows: list[_Row] = [(one.request_id, one.token_ids, one.logprobs, one.finish_reason, one.stop_reason) for one in known]
        if self._fills_logprobs:
            rows = [_filled(row) if requests[row[0]].fills_logprobs else row for row in rows]
        metrics.ignored_rows.add(len(outputs) - len(known))
        if not rows:
            return
        start = perf_counter()
        given = await self._detokenizer.step(rows)
        seconds = perf_counter() - start
        each = seconds / len(rows)
        tokens = coalesced = due = 0
        for one, output in zip(known, given, strict=True):
            request = requests.get(one.request_id)
            if request is None:  # It ended in this very slice.
                metrics.ignored_rows.add()
                continue
            if one.cached_tokens is not None and request.told is not None:
                request.told(one.cached_tokens)
            taken = 0 if output.error else len(one.token_ids)
            tokens += taken
            request.seconds += each
            if output.finish_reason is not None:
                self._end(request, one, output)
            # Most have a text, and need not be asked whether there is something to pass on.
            if output.text:
                request.silent = 0
            else:
                request.silent += taken
                if not output:
                    continue
            due += 1
            coalesced += request.outlet.put(output)
        metrics.tokens.add(tokens)
        metrics.outputs.add(due)
        metrics.coalesced.add(coalesced)
        metrics.time_slice(len(rows), seconds)
        for request_id, output in self._detokenizer.strays():
            self._end_without_row(request_id, output)

    def _end_without_row(self, request_id: str, output: RequestOutput) -> None:
        request = self._requests.pop(request_id, None)
        if request is not None:
            self.metrics.errors.add(output.error is not None)
            request.outlet.put(output)
            self._aborts.add(request_id)

    def _end(self, request: OpenRequest, last: EngineOutput, output: RequestOutput) -> None:
        """Close the books on a request whose last output this is."""
        del self._requests[request.id]
        self.metrics.request_seconds.observe(request.seconds)
        if last.finish_reason is None:
            self._aborts.add(request.id)
        if output.finish_reason == "error":
            self.metrics.errors.add()
            if output.error is None:
                output.error = EngineError(last.error or "it did not say why", status=last.error_status)

    def _forget(self, request: OpenRequest) -> bool:
        """Take out a request whose consumer has gone; say whether it was still open."""
        if self._requests.pop(request.id, None) is None:
            return False
        self._detokenizer.release(request.id)
        self.metrics.request_seconds.observe(request.seconds)
        return True

    async def _fail(self, failure: EngineError) -> None:
        """The engine is no more: end all requests."""
        self._failure = failure
        await self._end_all("error", failure)

    async def _end_all(self, finish_reason: FinishReason, error: Exception | None) -> None:
        for request in list(self._requests.values()):
            try:
                output = await self._detokenizer.finish(request.id, finish_reason)
            except Exception:
                output = RequestOutput()
                output.finish_reason = finish_reason
            if not self._forget(request):
                continue
            output.error = error
            self.metrics.errors.add(error is not None)
            request.outlet.put(output)
            self._aborts.add(request.id)

    async def close(self) -> None:
        """
        End all requests with "abort", and close the engine.

        A second call waits for the first, does what that one left if it was cancelled, and else nothing.
        """
        self._closes = True
        async with self._closing:
            if self._closed:
                return
            if self._failure is None:
                self._failure = EngineError("the frontend is closed")
            if self._reader is not None:
                self._reader.cancel()
                await asyncio.wait([self._reader])
            await self._end_all("abort", None)
            await self._aborts.sent()
            try:
                await self._detokenizer.close()
            finally:
                await self.engine.close()
            self._closed = True

    async def __aenter__(self) -> OutputProcessor:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _held_tokens(self) -> int:
        silent = [request for request in self._requests.values() if request.silent]
        return sum(request.silent for request in silent if self._detokenizer.holds(request.id))


def _filled(row: _Row) -> _Row:
    """The row with an entry for each id, if it has none."""
    request_id, token_ids, logprobs, *ends = row
    return row if logprobs is not None else (request_id, token_ids, [None] * len(token_ids), *ends)
