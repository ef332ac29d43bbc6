"""`BatchDecoder`: many requests at once, a whole step of an engine in one call."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, Protocol, SupportsIndex

from ...errors import DetokError, DuplicateRequest, RequestFinished, UnknownRequest
from .logprobs import Logprob
from .options import RequestOptions
from .output import NOT_DUE, RequestOutput
from .request import FinishReason, RequestDecoder


class Row(NamedTuple):
    """What a step gave one request. Any tuple of these five fields will do, such as ``zip`` makes of columns."""

    request_id: Hashable
    token_ids: Iterable[SupportsIndex]
    logprobs: Iterable[Logprob | float | None] | None = None
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None


class OpensRequests(Protocol):
    """What makes requests: a `Decoder`, such as a `Tokenizer`."""

    def request(self, prompt_ids: Iterable[SupportsIndex] = (), *, options: RequestOptions | None = None) -> RequestDecoder: ...


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

    def __init__(self, decoder: OpensRequests) -> None:
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
        self._requests[request_id] = self._decoder.request(prompt_ids, options=options)

    def adopt(self, request_id: Hashable, request: RequestDecoder) -> None:
        """
        Take a request that was begun elsewhere, as ``tokenizer.restore_request`` gives it. It is fed here alone from now on.

        Raises:
            DuplicateRequest: There is one of this id.
            RequestFinished: It has ended.
        """
        if request_id in self._requests:
            raise DuplicateRequest(request_id)
        if request.finish_reason is not None:
            raise RequestFinished(request.finish_reason)
        self._requests[request_id] = request

    def step(self, rows: Iterable[Row | tuple[Any, ...]]) -> list[RequestOutput]:
        """
        Take what a step gave each request, and return an output for each row, in order.

        A request that ends leaves the table. A row that is refused fails alone: its output has the `error`, all that was held,
        and ``finish_reason="error"``, and its request has ended.

        Args:
            rows: Each a `Row`, or a tuple of its five fields.
        """
        requests = self._requests
        outputs: list[RequestOutput] = []
        add = outputs.append
        for request_id, token_ids, logprobs, finish_reason, stop_reason in rows:
            if logprobs is None and finish_reason is None and type(token_ids) is list:
                # The usual row, as in `RequestDecoder.feed`: the `try` covers the look-ups alone.
                try:
                    request = requests[request_id]
                    (token_id,) = token_ids
                    move = request._moves[token_id]
                except (KeyError, ValueError, TypeError):
                    pass
                else:
                    recent = request._recent
                    if len(recent) < request._room and type(token_id) is int:
                        recent.append(move)
                        request._moves = move[1]
                        add(move[0] if request._gives_at_once else NOT_DUE)
                        continue
            add(self._row(request_id, token_ids, logprobs, finish_reason, stop_reason))
        return outputs

    def _row(self, request_id: Hashable, token_ids: Any, logprobs: Any, finish_reason: Any, stop_reason: Any) -> RequestOutput:
        """Take a row that is not a usual one, or not yet."""
        try:
            request = self._requests.get(request_id)
        except TypeError:
            request = None  # what has no hash is the id of no request
        if request is None:
            return RequestOutput.failed(UnknownRequest(request_id))
        output = self._fed(request, token_ids, logprobs, finish_reason, stop_reason)
        if output.finish_reason is not None:
            del self._requests[request_id]
        return output

    def _fed(self, request: RequestDecoder, *row: Any) -> RequestOutput:
        """Return what a request gives for a row; if the row is refused, all that the request held, and the error."""
        try:
            return request.feed(*row)
        except DetokError as error:
            refused: DetokError = error  # and the request is as before
        except Exception as error:  # a fault of detok's own, or of a foreign tokenizer: the request's state is not to be trusted
            return RequestOutput.failed(error)
        try:
            output = request.finish("error")
        except Exception:  # a pattern again, that took too long
            return RequestOutput.failed(refused)
        output.finish_reason, output.error = "error", refused
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
        Return an open request, to be looked at and not to be fed.

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
