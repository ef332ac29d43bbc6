"""What completions and chat completions do alike: from a body to requests, and from their outputs to an answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from starlette.responses import Response

from ..core.request.logprobs import TokenLogprob
from ..core.request.options import RequestOptions
from ..core.request.output import RequestOutput
from ..errors import OptionError
from ..frontend.pending import Outlet, Pending
from ..turns.formats import TurnFormat
from .answers import Shape
from .config import ServerConfig
from .errors import OVERFLOW, Refused, failure_of
from .models import Model
from .request_ids import HEADER
from .schema import EngineFields, GenerationBody
from .sse import EventStream
from .structured import structured_of
from .texts import json_bytes

__all__ = ["Asked", "Generation", "UsageCount", "prompt_logprobs", "usage_of"]

SAMPLING = EngineFields.__struct_fields__
"""Of a body, what is for the engine. The text side's own fields never go there."""

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
    client_id: str | None = None
    """What the client calls the request."""
    created: int = field(default_factory=lambda: int(time.time()))
    called: dict[str, str] = field(default_factory=dict)
    """What the client called what the engine gets, where that is not the same."""
    cached: dict[int, int] = field(default_factory=dict)
    """By choice, tokens of its prompt that the engine had in its cache; empty if it does not say."""

    @classmethod
    def of(
        cls,
        body: GenerationBody,
        model: Model,
        config: ServerConfig,
        prefix: str,
        client_id: str | None = None,
        own_id: str | None = None,
    ) -> Asked:
        """Give a request its id: the client's, from the header or the body, after what kind it is; else one of ours."""
        client_id = client_id or body.request_id
        name = client_id or own_id or uuid4().hex
        return cls(body=body, model=model, config=config, id=f"{prefix}-{name}", client_id=client_id)

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

    @property
    def wants_usage_always(self) -> bool:
        """Whether each chunk of a stream has the usage so far."""
        return self.wants_usage and bool(self.body.stream_options and self.body.stream_options.continuous_usage_stats)

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
        structured, field = structured_of(self.body)
        given.pop("structured_outputs", None)
        if structured is not None:
            given["structured_outputs"] = structured
            self.called["structured_outputs"] = field
        if logprobs is not None:
            given["logprobs"] = logprobs
        return {**given, "max_tokens": max_tokens, **more}

    def check_prompt_logprobs(self, count: int | None) -> None:
        """
        Look at how much is asked of what the model says of the prompt.

        Raises:
            Refused, OptionError: It is too much, or comes in no stream, or the engine does not tell it.
        """
        if count is None:
            return
        self.config.limits.check_logprobs("prompt_logprobs", count)
        if self.streams:
            raise OptionError(option="prompt_logprobs", value=count, accepted="they come in answers without stream=true")
        if self.model.prompts is None and self.model.has_model:
            accepted = "the engine behind this server does not tell them: leave it out"
            raise OptionError(option="prompt_logprobs", value=count, accepted=accepted)

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
                f"This model's maximum context length is {most} tokens. However, you requested {len(prompt) + max_tokens} tokens "
                f"({len(prompt)} in the prompt, {max_tokens} in the completion). "
                f"Please reduce the length of the prompt, or ask for fewer tokens ({OVERFLOW})."
            )
            raise Refused(400, message, param="max_tokens", code=OVERFLOW)


@dataclass(slots=True, kw_only=True)
class Generation:
    """A request that is ready to begin: one of an engine's for each choice."""

    asked: Asked
    prompts: Sequence[Sequence[int]]
    """Those of one prompt's choices stand together."""
    options: RequestOptions
    sampling: dict[str, Any]
    shape: Shape
    fill_logprobs: bool = False
    """Whether each token has an entry in the logprobs, though the engine gives no number for it."""
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
        given: dict[str, Any] = {"sampling": sampling, "request_id": self.asked.id, "fill_logprobs": self.fill_logprobs}
        try:
            told = partial(self.asked.cached.__setitem__, index)
            name = await frontend.submit(prompt, outlet, options=self.options, told=told, **given)
        except OptionError as error:
            if error.option not in self.asked.called:
                raise
            raise OptionError(option=self.asked.called[error.option], value=error.value, accepted=error.accepted) from error
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
        headers = {HEADER: self.asked.client_id or self.asked.id}
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


class UsageCount:
    """
    The tokens of an answer so far.

    Args:
        asked: Says whether chunks have usage, and which.
        prompt_tokens: Of all prompts.
    """

    def __init__(self, asked: Asked, prompt_tokens: int) -> None:
        self._asked = asked
        self._prompt_tokens = prompt_tokens
        self._wants, self._always = asked.wants_usage, asked.wants_usage_always
        self._open: dict[int, int] = {}
        """Of choices that go on."""
        self._ended = 0

    def count(self, index: int, output: RequestOutput) -> None:
        """Count what is new of a choice."""
        if output.finished:
            self._open.pop(index, None)
            self._ended += output.tokens_kept or 0
        elif self._always:
            self._open[index] = self._open.get(index, 0) + len(output.token_ids) - output.retracted_tokens

    @property
    def of_a_chunk(self) -> dict[str, Any]:
        """What a chunk has of it."""
        if self._always:
            return {"usage": usage_of(self._prompt_tokens, self._ended + sum(self._open.values()), self._cached)}
        return {"usage": None} if self._wants else {}

    @property
    def _cached(self) -> int | None:
        """Of all prompts. The first choice of a prompt may have found less of it than those after it."""
        if not self._asked.cached:
            return None
        least: dict[int, int] = {}
        for index, tokens in self._asked.cached.items():
            place = index // self._asked.n
            least[place] = min(tokens, least.get(place, tokens))
        return sum(least.values())

    def whole(self) -> dict[str, Any]:
        """Return what there is of the choices that have ended."""
        return usage_of(self._prompt_tokens, self._ended, self._cached)


def usage_of(prompt_tokens: int, completion_tokens: int, cached_tokens: int | None = None) -> dict[str, Any]:
    """Return OpenAI's `usage`; what was cached only if an engine said it."""
    usage: dict[str, Any] = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }
    return usage if cached_tokens is None else {**usage, "prompt_tokens_details": {"cached_tokens": cached_tokens}}


def prompt_logprobs(told: RequestOutput | None) -> list[dict[str, Any] | None] | None:
    """Return vLLM's `prompt_logprobs` of a prompt: for each token but the first, those that were asked for, by their ids."""
    if told is None or told.logprobs is None:
        return None
    return [_ranked(entry) for entry in told.logprobs]


def _ranked(entry: TokenLogprob) -> dict[str, Any] | None:
    if entry.logprob is None:
        return None
    own = {"logprob": entry.logprob, "rank": entry.rank, "decoded_token": entry.token}
    others = {
        str(one.token_id): {"logprob": one.logprob, "rank": rank, "decoded_token": one.token}
        for rank, one in enumerate(entry.top, 1)
    }
    return {str(entry.token_id): own} | {name: one for name, one in others.items() if name != str(entry.token_id)}


def _nothing() -> RequestOutput:
    """The output of a request for no tokens."""
    output = RequestOutput()
    output.finish_reason, output.tokens_kept, output.text_end = "length", 0, 0
    return output


def _listed(value: str | list[str] | None) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else value
