"""``POST /v1/chat/completions``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.request.output import RequestOutput
from ..errors import OptionError
from ..logprob_shapes import chat_logprobs
from ..turns.formats import TurnFormat
from .answers import DONE, event
from .chat_prompts import chat_ids
from .errors import shown_reason
from .forced_calls import forced_calls
from .generation import Asked, Generation, usage_of
from .schema import ChatBody
from .texts import json_bytes
from .tool_calls import MessageDeltas, whole_message
from .turns import turn_of

__all__ = ["ChatShape", "chat_completion"]

DEFAULT_MAX_TOKENS = 4096
"""Where nobody said how long the model's context is; else all of it."""

KIND, CHUNK_KIND = "chat.completion", "chat.completion.chunk"


async def chat_completion(asked: Asked, body: ChatBody) -> Generation:
    """
    Make a request of a body.

    Raises:
        DetokError, Refused: Something in it is not possible.
    """
    asked.config.limits.check_choices(1, asked.n)
    logprobs = _logprobs(asked, body)
    extra = _structured(body)
    prompt = await chat_ids(asked.model, body, asked.config)
    max_tokens = _max_tokens(asked, body, len(prompt))
    asked.check_length(prompt, max_tokens)
    turn = _turn(asked, body, prompt)
    options = asked.options(max_tokens=max_tokens, channels=turn)
    has_model = getattr(asked.model.frontend.engine, "has_model", True)
    forced = forced_calls(turn, body.tools, body.tool_choice, parallel=body.parallel_tool_calls is not False, has_model=has_model)
    if forced:
        extra["structured_outputs"] = forced
    sampling = asked.sampling(max_tokens=max_tokens, logprobs=logprobs, **extra)
    return Generation(asked=asked, prompts=[prompt], options=options, sampling=sampling, shape=ChatShape(asked, body, prompt))


def _turn(asked: Asked, body: ChatBody, prompt: Sequence[int]) -> TurnFormat | None:
    turn, tokenizer = asked.model.channels, asked.model.tokenizer
    return None if turn is None else turn_of(turn, tokenizer, prompt, tools=body.tools, tool_choice=body.tool_choice)


def _logprobs(asked: Asked, body: ChatBody) -> int | None:
    if body.top_logprobs is not None:
        if not body.logprobs:
            raise OptionError(option="top_logprobs", value=body.top_logprobs, accepted="it goes with logprobs=true")
        asked.config.limits.check_logprobs("top_logprobs", body.top_logprobs)
    return (body.top_logprobs or 0) if body.logprobs else None


def _max_tokens(asked: Asked, body: ChatBody, prompt_tokens: int) -> int:
    field = "max_tokens" if body.max_completion_tokens is None else "max_completion_tokens"
    given = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
    if given is not None:
        if given < 1:
            raise OptionError(option=field, value=given, accepted="it is at least 1")
        return given
    most = asked.model.max_model_len
    return DEFAULT_MAX_TOKENS if most is None else max(1, most - prompt_tokens)


def _structured(body: ChatBody) -> dict[str, Any]:
    """`response_format` as the engine's `structured_outputs`."""
    wanted = body.response_format or {"type": "text"}
    match wanted:
        case {"type": "text"}:
            return {}
        case {"type": "json_object"}:
            return {"structured_outputs": {"json_object": True}}
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return {"structured_outputs": {"json": schema}}
    accepted = "its type is text, json_object, or json_schema with json_schema.schema"
    raise OptionError(option="response_format", value=wanted, accepted=accepted)


def _message_deltas(body: ChatBody) -> MessageDeltas:
    return MessageDeltas(parallel=body.parallel_tool_calls is not False, reasoning=body.include_reasoning is not False)


