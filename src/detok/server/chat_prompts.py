"""The ids of a chat, as a body describes it: for chat completions, and for `/tokenize`."""

from __future__ import annotations

from typing import Any

from ..errors import OptionError
from .config import ServerConfig
from .models import Model
from .schema import ChatBody, TokenizeBody

__all__ = ["chat_ids"]

# What `chat_template_kwargs` must not set: fields of their own, and what is for the server to say.
RESERVED = frozenset(
    {
        *("messages", "tools", "documents", "add_generation_prompt", "continue_final_message"),
        *("chat_template", "tokenize", "return_dict", "double_bos", "safe", "now", "self"),
    }
)


async def chat_ids(model: Model, body: ChatBody | TokenizeBody, config: ServerConfig) -> list[int]:
    """
    Return the ids of a body's messages.

    Raises:
        OptionError, MessageError, ChatTemplateError: The chat or what is said of it is not possible.
        PromptTooLong: It is longer than the model takes.
        EncodeUnsupported, MissingExtra: This model takes no chats.
    """
    variables = body.chat_template_kwargs or {}
    if taken := sorted(RESERVED & variables.keys()):
        accepted = "it is a field of the body, or for the server to say"
        raise OptionError(option=f"chat_template_kwargs.{taken[0]}", value=variables[taken[0]], accepted=accepted)
    options: dict[str, Any] = {
        "chat_template": _template(model, body.chat_template, config),
        "tools": body.tools or None,
        "add_generation_prompt": body.add_generation_prompt,
        "continue_final_message": bool(body.continue_final_message),
    }
    truncate = None
    if isinstance(body, ChatBody):
        truncate = body.truncate_prompt_tokens
        options["documents"] = body.documents
        if body.tool_choice == "none":
            options["tools"] = None
    return await model.encode_chat(body.messages or [], truncate, **options, **variables)


def _template(model: Model, template: str | None, config: ServerConfig) -> str | None:
    if template is None or template in model.tokenizer.chat_templates or config.trust_request_chat_template:
        return template
    accepted = "the server takes no templates from requests; it may be told to with trust_request_chat_template"
    raise OptionError(option="chat_template", value=template[:80], accepted=accepted)
