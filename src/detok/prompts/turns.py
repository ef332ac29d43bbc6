"""
What a chat template puts behind the words of the assistant: the end of its turn, the messages that follow, the next beginning.

A template is a function of the whole chat. To find what it adds for new messages, the chat so far is replaced by a short one in
which the assistant says a mark, and what is rendered behind the mark is taken. So the history is neither rendered nor encoded
again, and what a template changes in old turns (reasoning that it drops, say) stays as the model saw it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, Protocol

from ..core.decoding.texts import common_prefix
from ..errors import OptionError

__all__ = ["RESULTS", "Message", "Render", "behind_turn", "is_instruction", "special_pattern", "still_to_say"]

Message = Mapping[str, Any]

INSTRUCTIONS = ("system", "developer")
RESULTS = ("tool", "function")

# Words that no template looks for: a template may strip, split at tags, or look for the first letter.
MARK = "Placeholder"
WORD = "Reminder"
ASKED = "Hello"

# Nine letters and digits, as Mistral's templates insist.
CALL_ID = "000000000"


class Render(Protocol):
    """A chat template with all its other variables, as ``apply_chat_template(tokenize=False)``."""

    def __call__(self, messages: Sequence[Message], *, add_generation_prompt: bool) -> str: ...


def is_instruction(message: Message) -> bool:
    """Whether a message says how to behave, and not what to answer."""
    return message.get("role") in INSTRUCTIONS


def behind_turn(
    render: Render, instructions: Sequence[Message], messages: Sequence[Message], *, add_generation_prompt: bool
) -> tuple[str, str]:
    """
    Return what a template puts behind the words of the assistant: what ends its turn, and what follows.

    Where no chat may end with the assistant's turn, what follows is all in the first.

    Args:
        render: The template.
        instructions: Those at the beginning of the chat, which a template may say again.
        messages: What follows the assistant's turn. If these are results of tools, it has called them.
        add_generation_prompt: Whether the next turn of the assistant begins.

    Raises:
        OptionError: The template does not show what an assistant says, or puts instructions that stand behind it elsewhere.
            Whatever else the template raises.
    """
    mark = _unused(MARK, (instructions, messages))
    accepted = "the template has to show what the assistant says; add the text of the turn with add_text"
    refusal: Exception = OptionError(option="render", value=render, accepted=accepted)
    for turn in _turns(mark, messages):
        chat = [*instructions, {"role": "user", "content": ASKED}, turn]
        try:
            whole = render([*chat, *messages], add_generation_prompt=add_generation_prompt)
        except Exception as error:  # whatever a template raises; another turn may please it
            refusal = error
            continue
        try:
            alone = render(chat, add_generation_prompt=False)
        except Exception:  # one that takes no chat which ends with an answer, as mistral_common does
            alone = whole
        if mark in whole and mark in alone:
            _check_instructions(partial(render, add_generation_prompt=add_generation_prompt), chat, messages, mark)
            behind = whole[whole.rindex(mark) + len(mark) :]
            end = common_prefix([behind, alone[alone.rindex(mark) + len(mark) :]])
            return end, behind[len(end) :]
    raise refusal


def _check_instructions(
    render: Callable[[list[Message]], str], chat: Sequence[Message], messages: Sequence[Message], mark: str
) -> None:
    """
    Refuse instructions that the template gathers in front of the chat, or leaves out: what stands there already is not changed.

    Each is rendered with a word in the place of its own, which has to stand behind the mark.
    """
    word = _unused(WORD, (chat, messages))
    for place, message in enumerate(messages):
        if not is_instruction(message) or not message.get("content"):
            continue
        content = [{"type": "text", "text": word}] if isinstance(message["content"], list) else word
        whole = render([*chat, *messages[:place], {**message, "content": content}, *messages[place + 1 :]]).casefold()
        if whole.rfind(word.casefold()) <= whole.rfind(mark.casefold()):
            accepted = "the template does not show it behind a turn of the assistant; give it at the beginning of the chat"
            raise OptionError(option="message", value=message, accepted=accepted)


def _unused(word: str, values: object) -> str:
    """Return a word, with a number if need be, that does not stand in values."""
    told, number, unused = repr(values).casefold(), 0, word
    while unused.casefold() in told:
        number += 1
        unused = f"{word}{number}"
    return unused


def _turns(mark: str, messages: Sequence[Message]) -> Iterator[Message]:
    """
    Give turns of the assistant that say the mark, and behind which messages may stand.

    Templates want arguments as objects or as JSON, and no content to be empty or None; some know nothing of tools.
    """
    results = list(takewhile(lambda message: message.get("role") in RESULTS, messages))
    for content, arguments in (("", {"argument": mark}), (None, json.dumps({"argument": mark}))) if results else ():
        calls = [
            {
                "id": message.get("tool_call_id") or CALL_ID,
                "type": "function",
                "function": {"name": message.get("name") or "function", "arguments": arguments},
            }
            for message in results
        ]
        yield {"role": "assistant", "content": content, "tool_calls": calls}
    yield {"role": "assistant", "content": mark}


def special_pattern(texts: Sequence[str]) -> re.Pattern[str] | None:
    """Return what finds the first special token in a text, the longest of those that begin there; None if there are none."""
    ordered = sorted(filter(None, texts), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered))) if ordered else None


def still_to_say(end: str, special: re.Pattern[str] | None, *, calls: bool, ended: bool) -> str:
    """
    Return what is still to be said of the end of a turn that the model wrote.

    Args:
        end: As `behind_turn` returns it.
        special: As `special_pattern` returns it.
        calls: Whether the model called tools: what closes the call, up to the first special token, it has written.
        ended: Whether it has ended its turn by a special token, be it the template's or another: that is not said twice.
    """
    found = special.search(end) if special else None
    if found is None:
        return "" if calls else end
    if not calls and end[: found.start()].strip():
        return end  # a template that ends no turn by a special token
    if ended:
        return end[found.end() :]
    return end[found.start() :] if calls else end
