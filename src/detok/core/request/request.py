"""`RequestDecoder`: the ids of one request in, step by step; what its client gets out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NoReturn, SupportsIndex, get_args

from ...errors import OptionError, RequestFinished, TokenTypeError
from ...ids import as_id, as_ids
from ..options import check_choice
from .collected import Collected
from .compiled import Plan
from .logprobs import Ledger, Logprob, as_logprobs
from .output import RequestOutput
from .progress import Progress
from .snapshot import pack_request

__all__ = ["FinishReason", "RequestDecoder", "as_end"]


FinishReason = Literal["stop", "length", "abort", "error"]


def as_end(finish_reason: Any, stop_reason: Any) -> tuple[FinishReason | None, str | int | None]:
    """Return how an engine says that a request ended, and what stopped it; or raise `OptionError`."""
    check_choice("finish_reason", finish_reason, (None, *get_args(FinishReason)))
    if stop_reason is None or isinstance(stop_reason, str):
        return finish_reason, stop_reason
    try:
        return finish_reason, as_id(stop_reason)
    except TokenTypeError:
        accepted = "it is a string, a token id or None"
        raise OptionError(option="stop_reason", value=stop_reason, accepted=accepted) from None


class RequestDecoder:
    """
    One request: a stream, where it stops, and what its client is given. Made by ``tokenizer.request()``.

    However the ids are cut into steps, the outputs say the same in all. One request belongs to one thread at a time.

    >>> import detok
    >>> tokenizer = detok.load(detok.EMBEDDED)
    >>> request = tokenizer.request(stop=["END"])
    >>> outputs = [request.feed([token_id]) for token_id in tokenizer.encode("The END")]
    >>> "".join(output.text for output in outputs if output), outputs[-1].finish_reason, outputs[-1].stop_reason
    ('The ', 'stop', 'END')
    """

    __slots__ = ("_at", "_collected", "_plan")

    def __init__(self, plan: Plan, at: Progress, collected: Collected | None = None) -> None:
        self._plan = plan
        self._at = at
        self._collected = Collected(plan.options) if collected is None else collected

    def feed(
        self,
        token_ids: Sequence[SupportsIndex],
        logprobs: Iterable[Logprob | float | None] | None = None,
        finish_reason: FinishReason | None = None,
        stop_reason: str | int | None = None,
    ) -> RequestOutput:
        """
        Take the ids of one step, and return what is due now.

        All or nothing: if it raises, the request is as before.

        Args:
            token_ids: A list, numpy array or any iterable of integers; none at all is fine.
            logprobs: One for each id; in every step of the request, or in none. A number, None, or a `Logprob`.
            finish_reason: Why the engine ended the request with this step, if it did. A stop that is found in the text comes
                before. With "stop", a last id that is special or an end of sequence is taken for what stopped it.
            stop_reason: What the engine says it was, if it says: an id, or the string.

        Raises:
            RequestFinished: The request has ended, and there are more ids (with ``after_finish="error"``).
            OptionError: `logprobs` or `finish_reason` is not possible.
            TokenTypeError: One of the ids is no integer.
            UnknownTokenId: With ``unknown_ids="error"``, wherever in the step it stands.
            StopRegexTimeout: A pattern took too long.
        """
        at = self._at
        if logprobs is None and finish_reason is None and type(token_ids) is list and len(token_ids) == 1:
            token_id = token_ids[0]
            # The usual way, as that of `TextStream.step`: whole characters, nothing held but perhaps for a stop.
            if at.count < at.quick_until and type(token_id) is int and token_id >= 0 and token_id not in at.plan.ends:
                try:
                    text = at.whole[token_id]
                except IndexError:
                    text = None
                if text is None:
                    text = at.quick(token_id)
                else:
                    if at.moves is not None:
                        move = at.moves.get(text)
                        if move is None:
                            return self._feed(token_ids, None, None, None)
                        text, candidate = move
                        if candidate is not at.candidate:
                            at.become(candidate)
                    at.count += 1
                    at.given += len(text)
                if text is not None:
                    output = RequestOutput(text, [token_id])
                    return output if at.plan.gives_at_once else self._collected.add(output)
        return self._feed(token_ids, logprobs, finish_reason, stop_reason)

    def finish(self, finish_reason: FinishReason = "stop", stop_reason: str | int | None = None) -> RequestOutput:
        """
        End the request and return all that is still due. A second call returns an empty output.

        Raises:
            OptionError: There is no such reason.
            StopRegexTimeout: A pattern took too long.
        """
        return self._feed((), None, finish_reason, stop_reason)

    def _feed(
        self,
        token_ids: Iterable[SupportsIndex],
        logprobs: Iterable[Logprob | float | None] | None,
        finish_reason: FinishReason | None,
        stop_reason: str | int | None,
    ) -> RequestOutput:
        finish_reason, stop_reason = as_end(finish_reason, stop_reason)
        ids = as_ids(token_ids)
        if self._at.end is not None:
            if ids and self._plan.options.after_finish == "error":
                raise RequestFinished(self._at.end.finish_reason)
            return RequestOutput()
        self._plan.check_ids(ids)
        ledger, entries = self._entries(ids, logprobs)
        # Only a pattern can fail on the way, so only then is there something to go back to.
        at = self._at.copy() if self._plan.options.stop_regex else self._at
        if at.ledger is None:
            at.ledger = ledger
        new = at.feed(ids, entries, finish_reason, stop_reason)
        self._at = at
        return self._collected.add(new)

    def _entries(self, ids: list[int], logprobs: Any) -> tuple[Ledger | None, list[Logprob]]:
        ledger = self._at.ledger
        if logprobs is None:
            if ids and ledger is not None:
                raise OptionError(option="logprobs", value=None, accepted="the steps before had some, so each id has one")
            return ledger, []
        entries = as_logprobs(logprobs, len(ids))
        if ids and ledger is None:
            if self._at.count:
                raise OptionError(option="logprobs", value=logprobs, accepted="the steps before had none, so there are none")
            ledger = Ledger()
        return ledger, entries

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return self._at.end is not None

    @property
    def finish_reason(self) -> str | None:
        """Why it ended; None while it goes on."""
        return None if self._at.end is None else self._at.end.finish_reason

    @property
    def num_tokens(self) -> int:
        """How many ids were taken."""
        return self._at.count

    @property
    def held(self) -> str | bytes:
        """What is held, for display: a candidate for a stop, and behind it what the stream holds."""
        return self._held()[0]

    @property
    def held_because(self) -> str:
        """Why something is held, in a few words; "" if nothing is."""
        return self._held()[1]

    def _held(self) -> tuple[str | bytes, str]:
        at = self._at
        if at.end is not None or not self._plan.options.detokenize:
            return "", ""
        held, why = at.node.automaton.pipeline.held(at.node.state)
        if not at.held:
            return held, why
        both = at.held + held if isinstance(held, str) else at.held.encode() + held
        return both, f"{why}, behind what may become a stop" if why else "it may become a stop"

    def snapshot(self) -> dict[str, Any]:
        """
        Return where the request stands, as small plain data that survives JSON and msgpack.

        ``tokenizer.restore_request(snapshot)`` goes on exactly from there, in another process too.
        """
        return pack_request(self._plan, self._at, self._collected)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a request is not pickled: send request.snapshot(), and go on with tokenizer.restore_request()")
