"""Token by token: what a stream is given, what it holds and why, what comes out, and what a naive decode would have sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, SupportsIndex

from ..core.decoding.texts import common_prefix
from ..core.request.output import RequestOutput
from ..core.request.request import RequestDecoder
from ..core.stream import TextStream
from ..core.utf8 import REPLACEMENT
from ..errors import OptionError
from ..ids import as_ids
from ..tokenizers import Tokenizer
from .judge import judge
from .strategies import Strategy, by_strategy

__all__ = ["Deviation", "Fault", "Summary", "TraceRow", "summary", "trace"]

Bytes = bytes
"""By another name, since a row's field is called `bytes`."""

Fault = Literal["broken character", "lost space", "wrong space", "other"]
Deviation = Literal["late", "wrong"]
"""Of a stream by another strategy: so far it gave less than the tokenizer's own, or what is no beginning of the right text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """One step of a stream; the last row is `finish`."""

    position: int
    token_id: int | None
    """None for `finish`."""

    piece: str | None
    """The surface string in the vocabulary; None for `finish` and for an id that the vocabulary does not have."""

    bytes: Bytes
    """The exact bytes of the token, whatever stands beside it."""

    special: bool = False
    added: bool = False
    unknown: bool = False
    held: str | Bytes
    """What is held after the step."""

    held_because: str
    text: str
    """What came out of the step."""

    naive: str
    """What decoding this one id alone gives."""

    fault: Fault | None
    """How `naive` is wrong, if it is; see `fault_of`."""

    compared: str | None = None
    """What came out of a stream by the strategy that is compared, if one is."""

    deviation: Deviation | None = None
    """Whether that is late, or has just gone wrong; once a stream has, nothing more is said of it."""

    end: RequestOutput | None = None
    """How the request ended, in the row in which it did, if there are stops."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Both texts as a whole."""

    right: str
    naive: str
    faults: int
    """How many tokens the naive decode got wrong."""

    compared: str | None = None
    """The whole text by the strategy that is compared, if one is."""

    late: int = 0
    """After how many tokens that one had given less than the tokenizer's own stream."""

    end: RequestOutput | None = None
    """How the request ended, if there are stops."""


def trace(
    tokenizer: Tokenizer,
    ids: Iterable[SupportsIndex],
    *,
    prompt_ids: Iterable[SupportsIndex] = (),
    strategy: Strategy | None = None,
    stops: Mapping[str, Any] | None = None,
    **options: Any,
) -> list[TraceRow]:
    """
    Stream ``ids`` one at a time and return a row for each, and a last one for `finish`.

    With stops they go to a request: what is held is then also what may become a stop, and the id that completes one is the last.

    Args:
        tokenizer: Whose stream is looked at.
        ids: Any integers.
        strategy: Stream them in this way, too, and say how that deviates from the tokenizer's own way.
        stops: What the text ends at, by the names that ``tokenizer.request`` has for it.
        prompt_ids, options: As ``tokenizer.stream`` takes them.

    Raises:
        TokenTypeError, OptionError, UnknownTokenId: As ``tokenizer.stream`` and ``step``; or a strategy and stops were given.
        MissingExtra, StopRegexTimeout: As ``tokenizer.request`` and ``feed``.
    """
    if strategy is not None and stops is not None:
        raise OptionError(option="strategy", value=strategy, accepted="whole texts are compared; leave it or the stops out")
    skips = options.get("skip_special_tokens", True)
    ids = as_ids(ids)
    prompt_ids = as_ids(prompt_ids, where="prompt_ids")
    whole = tokenizer.stream(prompt_ids, **options)
    right = whole.extend(ids) + whole.finish()

    other: _Compared | _Requested | None = None
    if strategy is not None:
        other = _Compared(by_strategy(tokenizer, strategy).stream(prompt_ids, **options), right)
    elif stops is not None:
        other = _Requested(tokenizer.request(prompt_ids, **options, **stops))
    rows: list[TraceRow] = []
    stream = tokenizer.stream(prompt_ids, **options)
    given, rest = 0, _rest(stream)
    for position, token_id in enumerate(ids):
        text = stream.step(token_id)
        # The library may have nothing to say to one id alone; then a naive decode sends nothing.
        naive = judge(tokenizer, [token_id], skip_special_tokens=skips) or ""
        before, rest = rest, _rest(stream)
        after = text + rest
        fault = fault_of(naive, before, after, right[given : given + len(after)])
        given += len(text)
        row = _row(tokenizer, position, token_id, stream, text, naive, fault)
        rows.append(row if other is None else other.step(row, token_id, given))
        if rows[-1].end is not None:
            break
    last = _last_row(len(rows), rest)
    return [*rows, last if other is None else other.finish(last)]


