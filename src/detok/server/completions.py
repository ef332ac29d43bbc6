"""``POST /v1/completions``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ..core.request.logprobs import TokenLogprob
from ..core.request.options import RequestOptions
from ..core.request.output import RequestOutput
from ..errors import OptionError
from ..logprob_shapes import completion_logprobs
from .answers import DONE, event
from .errors import Refused, shown_reason
from .generation import Asked, Generation, UsageCount, prompt_logprobs
from .models import Model
from .schema import CompletionBody, Prompt
from .texts import json_bytes

__all__ = ["CompletionShape", "completion"]

DEFAULT_MAX_TOKENS = 16
"""OpenAI's, which vLLM has too."""

KIND = "text_completion"


async def completion(asked: Asked, body: CompletionBody) -> Generation:
    """
    Make a request of a body.

    Raises:
        Refused, OptionError, TokenTypeError, PromptTooLong: Something in it is not possible.
        EncoderBusy, EncodeUnsupported: Its texts cannot be encoded now, or ever.
    """
    _check(asked, body)
    given = _prompts(body.prompt)
    limits = asked.config.limits
    limits.check_choices(len(given), asked.n)
    max_tokens = DEFAULT_MAX_TOKENS if body.max_tokens is None else body.max_tokens
    options = asked.options(max_tokens=max(max_tokens, 1))
    if len(given) == 1:
        prompts = [await _ids(asked.model, body, given[0])]
    else:
        prompts = await asyncio.gather(*(_ids(asked.model, body, prompt) for prompt in given))
    for prompt in prompts:
        asked.check_length(prompt, max_tokens)
    scored = await _scored(asked, body, prompts, options)
    echoes = [_Echo(asked.model, *one, body, options) for one in zip(given, prompts, scored, strict=True)] if body.echo else []
    sampling = asked.sampling(max_tokens=max_tokens, logprobs=body.logprobs)
    return Generation(
        asked=asked,
        prompts=prompts,
        options=options,
        sampling=sampling,
        shape=CompletionShape(asked, body, prompts, echoes, scored if body.prompt_logprobs is not None else []),
        # A client of `echo` reads the lists beside the text, so they have to cover all of it.
        fill_logprobs=bool(body.echo) and body.logprobs is not None,
    )


async def _scored(
    asked: Asked, body: CompletionBody, prompts: Sequence[Sequence[int]], options: RequestOptions
) -> list[RequestOutput | None]:
    """What the model says of each prompt, if that was asked for and the engine tells it."""
    count = body.prompt_logprobs if body.prompt_logprobs is not None else body.logprobs if body.echo else None
    if count is None:
        return [None] * len(prompts)
    return list(await asyncio.gather(*(asked.model.told_prompt(one, count, options.decoding, asked.id) for one in prompts)))


def _check(asked: Asked, body: CompletionBody) -> None:
    if body.suffix:
        raise OptionError(option="suffix", value=body.suffix, accepted="text cannot be inserted here, only continued")
    if body.best_of not in (None, asked.n):
        raise OptionError(option="best_of", value=body.best_of, accepted="as many choices are answered as are made: n")
    if body.max_tokens == 0 and not body.echo:
        raise OptionError(option="max_tokens", value=0, accepted="it is at least 1, or echo is asked for")
    if body.logprobs is not None:
        asked.config.limits.check_logprobs("logprobs", body.logprobs)
    asked.check_prompt_logprobs(body.prompt_logprobs)


def _prompts(prompt: Prompt) -> list[str | list[int]]:
    """One or several, told apart by what is in the list."""
    if isinstance(prompt, str):
        return [prompt]
    kinds = {type(one) for one in prompt}
    if kinds == {int}:
        return [prompt]  # type: ignore[list-item]  # all of it is integers
    if not prompt or len(kinds) > 1 or [] in prompt:
        accepted = "it is a text, texts, token ids, or lists of token ids; no list of ids is empty, and kinds are not mixed"
        raise OptionError(option="prompt", value=prompt[:4], accepted=accepted)
    return prompt  # type: ignore[return-value]  # texts or lists of ids


async def _ids(model: Model, body: CompletionBody, prompt: str | list[int]) -> list[int]:
    if isinstance(prompt, str):
        adds = body.add_special_tokens is not False
        ids = await model.encode(prompt, add_special_tokens=adds, truncate=body.truncate_prompt_tokens, side=body.truncation_side)
        if not ids:
            raise OptionError(option="prompt", value=prompt, accepted="its text makes no token, and a model needs one")
        return ids
    for position, token_id in enumerate(prompt):
        if token_id < 0:
            raise OptionError(option=f"prompt[{position}]", value=token_id, accepted="a token id is 0 or more")
    return model.kept(prompt, body.truncate_prompt_tokens, body.truncation_side)


