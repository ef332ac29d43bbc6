"""
The ids of a chat, as a body describes it: for chat completions, and for `/tokenize`.

Tested in tests/server/test_chat_history.py.
"""

from __future__ import annotations

from typing import Any

from ..errors import MessageError, OptionError
from ..tokenizers import Tokenizer
from .config import ServerConfig
from .models import Model
from .schema import ChatBody, TokenizeBody
from .variables import check_variables

__all__ = ["chat_ids", "tools_of"]


async def chat_ids(model: Model, body: ChatBody | TokenizeBody, config: ServerConfig) -> list[int]:
    """
    Return the ids of a body's messages.

    Raises:
        OptionError, MessageError, ChatTemplateError: The chat or what is said of it is not possible.
        PromptTooLong: It is longer than the model takes.
        EncodeUnsupported, MissingExtra: This model takes no chats.
    """
    options: dict[str, Any] = {
        "chat_template": _template(model, body.chat_template, config),
        "tools": tools_of(body),
        "add_generation_prompt": body.add_generation_prompt,
        "continue_final_message": bool(body.continue_final_message),
        # A client is told of what would not reach the model: an image, a role that the template passes over.
        "complete": True,
    }
    truncate, side, special = None, None, body.add_special_tokens
    if isinstance(body, ChatBody):
        truncate, side = body.truncate_prompt_tokens, body.truncation_side
        options["documents"] = body.documents
        if body.tool_choice == "none":
            options["tools"] = None
    ids = await model.encode_chat(body.messages or [], truncate, side, **options, **_variables(model, body))
    return _with_bos(model.tokenizer, ids) if special else ids


def _with_bos(tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    """With what the encoder puts in front of a text, if the template has not written it."""
    bos = tokenizer.bos_token_id
    return [bos, *ids] if bos is not None and ids[:1] != [bos] and tokenizer.encode_prompt("a")[:1] == [bos] else ids


def _variables(model: Model, body: ChatBody | TokenizeBody) -> dict[str, Any]:
    """
    The variables of the template: the server's own, in their place the request's, and what `reasoning_effort` says, as in vLLM.
    """
    given = body.chat_template_kwargs or {}
    check_variables("chat_template_kwargs", given)
    variables = {**model.chat_template_kwargs, **given}
    if body.reasoning_effort is not None:
        variables["reasoning_effort"] = body.reasoning_effort
        if "enable_thinking" not in given:
            variables["enable_thinking"] = body.reasoning_effort != "none"
    return variables


def tools_of(body: ChatBody | TokenizeBody) -> list[dict[str, Any]] | None:
    """
    Return the tools of a body, of both generations of the API.

    Raises:
        MessageError: One is no function, or has no name.
    """
    if body.tools:
        for place, tool in enumerate(body.tools):
            kind = tool.get("type", "function")
            if kind != "function":
                accepted = "it is function: the model calls what the client runs, and nothing runs here"
                raise MessageError(f"tools[{place}].type", found=f"is {kind!r}", accepted=accepted)
            _check_function(tool.get("function"), f"tools[{place}].function")
        return [{"type": "function", **tool} for tool in body.tools]
    old = body.functions if isinstance(body, ChatBody) else None
    for place, function in enumerate(old or ()):
        _check_function(function, f"functions[{place}]")
    return [{"type": "function", "function": function} for function in old] if old else None


def _check_function(function: object, place: str) -> None:
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
        raise MessageError(place, found="has no name", accepted="it is an object with name, description and parameters")
    for name, kind in (("description", str), ("parameters", dict)):
        if not isinstance(function.get(name), kind | None):
            accepted = "it is a text" if kind is str else "it is a JSON schema, an object"
            raise MessageError(f"{place}.{name}", found=f"is a {type(function[name]).__name__}", accepted=accepted)


def _template(model: Model, template: str | None, config: ServerConfig) -> str | None:
    if template is None:
        return model.chat_template
    if template in model.tokenizer.chat_templates or config.trust_request_chat_template:
        return template
    accepted = "the server takes no templates from requests; it may be told to with trust_request_chat_template"
    raise OptionError(option="chat_template", value=template[:80], accepted=accepted)
