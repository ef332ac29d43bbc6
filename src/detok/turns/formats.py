"""
Turn formats: how a model family writes reasoning and tool calls into its output.

A format is a value of two halves, either of which may be missing: delimiters of reasoning, and delimiters of tool calls with
the grammar between them. They are combined freely, chosen by name, or written as a table of one's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..errors import OptionError
from ..ids import as_id
from .calls.grammars import GRAMMARS
from .channels import CONTENT, REASONING

__all__ = [
    "FORMAT_MODELS", "HARMONY", "REASONING_PARSERS", "TOOL_PARSERS", "TURN_FORMATS",
    "ReasoningFormat", "ToolFormat", "TurnFormat", "parser_format", "turn_format",
]  # fmt: skip

HARMONY = "harmony"


@dataclass(frozen=True, slots=True)
class ReasoningFormat:
    """
    The half of a format that says where reasoning stands.

    Raises:
        OptionError: A delimiter is missing or empty.
    """

    opens: tuple[str | int, ...]
    """Delimiters: texts, over any number of tokens, or token ids."""

    closes: tuple[str | int, ...]

    implied: bool = False
    """Whether a turn begins inside of reasoning, though nothing opened it. A prompt that closes reasoning ends that too."""

    def __post_init__(self) -> None:
        for name in ("opens", "closes"):
            object.__setattr__(self, name, _delimiters(f"reasoning.{name}", getattr(self, name), ids=True))
        if not self.closes or not (self.opens or self.implied):
            raise OptionError(option="reasoning", value=self.opens, accepted="it has opens and closes")


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """
    The half of a format that says how tools are called.

    Raises:
        OptionError: A delimiter is missing or empty, or there is no such grammar.
    """

    grammar: str
    """How a call is written, by name: "json" for objects with name and arguments, or a model family's."""

    opens: tuple[str, ...]
    """Delimiters before calls."""

    closes: tuple[str, ...] = ()
    """Delimiters after calls."""

    interrupts: bool = True
    """Whether a call inside of reasoning ends it. If not, it is a part of the reasoning."""

    known_only: bool = False
    """Whether a name that no tool of the request has is no call's."""

    def __post_init__(self) -> None:
        for name in ("opens", "closes"):
            object.__setattr__(self, name, _delimiters(f"tools.{name}", getattr(self, name), ids=False))
        if self.grammar not in GRAMMARS:
            raise OptionError(
                option="tools.grammar", value=self.grammar, accepted=f"it is one of {', '.join(map(repr, GRAMMARS))}"
            )
        if not self.opens:
            raise OptionError(option="tools.opens", value=self.opens, accepted="calls have a delimiter before them")


def _delimiters(where: str, value: object, *, ids: bool) -> tuple[str | int, ...]:
    given = (value,) if isinstance(value, (str, int)) else value
    if isinstance(given, Sequence):
        made = tuple(one if isinstance(one, str) or not ids else as_id(one, where=where) for one in given)
        if all(one and not one[0].isspace() if isinstance(one, str) else ids for one in made):
            return made
    kind = "texts or token ids" if ids else "texts"
    raise OptionError(option=where, value=value, accepted=f"it is a list of {kind}; none is empty or begins with white space")


@dataclass(frozen=True, slots=True)
class TurnFormat:
    """
    How a turn is written, and what is known of the request that it is for.

    Raises:
        OptionError: There is no such beginning.
    """

    reasoning: ReasoningFormat | None = None
    tools: ToolFormat | None = None
    layout: str = "tags"
    """"tags": the halves. "harmony": messages with headers, which have both."""

    start: str = ""
    """The channel that the output begins in, if the prompt has begun it: "reasoning", or "content"."""

    calls: bool = True
    """Whether calls are looked for. If not, they are content as they are written."""

    forced: bool = False
    """Whether the output is JSON of calls without delimiters, since the engine was made to write that."""

    types: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict, hash=False)
    """By tool and parameter, the JSON types that its schema allows. No tool: any name is a tool's, and any parameter a string."""

    def __post_init__(self) -> None:
        if self.start not in ("", CONTENT, REASONING):
            raise OptionError(option="start", value=self.start, accepted="it is '', 'content' or 'reasoning'")
        if self.layout not in ("tags", HARMONY):
            raise OptionError(option="layout", value=self.layout, accepted="it is 'tags' or 'harmony'")

    def starting_in(self, channel: str) -> TurnFormat:
        """Return the same format for outputs that begin in another channel, as after a prompt that ends in ``<think>``."""
        return replace(self, start=channel)

    @property
    def token_ids(self) -> frozenset[int]:
        """The ids among the delimiters."""
        half = self.reasoning
        return frozenset() if half is None else frozenset(one for one in (*half.opens, *half.closes) if isinstance(one, int))

    def as_dict(self) -> dict[str, Any]:
        """The format as plain data, which `turn_format` takes."""
        return asdict(self)


