"""Marks in a rendered text: characters that nothing else has, to find a place again when a template has run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Any

from ..errors import MessageError
from .messages import REASONING, Message

__all__ = ["check_continued", "ended", "to_continue", "unused_characters", "without_marks"]

# For internal use by Unicode's own words (chapter 23.7): no text for people has them.
NONCHARACTERS = [chr(code) for code in range(0xFDD0, 0xFDF0)]
PRIVATE = range(0x10F000, 0x10FFFE)


def unused_characters(values: Sequence[Any], count: int) -> list[str]:
    """
    Return characters that occur nowhere in values, to be used as marks.

    Raises:
        MessageError: There are not as many. Nobody writes such a text by accident.
    """
    used: set[str] = set()
    open_ends = list(values)
    while open_ends:
        value = open_ends.pop()
        if isinstance(value, str):
            # Most text has none of them, which is seen without looking at each character.
            if not value.isascii():
                used.update(value)
        elif isinstance(value, Mapping):
            open_ends += [*value, *value.values()]
        elif isinstance(value, (list, tuple)):
            open_ends += value
    found = list(islice((one for one in chain(NONCHARACTERS, map(chr, PRIVATE)) if one not in used), count))
    if len(found) < count:
        accepted = "leave characters from U+FDD0 to U+FDEF out"
        raise MessageError("messages", found="use every character that Unicode keeps for inside use", accepted=accepted)
    return found


def check_continued(messages: Sequence[Message], field: str) -> None:
    """
    Refuse to go on with nothing.

    Raises:
        MessageError: The last message has no such field.
    """
    if messages[-1].get(field) is None:
        accepted = "continue_final_message needs it, to go on behind it"
        raise MessageError(f"messages[{len(messages) - 1}]", found=f"has no {field}", accepted=accepted)


def to_continue(messages: list[Message], field: str, source: str, mark: str) -> Message:
    """
    Return the last message with a mark at its end, and a space, which tells whether the template trims it.

    Raises:
        MessageError: It is not the assistant's, or has nothing that the template would show.
    """
    last = messages[-1]
    place = f"messages[{len(messages) - 1}]"
    if last["role"] not in ("assistant", "model"):
        accepted = "continue_final_message goes on with what the assistant wrote"
        raise MessageError(f"{place}.role", found=f"is {last['role']!r}", accepted=accepted)
    check_continued(messages, field)
    names = [name for name in REASONING if last.get(name) == last[field]] if field in REASONING else [field]
    if not any(name in source for name in names):
        raise MessageError(f"{place}.{field}", found="is not shown by the chat template", accepted="it cannot be continued")
    if isinstance(last[field], str):
        return {**last, **{name: f"{last[name]}{mark} " for name in names}}
    parts = list(last[field]) if isinstance(last[field], list) else []
    for number in reversed(range(len(parts))):
        if isinstance(parts[number], dict) and isinstance(parts[number].get("text"), str):
            parts[number] = {**parts[number], "text": f"{parts[number]['text']}{mark} "}
            return {**last, field: parts}
    raise MessageError(f"{place}.{field}", found="has no text", accepted="continue_final_message needs one, to go on behind it")


def ended(text: str, mark: str, messages: list[Message], field: str) -> str:
    """
    Return a text up to the mark.

    Raises:
        MessageError: It is not there.
    """
    end = text.rfind(mark)
    if end < 0:
        accepted = "it cannot be continued with this chat template"
        raise MessageError(f"messages[{len(messages) - 1}].{field}", found="is not shown", accepted=accepted)
    kept = text[:end]
    # A template that trims has taken the space away, and would have taken those before the mark.
    return kept if text[end + 1 : end + 2] == " " else kept.rstrip()


def without_marks(text: str, start: str, stop: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Take the marks of ``generation`` blocks out, and return where they were. Blocks inside blocks belong to the outer one."""
    kept: list[str] = []
    spans: list[tuple[int, int]] = []
    at, depth, began = 0, 0, 0
    for piece in re.split(f"([{start}{stop}])", text):
        if piece == start:
            began = began if depth else at
            depth += 1
        elif piece == stop:
            depth -= 1
            if depth == 0:
                spans.append((began, at))
        else:
            kept.append(piece)
            at += len(piece)
    return "".join(kept), tuple(spans)
