"""Chat templates: a chat to the text that a model was trained on, as ``apply_chat_template`` of Hugging Face renders it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from ..errors import ChatTemplateError, MissingExtra, OptionError
from .habits import Habits, RenderProbe
from .limits import Budget, TooMuch
from .marks import ended, to_continue, unused_characters, without_marks
from .messages import Message, content_as_parts, content_as_text

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["ChatTemplate", "Rendered", "choose", "compiled"]

MAX_TEMPLATE = 1 << 17
"""Characters. The longest of real models have 30,000."""

FILE = "<template>"
"""What Jinja calls the file of a template that came as a text, in tracebacks."""

ContentFormat = Literal["both", "text", "parts"]

PROBE = "detok probe"
PROBE_CHATS: tuple[list[Message], ...] = (
    [{"role": "user", "content": PROBE}],
    [{"role": "system", "content": PROBE}, {"role": "user", "content": PROBE}],
)
PROBE_TOOLS = [
    {"type": "function", "function": {"name": "f", "description": "", "parameters": {"type": "object", "properties": {}}}}
]
"""Some templates want a system message, others are for chats with tools alone."""

_OF_CASE = frozenset(("lower", "upper", "capitalize", "title", "swapcase", "casefold"))

MAX_FORMATS = 16
"""So many sets of special tokens are remembered with what a template takes."""


_SpecialTokens = tuple[tuple[str, str], ...]


def _special_tokens(variables: Mapping[str, Any]) -> _SpecialTokens:
    """Those among variables, which are the same for all chats of a tokenizer."""
    return tuple(sorted((name, one) for name, one in variables.items() if name.endswith("_token") and isinstance(one, str)))


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered chat."""

    text: str
    generated: tuple[tuple[int, int], ...] = ()
    """Where the template says that the assistant wrote: the borders of each ``generation`` block, in characters."""


class ChatTemplate:
    """
    A compiled template. Immutable; any number of threads may render.

    Args:
        source: The Jinja text.
        name: What to call it in errors.

    Raises:
        ChatTemplateError: It is no Jinja, with the line.
        MissingExtra: Jinja2 is not installed.
    """

    def __init__(self, source: str, name: str = "default") -> None:
        self.source = source
        self.name = name
        self._content_formats: dict[_SpecialTokens, ContentFormat] = {}
        self._habits: dict[_SpecialTokens, Habits] = {}
        if len(source) > MAX_TEMPLATE:
            raise ChatTemplateError(name, line=None, problem=f"it has more than {MAX_TEMPLATE:,} characters")
        try:
            self._template: Template = _environment().from_string(source)
        except (ImportError, MissingExtra):
            raise
        except Exception as error:  # Jinja's own, and whatever a parser meets in what it was not made for
            raise _error(name, error) from error

    @cached_property
    def texts(self) -> frozenset[str]:
        """Every text that stands in the template, between its tags or as a constant."""
        from .counting import constants

        return frozenset(constants(_environment().parsed(self.source)))

    @cached_property
    def changes_case(self) -> bool:
        """Whether it may write a text in other letters than it got."""
        return bool(_OF_CASE & {value for _, kind, value in _environment().lex(self.source) if kind == "name"})

    @cached_property
    def marks_generation(self) -> bool:
        """Whether it has ``generation`` blocks."""
        tokens = [value for _, kind, value in _environment().lex(self.source) if kind == "name"]
        return "endgeneration" in tokens

    def content_format(self, messages: list[Message], variables: Mapping[str, Any]) -> ContentFormat:
        """
        What a message's content may be, found out by rendering one of each kind.

        It is asked of small chats first, in which of all variables there are only special tokens: what these tell is true for
        every chat, and remembered. A template that refuses all of them is asked of the chat itself, each time.
        """
        key = _special_tokens(variables)
        special = dict(key)
        budgets: list[Budget] = []
        known = self._content_formats.get(key)
        if known is None:
            for chat, tools in product(PROBE_CHATS, (None, PROBE_TOOLS)):
                known = self._tells(chat, {**special, "tools": tools}, budgets)
                if known is not None:
                    break
                if sum(budget.used for budget in budgets) > 1:  # whoever takes so long is no model's, and is not asked for ever
                    return "both"
            else:
                return self._tells(messages, variables, budgets) or "both"
            if len(self._content_formats) >= MAX_FORMATS:
                self._content_formats.clear()
            self._content_formats[key] = known
        return known

    def _tells(self, messages: Sequence[Message], variables: Mapping[str, Any], budgets: list[Budget]) -> ContentFormat | None:
        """What a chat tells of contents, if it is rendered with texts in their places, or with lists of parts."""
        contents = (PROBE, [{"type": "text", "text": PROBE}])
        text, parts = (self._probe(messages, content, variables, budgets) for content in contents)
        if PROBE not in text and PROBE not in parts:
            return None
        takes_text = PROBE in text
        # A template that knows no parts writes the list as Python or JSON does, or fails.
        takes_parts = PROBE in parts and "type" not in parts.replace(text, "")
        return "both" if takes_text == takes_parts else "text" if takes_text else "parts"

    def _probe(self, messages: Sequence[Message], content: Any, variables: Mapping[str, Any], budgets: list[Budget]) -> str:
        probed = [{**message, "content": content} if "content" in message else message for message in messages]
        budgets.append(Budget())
        try:
            return self._run(probed, variables, None, None, budgets[-1])
        except ChatTemplateError as error:
            if isinstance(error.__cause__, (TooMuch, RecursionError)):
                raise  # with this chat it would take as long again
            return ""

    def habits(self, variables: Mapping[str, Any]) -> Habits:
        """What else it takes, by chats in which of all variables there are only special tokens."""
        key = _special_tokens(variables)
        if key not in self._habits:
            if len(self._habits) >= MAX_FORMATS:
                self._habits.clear()
            self._habits[key] = Habits(partial(self._asked, dict(key)), self.source)
        return self._habits[key]

    def _asked(self, special: Mapping[str, str]) -> RenderProbe:
        """What renders small chats, all of them together with the budget of one."""
        budget = Budget()

        def probe(messages: Sequence[Message], tools: Sequence[Message] | None) -> str | None:
            given = {**special, "tools": tools}
            try:
                return self._run(self.shaped(list(messages), given), given, None, None, budget)
            except ChatTemplateError as error:
                if isinstance(error.__cause__, (TooMuch, RecursionError)):
                    raise
                return None

        return probe

    def shaped(self, messages: list[Message], variables: Mapping[str, Any]) -> list[Message]:
        """
        Return messages with contents that the template takes: texts, or lists of parts.

        Raises:
            MessageError: It takes texts alone, and a part is none.
        """
        match self.content_format(messages, variables):
            case "text":
                return content_as_text(messages)
            case "parts":
                return content_as_parts(messages)
        return messages

    def render(
        self,
        messages: list[Message],
        variables: Mapping[str, Any],
        *,
        continue_field: str | None = None,
        now: datetime | None = None,
        marks_generation: bool = False,
        budget: Budget | None = None,
    ) -> Rendered:
        """
        Render a chat.

        Args:
            messages: Checked.
            variables: What else the template may name.
            continue_field: The field of the last message at whose end the text is to end.
            now: The time that ``strftime_now`` tells; by default the clock's.
            marks_generation: Whether to say what the assistant wrote.
            budget: What it may do, if that is not to be its own.

        Raises:
            ChatTemplateError: The template refuses the chat, fails, or does too much; with the line.
            MessageError: The last message has nothing to continue, or the template does not show it.
        """
        messages = self.shaped(messages, variables)
        if not marks_generation and continue_field is None:
            return Rendered(self._run(messages, variables, now, None, budget))
        start, stop, end = unused_characters([self.source, messages, dict(variables)], 3)
        if continue_field is not None:
            messages = [*messages[:-1], to_continue(messages, continue_field, self.source, end)]
        marks = (start, stop) if marks_generation else None
        text = self._run(messages, variables, now, marks, budget)
        if continue_field is not None:
            text = ended(text, end, messages, continue_field)
        return Rendered(text) if marks is None else Rendered(*without_marks(text, start, stop))

    def _run(
        self,
        messages: list[Message],
        variables: Mapping[str, Any],
        now: datetime | None,
        marks: tuple[str, str] | None,
        budget: Budget | None = None,
    ) -> str:
        from .sandbox import BUDGET, GENERATION, NOW

        given = {"tools": None, "documents": None, **variables, "messages": messages}
        try:
            return self._template.render({**given, BUDGET: budget or Budget(), NOW: now, GENERATION: marks})
        except Exception as error:  # whatever its code raises
            raise _error(self.name, error) from error


