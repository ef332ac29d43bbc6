"""Token by token: what a stream is given, what it holds and why, what comes out, and what a naive decode would have sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex

from ..core.ids import as_ids
from ..core.stream import TextStream
from ..core.texts import common_prefix
from ..core.utf8 import REPLACEMENT
from ..tokenizers import Tokenizer
from .judge import judge

__all__ = ["Fault", "Summary", "TraceRow", "summary", "trace"]

Bytes = bytes
"""By another name, since a row's field is called `bytes`."""

Fault = Literal["broken character", "lost space", "wrong space", "other"]


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


@dataclass(frozen=True, slots=True)
class Summary:
    """Both texts as a whole."""

    right: str
    naive: str
    faults: int
    """How many tokens the naive decode got wrong."""


def trace(
    tokenizer: Tokenizer, ids: Iterable[SupportsIndex], *, prompt_ids: Iterable[SupportsIndex] = (), **options: Any
) -> list[TraceRow]:
    """
    Stream ``ids`` one at a time and return a row for each, and a last one for `finish`.

    Args:
        tokenizer: Whose stream is looked at.
        ids: Any integers.
        prompt_ids, options: As ``tokenizer.stream`` takes them.

    Raises:
        TokenTypeError, OptionError, UnknownTokenId: As ``tokenizer.stream`` and ``step``.
    """
    skips = options.get("skip_special_tokens", True)
    ids = as_ids(ids)
    prompt_ids = as_ids(prompt_ids, where="prompt_ids")
    whole = tokenizer.stream(prompt_ids, **options)
    right = whole.extend(ids) + whole.finish()

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
        rows.append(_row(tokenizer, position, token_id, stream, text, naive, fault))
    return [*rows, _last_row(len(ids), rest)]


def summary(rows: Sequence[TraceRow]) -> Summary:
    """Return the whole texts behind the rows of a trace, and the number of faults."""
    return Summary(
        right="".join(row.text for row in rows),
        naive="".join(row.naive for row in rows),
        faults=sum(row.fault is not None for row in rows),
    )


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
