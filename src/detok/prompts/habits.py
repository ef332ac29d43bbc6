"""
What a template takes: found out by rendering small chats, since templates do not say it.

Each question is asked once and remembered. A chat that a template refuses tells nothing about it: only what it renders and does
not show is known to be lost.

Tested in tests/prompts/test_history.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import product
from typing import Any, Literal, Protocol

from .messages import REASONING, Message

__all__ = ["CallForm", "Habits", "Ids", "RenderProbe"]

# Words that no template looks for.
SAID = "Placeholder"
ASKED = "Hello"
NAME = "probe_function"
ARGUMENTS = {"probe_argument": "Argument"}
TOOL = {
    "type": "function",
    "function": {
        "name": NAME,
        "description": "",
        "parameters": {"type": "object", "properties": {"probe_argument": {"type": "string"}}, "required": []},
    },
}

NINE = "Aa0000009"
"""As Mistral's templates want an id."""
LONG = "call_0123456789abcdef01234567"
NAMED = f"functions.{NAME}:0"
"""As Kimi's models write an id."""


class Ids(Enum):
    """What a template takes as the id of a call."""

    ANY = "any"
    NINE = "nine"
    """Nine letters and digits: Mistral."""
    NAMED = "named"
    """``functions.NAME:NUMBER``, the only place where the name stands: Kimi."""


@dataclass(frozen=True, slots=True)
class CallForm:
    """How the call of a function has to be given, so that the template shows it."""

    silent: Literal[""] | None = ""
    """The content of a message that only calls. None also says that a message with a content does not show its calls."""
    as_text: bool = False
    """Whether the arguments are JSON, and not an object."""
    ids: Ids = Ids.ANY
    apart: bool = False
    """Whether a message with calls and reasoning has no content beside them: gpt-oss."""


class RenderProbe(Protocol):
    """A template with its special tokens and nothing else."""

    def __call__(self, messages: Sequence[Message], tools: Sequence[Message] | None) -> str | None:
        """
        Return the text, or None if the template refuses the chat.

        Raises:
            ChatTemplateError: It does too much.
        """
        ...


class Habits:
    """
    What one template takes.

    Args:
        probe: Gives the template, with a budget of its own for each question: one that means harm does not get it for each chat,
            and no question leaves less for the others.
        source: Its Jinja text.
    """

    def __init__(self, probe: Callable[[], RenderProbe], source: str) -> None:
        self._probe = probe
        self._render = probe()
        self._source = source
        self._shown: dict[str, bool] = {}

    @property
    def knows_developer(self) -> bool:
        """Whether the role is one of its own, as vLLM tells it."""
        return '"developer"' in self._source or "'developer'" in self._source

    def shows(self, role: str) -> bool:
        """Whether it shows what a message of this role says; also if it refuses every chat in which that was tried."""
        if role not in self._shown:
            self._shown[role] = self._is_shown(role)
        return self._shown[role]

    @cached_property
    def call_form(self) -> CallForm | None:
        """How calls have to be given; None if it shows them in no form."""
        self._render = self._probe()
        for silent, as_text in product(("", None), (False, True)):
            for name_in_id, call_id in ((False, NINE), (True, NAMED)):
                if self._shows_call(silent, as_text, call_id, name_in_id=name_in_id):
                    ids = Ids.NAMED if name_in_id else Ids.ANY
                    if not name_in_id and not self._shows_call(silent, as_text, LONG):
                        ids = Ids.NINE
                    form = CallForm(silent, as_text, ids)  # type: ignore[arg-type]  # mypy takes "" for any text
                    return replace(form, apart=self._refuses_both(form, call_id))
        return None

    def _refuses_both(self, form: CallForm, call_id: str) -> bool:
        """Whether it refuses a content and reasoning in one message with calls, though it takes each of them."""
        for *before, calling in _calling(call_id, form):
            reasoning = dict.fromkeys(REASONING, ASKED)
            both, content, thoughts = (
                self._render([*before, {**calling, **more}], None)
                for more in ({"content": SAID, **reasoning}, {"content": SAID}, reasoning)
            )
            if content is not None and thoughts is not None:
                return both is None
        return False

    def _is_shown(self, role: str) -> bool:
        message = {"role": role, "content": SAID}
        asked, answered = {"role": "user", "content": ASKED}, {"role": "assistant", "content": "Yes"}
        chats = [[message, asked], [asked, message], [asked, answered, message], [asked, answered, message, asked]]
        form = (self.call_form if role == "tool" else None) or CallForm()
        self._render = self._probe()
        if role == "tool":
            result = {**message, "tool_call_id": NINE, "name": NAME}
            chats = [[*chat, result] for chat in _calling(NINE, form)]
        rendered = [self._render(chat, tools) for chat in chats for tools in (None, [TOOL])]
        told = [text for text in rendered if text is not None]
        return not told or any(_says(text, SAID) for text in told)

    def _shows_call(self, silent: str | None, as_text: bool, call_id: str, *, name_in_id: bool = False) -> bool:
        form = CallForm(silent, as_text)  # type: ignore[arg-type]  # as above
        result = {"role": "tool", "tool_call_id": call_id, "name": NAME, "content": SAID}
        for chat in _calling(call_id, form):
            for tools in (None, [TOOL]):
                # With tools the name stands in their list, too.
                texts = [self._render(chat, tools), self._render([*chat, result], tools)]
                if any(text is not None and self._has_call(text, call_id, tools, name_in_id) for text in texts):
                    return True
        return False

    def _has_call(self, text: str, call_id: str, tools: Any, name_in_id: bool) -> bool:
        if not _says(text, ARGUMENTS["probe_argument"]):
            return False
        if name_in_id:
            return call_id in text
        listed = 0
        if tools is not None:
            alone = self._render([{"role": "user", "content": ASKED}], tools)
            listed = 0 if alone is None else alone.count(NAME)
        return text.count(NAME) > listed


def _calling(call_id: str, form: CallForm) -> Iterator[list[Message]]:
    arguments = '{"probe_argument": "Argument"}' if form.as_text else ARGUMENTS
    call = {"id": call_id, "type": "function", "function": {"name": NAME, "arguments": arguments}}
    chat: list[Message] = [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": form.silent, "tool_calls": [call]},
    ]
    yield chat
    yield [{"role": "system", "content": ASKED}, *chat]


def _says(text: str, word: str) -> bool:
    """Whether a word stands in a text, in whatever letters."""
    return word.casefold() in text.casefold()
