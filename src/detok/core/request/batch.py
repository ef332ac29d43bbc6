"""`BatchDecoder`: many requests, with a whole step of an engine in one call."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple, Protocol, SupportsIndex

from ...errors import DetokError, DuplicateRequest, OptionError, RequestFinished, UnknownRequest
from .ends import FinishReason
from .logprobs import Logprob
from .options import RequestOptions
from .output import RequestOutput
from .request import RequestDecoder


class Row(NamedTuple):
    """The part of an engine's step that belongs to one request. Any tuple of these five fields, in this order, will do."""

    request_id: Hashable
    """The id that the request was opened with."""

    token_ids: Iterable[SupportsIndex]
    logprobs: Iterable[Logprob | float | None] | None = None
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    """These four are the arguments of `RequestDecoder.feed`."""


RowFields = tuple[
    Hashable, Iterable[SupportsIndex], Iterable[Logprob | float | None] | None, FinishReason | None, str | int | None
]
"""A row as a plain tuple; a `Row` is one."""


class OpensRequests(Protocol):
    """An object that opens requests: a `Decoder`, such as a `Tokenizer`."""

    def request(self, prompt_ids: Iterable[SupportsIndex] = (), *, options: RequestOptions | None = None) -> RequestDecoder: ...


class BatchDecoder:
    """
    A table of open requests by id, each with its own options. It belongs to one thread at a time.

    `step` takes a row for each request that got tokens, and returns an output for each row. Its result is that of feeding each
    row to the `RequestDecoder` of its request. A bad row ends its own request with an error, and no other.

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
        decoder: The decoder of the ids, such as a `Tokenizer`.
    """

    def __init__(self, decoder: OpensRequests) -> None:
        self._decoder = decoder
        self._requests: dict[Hashable, RequestDecoder] = {}

    def open(self, request_id: Hashable, prompt_ids: Iterable[SupportsIndex] = (), options: RequestOptions | None = None) -> None:
        """
        Open a request.

        Args:
            request_id: Any hashable value that names the request in its rows: an id, or the number of a slot.
            prompt_ids, options: As ``tokenizer.request`` takes them.

        Raises:
            DuplicateRequest: A request with this id is open.
            OptionError, MissingExtra, TokenTypeError, UnknownTokenId: As ``tokenizer.request``.
        """
        if request_id in self._requests:
            raise DuplicateRequest(request_id)
        self._requests[request_id] = self._decoder.request(prompt_ids, options=options)

    def adopt(self, request_id: Hashable, request: RequestDecoder) -> None:
        """
        Add a request that was opened elsewhere, by ``tokenizer.restore_request`` for example. Feed it only here from now on.

        Raises:
            DuplicateRequest: A request with this id is open.
            RequestFinished: The request has ended.
        """
        if request_id in self._requests:
            raise DuplicateRequest(request_id)
        if request.finish_reason is not None:
            raise RequestFinished(request.finish_reason)
        self._requests[request_id] = request

    def step(self, rows: Iterable[RowFields]) -> list[RequestOutput]:
        """
        Take the rows of one step of the engine, and return an output for each, in order.

        A request that ends leaves the table. A row that is refused (a bad id, an unknown request) fails alone: its output has
        ``finish_reason="error"``, the `error`, and all text that was held, and its request has ended.

        Args:
            rows: A `Row`, or a tuple of its five fields, for each request that got tokens. A request may have several rows.
        """
        requests = self._requests
        outputs: list[RequestOutput] = []
        add = outputs.append
        for row in rows:
            try:
                request_id, token_ids, logprobs, finish_reason, _ = row
            except (TypeError, ValueError):
                add(self._refused(row))
                continue
            if logprobs is None and finish_reason is None and type(token_ids) is list:
                # The usual row, as in `RequestDecoder.feed`. The `try` covers only the look-ups, so that an error after a change
                # of state is never taken for an unusual row, whose tokens would then count twice.
                try:
                    request = requests[request_id]
                    (token_id,) = token_ids
                    move = request._place.moves[token_id]
                except (KeyError, ValueError, TypeError):
                    pass
                else:
                    left = request._left - move[2]
                    if left >= 0 and type(token_id) is int:
                        request._left = left
                        request._place = move[1]
                        if move[3]:
                            request._noted.append(move)
                        add(move[0])
                        continue
            add(self._row(row))
        return outputs

    def _refused(self, row: object) -> RequestOutput:
        """Refuse what is no row. Nothing of it is taken, and no request ends, as nobody knows which one was meant."""
        accepted = "it has five fields: request id, token ids, logprobs, finish reason, stop reason"
        return RequestOutput.failed(OptionError(option="row", value=row, accepted=accepted))

    def _row(self, row: RowFields) -> RequestOutput:
        """Take any row, and return its output."""
        try:
            request = self._requests.get(row[0])
        except TypeError:
            request = None  # a value without a hash is not the id of a request
        if request is None:
            return RequestOutput.failed(UnknownRequest(row[0]))
        output = self._fed(request, row)
        if output.finish_reason is not None:
            del self._requests[row[0]]
        return output

    def _fed(self, request: RequestDecoder, row: RowFields) -> RequestOutput:
        """Return the output of a request for a row; if the row is refused, the error and all text that was held."""
        try:
            return request.feed(*row[1:])
        except DetokError as error:
            refused: DetokError = error  # the request is unchanged, so it can still give its held text
        except Exception as error:  # a bug of detok or of a foreign tokenizer: do not trust the request's state
            return RequestOutput.failed(error)
        try:
            output = request.finish("error")
        except Exception:  # a pattern that takes too long may do so again
            return RequestOutput.failed(refused)
        output.finish_reason, output.error = "error", refused
        return output

    def close(
        self, request_id: Hashable, finish_reason: FinishReason = "stop", stop_reason: str | int | None = None
    ) -> RequestOutput:
        """
        End a request, take it out of the table, and return its last output.

        Args:
            request_id: The id that it was opened with.
            finish_reason, stop_reason: As `RequestDecoder.finish` takes them.

        Raises:
            UnknownRequest: No request with this id is open.
            OptionError, StopRegexTimeout: As `RequestDecoder.finish`. The request has left the table.
        """
        return self.release(request_id).finish(finish_reason, stop_reason)

    def abort(self, request_id: Hashable) -> RequestOutput:
        """End a request that nobody wants any more, with the reason "abort". Errors as `close`."""
        return self.close(request_id, "abort")

    def release(self, request_id: Hashable) -> RequestDecoder:
        """
        Take a request out of the table and return it, still open: to take a snapshot, or to feed it elsewhere.

        Raises:
            UnknownRequest: No request with this id is open.
        """
        request = self.request(request_id)
        del self._requests[request_id]
        return request

    def request(self, request_id: Hashable) -> RequestDecoder:
        """
        Return an open request, to read its state. Feed it by `step` only.

        Raises:
            UnknownRequest: No request with this id is open.
        """
        request = self._requests.get(request_id)
        if request is None:
            raise UnknownRequest(request_id)
        return request

    def __contains__(self, request_id: Hashable) -> bool:
        return request_id in self._requests

    def __len__(self) -> int:
        return len(self._requests)