def _think(*, implied: bool = False) -> ReasoningFormat:
    return ReasoningFormat(("<think>",), ("</think>",), implied)


_DEEPSEEK = (("<｜tool▁calls▁begin｜>",), ("<｜tool▁calls▁end｜>",))
_KIMI = (("<|tool_calls_section_begin|>",), ("<|tool_calls_section_end|>",))
_GRANITE_REASONING = ReasoningFormat(
    ("Here is my thought process:", "Here's my thought process:", "<think>"),
    ("Here is my response:", "Here's my response:", "</think>"),
)
_TOOL_CALL = (("<tool_call>",), ("</tool_call>",))
_HERMES = ToolFormat("json", *_TOOL_CALL)

TURN_FORMATS: Mapping[str, TurnFormat] = {
    "think": TurnFormat(_think()),
    "hermes": TurnFormat(None, _HERMES),
    "qwen": TurnFormat(_think(), _HERMES),
    "qwen3_coder": TurnFormat(_think(), ToolFormat("qwen3_coder", *_TOOL_CALL)),
    "glm": TurnFormat(_think(), ToolFormat("glm", *_TOOL_CALL, known_only=True)),
    "deepseek_v3": TurnFormat(_think(), ToolFormat("deepseek_v3", *_DEEPSEEK, interrupts=False)),
    "deepseek_v31": TurnFormat(_think(), ToolFormat("deepseek_v31", *_DEEPSEEK, interrupts=False)),
    "kimi_k2": TurnFormat(_think(), ToolFormat("kimi_k2", *_KIMI)),
    "minimax": TurnFormat(_think(), ToolFormat("minimax", ("<minimax:tool_call>",), ("</minimax:tool_call>",), known_only=True)),
    "mistral": TurnFormat(
        ReasoningFormat(("[THINK]", "<think>"), ("[/THINK]", "</think>")), ToolFormat("mistral", ("[TOOL_CALLS]",))
    ),
    "llama3_json": TurnFormat(None, ToolFormat("llama3_json", ("<|python_tag|>",))),
    "llama4_pythonic": TurnFormat(None, ToolFormat("llama4_pythonic", ("<|python_start|>",), ("<|python_end|>",))),
    "gemma": TurnFormat(
        ReasoningFormat(("<|channel>thought\n",), ("<channel|>",)),
        ToolFormat("gemma", ("<|tool_call>", "<start_function_call>"), ("<tool_call|>", "<end_function_call>")),
    ),
    "granite": TurnFormat(_GRANITE_REASONING, ToolFormat("json", ("<|tool_call|>", "<tool_call>"), ("</tool_call>",))),
    HARMONY: TurnFormat(layout=HARMONY),
}
"""The formats by name. docs/turns.md says which models write them."""

FORMAT_MODELS: Mapping[str, str] = {
    "think": "any that writes <think>, without tools: DeepSeek R1, QwQ",
    "hermes": "Nous Hermes 2 Pro and 3, Qwen 2.5, Granite 4",
    "qwen": "Qwen 2.5 and 3, QwQ",
    "qwen3_coder": "Qwen3-Coder, Qwen 3.5, Nemotron 3",
    "glm": "GLM 4.5 and newer",
    "deepseek_v3": "DeepSeek V3, V3-0324, R1-0528",
    "deepseek_v31": "DeepSeek V3.1",
    "kimi_k2": "Kimi K2",
    "minimax": "MiniMax M2",
    "mistral": "Mistral, all tokenizers from v3 on",
    "llama3_json": "Llama 3.1 to 3.3, Llama 4 with JSON",
    "llama4_pythonic": "Llama 4, Llama 3.2 with Python",
    "gemma": "FunctionGemma, Gemma 4",
    "granite": "Granite 3",
    "harmony": "gpt-oss",
}
"""Which models write a format."""

TOOL_PARSERS: Mapping[str, str] = {
    "hermes": "hermes", "qwen3_json": "hermes", "granite4": "hermes", "qwen3_coder": "qwen3_coder", "qwen3_xml": "qwen3_coder",
    "glm45": "glm", "glm47": "glm", "deepseek_v3": "deepseek_v3", "deepseek_v31": "deepseek_v31", "kimi_k2": "kimi_k2",
    "minimax_m2": "minimax", "mistral": "mistral", "llama3_json": "llama3_json", "llama4_json": "llama3_json",
    "llama4_pythonic": "llama4_pythonic", "pythonic": "llama4_pythonic", "functiongemma": "gemma", "gemma4": "gemma",
    "granite": "granite", "openai": HARMONY,
}  # fmt: skip
"""vLLM's names of tool-call parsers, and the format whose tool half each is."""

