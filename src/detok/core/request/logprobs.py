"""
Logprobs per token: what an engine says, and what a client gets, with the token's exact bytes and its part of the text.

The strings of the tokens are their spans (see `spans`): joined they are the text. So a token that completes no character has
"" for its string, and the next one the whole character; one that a stop cut, or a special token that is skipped, has what of it
is in the text. Bytes are those of the token alone (law 10). The two shapes of OpenAI's API are made here and nowhere else.

>>> entry = TokenLogprob(5, -0.25, "Hi", b"Hi", text_offset=0, byte_offset=0, top=(TopLogprob(5, -0.25, "Hi", b"Hi"),))
>>> completion_logprobs([entry])["top_logprobs"]
[{'Hi': -0.25}]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, NamedTuple

from ...errors import OptionError, TokenTypeError
from ...ids import as_id

__all__ = ["Logprob", "TokenLogprob", "TopLogprob", "as_logprobs", "chat_logprobs", "completion_logprobs"]

# JSON has no infinity; vLLM and OpenAI write this for a token that is impossible.
LEAST = -9999.0


@dataclass(frozen=True, slots=True)
class Logprob:
    """What an engine says of one token."""

    logprob: float | None
    """None where there is none, as for the first token of an echoed prompt."""

    rank: int | None = None
    """1 for the most likely."""

    top: Sequence[tuple[int, float]] = ()
    """The alternatives, the sampled token among them or not: (token id, logprob)."""


class TopLogprob(NamedTuple):
    """An alternative."""

    token_id: int
    logprob: float
    token: str
    """What it would have added to the text in this place, as far as that is whole characters; of a special token its surface."""

    bytes: bytes


class TokenLogprob(NamedTuple):
    """A token of the output."""

    token_id: int
    logprob: float | None
    token: str
    """Its part of the text."""

    bytes: bytes
    """Its exact bytes, whatever stands beside it; b"" if the tokenizer has no such id."""

    text_offset: int
    """Where its part begins in the request's text, in characters."""

    byte_offset: int
    """The same in bytes of UTF-8."""

    rank: int | None = None
    top: tuple[TopLogprob, ...] = ()


def as_logprobs(values: Iterable[Any], tokens: int) -> list[Logprob]:
    """
    Return what an engine says of each token, in plain numbers; a number is a logprob without alternatives.

    Raises:
        OptionError: There are not as many as tokens, or one is neither a number, None nor a `Logprob`.
        TokenTypeError: An alternative is no token id.
    """
    given = _listed(values, "logprobs", "it is a list, with one for each token id")
    if len(given) != tokens:
        raise OptionError(option="logprobs", value=given, accepted=f"there are {len(given)} for {tokens} token ids")
    return [_as_logprob(value, f"logprobs[{position}]") for position, value in enumerate(given)]


def _listed(values: Any, where: str, accepted: str) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise OptionError(option=where, value=values, accepted=accepted) from None


def _as_logprob(value: Any, where: str) -> Logprob:
    if value is None:
        return Logprob(None)
    if not isinstance(value, Logprob):
        return Logprob(_number(value, where))
    top = []
    for place, pair in enumerate(_listed(value.top, f"{where}.top", PAIRS)):
        inner = f"{where}.top[{place}]"
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise OptionError(option=inner, value=pair, accepted=PAIRS)
        top.append((as_id(pair[0], where=inner), _number(pair[1], inner)))
    number = None if value.logprob is None else _number(value.logprob, f"{where}.logprob")
    return Logprob(number, None if value.rank is None else _rank(value.rank, f"{where}.rank"), tuple(top))


PAIRS = "they are pairs of token id and logprob"


def _rank(value: Any, where: str) -> int:
    try:
        return as_id(value)
    except TokenTypeError:
        raise OptionError(option=where, value=value, accepted="it is an integer, or None") from None


def _number(value: Any, where: str) -> float:
    try:
        if isinstance(value, (str, bytes, bool)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise OptionError(option=where, value=value, accepted="it is a number, None, or a detok.Logprob") from None


def chat_logprobs(entries: Iterable[TokenLogprob], *, as_token_ids: bool = False) -> dict[str, Any]:
    """
    Return the `logprobs` of a choice of OpenAI's chat completions.

    Args:
        entries: Of a `RequestOutput`.
        as_token_ids: Write each token as "token_id:N" (vLLM's `return_tokens_as_token_ids`).
    """
    return {
        "content": [
            {
                **_chat_entry(entry, as_token_ids),
                "top_logprobs": [_chat_entry(other, as_token_ids) for other in entry.top],
            }
            for entry in entries
        ]
    }


def _chat_entry(entry: TokenLogprob | TopLogprob, as_token_ids: bool) -> dict[str, Any]:
    return {"token": _name(entry, as_token_ids), "logprob": _finite(entry.logprob), "bytes": list(entry.bytes)}


def completion_logprobs(entries: Iterable[TokenLogprob], *, offset: int = 0, as_token_ids: bool = False) -> dict[str, Any]:
    """
    Return the `logprobs` of a choice of OpenAI's completions.

    That shape has a dictionary of alternatives by string. Of those whose strings are the same, the most likely has it for its
    key, and the others "token_id:N", with "#2" and so on behind it if that is taken too, so that none is lost.

    Args:
        entries: Of a `RequestOutput`.
        offset: How much text stands before, in characters: of an echoed prompt.
        as_token_ids: As for `chat_logprobs`.
    """
    listed = list(entries)
    return {
        "tokens": [_name(entry, as_token_ids) for entry in listed],
        "token_logprobs": [_finite(entry.logprob) for entry in listed],
        "top_logprobs": [_by_name(entry.top, as_token_ids) for entry in listed],
        "text_offset": [offset + entry.text_offset for entry in listed],
    }


def _by_name(top: Iterable[TopLogprob], as_token_ids: bool) -> dict[str, float | None] | None:
    named: dict[str, float | None] = {}
    for entry in sorted(top, key=lambda entry: -entry.logprob):
        names = chain([_name(entry, as_token_ids), by_id := _token_id_name(entry)], (f"{by_id}#{n}" for n in count(2)))
        named[next(name for name in names if name not in named)] = _finite(entry.logprob)
    return named or None


def _name(entry: TokenLogprob | TopLogprob, as_token_ids: bool) -> str:
    return _token_id_name(entry) if as_token_ids else entry.token


def _token_id_name(entry: TokenLogprob | TopLogprob) -> str:
    return f"token_id:{entry.token_id}"


def _finite(logprob: float | None) -> float | None:
    return None if logprob is None else min(max(logprob, LEAST), -LEAST) if logprob == logprob else LEAST
