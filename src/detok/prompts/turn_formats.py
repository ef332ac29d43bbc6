"""Turn formats and prompts: which format a tokenizer's models write, and where in a turn a prompt leaves off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, SupportsIndex

from ..core.request.request import RequestDecoder
from ..core.vocabulary import Piece
from ..errors import OptionError
from ..turns.channels import CONTENT, REASONING, ChannelDelta
from ..turns.formats import HARMONY, TURN_FORMATS, TurnFormat, turn_format
from ..turns.tool_types import tool_types

__all__ = ["DetectedFormat", "TurnTokenizer", "detect_format", "parse_turn", "turn_after", "turn_for"]

# Tokens at the end of a prompt that are looked at for the beginning of the turn: a message that is continued may be long, but its
# reasoning is opened at its beginning.
TAIL = 4096

_SIGNS: Sequence[tuple[str, tuple[str, ...]]] = (
    (HARMONY, ("<|channel|>", "<|message|>")),
    ("minimax", ("<minimax:tool_call>",)),
    ("kimi_k2", ("<|tool_calls_section_begin|>",)),
    ("deepseek_v3", ("<｜tool▁calls▁begin｜>", "```json")),
    ("deepseek_v31", ("<｜tool▁calls▁begin｜>",)),
    ("glm", ("<arg_key>",)),
    ("qwen3_coder", ("<function=",)),
    ("mistral", ("[TOOL_CALLS]",)),
    ("gemma", ("<start_function_call>",)),
    ("gemma", ("<|tool_call>",)),
    ("llama4_pythonic", ("<|python_start|>",)),
    ("llama3_json", ("<|python_tag|>",)),
    ("llama3_json", ("<|start_header_id|>", '"parameters"')),
    ("granite", ("<|tool_call|>",)),
    ("granite", ("<|start_of_role|>", "<tool_call>")),
    ("granite", ("Here is my thought process:",)),
    ("qwen", ("<tool_call>", "<think>")),
    ("hermes", ("<tool_call>",)),
    ("think", ("<think>",)),
)
"""What a template has that writes prompts for models of a format; the first that has all of it is the one."""


class DetectedFormat(NamedTuple):
    """The format that `detect_format` found."""

    name: str | None
    """None: no sign of any. Then all of an output is content."""
    because: str
    """Where the sign is, in words."""

    @property
    def format(self) -> TurnFormat | None:
        """The format."""
        return None if self.name is None else TURN_FORMATS[self.name]


class TurnTokenizer(Protocol):
    """What is asked of a tokenizer here."""

    @property
    def chat_templates(self) -> Mapping[str, str]:
        """Jinja templates by name."""
        ...

    @property
    def special_ids(self) -> frozenset[int]:
        """The ids of special tokens."""
        ...

    @property
    def added_ids(self) -> frozenset[int]:
        """The ids of tokens that were added to the vocabulary, special ones among them."""
        ...

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Return the text of ids."""
        ...

    def piece(self, token_id: SupportsIndex) -> Piece:
        """Return the vocabulary's entry of an id."""
        ...

    def request(self, prompt_ids: Iterable[SupportsIndex] = (), **options: Any) -> RequestDecoder:
        """Begin a request."""
        ...


def detect_format(tokenizer: TurnTokenizer, template: str | None = None) -> DetectedFormat:
    """
    Return the format that models of a tokenizer write, by their chat template, and where that says nothing by the vocabulary.

    Args:
        tokenizer: TurnTokenizer that `detok.load` returns.
        template: The template that is used in the place of the tokenizer's own.
    """
    templates = [template] if template is not None else list(tokenizer.chat_templates.values())
    for name, signs in _SIGNS:
        if any(all(sign in one for sign in signs) for one in templates):
            return DetectedFormat(name, f"the chat template has {' and '.join(signs)}")
    known = frozenset(_added(tokenizer))
    for name, signs in _SIGNS:
        if signs[0] in known and all(sign in known for sign in signs if not sign.startswith(("```", '"'))):
            return DetectedFormat(name, f"the vocabulary has the token {signs[0]}")
    return DetectedFormat(None, "neither the chat template nor the vocabulary has delimiters that are known")


def _added(tokenizer: TurnTokenizer) -> Iterable[str]:
    for token_id in (*tokenizer.added_ids, *tokenizer.special_ids):
        yield tokenizer.piece(token_id).text


