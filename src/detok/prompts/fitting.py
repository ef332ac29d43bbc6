"""
A conversation as one template wants it: calls and their ids, roles, instructions in several places.

Tested in tests/prompts/test_history.py.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ChatTemplateError, MessageError
from .habits import CallForm, Habits, Ids
from .history import arguments_as_object, arguments_as_text
from .messages import REASONING, Message

__all__ = ["check_parts", "fitted", "for_encoder", "nine_characters", "with_ids", "with_one_instruction"]

INSTRUCTIONS = frozenset(("system", "developer"))

_NINE = re.compile(r"[A-Za-z0-9]{9}")
_NAMED = re.compile(r"functions\..+:\d+", re.DOTALL)
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def fitted(
    messages: Sequence[Message], habits: Habits, render: Callable[[list[Message]], str], *, complete: bool
) -> list[Message]:
    """
    Return a conversation that the template takes, and that shows everything that is said in it.

    Args:
        messages: As `as_history` returns them.
        habits: The template's.
        render: The template with all that the conversation is rendered with, to try whether it takes several instructions.
        complete: Whether to refuse what the template, or a prompt of ids alone, leaves out.

    Raises:
        MessageError: A role that the template does not show, or a part that is no text, if that is to be refused.
    """
    if complete:
        _check_roles(messages, habits)
        check_parts(messages)
    made = list(messages)
    if any("tool_calls" in message for message in messages):
        form = habits.call_form or CallForm()
        made = with_ids(made, form.ids)
        made = [part for message in made for part in _with_calls(message, form)]
    if not habits.knows_developer and any(message["role"] == "developer" for message in made):
        # As vLLM, which joins all instructions as soon as it has renamed one.
        renamed = [_as_system(message) if message["role"] == "developer" else message for message in made]
        return with_one_instruction(renamed)
    if any(message["role"] in INSTRUCTIONS for message in made[1:]) and not _shows_instructions(made, render):
        return with_one_instruction(made)
    return made


def for_encoder(messages: Sequence[Message]) -> list[Message]:
    """
    Return a conversation for what encodes the messages of OpenAI's API itself: arguments are JSON, ids have nine characters, and
    what says nothing is left out.

    Args:
        messages: As `as_history` returns them.
    """
    form = CallForm(silent=None, as_text=True, ids=Ids.NINE)
    told = [message for message in messages if message["role"] != "assistant" or message["content"] or "tool_calls" in message]
    made = with_ids(told, form.ids)
    if made and made[-1] is not messages[-1] and messages[-1]["role"] == "assistant" and messages[-1] not in told:
        made.append(messages[-1])  # the one that is to be continued
    return [part for message in made for part in _with_calls(message, form)]


def _check_roles(messages: Sequence[Message], habits: Habits) -> None:
    checked: set[str] = {"user", "assistant"}
    for place, message in enumerate(messages):
        role = message["role"]
        if role in checked or not message["content"]:
            continue
        if not habits.shows("system" if role == "developer" and not habits.knows_developer else role):
            accepted = "this model's chat template does not show what such a message says"
            raise MessageError(f"messages[{place}].role", found=f"is {role!r}", accepted=accepted)
        checked.add(role)


def check_parts(messages: Sequence[Message], *, keeps: frozenset[str] = frozenset()) -> None:
    """
    Refuse parts that are no text.

    Args:
        messages: As `as_history` returns them.
        keeps: Types of parts that are text all the same.

    Raises:
        MessageError: Naming the part.
    """
    for place, message in enumerate(messages):
        for number, part in enumerate(message["content"] if isinstance(message["content"], list) else ()):
            if part["type"] != "text" and part["type"] not in keeps:
                accepted = "a prompt of token ids carries text alone"
                found = f"is of the type {part['type']!r}"
                raise MessageError(f"messages[{place}].content[{number}]", found=found, accepted=accepted)


def _with_calls(message: Message, form: CallForm) -> list[Message]:
    """A message with its calls as the template wants them: two, if it shows only one of both."""
    if message["role"] != "assistant" or "tool_calls" not in message:
        return [message]
    write: Callable[[Any], Any] = arguments_as_text if form.as_text else arguments_as_object
    calling = {**message, "tool_calls": [_call(call, write) for call in message["tool_calls"]]}
    if not message["content"]:
        return [{**calling, "content": form.silent}]
    thoughts = {name: message[name] for name in REASONING if name in message}
    if form.silent is not None and not (form.apart and thoughts):
        return [calling]
    said = {name: value for name, value in message.items() if name != "tool_calls" and not (form.apart and name in thoughts)}
    calls = {"role": "assistant", "content": form.silent, "tool_calls": calling["tool_calls"]}
    return [said, {**calls, **thoughts} if form.apart else calls]


def _call(call: Message, write: Callable[[Any], Any]) -> Message:
    function = call["function"]
    made = {**call, "function": {**function, "arguments": write(function.get("arguments"))}}
    return {**made, "arguments": write(call["arguments"])} if "arguments" in call else made


def with_ids(messages: Sequence[Message], ids: Ids) -> list[Message]:
    """Return a conversation whose calls have ids that a template takes, and whose results name them."""
    if ids is Ids.ANY:
        return list(messages)
    known: dict[str, str] = {}
    """What became of the ids of the conversation."""
    waiting: list[str] = []
    """The ids of the last calls that no result has named."""
    count = 0
    made = []
    for message in messages:
        calls = []
        for call in message.get("tool_calls", ()) if message["role"] == "assistant" else ():
            if ids is Ids.NINE:
                new = nine_characters(call.get("id") or f"call {count}", known)
            else:
                new = call.get("id") or ""
                new = new if _NAMED.fullmatch(new) else f"functions.{call['function']['name']}:{count}"
            known[call.get("id") or f"call {count}"] = new
            calls.append({**call, "id": new})
            count += 1
        if calls:
            waiting = [call["id"] for call in calls]
            message = {**message, "tool_calls": calls}
        elif message["role"] == "tool":
            given = message.get("tool_call_id")
            if not given:
                new = waiting[0] if waiting else nine_characters("", known)
            else:
                new = known[given] if given in known else nine_characters(given, known) if ids is Ids.NINE else given
            waiting = [one for one in waiting if one != new]
            message = {**message, "tool_call_id": new}
        made.append(message)
    return made


def nine_characters(call_id: str, known: dict[str, str]) -> str:
    """
    Return an id of nine letters and digits for another one, always the same: the last nine, as vLLM does, where that is one.

    >>> nine_characters("call_0123456789abcdef", {}), nine_characters("functions.f:0", {})
    ('789abcdef', 'h8csKm4BZ')

    Args:
        call_id: It.
        known: Those that are taken, by what they were.
    """
    if call_id in known:
        return known[call_id]
    taken = set(known.values())
    last = call_id[-9:]
    number = 0
    while not _NINE.fullmatch(last) or last in taken:
        value = int.from_bytes(hashlib.sha256(f"{call_id}\0{number}".encode()).digest())
        last = "".join(_ALPHABET[value // 62**place % 62] for place in range(9))
        number += 1
    return last


def _as_system(message: Message) -> Message:
    return {**{name: value for name, value in message.items() if name != "tools"}, "role": "system"}


def with_one_instruction(messages: Sequence[Message]) -> list[Message]:
    """
    Return a conversation whose instructions are one, at the beginning, with a blank line between them.

    Raises:
        MessageError: One has a part that is no text.
    """
    first = next(message for message in messages if message["role"] in INSTRUCTIONS)
    if [message for message in messages if message["role"] in INSTRUCTIONS] == [messages[0]]:
        return list(messages)
    texts = [_text(message, place) for place, message in enumerate(messages) if message["role"] in INSTRUCTIONS]
    joined = {"role": first["role"], "content": "\n\n".join(filter(None, texts))}
    return [joined, *(message for message in messages if message["role"] not in INSTRUCTIONS)]


def _text(message: Message, place: int) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    for number, part in enumerate(content):
        if part["type"] != "text":
            found = f"is of the type {part['type']!r}"
            accepted = "this model's chat template takes one message with instructions, and texts alone can be joined"
            raise MessageError(f"messages[{place}].content[{number}]", found=found, accepted=accepted)
    return "\n".join(part["text"] for part in content)


def _shows_instructions(messages: Sequence[Message], render: Callable[[list[Message]], str]) -> bool:
    """Whether the template takes a conversation with instructions in these places, and shows all of them."""
    told = repr(messages).casefold()
    stem = "Reminder"
    while stem.casefold() in told:
        stem += "s"
    words = [f"{stem}{place}." for place in range(len(messages))]
    probed = [
        {**message, "content": words[place]} if message["role"] in INSTRUCTIONS and message["content"] else message
        for place, message in enumerate(messages)
    ]
    try:
        shown = render(probed).casefold()
    except ChatTemplateError:
        return False
    return all(word.casefold() in shown for word, one in zip(words, probed, strict=True) if one["content"] == word)
