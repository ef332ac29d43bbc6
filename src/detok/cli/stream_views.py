"""How `detok stream` shows the outputs of a request: as text, a line a step for people, or lines of JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Protocol

from ..core.request.logprobs import TokenLogprob
from ..core.request.output import RequestOutput
from ..core.request.request import RequestDecoder
from ..logprob_shapes import chat_logprobs
from ..turns.channels import ChannelDelta
from ..turns.segments import Segment, Special
from .output import plain_ending, plain_held, write, write_json

__all__ = ["DeltasView", "JsonView", "TextView", "View"]


class View(Protocol):
    """Shows one request."""

    def step(self, ids: list[int], output: RequestOutput, request: RequestDecoder) -> None:
        """Show a step: the ids that came, and what the request gave."""
        ...

    def finish(self, rest: RequestOutput, end: RequestOutput) -> None:
        """Show what came when the input had ended, and the output that says how the request did: that one, or one before."""
        ...


class TextView:
    """The text and nothing else; on a terminal, the prompt that follows begins a new line."""

    def __init__(self) -> None:
        self._ends_line = True

    def step(self, ids: list[int], output: RequestOutput, request: RequestDecoder) -> None:
        if output.text:
            write(output.text)
            self._ends_line = output.text.endswith("\n")

    def finish(self, rest: RequestOutput, end: RequestOutput) -> None:
        text = rest.text
        ends_line = text.endswith("\n") if text else self._ends_line
        write(text if ends_line or not sys.stdout.isatty() else f"{text}\n")


class DeltasView:
    """A line a step, for people, and what else was asked for below it."""

    def step(self, ids: list[int], output: RequestOutput, request: RequestDecoder) -> None:
        held = f"   holds {request.held!r}, {request.held_because}" if request.held_because else ""
        self._show(" ".join(map(str, ids)), f"{output.text!r}{held}", output)

    def finish(self, rest: RequestOutput, end: RequestOutput) -> None:
        self._show("finish", f"{rest.text!r}{_ending(rest, end)}", rest)

    def _show(self, name: str, what: str, output: RequestOutput) -> None:
        below = [
            *map(_token, output.logprobs or ()),
            *map(_segment, output.segments or ()),
            *map(_channel, output.channels or ()),
        ]
        write("\n".join([f"{name:>8}  {what}", *(f"{'':8}    {line}" for line in below)]) + "\n")


def _ending(rest: RequestOutput, end: RequestOutput) -> str:
    """How a request ended; nothing if only its input did."""
    if end is rest and end.stop_reason is None:
        return ""
    reason = "" if end.stop_reason is None else f" at {end.stop_reason!r}"
    dropped = end.dropped_token_ids
    behind = f", {' '.join(map(str, dropped))} behind it dropped" if dropped else ""
    return f"   {end.finish_reason}{reason}: {end.tokens_kept} tokens, {end.text_end} characters{behind}"


def _token(entry: TokenLogprob) -> str:
    logprob = "" if entry.logprob is None else f", logprob {entry.logprob:.4g}"
    data = entry.bytes.hex(" ")
    return f"token {entry.token!r}, bytes {data}, at character {entry.text_offset}, byte {entry.byte_offset}{logprob}"


def _segment(segment: Segment) -> str:
    if isinstance(segment, Special):
        return f"special {segment.text!r}, id {segment.token_id}"
    return f"text {segment.text!r}"


def _channel(delta: ChannelDelta) -> str:
    header = f", headed {delta.header!r}" if delta.header else ""
    return f"{delta.channel} {delta.text!r}{header}"


class JsonView:
    """A line of JSON a step, for machines; the lines can be streamed again."""

    def step(self, ids: list[int], output: RequestOutput, request: RequestDecoder) -> None:
        held = {"held": plain_held(request.held), "held_because": request.held_because}
        write_json({"ids": ids, "text": output.text, **held, **dict(_more(output))})

    def finish(self, rest: RequestOutput, end: RequestOutput) -> None:
        held = {"held": "", "held_because": ""}
        write_json({"finish": True, "ids": [], "text": rest.text, **held, **dict(_more(rest)), **plain_ending(end)})


def _more(output: RequestOutput) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """What was asked for beside the text."""
    if output.logprobs is not None:
        # Not "logprobs", which is read again for the ids of the same line: an entry may come later than its id.
        chat = chat_logprobs(output.logprobs)["content"]
        yield "tokens", [_plain_token(entry, shape) for entry, shape in zip(output.logprobs, chat, strict=True)]
    if output.segments is not None:
        yield "segments", [_plain_segment(segment) for segment in output.segments]
    if output.channels is not None:
        yield "channels", [delta._asdict() for delta in output.channels]


def _plain_token(entry: TokenLogprob, chat: dict[str, Any]) -> dict[str, Any]:
    places = {"text_offset": entry.text_offset, "byte_offset": entry.byte_offset}
    return {"id": entry.token_id, "token": chat["token"], "logprob": chat["logprob"], "bytes": chat["bytes"], **places}


def _plain_segment(segment: Segment) -> dict[str, Any]:
    if isinstance(segment, Special):
        return {"special": segment.text, "id": segment.token_id, "text": segment.shown}
    return {"text": segment.text}
