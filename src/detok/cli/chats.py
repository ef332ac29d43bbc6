"""Chats on the command line: JSON as a server gets it, and the options that go with it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import MessageError, OptionError, SourceError
from ..tokenizers import Tokenizer

__all__ = ["ChatTemplate", "DoubleBos", "DoubleBosChoice", "GivenChat", "Safe", "read_chat"]


class DoubleBosChoice(StrEnum):
    """`DoubleBosMode`."""

    FIX = "fix"
    WARN = "warn"
    ERROR = "error"
    ALLOW = "allow"


ChatTemplate = Annotated[
    str | None,
    typer.Option(
        "--chat-template", metavar="NAME|FILE", help="A template of the tokenizer's, or a file.", show_default="the usual one"
    ),
]
Safe = Annotated[bool, typer.Option("--safe", help="Special tokens that are spelled in messages stay text.")]
DoubleBos = Annotated[
    DoubleBosChoice,
    typer.Option("--double-bos", help="Two BOS: one goes, both stay with a warning, an error, or both stay."),
]

FIELDS = ("tools", "documents", "add_generation_prompt", "continue_final_message", "chat_template")
"""Of a request, beside its messages, those that say something of the prompt."""

ARGUMENTS = frozenset(signature(Tokenizer.encode_chat).parameters) - {"variables"}
"""What a variable of a template cannot be called."""


@dataclass(frozen=True, slots=True)
class GivenChat:
    """Messages, and the keywords of `encode_chat` that came with them."""

    messages: Any
    options: dict[str, Any]


def read_chat(text: str, chat_template: str | None = None) -> GivenChat:
    """
    Read a chat: a JSON list of messages; an object with messages, tools and so on, such as the body of a request to a server,
    of which all that is no matter of the prompt is left out; or else the text of a single message.

    Args:
        text: It.
        chat_template: The name of a template, or the path of one; it goes before that of the object.

    Raises:
        MessageError: It looks like JSON but is none, or has no messages.
        OptionError: A variable of the template has the name of an argument.
        SourceError: The template's file cannot be read.
    """
    options: dict[str, Any] = {}
    if not text.lstrip().startswith(("[", "{")):
        given: Any = {"messages": [{"role": "user", "content": text}]}
    else:
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            found = f"is no JSON ({error})"
            raise MessageError("the chat", found=found, accepted="give a list of messages, or an object with messages") from None
    if isinstance(given, dict):
        if "messages" not in given:
            raise MessageError("the chat", found="has no messages", accepted='an object has them as "messages"')
        options = {name: given[name] for name in FIELDS if given.get(name) is not None}
        variables = given.get("chat_template_kwargs")
        variables = {} if variables is None else variables
        if not isinstance(variables, dict):
            raise MessageError("chat_template_kwargs", found="is no object", accepted="it has the variables of the template")
        if taken := sorted(ARGUMENTS & variables.keys()):
            accepted = "it is no variable of a template, but a field beside it or an option of the command"
            raise OptionError(option=f"chat_template_kwargs.{taken[0]}", value=variables[taken[0]], accepted=accepted)
        options = {**variables, **options}
        given = given["messages"]
    if chat_template is not None:
        options["chat_template"] = _template(chat_template)
    return GivenChat(given, options)


def _template(name: str) -> str:
    path = Path(name)
    try:
        return path.read_text(encoding="utf-8") if path.is_file() else name
    except (OSError, ValueError) as error:
        raise SourceError(path, found=f"cannot be read ({error})", accepted="a chat template was expected") from None
