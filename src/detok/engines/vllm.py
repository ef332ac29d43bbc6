"""vLLM: `POST /inference/v1/generate`, ids in and ids out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ..core.request.logprobs import Logprob
from .base import EngineOutput, EngineRequest
from .dialect import Body, Id, finish_reason
from .events import EventStream, OneValue
from .sampling import check_understood, prompt_of, sampling_of
from .words import error_output

__all__ = ["Vllm", "VllmCall", "VllmPrompt", "VllmPromptCall"]

# These stand beside the sampling parameters in a request, not among them.
_BESIDE = ("cache_salt", "ec_transfer_params", "kv_transfer_params", "priority")

# Everything else is sent as it is. These its endpoint of token ids does not have.
_NOT_THERE = ("audio", "length_penalty", "modalities", "use_beam_search", "web_search_options")


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


class _PromptDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens_details: _PromptDetails | None = None


class _Event(msgspec.Struct, gc=False):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Event).decode


class VllmCall:
    """A request to vLLM."""

    def __init__(self, request: EngineRequest, *, model: str | None, cached_tokens: bool = False) -> None:
        self._request_id = request.request_id
        self._waits_for_usage = cached_tokens
        self._ending: EngineOutput | None = None
        """The end, until vLLM has said what was cached."""
        sampling = sampling_of(request)
        check_understood(sampling, sampling.keys() - _NOT_THERE, engine="vllm")
        sampling = {name: value for name, value in sampling.items() if name not in _NOT_THERE}
        if (more := sampling.pop("vllm_xargs", None)) is not None:
            sampling["extra_args"] = more
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
        if cached_tokens:
            self._body["stream_options"] = {"include_usage": True}

    def bodies(self) -> Iterator[Body]:
        """The one body."""
        yield self._body

    def read(self, data: bytes) -> EngineOutput:
        """
        Return what one event says; one about usage has no choice.

        It stands behind the end. Where it is waited for, the request ends with it.

        Raises:
            ValueError: It is not what vLLM sends.
        """
        event = _decode(data)
        if event.error is not None:
            return error_output(self._request_id, event.error)
        if not event.choices:
            return self._usage(event.usage)
        if len(event.choices) > 1 or event.choices[0].index:
            raise ValueError("there is more than one choice, and one was asked for")
        choice = event.choices[0]
        reason, stop = finish_reason(choice.finish_reason, choice.stop_reason)
        output = EngineOutput(
            request_id=self._request_id,
            token_ids=choice.token_ids or [],
            logprobs=None if choice.logprobs is None else _logprobs(choice.logprobs.content or [], choice.token_ids or []),
            finish_reason=reason,
            stop_reason=stop,
            error="the engine ended the request with an error" if reason == "error" else None,
        )
        if reason is None or reason == "error" or not self._waits_for_usage:
            return output
        self._ending = output
        return EngineOutput(request_id=self._request_id)

    def _usage(self, usage: _Usage | None) -> EngineOutput:
        output, self._ending = self._ending or EngineOutput(request_id=self._request_id), None
        if usage is not None and usage.prompt_tokens_details is not None:
            output.cached_tokens = usage.prompt_tokens_details.cached_tokens
        return output


class _Ranked(msgspec.Struct):
    logprob: float
    rank: int | None = None


class _Whole(msgspec.Struct):
    prompt_logprobs: list[dict[str, _Ranked] | None] | None = None
    error: Any = None


_decode_whole = msgspec.json.Decoder(_Whole).decode


class VllmPromptCall(VllmCall):
    """A request to vLLM for what the model says of a prompt: its output is the prompt."""

    def __init__(self, request: EngineRequest, *, model: str | None) -> None:
        super().__init__(request, model=model)
        self._ids = self._body["token_ids"]
        self._top: int = request.sampling.get("prompt_logprobs") or 0
        # One token has to be made; its prompt is what is asked for.
        self._body["sampling_params"] = {"max_tokens": 1, "prompt_logprobs": self._top, "detokenize": False}
        self._body["stream"] = False

    def read(self, data: bytes) -> EngineOutput:
        """
        Return the prompt with its logprobs; the first token has none.

        Raises:
            ValueError: It is not what vLLM answers.
        """
        answer = _decode_whole(data)
        if answer.error is not None:
            return error_output(self._request_id, answer.error)
        entries = answer.prompt_logprobs or []
        if len(entries) != len(self._ids):
            raise ValueError(f"there are {len(entries)} prompt_logprobs of {len(self._ids)} ids")
        logprobs = [self._logprob(*one) for one in zip(self._ids, entries, strict=True)]
        return EngineOutput(request_id=self._request_id, token_ids=self._ids, logprobs=logprobs, finish_reason="stop")

    def _logprob(self, token_id: int, entry: dict[str, _Ranked] | None) -> Logprob:
        if entry is None:
            return Logprob(None)
        own = entry.get(str(token_id))
        best = sorted(((int(name), one) for name, one in entry.items()), key=lambda pair: -pair[1].logprob)
        top = tuple((other, one.logprob) for other, one in best[: self._top])
        return Logprob(None, None, top) if own is None else Logprob(own.logprob, own.rank, top)


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
        cached_tokens: Whether to ask how much of a prompt was cached. vLLM says it only if it was started with
            `--enable-prompt-tokens-details`, and behind the end of a request, which waits for it.
    """

    name = "vllm"
    path = "/inference/v1/generate"
    media_type = "text/event-stream"

    def __init__(self, *, model: str | None = None, cached_tokens: bool = False) -> None:
        self._model = model
        self._cached_tokens = cached_tokens

    def begin(self, request: EngineRequest) -> VllmCall:
        """Begin a request."""
        return VllmCall(request, model=self._model, cached_tokens=self._cached_tokens)

    def answer(self) -> EventStream:
        """Server-sent events."""
        return EventStream()

    def aborts(self, request_ids: Sequence[str]) -> list[tuple[str, Body]]:
        """One post for all. vLLM knows a request by the id that it answers, which has a prefix."""
        return [("/inference/v1/abort_requests", {"request_ids": [f"generate-tokens-{name}" for name in request_ids]})]


class VllmPrompt(Vllm):
    """
    The same vLLM, asked what the model says of prompts: `prompt_logprobs` come in answers that are no streams.

    Args:
        model, cached_tokens: As `Vllm`; the second makes no difference.
    """

    media_type = "application/json"

    def begin(self, request: EngineRequest) -> VllmPromptCall:
        """Begin a request."""
        return VllmPromptCall(request, model=self._model)

    def answer(self) -> OneValue:  # type: ignore[override]  # both are what cuts an answer
        """One JSON value."""
        return OneValue()
