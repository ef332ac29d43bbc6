"""A trace and a request over the same ids, as the rows that the page draws."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from ...core.request.output import END_FIELDS, RequestOutput
from ...core.request.request import RequestDecoder
from ...errors import OptionError
from ...inspection import TraceRow, summary, trace
from ...inspection.judge import judge
from ...tokenizers import Tokenizer
from .asked import MAX_TOKENS, TraceAsked

__all__ = ["steps"]

# Of an open byte run so much is sent with each row; else the answer would grow with the square of its length.
MAX_HELD = 64


def steps(tokenizer: Tokenizer, asked: TraceAsked) -> dict[str, Any]:
    """
    Return all that the page shows of one list of ids, as plain data.

    Only stops end the text. Special tokens, an end of sequence among them, stand in the middle of what a person pastes.

    Raises:
        OptionError: An option is not possible with this tokenizer, or there are too many ids.
        EncodeUnsupported: There is a text, and the tokenizer has no encoder.
    """
    ids = asked.ids if asked.text is None else tokenizer.encode(asked.text, add_special_tokens=asked.add_special_tokens)
    if ids is None or len(ids) > MAX_TOKENS:
        raise OptionError(option="text", value=f"{len(ids or ()):,} tokens", accepted=f"at most {MAX_TOKENS:,} are shown")
    options: dict[str, Any] = {"skip_special_tokens": asked.skip_special_tokens, "byte_fallback": asked.byte_fallback}
    strategy = None if asked.strategy == "alone" else asked.strategy
    request = tokenizer.request(
        stop=asked.stop,
        include_stop_str_in_output=asked.include_stop_str_in_output,
        ignore_eos=True,
        after_finish="ignore",
        **options,
    )
    traced = trace(tokenizer, ids, strategy=strategy, **options)
    rows, end = _rows(traced, request)
    _mark_past(rows, traced, end)
    whole = summary(traced)
    library = judge(tokenizer, ids, skip_special_tokens=asked.skip_special_tokens)
    return {
        "rows": rows,
        "right": whole.right,
        "text": "".join(row["text"] for row in rows),
        "naive": whole.naive,
        "compared": whole.compared,
        "as_library": None if library is None else library == whole.right,
        **{field: getattr(end, field) for field in END_FIELDS},
    }


def _rows(traced: Sequence[TraceRow], request: RequestDecoder) -> tuple[list[dict[str, Any]], RequestOutput]:
    """Feed the request row by row; return the rows, and the output with which it ended."""
    rows, end = [], RequestOutput()
    for row in traced:
        output = request.finish() if row.token_id is None else request.feed([row.token_id])
        if output.finished:
            end = output
        held, because = request.held, request.held_because
        rows.append(
            {
                "position": row.position,
                "id": row.token_id,
                "piece": row.piece,
                "bytes": row.bytes.hex(),
                "special": row.special,
                "added": row.added,
                "unknown": row.unknown,
                "held": _plain(held[:MAX_HELD]),
                "held_size": len(held),
                "held_because": because,
                "candidate": "" if request.finished else _candidate(held, row.held),
                "text": output.text,
                "naive": row.naive,
                "fault": row.fault,
                "compared": row.compared,
                "deviation": row.deviation,
            }
        )
    return rows, end


def _candidate(held: str | bytes, of_stream: str | bytes) -> str:
    """What may become a stop: it is held before all that the stream itself holds."""
    candidate = held[: len(held) - len(of_stream)]
    return candidate.decode() if isinstance(candidate, bytes) else candidate


def _plain(held: str | bytes) -> str | dict[str, str]:
    """What is held, for JSON: bytes become ``{"bytes": hex}``, as in a snapshot."""
    return {"bytes": held.hex()} if isinstance(held, bytes) else held


def _mark_past(rows: Sequence[dict[str, Any]], traced: Sequence[TraceRow], end: RequestOutput) -> None:
    """
    Mark the rows whose ids the stop drops, and those whose text lies behind the end.

    A decoder that knows no stops has sent that text, be it a part of the stop, before the stop was complete.
    """
    given = accumulate(len(row.text) for row in traced)
    for row, plain in zip(rows, given, strict=True):
        row["dropped"] = end.tokens_kept is not None and row["id"] is not None and row["position"] >= end.tokens_kept
        row["past_end"] = end.text_end is not None and plain > end.text_end