class _Echo:
    """A prompt that is repeated before the output."""

    def __init__(
        self,
        model: Model,
        given: str | list[int],
        ids: list[int],
        scored: RequestOutput | None,
        body: CompletionBody,
        options: RequestOptions,
    ) -> None:
        self.logprobs: list[TokenLogprob] = []
        if body.logprobs is not None and scored is not None:
            self.logprobs, self.text = list(scored.logprobs or ()), scored.text
        elif body.logprobs is not None:
            # This engine says nothing of the prompt's logprobs: its tokens have their texts and places, and null for a number.
            request = model.tokenizer.request(ignore_eos=True, **options.decoding.as_dict())
            first, rest = request.feed(ids, logprobs=[None] * len(ids)), request.finish()
            self.logprobs = [*(first.logprobs or ()), *(rest.logprobs or ())]
            self.text = first.text + rest.text
        elif isinstance(given, str) and len(ids) != model.kept_tokens(body.truncate_prompt_tokens):
            self.text = given
        else:
            self.text = model.tokenizer.decode(ids, skip_special_tokens=options.skip_special_tokens)


class CompletionShape:
    """Outputs as OpenAI's completions."""

    def __init__(
        self,
        asked: Asked,
        body: CompletionBody,
        prompts: Sequence[Sequence[int]],
        echoes: Sequence[_Echo],
        scored: Sequence[RequestOutput | None],
    ) -> None:
        self._asked = asked
        self._scored = scored
        self._n = asked.n
        self._prompts = prompts
        self._echoes = echoes
        self._ids = bool(body.return_token_ids)
        self._names_ids = bool(body.return_tokens_as_token_ids)
        self._logprobs = body.logprobs is not None
        self._usage = UsageCount(asked, sum(map(len, prompts)))
        count = len(prompts) * self._n
        self._unopened = set(range(count)) if echoes or self._ids or scored else set()
        self._plain = not (self._ids or self._logprobs or asked.wants_usage_always)
        usage = ',"usage":null' if asked.wants_usage else ""
        head = json_bytes(asked.head(KIND))[:-1].decode()
        self._begin = [f'data: {head},"choices":[{{"index":{index},"text":'.encode() for index in range(count)]
        self._end = f',"logprobs":null,"finish_reason":null,"stop_reason":null}}]{usage}}}\n\n'.encode()

    def chunk(self, index: int, output: RequestOutput) -> bytes:
        """Return the event of an output."""
        if self._plain and output.finish_reason is None and index not in self._unopened:
            return self._begin[index] + json_bytes(output.text) + self._end
        is_first = index in self._unopened
        self._unopened.discard(index)
        choice = self._choice(index, output, is_first=is_first)
        return event({**self._asked.head(KIND), "choices": [choice], **self._usage.of_a_chunk})

    def last(self) -> bytes:
        """Return usage, if it was asked for, and the end."""
        if not self._asked.wants_usage:
            return DONE
        return event({**self._asked.head(KIND), "choices": [], "usage": self.usage()}) + DONE

    def failed(self, error: Refused) -> bytes:
        """Return the events of a failure."""
        return event(error.as_dict()) + DONE

    def answer(self, outputs: Sequence[RequestOutput]) -> dict[str, Any]:
        """Return all choices."""
        choices = [self._choice(index, output, is_first=True) for index, output in enumerate(outputs)]
        return {**self._asked.head(KIND), "choices": choices, "usage": self.usage()}

    def _choice(self, index: int, output: RequestOutput, *, is_first: bool) -> dict[str, Any]:
        place = index // self._n
        echo = self._echoes[place] if self._echoes else None
        choice: dict[str, Any] = {
            "index": index,
            "text": echo.text + output.text if echo is not None and is_first else output.text,
            "logprobs": self._logprobs_of(output, echo, is_first=is_first) if self._logprobs else None,
            "finish_reason": shown_reason(output),
            "stop_reason": output.stop_reason,
        }
        if self._ids:
            choice["token_ids"] = output.token_ids
            if is_first:
                choice["prompt_token_ids"] = self._prompts[place]
        if is_first and self._scored:
            choice["prompt_logprobs"] = prompt_logprobs(self._scored[place])
        self._usage.count(index, output)
        return choice

    def _logprobs_of(self, output: RequestOutput, echo: _Echo | None, *, is_first: bool) -> dict[str, Any] | None:
        offset = 0 if echo is None else len(echo.text)
        logprobs = None
        if output.logprobs is not None:
            logprobs = completion_logprobs(output.logprobs, offset=offset, as_token_ids=self._names_ids)
        if echo is None or not is_first:
            return logprobs
        prompt = completion_logprobs(echo.logprobs, as_token_ids=self._names_ids)
        return prompt if logprobs is None else {name: prompt[name] + values for name, values in logprobs.items()}

    def usage(self) -> dict[str, Any]:
        """Count tokens, of the choices that have ended."""
        return self._usage.whole()
