"""
Logprobs per token: what an engine says, and what a client gets, with the token's exact bytes and its part of the text.

The strings of the tokens are their spans (see `spans`): joined they are the text. So a token that completes no character has
"" for its string, and the next one the whole character; one that a stop cut, or a special token that is skipped, has what of it
is in the text. Bytes are those of the token alone (law 10). `detok.logprob_shapes` writes them as OpenAI's API has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...errors import OptionError, TokenTypeError
from ...ids import as_id


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
