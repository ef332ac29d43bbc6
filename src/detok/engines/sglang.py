"""SGLang: `POST /generate` with `input_ids`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from ..core.request.logprobs import Logprob
from .base import EngineOutput, EngineRequest
from .dialect import Body, Id, finish_reason
from .events import EventStream
from .grammars import for_sglang
from .sampling import check_understood, prompt_of, sampling_of
from .words import error_output

__all__ = ["Sglang", "SglangCall"]

# vLLM's names on the left. SGLang refuses a name that it does not know. `min_tokens` is left out on purpose: without a tokenizer
# SGLang does not know what must not come so early, and its scheduler fails.
_SAMPLING = {
    "frequency_penalty": "frequency_penalty",
    "ignore_eos": "ignore_eos",
    "logit_bias": "logit_bias",
    "max_tokens": "max_new_tokens",
    "min_p": "min_p",
    "presence_penalty": "presence_penalty",
    "repetition_penalty": "repetition_penalty",
    "seed": "sampling_seed",
    "stop_token_ids": "stop_token_ids",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
}

_Scored = tuple[float | None, Id, str | None]
"""Logprob, id, and the token's text if the engine has a tokenizer."""


class _Finish(msgspec.Struct):
    type: str
    matched: int | str | list[int] | None = None
    message: str | None = None
    status_code: int | None = None


class _Meta(msgspec.Struct):
    completion_tokens: int
    cached_tokens: int | None = None
    finish_reason: _Finish | None = None
    output_token_logprobs: list[_Scored] | None = None
    output_top_logprobs: list[list[_Scored] | None] | None = None


class _Event(msgspec.Struct):
    output_ids: list[Id] = []
    meta_info: _Meta | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Event).decode
_T = TypeVar("_T")


class SglangCall:
    """A request to SGLang."""

    def __init__(self, request: EngineRequest) -> None:
        self._request_id = request.request_id
        self._count = 0
        """The ids that came so far."""
        sampling = sampling_of(request)
        if sampling.get("top_k") == 0:  # vLLM's other word for "all"
            del sampling["top_k"]
        check_understood(sampling, (*_SAMPLING, "structured_outputs"), engine="sglang")
        parameters = {theirs: sampling[ours] for ours, theirs in _SAMPLING.items() if ours in sampling}
        self._body: Body = {
            "rid": request.request_id,
            "input_ids": prompt_of(request),
            "stream": True,
            "sampling_params": {**parameters, **for_sglang(sampling.get("structured_outputs", {}))},
        }
        if "logprobs" in sampling:
            self._body |= {"return_logprob": True, "top_logprobs_num": sampling["logprobs"]}

    def bodies(self) -> Iterator[Body]:
        """The one body."""
        yield self._body

    def read(self, data: bytes) -> EngineOutput:
        """
        Return what is new in one event.

        Raises:
            ValueError: It is not what SGLang sends.
        """
        event = _decode(data)
        if event.error is not None:
            return error_output(self._request_id, event.error)
        if event.meta_info is None:
            raise ValueError("there is no meta_info")
        meta, finish = event.meta_info, event.meta_info.finish_reason
        if finish is not None and finish.type == "abort" and meta.completion_tokens < self._count:
            meta.completion_tokens = self._count  # what stops a request that waits or was moved does not know what came before
        total = meta.completion_tokens
        ids = self._new(event.output_ids, total, "output_ids")
        logprobs = None
        if meta.output_token_logprobs is not None:
            scored = self._new(meta.output_token_logprobs, total, "output_token_logprobs")
            no_top: list[list[_Scored] | None] = [None] * total
            top = self._new(meta.output_top_logprobs or no_top, total, "output_top_logprobs")
            logprobs = [_logprob(one, others) for one, others in zip(scored, top, strict=True)]
        self._count = total
        if finish is None:
            return EngineOutput(request_id=self._request_id, token_ids=ids, logprobs=logprobs)
        refused = finish.type == "abort" and finish.status_code is not None
        matched = finish.matched if isinstance(finish.matched, (int, str)) else None
        reason, stop = finish_reason("error" if refused else finish.type, matched)
        return EngineOutput(
            request_id=self._request_id,
            token_ids=ids,
            logprobs=logprobs,
            finish_reason=reason,
            stop_reason=stop,
            error=finish.message if finish.type == "abort" else None,
            error_status=finish.status_code if refused else None,
            cached_tokens=meta.cached_tokens,
        )

    def _new(self, values: list[_T], total: int, name: str) -> list[_T]:
        """
        Return the values that are new.

        A server sends all of them each time, or with `--incremental-streaming-output` only the new ones. `completion_tokens`
        counts all of them, and it says how many are new; in both forms these are the last.
        """
        new = total - self._count
        if new < 0 or len(values) not in (new, total):
            raise ValueError(f"completion_tokens is {total} after {self._count}, with {len(values)} {name}")
        return values[len(values) - new :]


def _logprob(scored: _Scored, top: list[_Scored] | None) -> Logprob:
    return Logprob(scored[0], None, tuple((token_id, logprob) for logprob, token_id, _ in top or () if logprob is not None))


class Sglang:
    """SGLang 0.5, best started with `--skip-tokenizer-init` and `--incremental-streaming-output`."""

    name = "sglang"
    path = "/generate"
    media_type = "text/event-stream"

    def begin(self, request: EngineRequest) -> SglangCall:
        """Begin a request."""
        return SglangCall(request)

    def answer(self) -> EventStream:
        """Server-sent events."""
        return EventStream()

    def aborts(self, request_ids: Sequence[str]) -> list[tuple[str, Body]]:
        """One post for each."""
        return [("/abort_request", {"rid": request_id}) for request_id in request_ids]
