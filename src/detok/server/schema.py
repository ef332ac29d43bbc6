"""
The bodies of requests. The names are OpenAI's, and for extensions those of vLLM and SGLang.

A field that is not here is ignored, as OpenAI's own servers do; one of a wrong type is refused by name. `null` is as if the field
were not there.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ..core.options import ByteFallbackMode

__all__ = [
    "ChatBody",
    "CompletionBody",
    "DetokenizeBody",
    "EngineFields",
    "GenerationBody",
    "StreamOptions",
    "TokenizeBody",
]

Integer = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""What engines can be sent."""

Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
Prompt = str | list[str | Integer | list[Integer]]
"""A text, texts, ids, or lists of ids."""

TokenId = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,10}$")]
"""As a key of an object."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

MAX_REQUEST_ID = 128
"""Characters."""

Message = dict[str, Any]
Tool = dict[str, Any]


class StreamOptions(msgspec.Struct, kw_only=True):
    """`stream_options`."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class EngineFields(msgspec.Struct, kw_only=True):
    """
    What is for the engine. A field that stands here is sent, under its name.

    An engine that does not understand one refuses it, if it matters (`detok.engines.sampling`).
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: Integer | None = None
    min_p: float | None = None
    seed: Integer | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    length_penalty: float | None = None
    logit_bias: dict[TokenId, float] | None = None
    allowed_token_ids: list[Integer] | None = None
    bad_words: list[str] | None = None
    structured_outputs: dict[str, Any] | None = None
    thinking_token_budget: Integer | dict[str, Any] | None = None
    repetition_detection: dict[str, Any] | None = None
    logprob_token_ids: list[Integer] | None = None
    use_beam_search: bool | None = None
    watermarking: bool | None = None
    priority: Integer | None = None
    cache_salt: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)] | None = None
    vllm_xargs: dict[str, Any] | None = None
    kv_transfer_params: dict[str, Any] | None = None
    ec_transfer_params: dict[str, Any] | None = None
    ignore_eos: bool | None = None
    min_tokens: Count | None = None
    stop_token_ids: list[Integer] | None = None


class GenerationBody(EngineFields, kw_only=True):
    """What completions and chat completions have in common."""

    model: str | None = None
    n: Integer | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stop: str | list[str] | None = None
    max_tokens: Count | None = None
    response_format: dict[str, Any] | None = None
    request_id: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_REQUEST_ID)] | None = None

    # What vLLM called structured_outputs before.
    guided_json: str | dict[str, Any] | None = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None

    # How ids become text.
    stop_regex: str | list[str] | None = None
    include_stop_str_in_output: bool | None = None
    no_stop_trim: bool | None = None
    skip_special_tokens: bool | None = None
    spaces_between_special_tokens: bool | None = None
    byte_fallback: ByteFallbackMode | None = None
    stream_interval: Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)] | None = None
    return_token_ids: bool | None = None
    return_tokens_as_token_ids: bool | None = None
    add_special_tokens: bool | None = None
    truncate_prompt_tokens: Integer | None = None
    truncation_side: Literal["left", "right"] | None = None


class CompletionBody(GenerationBody, kw_only=True):
    """``POST /v1/completions``."""

    prompt: Prompt
    echo: bool | None = None
    logprobs: Integer | None = None
    suffix: str | None = None
    best_of: Integer | None = None
    prompt_logprobs: Integer | None = None


class ChatBody(GenerationBody, kw_only=True):
    """``POST /v1/chat/completions``."""

    messages: list[Message]
    tools: list[Tool] | None = None
    tool_choice: str | dict[str, Any] | None = None
    functions: list[dict[str, Any]] | None = None
    function_call: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    include_reasoning: bool | None = None
    documents: list[dict[str, Any]] | None = None
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: Integer | None = None
    prompt_logprobs: Integer | None = None
    reasoning_effort: Effort | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    return_prompt_text: bool | None = None

    # What a prompt of ids and a text cannot carry.
    modalities: list[str] | None = None
    audio: dict[str, Any] | None = None
    web_search_options: dict[str, Any] | None = None


class TokenizeBody(msgspec.Struct, kw_only=True):
    """``POST /tokenize``: a prompt, several, or a chat."""

    model: str | None = None
    prompt: str | list[str] | None = None
    messages: list[Message] | None = None
    add_special_tokens: bool | None = None
    return_token_strs: bool | None = None
    tools: list[Tool] | None = None
    reasoning_effort: Effort | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None


class DetokenizeBody(msgspec.Struct, kw_only=True):
    """``POST /detokenize``: ids, or lists of them."""

    model: str | None = None
    tokens: list[Integer | list[Integer]]
    skip_special_tokens: bool | None = None
