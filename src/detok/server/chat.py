"""``POST /v1/chat/completions``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.request.output import RequestOutput
from ..errors import OptionError
from ..logprob_shapes import chat_logprobs
from ..turns.formats import TurnFormat
from .answers import DONE, event
from .chat_prompts import chat_ids, tools_of
from .errors import Refused, shown_reason
from .forced_calls import forced_calls
from .generation import Asked, Generation, UsageCount, prompt_logprobs
from .schema import ChatBody
from .texts import json_bytes
from .tool_calls import MessageDeltas, whole_message
from .turns import turn_of

__all__ = ["ChatShape", "chat_completion"]

DEFAULT_MAX_TOKENS = 4096
"""Where nobody said how long the model's context is; else all of it."""

BEYOND_TEXT = ("modalities", "audio", "web_search_options")

KIND, CHUNK_KIND = "chat.completion", "chat.completion.chunk"


async def chat_completion(asked: Asked, body: ChatBody) -> Generation:
    """
    Make a request of a body.

    Raises:
        DetokError, Refused: Something in it is not possible.
    """
    asked.config.limits.check_choices(1, asked.n)
    logprobs = _logprobs(asked, body)
    _take_old_names(body)
    asked.check_prompt_logprobs(body.prompt_logprobs)
    prompt = await chat_ids(asked.model, body, asked.config)
    max_tokens = _max_tokens(asked, body, len(prompt))
    asked.check_length(prompt, max_tokens)
    turn = _turn(asked, body, prompt)
    options = asked.options(max_tokens=max_tokens, channels=turn)
    extra = _beyond(body)
    has_model = getattr(asked.model.frontend.engine, "has_model", True)
    is_parallel = body.parallel_tool_calls is not False
    forced = forced_calls(turn, tools_of(body), body.tool_choice, parallel=is_parallel, has_model=has_model)
    if forced:
        extra["structured_outputs"] = forced
    sampling = asked.sampling(max_tokens=max_tokens, logprobs=logprobs, **extra)
    scored = None
    if body.prompt_logprobs is not None:
        scored = await asked.model.told_prompt(prompt, body.prompt_logprobs, options.decoding, asked.id)
    return Generation(
        asked=asked, prompts=[prompt], options=options, sampling=sampling, shape=ChatShape(asked, body, prompt, scored)
    )


def _turn(asked: Asked, body: ChatBody, prompt: Sequence[int]) -> TurnFormat | None:
    turn, tokenizer = asked.model.channels, asked.model.tokenizer
    return None if turn is None else turn_of(turn, tokenizer, prompt, tools=tools_of(body), tool_choice=body.tool_choice)


def _logprobs(asked: Asked, body: ChatBody) -> int | None:
    if body.top_logprobs is not None:
        if not body.logprobs and body.top_logprobs:
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


def _beyond(body: ChatBody) -> dict[str, Any]:
    """Wishes that no engine of token ids fulfils, for it to refuse."""
    return {name: value for name in BEYOND_TEXT if (value := getattr(body, name))}


def _take_old_names(body: ChatBody) -> None:
    """Take `function_call` of the older API for the `tool_choice` that it was."""
    if body.tool_choice is None and body.function_call is not None:
        name = body.function_call
        body.tool_choice = name if isinstance(name, str) else {"type": "function", "function": name}


def _message_deltas(body: ChatBody) -> MessageDeltas:
    return MessageDeltas(parallel=body.parallel_tool_calls is not False, reasoning=body.include_reasoning is not False)


