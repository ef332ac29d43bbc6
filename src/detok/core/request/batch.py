"""`BatchDecoder`: many requests at once, a whole step of an engine in one call."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, SupportsIndex

from ...errors import DuplicateRequest, UnknownRequest
from .options import RequestOptions
from .output import RequestOutput
from .plan import Plan, RequestedOf
from .progress import Progress
from .request import FinishReason, RequestDecoder

__all__ = ["BatchDecoder", "Row"]


class Row(NamedTuple):
    """What a step gave one request. Any tuple of these five will do, such as ``zip`` makes of columns."""

    request_id: Hashable
    token_ids: Sequence[SupportsIndex]
    finish_reason: FinishReason | None = None
    logprobs: Iterable[Any] | None = None
    stop_reason: str | int | None = None


class BatchDecoder:
    """
    A table of open requests, each with options of its own. It belongs to one thread at a time.

    >>> import detok
    >>> tokenizer = detok.load(detok.EMBEDDED)
    >>> batch = detok.BatchDecoder(tokenizer)
    >>> batch.open("one")
    >>> batch.open("two", options=detok.RequestOptions(stop="!"))
    >>> rows = [detok.Row("one", tokenizer.encode("a!")), detok.Row("two", tokenizer.encode("b!"))]
    >>> [output.text for output in batch.step(rows)]
    ['a!', 'b']
    >>> "one" in batch, "two" in batch
    (True, False)

    Args:
        decoder: Whose ids they are; a `Tokenizer` is one.
    """

    def __init__(self, decoder: RequestedOf) -> None:
        self._decoder = decoder
        self._requests: dict[Hashable, RequestDecoder] = {}

    def open(self, request_id: Hashable, prompt_ids: Iterable[SupportsIndex] = (), options: RequestOptions | None = None) -> None:
        """
        Begin a request.

        Args:
            request_id: What its rows will be known by: an id, or the number of a slot.
            prompt_ids, options: As ``tokenizer.request`` takes them.

        Raises:
            DuplicateRequest: There is one of this id.
            OptionError, MissingExtra, TokenTypeError, UnknownTokenId: As ``tokenizer.request``.
        """
        if request_id in self._requests:
            raise DuplicateRequest(request_id)
        plan = Plan(self._decoder, RequestOptions() if options is None else options)
        self.adopt(request_id, RequestDecoder(plan, Progress(plan, plan.machine.behind(prompt_ids))))

    def adopt(self, request_id: Hashable, request: RequestDecoder) -> None:
        """
        Take a request that was begun elsewhere, as ``tokenizer.restore_request`` gives it.

        Raises:
            DuplicateRequest: There is one of this id.
        """
        if request_id in self._requests:
            raise DuplicateRequest(request_id)
        self._requests[request_id] = request

    def step(self, rows: Iterable[tuple[Any, ...]]) -> list[RequestOutput]:
        """
        Take what a step gave each request, and return an output for each row, in order.

        A request that ends leaves the table. A row that cannot be fails alone: its output has the `error`, all that was held,
        and ``finish_reason="error"``, and its request has ended.

        Args:
            rows: Each a `Row`, or a tuple of its five fields.
        """
        return [self._row(*row) for row in rows]

    def _row(self, request_id: Hashable, token_ids: Any, finish_reason: Any, logprobs: Any, stop_reason: Any) -> RequestOutput:
        request = self._requests.get(request_id)
        if request is None:
            output = RequestOutput()
            output.finish_reason, output.error = "error", UnknownRequest(request_id)
            return output
        try:
            output = request.feed(token_ids, logprobs, finish_reason, stop_reason)
        except Exception as error:
            output = self._failed(request, error)
        if output.finish_reason is not None:
            del self._requests[request_id]
        return output

    @staticmethod
    def _failed(request: RequestDecoder, error: Exception) -> RequestOutput:
        try:
            output = request.finish("error")
        except Exception:
            output = RequestOutput()
            output.finish_reason = "error"
        output.error = error
        return output

    def close(
        self, request_id: Hashable, finish_reason: FinishReason = "stop", stop_reason: str | int | None = None
    ) -> RequestOutput:
        """
        End a request and return all that is still due.

        Raises:
            UnknownRequest: None of this id is open.
            OptionError, StopRegexTimeout: As `RequestDecoder.finish`; the request has ended.
        """
        return self.release(request_id).finish(finish_reason, stop_reason)

    def abort(self, request_id: Hashable) -> RequestOutput:
        """End a request that nobody wants any more. Errors as `close`."""
        return self.close(request_id, "abort")

    def release(self, request_id: Hashable) -> RequestDecoder:
        """
        Let go of a request and return it: to be kept as a snapshot, or fed elsewhere.

        Raises:
            UnknownRequest: None of this id is open.
        """
        request = self.request(request_id)
        del self._requests[request_id]
        return request

    def request(self, request_id: Hashable) -> RequestDecoder:
        """
        Return an open request, to be looked at.

        Raises:
            UnknownRequest: None of this id is open.
        """
        request = self._requests.get(request_id)
        if request is None:
            raise UnknownRequest(request_id)
        return request

    def __contains__(self, request_id: Hashable) -> bool:
        return request_id in self._requests

    def __len__(self) -> int:
        return len(self._requests)
