"""
llama.cpp's server: `POST /completion` with a prompt of ids.

Its stream is not used. A token that ends within a character is counted there, but its id is never sent (the event that completes
the character names the last token only), so the ids of most emoji and of many scripts are lost. An answer that is not streamed
has all of them. So a request is a few such answers: one token, then as many as there are already, up to `tokens_per_call`. The
server keeps what it computed for the last call, so that each costs about one token more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ..core.request.ends import FinishReason
from ..core.request.logprobs import Logprob
from ..errors import OptionError
from .base import EngineOutput, EngineRequest
from .dialect import Body, Id
from .events import OneValue
from .grammars import for_llamacpp
from .sampling import check_understood, prompt_of, sampling_of
from .words import error_output

__all__ = ["DEFAULT_TOKENS_PER_CALL", "LlamaCpp", "LlamaCppCall"]

DEFAULT_TOKENS_PER_CALL = 16

MAX_TOKENS = 1 << 20
"""Of an answer that nobody limited: more than any context has."""

# vLLM's names on the left.
_SAMPLING = {
    "frequency_penalty": "frequency_penalty",
    "ignore_eos": "ignore_eos",
    "min_p": "min_p",
    "presence_penalty": "presence_penalty",
    "repetition_penalty": "repeat_penalty",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
}


class _Top(msgspec.Struct):
    id: Id
    logprob: float | None


class _Entry(msgspec.Struct):
    id: Id
    logprob: float | None
    top_logprobs: list[_Top] = []


class _Timings(msgspec.Struct):
    cache_n: int | None = None


class _Answer(msgspec.Struct):
    tokens: list[Id] = []
    stop: bool = False
    stop_type: str = "none"
    completion_probabilities: list[_Entry] = []
    timings: _Timings | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Answer).decode


class LlamaCppCall:
    """A request to llama.cpp."""

    def __init__(self, request: EngineRequest, *, tokens_per_call: int) -> None:
        self._request_id = request.request_id
        self._prompt = prompt_of(request)
        self._sampling = sampling_of(request)
        self._tokens_per_call = tokens_per_call
        check_understood(self._sampling, (*_SAMPLING, "logit_bias", "structured_outputs"), engine="llamacpp")
        self._bound = for_llamacpp(self._sampling.get("structured_outputs", {}))
        if (most := self._sampling.get("max_tokens", 1)) < 1:
            raise OptionError(option="max_tokens", value=most, accepted="it is 1 or more")
        self._ids: list[int] = []
        self._asked = 0

    def bodies(self) -> Iterator[Body]:
        """One body after the other; each goes on where the answer to the last one ended."""
        sampling = self._sampling
        fixed: Body = {theirs: sampling[ours] for ours, theirs in _SAMPLING.items() if ours in sampling}
        fixed |= {"stream": False, "return_tokens": True, "cache_prompt": True, **self._bound}
        if "logprobs" in sampling:
            fixed["n_probs"] = max(1, sampling["logprobs"])
        if "logit_bias" in sampling:
            # By vLLM a mapping, whose keys JSON may have made strings.
            fixed["logit_bias"] = [[int(token_id), bias] for token_id, bias in sampling["logit_bias"].items()]
        while True:
            count = len(self._ids)
            left = sampling.get("max_tokens", count + self._tokens_per_call) - count
            # A grammar begins anew with each call, so all comes in one.
            self._asked = (
                sampling.get("max_tokens", MAX_TOKENS) if self._bound else min(max(1, count), self._tokens_per_call, left)
            )
            body = {**fixed, "prompt": self._prompt + self._ids, "n_predict": self._asked}
            if "seed" in sampling:
                # The same seed again would draw the same numbers again.
                body["seed"] = sampling["seed"] + count
            yield body

    def read(self, data: bytes) -> EngineOutput:
        """
        Return what an answer says.

        Raises:
            ValueError: It is not what llama.cpp answers.
        """
        answer = _decode(data)
        if answer.error is not None:
            return error_output(self._request_id, answer.error)
        if not answer.stop:
            raise ValueError("the answer has no end")
        cached = answer.timings.cache_n if answer.timings is not None and not self._ids else None
        self._ids += answer.tokens
        return EngineOutput(
            request_id=self._request_id,
            token_ids=answer.tokens,
            logprobs=self._logprobs(answer) if "logprobs" in self._sampling else None,
            # Later calls find what this request itself put there.
            cached_tokens=cached,
            finish_reason=self._finish_reason(answer),
        )

    def _finish_reason(self, answer: _Answer) -> FinishReason | None:
        match answer.stop_type:
            case "eos" | "word":
                return "stop"
            case "limit":
                # Fewer than were asked for: the context is full.
                full = len(answer.tokens) < self._asked
                return "length" if full or len(self._ids) >= self._sampling.get("max_tokens", len(self._ids) + 1) else None
            case "none":
                return "abort"
            case other:
                raise ValueError(f"stop_type is {other!r}")

    def _logprobs(self, answer: _Answer) -> list[Logprob]:
        """llama.cpp has no entry for a token that ends within a character; what it has is in the order of the ids."""
        entries = iter(answer.completion_probabilities)
        entry = next(entries, None)
        logprobs = []
        for token_id in answer.tokens:
            if entry is None or entry.id != token_id:
                logprobs.append(Logprob(None))
                continue
            top = entry.top_logprobs[: self._sampling["logprobs"]]
            logprobs.append(Logprob(entry.logprob, None, tuple((one.id, one.logprob) for one in top if one.logprob is not None)))
            entry = next(entries, None)
        return logprobs


class LlamaCpp:
    """
    llama.cpp's server.

    Args:
        tokens_per_call: How many tokens come at once, at most. Fewer flow better, more cost less.
    """

    name = "llamacpp"
    path = "/completion"
    media_type = "application/json"

    def __init__(self, *, tokens_per_call: int = DEFAULT_TOKENS_PER_CALL) -> None:
        if tokens_per_call < 1:
            raise OptionError(option="tokens_per_call", value=tokens_per_call, accepted="it is 1 or more")
        self._tokens_per_call = tokens_per_call

    def begin(self, request: EngineRequest) -> LlamaCppCall:
        """Begin a request."""
        return LlamaCppCall(request, tokens_per_call=self._tokens_per_call)

    def answer(self) -> OneValue:
        """One JSON value."""
        return OneValue()

    def aborts(self, request_ids: Sequence[str]) -> list[tuple[str, Body]]:
        """It knows no requests from outside, and stops one whose connection is closed."""
        return []
