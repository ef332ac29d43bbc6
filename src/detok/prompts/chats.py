"""A chat, from what came in to the text that is encoded: checked, its template chosen, disguised to be safe, rendered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import partial
from types import NoneType
from typing import Any

from ..errors import ChatTemplateError, MessageError, OptionError
from .disguise import Controls, Disguise
from .facts import ChatEncoder, PromptFacts
from .fitting import check_parts, fitted, for_encoder
from .history import as_history
from .limits import Budget, TooMuch
from .marks import check_continued
from .messages import REASONING, Message, checked_messages, checked_objects, plain
from .templates import ChatTemplate, Rendered, choose
from .token_strings import Place

__all__ = ["Chat", "ChatOptions", "prepared"]


KEPT = frozenset(("thinking",))
"""Parts of text that mistral_common knows as what they are."""

SWITCHES = (
    ("add_generation_prompt", (bool, NoneType), "it is True or False, or None"),
    ("continue_final_message", (bool, str), "it is True or False, or the name of a field"),
    ("safe", bool, "it is True or False"),
    ("complete", bool, "it is True or False"),
)
"""A text such as "no" would pass for True."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """How a chat is rendered: the keywords of ``tokenizer.encode_chat``."""

    chat_template: str | None = None
    tools: Sequence[Mapping[str, Any]] | None = None
    documents: Sequence[Mapping[str, Any]] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | str = False
    safe: bool = False
    complete: bool = False
    now: datetime | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    marks_generation: bool = False

    def __post_init__(self) -> None:
        for name, kinds, accepted in SWITCHES:
            if not isinstance(getattr(self, name), kinds):
                raise OptionError(option=name, value=getattr(self, name), accepted=accepted)
        if self.continue_final_message and self.add_generation_prompt:
            accepted = "a chat ends with what the assistant wrote, or where it begins to; leave one of them out"
            raise OptionError(option="continue_final_message", value=self.continue_final_message, accepted=accepted)
        for name in ("messages", "tools", "documents", "add_generation_prompt"):
            if name in self.variables:
                raise OptionError(option=name, value=self.variables[name], accepted="it is an argument of its own")

    @classmethod
    def of(cls, given: Mapping[str, Any], *, marks_generation: bool = False) -> ChatOptions:
        """Make options of keywords; what is no option is a variable of the template."""
        names = {one.name for one in fields(cls)} - {"variables", "marks_generation"}
        options = {name: value for name, value in given.items() if name in names}
        variables = {name: value for name, value in given.items() if name not in names}
        return cls(**options, variables=variables, marks_generation=marks_generation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A chat that is ready to be encoded, or is."""

    text: str = ""
    generated: tuple[tuple[int, int], ...] = ()
    disguise: Disguise | None = None
    ids: list[int] | None = None
    """By an encoder that needs no text."""

    @property
    def shown(self) -> str:
        """The text without masks."""
        return self.text if self.disguise is None else self.disguise.show(self.text)

    def mask(self, places: Sequence[Place]) -> list[int]:
        """Return for each token 1 if the assistant wrote some of it. Both tokens and blocks are in order."""
        mask: list[int] = []
        blocks = iter(self.generated)
        block = next(blocks, None)
        for start, end in places:
            if start is None or end is None:
                accepted = "this tokenizer changes the text, and where its tokens stand in it is not known"
                raise OptionError(option="assistant mask", value=True, accepted=accepted)
            while block is not None and start >= block[1]:
                block = next(blocks, None)
            mask.append(int(block is not None and end > block[0]))
        return mask


def prepared(
    messages: Sequence[Mapping[str, Any]],
    options: ChatOptions,
    *,
    facts: PromptFacts,
    encoder: Callable[[], ChatEncoder] | None,
    controls: Callable[[ChatTemplate], Controls],
) -> Chat:
    """Return a chat that is ready. Arguments and errors as `Prompts.encode_chat`."""
    if encoder is not None and options.chat_template is None:
        return _by_encoder(messages, options, encoder())
    template = choose(facts.chat_templates, options.chat_template, has_tools=options.tools is not None)
    if options.marks_generation and not template.marks_generation:
        accepted = "this one does not say what the assistant writes: it has no {% generation %} block"
        raise OptionError(option="chat_template", value=template.name, accepted=accepted)
    given = checked_messages(messages, roles=template.texts)
    if options.continue_final_message is True and given[-1]["role"] == "assistant":
        check_continued(given, "content")  # before a content that is not there becomes one that is empty
    history = as_history(given)
    values = {
        "tools": checked_objects(options.tools, "tools"),
        "documents": checked_objects(options.documents, "documents"),
        **{name: plain(value, name) for name, value in options.variables.items()},
    }
    try:
        checked = _fitted(template, history, values, options, facts)
        disguise = None
        if options.safe:
            disguise = Disguise(controls(template), [checked, values])
            checked = [disguise.hide_message(message) for message in checked]
            values = disguise.hide(values)
        rendered = _rendered(template, checked, values, options, facts)
    except ChatTemplateError as error:
        raise _placed(
            error, lambda some, budget: _try(template, some, values, options, facts, budget), history
        ) from error.__cause__
    if disguise is not None and disguise.is_escaped(rendered.text):
        problem = "it escapes a special token that a message spells, or writes it as Python does, which safe=True cannot follow"
        raise ChatTemplateError(template.name, line=None, problem=problem)
    return Chat(text=rendered.text, generated=rendered.generated, disguise=disguise)