class ChatShape:
    """Outputs as OpenAI's chat completions."""

    def __init__(self, asked: Asked, body: ChatBody, prompt: Sequence[int], scored: RequestOutput | None = None) -> None:
        self._asked = asked
        self._scored = {"prompt_logprobs": prompt_logprobs(scored)} if body.prompt_logprobs is not None else {}
        self._prompt = prompt
        self._ids = bool(body.return_token_ids)
        self._of_prompt: dict[str, Any] = {"prompt_token_ids": prompt} if self._ids else {}
        if body.return_prompt_text:
            self._of_prompt["prompt_text"] = asked.model.tokenizer.decode(list(prompt), skip_special_tokens=False)
        self._names_ids = bool(body.return_tokens_as_token_ids)
        self._logprobs = bool(body.logprobs)
        self._top = body.top_logprobs or 0
        self._usage = UsageCount(asked, len(prompt))
        self._unopened = set(range(asked.n))
        has_parts = asked.model.channels is not None
        self._messages = [_message_deltas(body) for _ in range(asked.n)] if has_parts else None
        self._plain = not (self._ids or self._logprobs or self._messages or asked.wants_usage_always)
        usage = ',"usage":null' if asked.wants_usage else ""
        head = json_bytes(asked.head(CHUNK_KIND))[:-1].decode()
        self._begin = [f'data: {head},"choices":[{{"index":{index},"delta":{{"content":'.encode() for index in range(asked.n)]
        self._end = f'}},"logprobs":null,"finish_reason":null}}]{usage}}}\n\n'.encode()

    def chunk(self, index: int, output: RequestOutput) -> bytes:
        """Return the events of an output; before those of the first one, the one that says whose message it is."""
        if self._plain and output.finish_reason is None and index not in self._unopened:
            return self._begin[index] + json_bytes(output.text) + self._end
        self._usage.count(index, output)
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
            self._usage.count(index, output)
            message = _with_both_names(whole_message(self._deltas(index, output)))
            choices.append({"index": index, "message": message, **self._beside(index, output)})
        return {**self._asked.head(KIND), "choices": choices, "usage": self.usage(), **self._of_prompt, **self._scored}

    def told(self, index: int, output: RequestOutput) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Return the deltas of an output and what a choice has beside them, for a shape of another API."""
        self._usage.count(index, output)
        return self._deltas(index, output), self._beside(index, output)

    def failed(self, error: Refused) -> bytes:
        """Return the events of a failure."""
        return event(error.as_dict()) + DONE

    def _opening(self, index: int) -> bytes:
        self._unopened.discard(index)
        delta = {"role": "assistant", "content": ""}
        more = self._of_prompt
        return self._event({"index": index, "delta": delta, "logprobs": None, "finish_reason": None}, **more)

    def _event(self, choice: dict[str, Any], **more: Any) -> bytes:
        return event({**self._asked.head(CHUNK_KIND), "choices": [choice], **self._usage.of_a_chunk, **more})

    def _deltas(self, index: int, output: RequestOutput) -> list[dict[str, Any]]:
        if self._messages is None:
            return [{"content": output.text}]
        return [_with_both_names(one) for one in self._messages[index].feed(output.channels or ())]

    def _beside(self, index: int, output: RequestOutput) -> dict[str, Any]:
        """What a choice has beside its delta or message."""
        logprobs = None
        if self._logprobs and output.logprobs is not None:
            logprobs = chat_logprobs(output.logprobs, as_token_ids=self._names_ids, most=self._top)
        reason = shown_reason(output)
        if reason == "stop" and self._messages is not None and self._messages[index].calls:
            reason = "tool_calls"
        beside: dict[str, Any] = {"logprobs": logprobs, "finish_reason": reason}
        if output.finished:
            beside["stop_reason"] = output.stop_reason
        if self._ids:
            beside["token_ids"] = output.token_ids
        return beside

    def usage(self) -> dict[str, Any]:
        """Count tokens, of the choices that have ended."""
        usage = self._usage.whole()
        if self._messages is None:
            return usage
        reasoning = sum(one.reasoning_tokens for one in self._messages)
        return {**usage, "completion_tokens_details": {"reasoning_tokens": reasoning}}


def _with_both_names(message: dict[str, Any]) -> dict[str, Any]:
    """A delta or message whose reasoning has the name of vLLM's API, too."""
    return {**message, "reasoning": message["reasoning_content"]} if "reasoning_content" in message else message