def turn_for(
    turn: TurnFormat, *, tools: Sequence[Mapping[str, Any]] | None, looks_for_calls: bool = True, forced: bool = False
) -> TurnFormat:
    """
    Return the format for a request.

    Args:
        turn: The model's.
        tools: Those of the request. Without any no call is made.
        looks_for_calls: False: no call is made all the same, as ``tool_choice: "none"`` wants.
        forced: Whether the engine is made to write calls as JSON without delimiters.
    """
    calls = bool(tools) and looks_for_calls
    if forced and calls and turn.layout == HARMONY:
        # The engine writes JSON in the place of messages.
        turn = TURN_FORMATS["hermes"]
    return replace(turn, calls=calls, forced=forced and calls, types=tool_types(tools or ()) if calls else {})


def turn_after(turn: TurnFormat, tokenizer: TurnTokenizer, prompt: Sequence[int]) -> TurnFormat:
    """
    Return the format for what follows a prompt: one that has opened reasoning itself, and not closed it, goes on inside of it.

    That is so for templates that end in ``<think>``, and for a message that is continued in the midst of its reasoning.

    Args:
        turn: The format.
        tokenizer: TurnTokenizer that `detok.load` returns.
        prompt: All of it, or its end.
    """
    if turn.layout == HARMONY:
        return _harmony_after(turn, tokenizer, prompt)
    half = turn.reasoning
    if half is None:
        return turn
    tail = _tail(tokenizer, prompt, half.opens, half.closes)
    opened = max((place for one in half.opens for place in [_last(tail, one, tokenizer)]), default=-1)
    closed = max((place for one in half.closes for place in [_last(tail, one, tokenizer)]), default=-1)
    if opened > closed:
        return turn.starting_in(REASONING)
    return turn.starting_in(CONTENT) if closed >= 0 else turn


def _harmony_after(turn: TurnFormat, tokenizer: TurnTokenizer, prompt: Sequence[int]) -> TurnFormat:
    """A prompt that ends in the midst of a message, whose header says what it is."""
    text = tokenizer.decode(list(prompt[-TAIL:]), skip_special_tokens=False)
    header, message, _ = text[max(0, text.rfind("<|start|>")) :].partition("<|message|>")
    if not message or any(end in text[text.rfind("<|message|>") :] for end in ("<|end|>", "<|return|>", "<|call|>")):
        return turn
    return turn.starting_in(REASONING if "analysis" in header else CONTENT)


def _tail(tokenizer: TurnTokenizer, prompt: Sequence[int], *delimiters: Sequence[str | int]) -> str:
    """The text of the turn that a prompt has begun: all after the last special token that is no delimiter."""
    known = {one for row in delimiters for one in row}
    begin = max(0, len(prompt) - TAIL)
    for place in range(len(prompt) - 1, begin - 1, -1):
        token_id = prompt[place]
        if token_id in tokenizer.special_ids and token_id not in known:
            text = tokenizer.piece(token_id).text
            if not any(text in one for one in known if isinstance(one, str)):
                begin = place + 1
                break
    return str(tokenizer.decode(list(prompt[begin:]), skip_special_tokens=False))


def _last(tail: str, delimiter: str | int, tokenizer: TurnTokenizer) -> int:
    text = tokenizer.piece(delimiter).text if isinstance(delimiter, int) else delimiter
    # A template may end in the delimiter without the line end that belongs to it.
    place = tail.rfind(text)
    return place if place >= 0 or not tail.endswith(text.rstrip()) else len(tail) - len(text.rstrip())


def parse_turn(
    tokenizer: TurnTokenizer,
    ids: Sequence[int],
    turn: str | TurnFormat = "auto",
    *,
    prompt_ids: Sequence[int] = (),
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> list[ChannelDelta]:
    """
    Return the parts of a turn: content, reasoning and calls, each with its place in the text with special tokens.

    Args:
        tokenizer: TurnTokenizer that `detok.load` returns.
        ids: What the model wrote.
        turn: The format, by name or as a value; "auto" for the one that `detect_format` finds.
        prompt_ids: What stood before, if it may have opened the reasoning.
        tools: Of the request. None: any call is one, and a parameter without a type of its own is a string.

    Raises:
        OptionError: There is no such format, or "auto" finds none.
    """
    found = detect_format(tokenizer) if turn == "auto" else None
    if found is not None and found.format is None:
        accepted = f"{found.because}; name one of {', '.join(map(repr, TURN_FORMATS))}"
        raise OptionError(option="format", value="auto", accepted=accepted)
    made = found.format if found is not None else turn_format(turn)
    assert made is not None
    if tools is not None:
        made = turn_for(made, tools=tools)
    made = turn_after(made, tokenizer, prompt_ids)
    request = tokenizer.request(prompt_ids, channels=made, skip_special_tokens=False, ignore_eos=True, output="final")
    request.feed(list(ids))
    return list(request.finish("stop").channels or ())