def _placed(
    error: ChatTemplateError, attempt: Callable[[list[Message], Budget], None], messages: list[Message]
) -> ChatTemplateError:
    """
    Return an error that says at which message the template refused a chat: the first up to which it says the same of the chat.

    It is looked for by halves, and not at all where the template itself is at fault.
    """
    if isinstance(error.__cause__, (TooMuch, RecursionError)) or error.line is None:
        return error
    low, high, budget = 0, len(messages), Budget()
    while high - low > 1:
        middle = (low + high) // 2
        try:
            attempt(messages[:middle], budget)
            refused = False
        except ChatTemplateError as other:
            if isinstance(other.__cause__, TooMuch):
                return error
            refused = (other.line, other.problem) == (error.line, error.problem)
        except MessageError:
            refused = False
        low, high = (low, middle) if refused else (middle, high)
    place = f"messages[{high - 1}]"
    return ChatTemplateError(error.template, line=error.line, problem=error.problem, place=place)


def _try(
    template: ChatTemplate,
    messages: list[Message],
    values: Mapping[str, Any],
    options: ChatOptions,
    facts: PromptFacts,
    budget: Budget,
) -> None:
    """Render a part of a chat."""
    variables = _variables(values, options, facts)
    template.render(_fitted(template, messages, values, options, facts), variables, now=options.now, budget=budget)


def _variables(values: Mapping[str, Any], options: ChatOptions, facts: PromptFacts) -> dict[str, Any]:
    prompts = not options.continue_final_message if options.add_generation_prompt is None else options.add_generation_prompt
    return {**facts.special_tokens, **values, "add_generation_prompt": prompts}


def _fitted(
    template: ChatTemplate, messages: list[dict[str, Any]], values: Mapping[str, Any], options: ChatOptions, facts: PromptFacts
) -> list[dict[str, Any]]:
    variables = _variables(values, options, facts)
    # Contents first, so that what is wrong with one is said of the message at the client's own place.
    shaped = template.shaped(messages, variables)
    return fitted(
        shaped,
        template.habits(variables),
        lambda probed: template.render(probed, variables, now=options.now).text,
        complete=options.complete,
    )


def _rendered(
    template: ChatTemplate, messages: list[dict[str, Any]], values: Mapping[str, Any], options: ChatOptions, facts: PromptFacts
) -> Rendered:
    goes_on = options.continue_final_message
    return template.render(
        messages,
        _variables(values, options, facts),
        continue_field=(goes_on if isinstance(goes_on, str) else "content") if goes_on else None,
        now=options.now,
        marks_generation=options.marks_generation,
    )


def _by_encoder(messages: Sequence[Mapping[str, Any]], options: ChatOptions, encode: ChatEncoder) -> Chat:
    """By mistral_common, say, which takes the messages of OpenAI's API."""
    history = as_history(checked_messages(messages, roles=()), keeps=KEPT)
    if options.complete:
        check_parts(history, keeps=KEPT)
    checked = for_encoder(history)
    for name in ("documents", "marks_generation"):
        if getattr(options, name):
            accepted = "the chats of this tokenizer have no template; give chat_template"
            raise OptionError(option=name, value=getattr(options, name), accepted=accepted)
    if isinstance(options.continue_final_message, str):
        accepted = "without a template it is True or False"
        raise OptionError(option="continue_final_message", value=options.continue_final_message, accepted=accepted)
    last = checked[-1]["role"]
    if options.continue_final_message != (last == "assistant"):
        accepted = "continue_final_message goes with a last message of the assistant's, and a generation prompt with another"
        raise MessageError(f"messages[{len(checked) - 1}].role", found=f"is {last!r}", accepted=accepted)
    tools = checked_objects(options.tools, "tools")
    told = partial(encode, tools=tools, continue_final_message=bool(options.continue_final_message), options=options.variables)
    try:
        return Chat(ids=told(checked))
    except MessageError:
        if not any(name in message for message in checked for name in REASONING):
            raise
        # Of old turns reasoning is left out by most templates; a version that knows none refuses it.
        return Chat(ids=told([{key: value for key, value in one.items() if key not in REASONING} for one in checked]))
