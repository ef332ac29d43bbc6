"""vLLM: `POST /inference/v1/generate`, ids in and ids out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ..core.request.logprobs import Logprob
from .base import EngineOutput, EngineRequest
from .dialect import Body, Id, finish_reason
from .events import EventStream
from .sampling import prompt_of, sampling_of
from .words import error_output

__all__ = ["Vllm", "VllmCall"]

# These stand beside the sampling parameters in a request, not among them.
_BESIDE = ("cache_salt", "priority")


class _Top(msgspec.Struct, gc=False):
    token_id: Id
    logprob: float


class _Entry(msgspec.Struct, gc=False):
    token_id: Id
    logprob: float | None = None
    rank: int | None = None
    top_logprobs: list[_Top] = []


class _Logprobs(msgspec.Struct, gc=False):
    content: list[_Entry] | None = None


class _Choice(msgspec.Struct, gc=False):
    index: int = 0
    token_ids: list[Id] | None = None
    finish_reason: str | None = None
    stop_reason: int | str | None = None
    logprobs: _Logprobs | None = None


class _Event(msgspec.Struct, gc=False):
    choices: list[_Choice] = []
    error: Any = None


_decode = msgspec.json.Decoder(_Event).decode


class VllmCall:
    """A request to vLLM."""

    def __init__(self, request: EngineRequest, *, model: str | None) -> None:
        self._request_id = request.request_id
        sampling = sampling_of(request)
        self._body: Body = {
            "request_id": request.request_id,
            "token_ids": prompt_of(request),
            "stream": True,
            **{name: sampling.pop(name) for name in _BESIDE if name in sampling},
            # With a tokenizer of its own (no `--tokens-only`) vLLM would make text of every token, which nobody asks it for.
            "sampling_params": {**sampling, "detokenize": False},
        }
        if model is not None:
            self._body["model"] = model

    def bodies(self) -> Iterator[Body]:
        """The one body."""
        yield self._body

    def read(self, data: bytes) -> EngineOutput:
        """
        Return what one event says; one about usage has no choice and says nothing.

        Raises:
            ValueError: It is not what vLLM sends.
        """
        event = _decode(data)
        if event.error is not None:
            return error_output(self._request_id, event.error)
        if not event.choices:
            return EngineOutput(request_id=self._request_id)
        if len(event.choices) > 1 or event.choices[0].index:
            raise ValueError("there is more than one choice, and one was asked for")
        choice = event.choices[0]
        reason, stop = finish_reason(choice.finish_reason, choice.stop_reason)
        return EngineOutput(
            request_id=self._request_id,
            token_ids=choice.token_ids or [],
            logprobs=None if choice.logprobs is None else _logprobs(choice.logprobs.content or [], choice.token_ids or []),
            finish_reason=reason,
            stop_reason=stop,
            error="the engine ended the request with an error" if reason == "error" else None,
        )


def _logprobs(entries: list[_Entry], token_ids: list[int]) -> list[Logprob]:
    if [entry.token_id for entry in entries] != token_ids:
        raise ValueError("the entries of logprobs are not those of token_ids")
    return [
        Logprob(entry.logprob, entry.rank, tuple((top.token_id, top.logprob) for top in entry.top_logprobs)) for entry in entries
    ]


class Vllm:
    """
    vLLM 0.32 and newer, started with `--enable-scale-out` or `--tokens-only`.

    Args:
        model: The name under which it is served, or a LoRA adapter's; None for the one that it has.
    """

    name = "vllm"
    path = "/inference/v1/generate"
    media_type = "text/event-stream"

    def __init__(self, *, model: str | None = None) -> None:
        self._model = model

    def begin(self, request: EngineRequest) -> VllmCall:
        """Begin a request."""
        return VllmCall(request, model=self._model)

    def answer(self) -> EventStream:
        """Server-sent events."""
        return EventStream()

    def aborts(self, request_ids: Sequence[str]) -> list[tuple[str, Body]]:
        """One post for all. vLLM knows a request by the id that it answers, which has a prefix."""
        return [("/inference/v1/abort_requests", {"request_ids": [f"generate-tokens-{name}" for name in request_ids]})]
