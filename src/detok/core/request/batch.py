"""`BatchDecoder`: many requests at once, a whole step of an engine in one call."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, SupportsIndex

from ...errors import DuplicateRequest, RequestFinished, UnknownRequest
from ...ids import as_ids
from ..decoding.automaton import Node
from .compiled import RequestedOf
from .options import RequestOptions
from .output import RequestOutput
from .places import NOT_DUE, Move, Place, Places, SharedOutput
from .progress import MAX_UNASKED, Progress
from .request import FinishReason, RequestDecoder

__all__ = ["BatchDecoder", "Row"]

# So many usual tokens are taken before `Progress` catches up; counting down from there is done in small integers.
MAX_STRETCH = 1 << 20


class Row(NamedTuple):
    """What a step gave one request. Any tuple of these five will do, such as ``zip`` makes of columns."""

    request_id: Hashable
    token_ids: Iterable[SupportsIndex]
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
        self._places = Places()
        self._lanes: dict[Hashable, _Lane] = {}

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
        if request_id in self._lanes:
            raise DuplicateRequest(request_id)
        plan = self._decoder.plan(RequestOptions() if options is None else options)
        at = Progress(plan, plan.machine.behind(prompt_ids))
        self._lanes[request_id] = _Lane(RequestDecoder(plan, at), self._places)

    def adopt(self, request_id: Hashable, request: RequestDecoder) -> None:
        """
        Take a request that was begun elsewhere, as ``tokenizer.restore_request`` gives it. It is fed here alone from now on.

        Raises:
            DuplicateRequest: There is one of this id.
            RequestFinished: It has ended.
        """
        if request_id in self._lanes:
            raise DuplicateRequest(request_id)
        if request.finish_reason is not None:
            raise RequestFinished(request.finish_reason)
        self._lanes[request_id] = _Lane(request, self._places)

    def step(self, rows: Iterable[tuple[Any, ...]]) -> list[RequestOutput]:
        """
        Take what a step gave each request, and return an output for each row, in order.

        A request that ends leaves the table. A row that cannot be fails alone: its output has the `error`, all that was held,
        and ``finish_reason="error"``, and its request has ended.

        Args:
            rows: Each a `Row`, or a tuple of its five fields.
        """
        lanes = self._lanes
        outputs: list[RequestOutput] = []
        add = outputs.append
        for request_id, token_ids, finish_reason, logprobs, stop_reason in rows:
            try:
                lane = lanes[request_id]
                # The usual row: one token, of which it is remembered what it does in this place.
                if len(token_ids) == 1 and lane.taken < lane.allowed and finish_reason is None and logprobs is None:
                    token_id = token_ids[0]
                    if type(token_id) is int:
                        output, after, length, undecided = lane.place.moves[token_id]
                        if undecided is None or lane.note(undecided, after):
                            lane.place = after
                            lane.taken += 1
                            lane.given += length
                            add(output if lane.waiting is None else lane.wait([output]))
                            continue
            except (KeyError, TypeError):
                pass
            add(self._row(request_id, token_ids, finish_reason, logprobs, stop_reason))
        return outputs

    def _row(self, request_id: Hashable, token_ids: Any, finish_reason: Any, logprobs: Any, stop_reason: Any) -> RequestOutput:
        """A row that is not the usual one, or not yet."""
        try:
            lane = self._lanes.get(request_id)
        except TypeError:
            lane = None  # what has no hash is the id of no request
        if lane is None:
            return _error(UnknownRequest(request_id))
        try:
            output = lane.feed(token_ids, logprobs, finish_reason, stop_reason)
        except Exception as error:
            output = lane.fail(error)
        if output.finish_reason is not None:
            del self._lanes[request_id]
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
        del self._lanes[request_id]
        return request

    def request(self, request_id: Hashable) -> RequestDecoder:
        """
        Return an open request as it stands now, to be looked at and not to be fed.

        Raises:
            UnknownRequest: None of this id is open.
        """
        lane = self._lanes.get(request_id)
        if lane is None:
            raise UnknownRequest(request_id)
        lane.catch_up()
        return lane.request

    def __contains__(self, request_id: Hashable) -> bool:
        return request_id in self._lanes

    def __len__(self) -> int:
        return len(self._lanes)


class _Lane:
    """
    An open request in the table. While its tokens are usual ones it goes from place to place, and its `Progress` stays behind.

    Args:
        request: Which one.
        places: Those of the batch.
    """

    __slots__ = ("_collected", "_due", "_places", "allowed", "given", "place", "request", "taken", "tiling", "waiting")

    def __init__(self, request: RequestDecoder, places: Places) -> None:
        self.request = request
        self._places = places
        self._collected = request._collected
        self.waiting: list[SharedOutput] | None = None if request._plan.gives_at_once else []
        """Outputs of tokens that wait until one of them all is due; None if each is at once."""
        self._stand()

    def _stand(self) -> None:
        """Stand where the request stands."""
        at = self.request._at
        self.tiling = at.tiling
        self.allowed = max(0, min(at.quick_until - at.count, MAX_STRETCH))
        """So many tokens may go from place to place."""
        if self.allowed:
            self.place = self._places.at(at.node, at.candidate, at.plan.ends)
        self.taken = 0
        """So many have gone."""
        self.given = 0
        """Characters that came out on the way."""
        self._due = self._collected.until_due()
        """So many make an output that is due."""

    def catch_up(self) -> None:
        """Let the request stand where this lane does."""
        if self.waiting:
            self._collect()
        if self.taken:
            self.request._at.follow(self.place.node, self.place.candidate, self.taken, self.given)
            self._stand()

    def wait(self, outputs: list[SharedOutput]) -> RequestOutput:
        """Keep the outputs of tokens, and return one of all that wait if it is due."""
        assert self.waiting is not None
        self.waiting += outputs
        return self._collect() if len(self.waiting) >= self._due else NOT_DUE

    def _collect(self) -> RequestOutput:
        assert self.waiting is not None
        output = self._collected.add(_joined(self.waiting))
        self.waiting.clear()
        self._due = self._collected.until_due()
        return output

    def note(self, undecided: tuple[Node, str], after: Place) -> bool:
        """Remember a token whose part of the text is still open, if these are few; say whether they are."""
        if after.settled:
            self.tiling.clear()
        elif len(self.tiling.steps) < MAX_UNASKED:
            self.tiling.steps.append(undecided)
        else:
            return False
        return True

    def feed(self, token_ids: Any, logprobs: Any, finish_reason: Any, stop_reason: Any) -> RequestOutput:
        """As `RequestDecoder.feed`."""
        ids = as_ids(token_ids)
        if self.allowed and finish_reason is None and logprobs is None and ids:
            moves = self._moves(ids)
            if len(moves) == len(ids):
                return self._walk(moves)
        self.catch_up()
        output = self.request.feed(ids, logprobs, finish_reason, stop_reason)
        if output.finish_reason is None:
            self._stand()
        return output

    def fail(self, error: Exception) -> RequestOutput:
        """End a request that cannot go on, with all that was held."""
        try:
            self.catch_up()
            output = self.request.finish("error")
        except Exception:
            return _error(error)
        output.finish_reason, output.error = "error", error
        return output

    def _moves(self, ids: list[int]) -> list[Move]:
        """The moves of these ids from here, as far as they are usual ones."""
        place, moves, search = self.place, [], self.request._plan.search
        for token_id in ids[: min(self.allowed - self.taken, MAX_UNASKED - len(self.tiling.steps))]:
            move = place.moves.get(token_id) or self._places.learn(place, token_id, search)
            if move is None:
                break
            moves.append(move)
            place = move.after
        return moves

    def _walk(self, moves: list[Move]) -> RequestOutput:
        for move in moves:
            if move.undecided is not None:
                self.note(move.undecided, move.after)
            self.given += move.length
        self.place = moves[-1].after
        self.taken += len(moves)
        outputs = [move.output for move in moves]
        return _joined(outputs) if self.waiting is None else self.wait(outputs)


def _joined(outputs: list[SharedOutput]) -> RequestOutput:
    """One output of the outputs of several tokens."""
    return RequestOutput("".join([one.text for one in outputs]), [token_id for one in outputs for token_id in one.token_ids])


def _error(error: Exception) -> RequestOutput:
    output = RequestOutput()
    output.finish_reason, output.error = "error", error
    return output
