"""
Logprobs: `Logprob` comes from the engine; `TokenLogprob` goes to the client, with the token's bytes and its part of the text.

The string of a token is its span (see `spans`), so the strings, joined, are the text. A token that completes no character has
the string "", and the token that completes it has the whole character. A token that a stop cut has the part of it that is in the
text, and a skipped special token has "". The bytes are those of the token alone (law 10). "Zoë" in the embedded vocabulary as an
example:

    token    string    bytes    text_offset
    57       "Z"       5A       0
    78       "o"       6F       1
    127      ""        C3       2
    104      "ë"       AB       2

`detok.logprob_shapes` writes the entries in the two shapes of OpenAI's API.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, SupportsIndex

from ...errors import OptionError, TokenTypeError
from ...ids import as_id


@dataclass(frozen=True, slots=True)
class Logprob:
    """The logprob of one token, as an engine gives it."""

    logprob: float | None
    """The natural logarithm of the probability. None: there is none, as for the first token of an echoed prompt."""

    rank: int | None = None
    """The rank among all tokens of the vocabulary, 1 for the most likely one; None if the engine does not give it."""

    top: Sequence[tuple[int, float]] = ()
    """The alternatives as pairs (token id, logprob), with or without the sampled token."""


class TopLogprob(NamedTuple):
    """An alternative to the token of a `TokenLogprob`."""

    token_id: int
    logprob: float
    token: str
    """The whole characters that it would have added to the text here; for a special token its surface string."""

    bytes: bytes


class TokenLogprob(NamedTuple):
    """The logprob of one token of the output."""

    token_id: int
    logprob: float | None
    token: str
    """The part of the text that belongs to the token, often a whole word, "" for a token that completes no character."""

    bytes: bytes
    """The exact bytes of the token, whatever its neighbours are; b"" if the tokenizer has no such id."""

    text_offset: int
    """Where that part begins in the text of the request, in characters."""

    byte_offset: int
    """The same in bytes of UTF-8."""

    rank: int | None = None
    top: tuple[TopLogprob, ...] = ()


def as_logprobs(values: Iterable[object], tokens: int) -> list[Logprob]:
    """
    Check an engine's logprobs, and return a `Logprob` for each token. A plain number is one without alternatives.

    Args:
        values: One number, None or `Logprob` for each token.
        tokens: Number of tokens.

    Raises:
        OptionError: There are more or fewer values than tokens, or a value is of another type.
        TokenTypeError: The id of an alternative is not an integer.
    """
    expected = "give a list with a number, None or detok.Logprob for each token id; a finish reason is the argument after it"
    if isinstance(values, (str, bytes)):
        raise OptionError(option="logprobs", value=values, accepted=expected)
    given = _listed(values, "logprobs", expected)
    if len(given) != tokens:
        raise OptionError(option="logprobs", value=given, accepted=f"there are {len(given)} for {tokens} token ids")
    return [_as_logprob(value, f"logprobs[{position}]") for position, value in enumerate(given)]


def _listed(values: Iterable[object], where: str, accepted: str) -> list[object]:
    try:
        return list(values)
    except TypeError:
        raise OptionError(option=where, value=values, accepted=accepted) from None


def _as_logprob(value: object, where: str) -> Logprob:
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


def _rank(value: SupportsIndex, where: str) -> int:
    try:
        return as_id(value)
    except TokenTypeError:
        raise OptionError(option=where, value=value, accepted="it is an integer, or None") from None


def _number(value: object, where: str) -> float:
    try:
        if isinstance(value, (str, bytes, bool)):
            raise TypeError
        return float(value)  # type: ignore[arg-type]  # what is no number raises TypeError
    except (TypeError, ValueError, OverflowError):
        raise OptionError(option=where, value=value, accepted="it is a number, None, or a detok.Logprob") from None