def summary(rows: Sequence[TraceRow]) -> Summary:
    """Return the whole texts behind the rows of a trace, and the number of faults."""
    return Summary(
        right="".join(row.text for row in rows),
        naive="".join(row.naive for row in rows),
        faults=sum(row.fault is not None for row in rows),
        compared=None if rows[-1].compared is None else "".join(row.compared or "" for row in rows),
        late=sum(row.deviation == "late" for row in rows),
        end=next((row.end for row in rows if row.end is not None), None),
    )


class _Compared:
    """A stream beside the one that is traced, and whether it still gives a beginning of the right text."""

    def __init__(self, stream: TextStream, right: str) -> None:
        self._stream = stream
        self._right = right
        self._given = ""
        self._is_right = True

    def step(self, row: TraceRow, token_id: int, given: int) -> TraceRow:
        """Take the next id. ``given`` is how much the traced stream has given with it."""
        return self._judged(row, self._stream.step(token_id), self._right.startswith, given)

    def finish(self, row: TraceRow) -> TraceRow:
        """End the stream: now it must have given all."""
        return self._judged(row, self._stream.finish(), self._right.__eq__, 0)

    def _judged(self, row: TraceRow, text: str, is_right: Callable[[str], bool], given: int) -> TraceRow:
        self._given += text
        deviation: Deviation | None = None
        if self._is_right and not is_right(self._given):
            self._is_right, deviation = False, "wrong"
        elif self._is_right and len(self._given) < given:
            deviation = "late"
        return replace(row, compared=text, deviation=deviation)


class _Requested:
    """A request for the ids that are traced: rows get what it holds and gives instead."""

    def __init__(self, request: RequestDecoder) -> None:
        self._request = request

    def step(self, row: TraceRow, token_id: int, given: int) -> TraceRow:
        """Take the next id."""
        return self._row(row, self._request.feed([token_id]))

    def finish(self, row: TraceRow) -> TraceRow:
        """End the request, if no stop has."""
        return self._row(row, self._request.finish())

    def _row(self, row: TraceRow, output: RequestOutput) -> TraceRow:
        held, because = self._request.held, self._request.held_because
        return replace(row, held=held, held_because=because, text=output.text, end=output if output.finished else None)


def fault_of(naive: str, before: str, after: str, right: str) -> Fault | None:
    """
    Say how a naive decode of one token is wrong, by what the token really adds.

    Take what stands behind the text that was certain before the token: in the right text of the ids without it (``before``), in
    that with it (``after``), and in that of all ids there will be (``right``). The token adds what ``after`` has beyond the
    beginning that it shares with ``before``. If the naive decode is just that, and later tokens leave it so, it is right. If not:

    * "broken character": it has U+FFFD, where the right text has a character or nothing;
    * "lost space": it is the same but for white space, of which it has less;
    * "wrong space": it is the same but for white space, of which it has more, or other, or what a later token takes away;
    * "other": the rest, such as the mark of a word part that should have gone.
    """
    shared = len(common_prefix([before, after]))
    added = after[shared:]
    if naive == added and right.startswith(added, shared):
        return None
    if REPLACEMENT in naive:
        return "broken character"
    if "".join(naive.split()) != "".join(added.split()):
        return "other"
    return "lost space" if len(naive) < len(added) else "wrong space"


def _rest(stream: TextStream) -> str:
    """What would come if the stream ended here. A copy is finished, so that the stream itself goes on."""
    return stream.copy().finish()


def _row(
    tokenizer: Tokenizer, position: int, token_id: int, stream: TextStream, text: str, naive: str, fault: Fault | None
) -> TraceRow:
    piece = tokenizer.vocabulary.piece(token_id)
    return TraceRow(
        position=position,
        token_id=token_id,
        piece=None if piece is None else piece.text,
        bytes=b"" if piece is None else tokenizer.token_bytes(token_id),
        special=piece is not None and piece.special,
        added=piece is not None and piece.added,
        unknown=piece is None,
        held=stream.held,
        held_because=stream.held_because,
        text=text,
        naive=naive,
        fault=fault,
    )


def _last_row(position: int, text: str) -> TraceRow:
    return TraceRow(
        position=position, token_id=None, piece=None, bytes=b"", held="", held_because="", text=text, naive="", fault=None
    )
