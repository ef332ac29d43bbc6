"""Where an `OutputProcessor` decodes: here, or in detokenizer processes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from ..core.request.batch import BatchDecoder
from ..core.request.ends import FinishReason
from ..core.request.options import RequestOptions
from ..core.request.output import RequestOutput
from ..errors import DetokError, UnknownRequest
from ..tokenizers import Tokenizer
from ..tokenizers.reading import library

__all__ = ["Detokenizer", "InProcess", "OutOfProcess"]

Rows = Sequence[tuple[Any, ...]]
"""As `BatchDecoder.step` takes them."""


class Detokenizer(Protocol):
    """A table of open requests that is fed rows."""

    async def start(self) -> None:
        """Begin; called once, on the loop that all else is called on."""
        ...

    def open(self, request_id: str, prompt_ids: Sequence[int], options: RequestOptions) -> None:
        """Begin a request. Errors as ``tokenizer.request``."""
        ...

    async def step(self, rows: Rows) -> Sequence[RequestOutput]:
        """Return the output of each row."""
        ...

    async def finish(self, request_id: str, finish_reason: FinishReason) -> RequestOutput:
        """End a request, and return what is still due."""
        ...

    def strays(self) -> Sequence[tuple[str, RequestOutput]]:
        """Return the last outputs of requests that ended without a row, as one does that a worker has waited for too long."""
        ...

    def release(self, request_id: str) -> None:
        """Forget a request, if it is open."""
        ...

    def holds(self, request_id: str) -> bool:
        """Whether an open request holds something back, as far as is known here."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


class InProcess:
    """
    On the event loop itself, by a `BatchDecoder`.

    Args:
        tokenizer: Whose ids they are.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._batch = BatchDecoder(tokenizer)

    async def start(self) -> None:
        """Nothing has to be begun."""

    def open(self, request_id: str, prompt_ids: Sequence[int], options: RequestOptions) -> None:
        """See `Detokenizer`."""
        self._batch.open(request_id, prompt_ids, options)

    async def step(self, rows: Rows) -> Sequence[RequestOutput]:
        """See `Detokenizer`."""
        return self._batch.step(rows)

    async def finish(self, request_id: str, finish_reason: FinishReason) -> RequestOutput:
        """See `Detokenizer`."""
        return self._batch.close(request_id, finish_reason)

    def strays(self) -> Sequence[tuple[str, RequestOutput]]:
        """None: here a request ends with a row."""
        return ()

    def release(self, request_id: str) -> None:
        """See `Detokenizer`."""
        if request_id in self._batch:
            self._batch.release(request_id)

    def holds(self, request_id: str) -> bool:
        """See `Detokenizer`."""
        return request_id in self._batch and bool(self._batch.request(request_id).held)

    async def close(self) -> None:
        """Nothing is held."""


class OutOfProcess:
    """
    In detokenizer processes (`detok worker`), which may be killed and started again at any time.

    Args:
        endpoints: Of one worker or several; a request stays with one.
        tokenizer: What the workers have to have loaded, too.
        settings: For `AsyncDetokenizerClient`.

    Raises:
        MissingExtra: pyzmq or msgspec is not installed.
        OptionError: A setting is not possible.
    """

    def __init__(self, endpoints: str | Sequence[str], tokenizer: Tokenizer, **settings: Any) -> None:
        library("zmq", extra="worker", purpose="a detokenizer worker")
        from .worker.async_client import AsyncDetokenizerClient
        from .worker.worker import endpoints_of

        for endpoint in [endpoints] if isinstance(endpoints, str) else endpoints:
            endpoints_of(endpoint, 1)
        self._client = AsyncDetokenizerClient(endpoints, fingerprint=tokenizer.fingerprint, **settings)
        self._is_open = False
        self._strays: list[tuple[str, RequestOutput]] = []

    async def start(self) -> None:
        """See `Detokenizer`."""
        await self._client.__aenter__()
        self._is_open = True

    def open(self, request_id: str, prompt_ids: Sequence[int], options: RequestOptions) -> None:
        """See `Detokenizer`."""
        self._client.open(request_id, prompt_ids, options)

    async def step(self, rows: Rows) -> Sequence[RequestOutput]:
        """See `Detokenizer`. Errors as `AsyncDetokenizerClient.step`."""
        outputs = await self._client.step(rows)
        # Behind those of the rows.
        self._strays += [(str(request_id), output) for request_id, output in outputs[len(rows) :]]
        return [output for _, output in outputs[: len(rows)]]

    async def finish(self, request_id: str, finish_reason: FinishReason) -> RequestOutput:
        """See `Detokenizer`."""
        (output,) = await self.step([(request_id, [], None, finish_reason, None)])
        return output

    def strays(self) -> Sequence[tuple[str, RequestOutput]]:
        """See `Detokenizer`."""
        strays, self._strays = self._strays, []
        return strays

    def release(self, request_id: str) -> None:
        """See `Detokenizer`."""
        with suppress(UnknownRequest):
            self._client.abort(request_id)

    def holds(self, request_id: str) -> bool:
        """Not known here: the worker's own metrics say it."""
        return False

    async def close(self) -> None:
        """See `Detokenizer`."""
        if self._is_open:
            with suppress(DetokError):
                await self._client.close()
