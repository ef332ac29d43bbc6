"""Outputs, logprobs and errors as the wire has them, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.request.logprobs import Logprob, TokenLogprob, TopLogprob
from ...core.request.output import RequestOutput
from ...errors import RequestFailed
from ...turns.channels import ChannelDelta
from ...turns.segments import Segment, Special, Text
from .wire import Extra, Output, Problem

__all__ = ["logprobs_from_wire", "logprobs_to_wire", "output_from_wire", "output_to_wire", "problem_of", "row_of"]


def output_to_wire(output: RequestOutput, token_ids: Sequence[int]) -> Output:
    """
    Return what there is of an output beside its text.

    Args:
        output: What a row gave.
        token_ids: The row's ids, which are not said again.
    """
    return Output(
        None if output.token_ids == token_ids else output.token_ids,
        output.finish_reason,
        output.stop_reason,
        list(output.dropped_token_ids),
        output.tokens_kept,
        output.text_end,
        None if output.error is None else problem_of(output.error),
        None if output.logprobs is None else list(map(_entry, output.logprobs)),
        None if output.segments is None else list(map(_segment, output.segments)),
        output.channels,
        output.cumulative,
        output.retracted_tokens,
    )


def output_from_wire(text: str, token_ids: list[int], wire: Output) -> RequestOutput:
    """Return the output that the other side had."""
    output = RequestOutput(text, token_ids if wire.token_ids is None else wire.token_ids)
    for field in ("finish_reason", "stop_reason", "tokens_kept", "text_end"):
        if (value := getattr(wire, field)) is not None:
            setattr(output, field, value)
    if wire.dropped_token_ids:
        output.dropped_token_ids = wire.dropped_token_ids
    if wire.error is not None:
        output.error = RequestFailed(wire.error.kind, problem=wire.error.message)
    if wire.logprobs is not None:
        output.logprobs = list(map(_entry_of, wire.logprobs))
    if wire.segments is not None:
        output.segments = list(map(_segment_of, wire.segments))
    if wire.channels is not None:
        output.channels = [ChannelDelta(*delta) for delta in wire.channels]
    if wire.cumulative:
        output.cumulative = True
    if wire.retracted_tokens:
        output.retracted_tokens = wire.retracted_tokens
    return output


def problem_of(error: Exception) -> Problem:
    """Return an error as the wire has it."""
    # What an exception says may be anything, and has to be UTF-8 here.
    message = str(error).encode("utf-8", "backslashreplace").decode()
    return Problem(type(error).__name__, message or type(error).__name__)


def row_of(tokens: int | list[int], extra: Extra | None) -> tuple[list[int], Any, Any, Any]:
    """Return a row as `RequestDecoder.feed` takes it: ids, logprobs, finish and stop reason."""
    token_ids = tokens if isinstance(tokens, list) else [tokens]
    if extra is None:
        return token_ids, None, None, None
    return token_ids, logprobs_from_wire(extra.logprobs), extra.finish_reason, extra.stop_reason


def logprobs_to_wire(logprobs: Sequence[Logprob]) -> list[Any]:
    """Return what an engine says of each token as plain data."""
    return [_plain_logprob(one) for one in logprobs]


def _plain_logprob(one: Logprob) -> Any:
    logprob = None if one.logprob is None else float(one.logprob)
    if one.rank is None and not one.top:
        return logprob
    return [logprob, one.rank if one.rank is None else int(one.rank), [[int(other), float(value)] for other, value in one.top]]


def logprobs_from_wire(plain: list[Any] | None) -> list[Any] | None:
    """Return the logprobs of a row. What is nothing that `logprobs_to_wire` makes is left as it is, for the request to refuse."""
    return None if plain is None else list(map(_logprob_of, plain))


def _logprob_of(plain: Any) -> Any:
    if not isinstance(plain, list) or len(plain) != 3 or not isinstance(plain[2], list):
        return plain
    logprob, rank, top = plain
    return Logprob(logprob, rank, [tuple(pair) if isinstance(pair, list) else pair for pair in top])


def _entry(entry: TokenLogprob) -> list[Any]:
    top = [[one.token_id, one.logprob, one.token, one.bytes] for one in entry.top]
    return [
        entry.token_id,
        entry.logprob,
        entry.token,
        entry.bytes,
        entry.text_offset,
        entry.byte_offset,
        entry.rank,
        top,
    ]


def _entry_of(plain: Any) -> TokenLogprob:
    token_id, logprob, token, data, text_offset, byte_offset, rank, top = plain
    alternatives = tuple(TopLogprob(*one) for one in top)
    return TokenLogprob(token_id, logprob, token, data, text_offset, byte_offset, rank, alternatives)


def _segment(segment: Segment) -> Any:
    return segment.text if isinstance(segment, Text) else [segment.token_id, segment.text, segment.shown]


def _segment_of(plain: Any) -> Segment:
    return Text(plain) if isinstance(plain, str) else Special(*plain)
