"""
The two shapes of logprobs in OpenAI's API, which are made here and nowhere else.

>>> entry = TokenLogprob(5, -0.25, "Hi", b"Hi", text_offset=0, byte_offset=0, top=(TopLogprob(5, -0.25, "Hi", b"Hi"),))
>>> completion_logprobs([entry])["top_logprobs"]
[{'Hi': -0.25}]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, count
from typing import Any

from .core.request.logprobs import TokenLogprob, TopLogprob

__all__ = ["chat_logprobs", "completion_logprobs"]

# JSON has no infinity; vLLM and OpenAI write this for a token that is impossible.
LEAST = -9999.0


def chat_logprobs(entries: Iterable[TokenLogprob], *, as_token_ids: bool = False, most: int | None = None) -> dict[str, Any]:
    """
    Return the `logprobs` of a choice of OpenAI's chat completions.

    Args:
        entries: Of a `RequestOutput`.
        as_token_ids: Write each token as "token_id:N" (vLLM's `return_tokens_as_token_ids`).
        most: So many alternatives, the most likely ones; None: all that the engine gave. Engines often give the sampled token
            beside those that were asked for.
    """
    return {
        "content": [
            {
                **_chat_entry(entry, as_token_ids),
                "top_logprobs": [_chat_entry(other, as_token_ids) for other in _most_likely(entry.top, most)],
            }
            for entry in entries
        ]
    }


def _most_likely(top: Sequence[TopLogprob], most: int | None) -> Sequence[TopLogprob]:
    if most is None:
        return top
    each = {one.token_id: one for one in top}.values()
    return sorted(each, key=lambda one: _finite(one.logprob) or 0.0, reverse=True)[:most]


def _chat_entry(entry: TokenLogprob | TopLogprob, as_token_ids: bool) -> dict[str, Any]:
    return {"token": _name(entry, as_token_ids), "logprob": _finite(entry.logprob), "bytes": list(entry.bytes)}


def completion_logprobs(entries: Iterable[TokenLogprob], *, offset: int = 0, as_token_ids: bool = False) -> dict[str, Any]:
    """
    Return the `logprobs` of a choice of OpenAI's completions.

    That shape has a dictionary of alternatives by string. Of those whose strings are the same, the most likely has it for its
    key, and the others "token_id:N", with "#2" and so on after it if that is taken too, so that none is lost.

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