REASONING_PARSERS: Mapping[str, str] = {
    "deepseek_r1": "think", "deepseek_v3": "think", "qwen3": "think", "glm45": "think", "glm47": "think", "kimi_k2": "think",
    "minimax_m2": "think", "granite_thinking_parser": "think", "mistral": "mistral", "gemma4": "gemma", "granite": "granite",
    "openai_gptoss": HARMONY,
}  # fmt: skip
"""vLLM's names of reasoning parsers, and the format whose reasoning half each is."""

IMPLIED = frozenset({"deepseek_r1", "qwen3", "glm45", "glm47", "kimi_k2", "minimax_m2", "granite_thinking_parser"})
"""Those of vLLM's reasoning parsers that take a turn for reasoning until that is closed."""


def turn_format(value: object) -> TurnFormat | None:
    """
    Return the format of this name, of this plain data, or as it is.

    Plain data has the keys ``reasoning`` and ``tools``: the name of a format, whose half is taken, or a half as a table. Other
    keys are those of `TurnFormat`. A table of a half may say ``like`` and the name of a format, for what it does not say itself.

    >>> turn_format({"reasoning": "think", "tools": {"like": "hermes", "opens": ["<call>"], "closes": ["</call>"]}}).tools.opens
    ('<call>',)

    Raises:
        OptionError: It is none of these.
    """
    if value is None or isinstance(value, TurnFormat):
        return value
    if isinstance(value, str) and value in TURN_FORMATS:
        return TURN_FORMATS[value]
    if isinstance(value, Mapping):
        return _of_table(value)
    accepted = f"it is one of {', '.join(map(repr, TURN_FORMATS))}, or a detok.TurnFormat"
    raise OptionError(option="channels", value=value, accepted=accepted)


def _of_table(table: Mapping[str, Any]) -> TurnFormat:
    known = TurnFormat.__dataclass_fields__
    for key in table:
        if key not in known:
            raise OptionError(option=f"channels.{key}", value=table[key], accepted=f"a turn format has {', '.join(known)}")
    halves = {"reasoning": _half("reasoning", ReasoningFormat, table), "tools": _half("tools", ToolFormat, table)}
    try:
        return TurnFormat(**{**table, **halves})
    except TypeError as error:
        raise OptionError(option="channels", value=table, accepted=f"a turn format is written otherwise: {error}") from None


def _half(name: str, kind: type, table: Mapping[str, Any]) -> Any:
    value = table.get(name)
    if value is None or isinstance(value, kind):
        return value
    named = TURN_FORMATS.get(value) if isinstance(value, str) else None
    if named is not None and getattr(named, name) is not None:
        return getattr(named, name)
    if isinstance(value, Mapping):
        rows = dict(value)
        base = rows.pop("like", None)
        of_base = _half(name, kind, {name: base})
        try:
            return replace(of_base, **rows) if of_base is not None else kind(**rows)
        except TypeError:
            fields = ", ".join(kind.__dataclass_fields__)  # type: ignore[attr-defined]
            raise OptionError(
                option=f"channels.{name}", value=value, accepted=f"it is a table of {fields}, or has like"
            ) from None
    names = ", ".join(repr(one) for one in TURN_FORMATS if getattr(TURN_FORMATS[one], name) is not None)
    raise OptionError(option=f"channels.{name}", value=value, accepted=f"it is one of {names}, or a table")


def parser_format(tool_call_parser: str | None, reasoning_parser: str | None) -> TurnFormat | None:
    """
    Return the format that vLLM's parsers of these names read; None if both are None.

    Raises:
        OptionError: There is none of that name here, or the two do not go together.
    """
    tools = _parser("tool_call_parser", TOOL_PARSERS, tool_call_parser)
    reasoning = _parser("reasoning_parser", REASONING_PARSERS, reasoning_parser)
    if HARMONY in (tools, reasoning):
        if not {tools, reasoning} <= {HARMONY, None}:
            accepted = "openai and openai_gptoss are one format, which goes with no other"
            raise OptionError(option="reasoning_parser", value=reasoning_parser, accepted=accepted)
        return TURN_FORMATS[HARMONY]
    if tools is None and reasoning is None:
        return None
    half = None if reasoning is None else TURN_FORMATS[reasoning].reasoning
    if half is not None and reasoning_parser in IMPLIED:
        half = replace(half, implied=True)
    return TurnFormat(half, None if tools is None else TURN_FORMATS[tools].tools)


def _parser(option: str, known: Mapping[str, str], name: str | None) -> str | None:
    if name is None:
        return None
    # Our own names are good too: most are vLLM's.
    half = "tools" if option == "tool_call_parser" else "reasoning"
    own = {one: one for one, value in TURN_FORMATS.items() if getattr(value, half) is not None or one == HARMONY}
    if name in known or name in own:
        return known.get(name, own.get(name))
    raise OptionError(option=option, value=name, accepted=f"it is one of {', '.join({**known, **own})}")