class ChatShape:
    """Outputs as OpenAI's chat completions."""

    def __init__(self, asked: Asked, body: ChatBody, prompt: Sequence[int]) -> None:
        self._asked = asked
        self._prompt = prompt
        self._ids = bool(body.return_token_ids)
        self._names_ids = bool(body.return_tokens_as_token_ids)
        self._logprobs = bool(body.logprobs)
        self._completion_tokens = 0
        self._unopened = set(range(asked.n))
        has_parts = asked.model.channels is not None
        self._messages = [_message_deltas(body) for _ in range(asked.n)] if has_parts else None
        self._plain = not (self._ids or self._logprobs or self._messages)
        self._usage_field = {"usage": None} if asked.wants_usage else {}
        usage = ',"usage":null' if asked.wants_usage else ""
        head = json_bytes(asked.head(CHUNK_KIND))[:-1].decode()
        self._begin = [f'data: {head},"choices":[{{"index":{index},"delta":{{"content":'.encode() for index in range(asked.n)]
        self._end = f'}},"logprobs":null,"finish_reason":null}}]{usage}}}\n\n'.encode()

    def chunk(self, index: int, output: RequestOutput) -> bytes:
        """Return the events of an output; before those of the first one, the one that says whose message it is."""
        if self._plain and output.finish_reason is None and index not in self._unopened:
            return self._begin[index] + json_bytes(output.text) + self._end
        events = [self._opening(index)] if index in self._unopened else []
        deltas = self._deltas(index, output)
        bare = {"index": index, "logprobs": None, "finish_reason": None}
        events += [self._event({**bare, "delta": delta}) for delta in deltas[:-1]]
        if deltas or output.finished or self._ids or output.logprobs:
            delta = deltas[-1] if deltas else {}
            events.append(self._event({"index": index, "delta": delta, **self._beside(index, output)}))
        return b"".join(events)

    def last(self) -> bytes:
        """Return usage, if it was asked for, and the end."""
        if not self._asked.wants_usage:
            return DONE
        return event({**self._asked.head(CHUNK_KIND), "choices": [], "usage": self.usage()}) + DONE

    def answer(self, outputs: Sequence[RequestOutput]) -> dict[str, Any]:
        """Return all choices."""
        choices = []
        for index, output in enumerate(outputs):
            message = whole_message(self._deltas(index, output))
            choices.append({"index": index, "message": message, **self._beside(index, output)})
        prompt = {"prompt_token_ids": self._prompt} if self._ids else {}
        return {**self._asked.head(KIND), "choices": choices, "usage": self.usage(), **prompt}

    def _opening(self, index: int) -> bytes:
        self._unopened.discard(index)
        delta = {"role": "assistant", "content": ""}
        more = {"prompt_token_ids": self._prompt} if self._ids else {}
        return self._event({"index": index, "delta": delta, "logprobs": None, "finish_reason": None}, **more)

    def _event(self, choice: dict[str, Any], **more: Any) -> bytes:
        return event({**self._asked.head(CHUNK_KIND), "choices": [choice], **self._usage_field, **more})

    def _deltas(self, index: int, output: RequestOutput) -> list[dict[str, Any]]:
        if self._messages is None:
            return [{"content": output.text}]
        return self._messages[index].feed(output.channels or ())

    def _beside(self, index: int, output: RequestOutput) -> dict[str, Any]:
        """What a choice has beside its delta or message."""
        logprobs = None
        if self._logprobs and output.logprobs is not None:
            logprobs = chat_logprobs(output.logprobs, as_token_ids=self._names_ids)
        reason = shown_reason(output)
        if reason == "stop" and self._messages is not None and self._messages[index].calls:
            reason = "tool_calls"
        beside: dict[str, Any] = {"logprobs": logprobs, "finish_reason": reason}
        if output.finished:
            beside["stop_reason"] = output.stop_reason
            self._completion_tokens += output.tokens_kept or 0
        if self._ids:
            beside["token_ids"] = output.token_ids
        return beside

    def usage(self) -> dict[str, Any]:
        """Count tokens, of the choices that have ended."""
        usage = usage_of(len(self._prompt), self._completion_tokens)
        if self._messages is None:
            return usage
        reasoning = sum(one.reasoning_tokens for one in self._messages)
        return {**usage, "completion_tokens_details": {"reasoning_tokens": reasoning}}
