"""What completions and chat completions do alike: from a body to requests, and from their outputs to an answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from starlette.responses import Response

from ..core.request.options import RequestOptions
from ..core.request.output import RequestOutput
from ..frontend.pending import Outlet, Pending
from ..turns.formats import TurnFormat
from .answers import Shape
from .config import ServerConfig
from .errors import Refused, failure_of
from .models import Model
from .schema import GenerationBody
from .sse import EventStream
from .texts import json_bytes

__all__ = ["Asked", "Generation", "usage_of"]

# Of a body, what is for the engine. The text side's own fields never go there.
SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias"),
    *("allowed_token_ids", "bad_words", "structured_outputs", "priority", "cache_salt"),
    *("ignore_eos", "min_tokens", "stop_token_ids"),
)

STOP_REGEX_SECONDS = 0.02
"""What a pattern may take at a token. A request whose pattern takes longer fails: others wait for it."""

JSON = "application/json"


@dataclass(slots=True, kw_only=True)
class Asked:
    """A body with the model that it is for; and what every chunk of the answer repeats."""

    body: GenerationBody
    model: Model
    config: ServerConfig
    id: str
    created: int = field(default_factory=lambda: int(time.time()))

    @classmethod
    def of(cls, body: GenerationBody, model: Model, config: ServerConfig, prefix: str) -> Asked:
        """Give a request its id."""
        return cls(body=body, model=model, config=config, id=f"{prefix}-{uuid4().hex}")

    @property
    def n(self) -> int:
        """Choices of each prompt."""
        return 1 if self.body.n is None else self.body.n

    @property
    def streams(self) -> bool:
        """Whether the answer is a stream."""
        return bool(self.body.stream)

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with usage."""
        return self.body.stream_options is not None and bool(self.body.stream_options.include_usage)

    def head(self, kind: str) -> dict[str, Any]:
        """What answers and chunks begin with."""
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model.name}

    def options(self, *, max_tokens: int, channels: TurnFormat | None = None) -> RequestOptions:
        """
        Return the text side's options.

        Raises:
            Refused, OptionError, TokenTypeError, MissingExtra: One is not possible.
        """
        body = self.body
        stop, stop_regex = _listed(body.stop), _listed(body.stop_regex)
        stop_token_ids = body.stop_token_ids or []
        self.config.limits.check_stops(stop=stop, stop_regex=stop_regex, stop_token_ids=stop_token_ids)
        return RequestOptions(
            stop=stop,
            stop_regex=stop_regex,
            stop_regex_timeout=STOP_REGEX_SECONDS,
            stop_token_ids=stop_token_ids,
            ignore_eos=bool(body.ignore_eos),
            include_stop_str_in_output=bool(body.include_stop_str_in_output or body.no_stop_trim),
            min_tokens=body.min_tokens or 0,
            max_tokens=max_tokens,
            skip_special_tokens=body.skip_special_tokens is not False,
            spaces_between_special_tokens=body.spaces_between_special_tokens,
            byte_fallback=body.byte_fallback or self.model.byte_fallback,
            # Whoever wants no stream gets what a stream would have given, gathered where it is made.
            output="delta" if self.streams else "final",
            stream_interval=body.stream_interval or 1,
            channels=channels,
        )

    def sampling(self, *, max_tokens: int, logprobs: int | None, **more: Any) -> dict[str, Any]:
        """Return what the engine is told."""
        given = {name: value for name in SAMPLING if (value := getattr(self.body, name)) is not None}
        if logprobs is not None:
            given["logprobs"] = logprobs
        return {**given, "max_tokens": max_tokens, **more}

    def check_length(self, prompt: Sequence[int], max_tokens: int) -> None:
        """
        Look at prompt and output together.

        Raises:
            Refused: The model cannot take so much.
        """
        self.model.limits.check_ids(prompt)
        most = self.model.max_model_len
        if most is not None and len(prompt) + max_tokens > most:
            message = (
                f"this model takes {most:,} tokens at most, and {len(prompt) + max_tokens:,} were asked for: "
                f"{len(prompt):,} of the prompt and max_tokens={max_tokens:,}; shorten the prompt or ask for less"
            )
            raise Refused(400, message, param="max_tokens", code="context_length_exceeded")


@dataclass(slots=True, kw_only=True)
class Generation:
    """A request that is ready to begin: one of an engine's for each choice."""

    asked: Asked
    prompts: Sequence[Sequence[int]]
    """Those of one prompt's choices stand together."""
    options: RequestOptions
    sampling: dict[str, Any]
    shape: Shape
    names: list[str] = field(default_factory=list)
    """Of the requests that were begun."""

    @property
    def count(self) -> int:
        """How many choices there are."""
        return len(self.prompts) * self.asked.n

    async def begin(self, outlets: Sequence[Outlet]) -> None:
        """
        Begin the request of each choice, all at once: an engine may take its time to say that it has one.

        Raises:
            Exception: What one of them failed with; the others are to be dropped.
        """
        if len(outlets) == 1:
            await self._submit(0, outlets[0])
            return
        try:
            async with asyncio.TaskGroup() as group:
                for index, outlet in enumerate(outlets):
                    group.create_task(self._submit(index, outlet))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _submit(self, index: int, outlet: Outlet) -> None:
        if self.sampling["max_tokens"] == 0:
            outlet.put(_nothing())
            return
        sampling, seed = self.sampling, self.asked.body.seed
        if seed is not None:
            # With one seed for all, all choices would be one.
            sampling = {**sampling, "seed": seed + index % self.asked.n}
        prompt = self.prompts[index // self.asked.n]
        frontend = self.asked.model.frontend
        name = await frontend.submit(prompt, outlet, options=self.options, sampling=sampling, request_id=self.asked.id)
        self.names.append(name)

    def drop(self) -> None:
        """End what is still open."""
        for name in self.names:
            self.asked.model.frontend.drop(name)

    async def respond(self) -> Response | EventStream:
        """
        Return the answer: a stream that is about to begin, or all of it.

        Raises:
            EngineError: The engine refused it, or failed.
            Exception: Whatever else a request failed with.
        """
        headers = {"x-request-id": self.asked.id}
        if self.asked.streams:
            given = [(name.encode(), value.encode()) for name, value in headers.items()]
            return EventStream(self, self.shape, heartbeat=self.asked.config.heartbeat_seconds, headers=given)
        whole = [Pending() for _ in range(self.count)]
        outputs = []
        try:
            await self.begin(whole)
            for pending in whole:
                output = await pending.get()
                if (failure := failure_of(output)) is not None:
                    raise failure
                outputs.append(output)
        finally:
            self.drop()
        return Response(json_bytes(self.shape.answer(outputs)), media_type=JSON, headers=headers)


def usage_of(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    """Return OpenAI's `usage`."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


def _nothing() -> RequestOutput:
    """The output of a request for no tokens."""
    output = RequestOutput()
    output.finish_reason, output.tokens_kept, output.text_end = "length", 0, 0
    return output


def _listed(value: str | list[str] | None) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else value