@lru_cache(maxsize=64)
def compiled(source: str, name: str = "default") -> ChatTemplate:
    """The template of a source, compiled once. Errors as `ChatTemplate`."""
    return ChatTemplate(source, name)


@lru_cache(maxsize=1)
def _environment() -> Any:
    try:
        from .sandbox import ChatEnvironment
    except ImportError as error:
        raise MissingExtra("jinja2", extra="chat", purpose="a chat template") from error
    return ChatEnvironment()


def choose(templates: Mapping[str, str], asked: str | None, *, has_tools: bool) -> ChatTemplate:
    """
    Return the template to use.

    Args:
        templates: Those of the tokenizer by name.
        asked: A name, or a template itself; None for the usual one, which is "tool_use" for chats with tools where there is one.
        has_tools: Whether the chat has tools; an empty list of them counts, as it does in transformers.

    Raises:
        OptionError: There is none, or none of that name.
    """
    if asked is not None and not isinstance(asked, str):
        raise OptionError(option="chat_template", value=asked, accepted="it is a name or a Jinja template")
    if asked is None:
        names = ["tool_use"] * has_tools + ["default"] + (list(templates) if len(templates) == 1 else [])
        asked = next((name for name in names if name in templates), None)
        if asked is None:
            accepted = (
                "this tokenizer has no chat template; give one (chat_template, or detok serve --chat-template FILE), "
                "or load the model's directory, where it stands"
            )
            if templates:
                accepted = f"this tokenizer has several; name one of {_names(templates)}"
            raise OptionError(option="chat_template", value=None, accepted=accepted)
    if asked in templates:
        return compiled(templates[asked], asked)
    if "{" not in asked:
        accepted = f"it is a Jinja template, or one of the tokenizer's own: {_names(templates) or 'it has none'}"
        raise OptionError(option="chat_template", value=asked, accepted=accepted)
    return compiled(asked, "given")


def _names(templates: Mapping[str, str]) -> str:
    return ", ".join(map(repr, sorted(templates)))


def _error(name: str, error: Exception) -> ChatTemplateError:
    line: int | None = getattr(error, "lineno", None)
    trace = error.__traceback__
    while trace is not None:
        # Jinja rewrites the frames of a template to its own lines.
        if trace.tb_frame.f_code.co_filename == FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, RecursionError):
        problem = "it calls itself without an end"
    elif isinstance(error, TooMuch) or type(error).__module__.startswith("jinja2"):
        problem = str(error) or type(error).__name__
    else:
        problem = f"{type(error).__name__}: {error}"
    return ChatTemplateError(name, line=line, problem=problem)
