"""Turns as models write them, for each format: what a property test mixes, cuts and misspells."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from detok.turns.channels import ChannelDelta, joined_deltas
from detok.turns.formats import TURN_FORMATS, TurnFormat
from detok.turns.parsers import turn_parser
from detok.turns.segments import Segment, Special, Text

Arguments = dict[str, Any]
TOOLS = {"f": {"a": ["string"], "b": ["integer", "number"], "c": ["array"], "d": ["object"], "e": ["string", "null"]}, "g_2": {}}


@dataclass(frozen=True)
class Family:
    """How calls are written, one after another in one turn."""

    write: Callable[[list[tuple[str, Arguments]]], str]
    opens: str = ""
    closes: str = ""
    delimiters: tuple[str, ...] = ()
    """What may stand between parts besides white space."""


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _tagged_value(value: Any) -> str:
    return value if isinstance(value, str) else _dumps(value)


def _hermes(calls: list[tuple[str, Arguments]]) -> str:
    return "\n".join(f'<tool_call>\n{{"name": "{name}", "arguments": {_dumps(given)}}}\n</tool_call>' for name, given in calls)


def _qwen3_coder(calls: list[tuple[str, Arguments]]) -> str:
    def one(name: str, given: Arguments) -> str:
        inner = "".join(f"<parameter={key}>\n{_tagged_value(value)}\n</parameter>\n" for key, value in given.items())
        return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"

    return "\n".join(one(*call) for call in calls)


def _glm(calls: list[tuple[str, Arguments]]) -> str:
    def one(name: str, given: Arguments) -> str:
        inner = "".join(
            f"<arg_key>{key}</arg_key>\n<arg_value>{_tagged_value(value)}</arg_value>\n" for key, value in given.items()
        )
        return f"<tool_call>{name}\n{inner}</tool_call>"

    return "\n".join(one(*call) for call in calls)


def _minimax(calls: list[tuple[str, Arguments]]) -> str:
    def one(name: str, given: Arguments) -> str:
        inner = "".join(f'<parameter name="{key}">{_tagged_value(value)}</parameter>\n' for key, value in given.items())
        return f'<invoke name="{name}">\n{inner}</invoke>\n'

    return f"<minimax:tool_call>\n{''.join(one(*call) for call in calls)}</minimax:tool_call>"


def _deepseek_v3(calls: list[tuple[str, Arguments]]) -> str:
    def one(name: str, given: Arguments) -> str:
        return f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{_dumps(given)}\n```<｜tool▁call▁end｜>"

    return "<｜tool▁calls▁begin｜>" + "\n".join(one(*call) for call in calls) + "<｜tool▁calls▁end｜>"


def _deepseek_v31(calls: list[tuple[str, Arguments]]) -> str:
    inner = "".join(f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{_dumps(given)}<｜tool▁call▁end｜>" for name, given in calls)
    return f"<｜tool▁calls▁begin｜>{inner}<｜tool▁calls▁end｜>"


def _kimi(calls: list[tuple[str, Arguments]]) -> str:
    inner = "".join(
        f"<|tool_call_begin|>functions.{name}:{n}<|tool_call_argument_begin|>{_dumps(given)}<|tool_call_end|>"
        for n, (name, given) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{inner}<|tool_calls_section_end|>"


def _mistral_old(calls: list[tuple[str, Arguments]]) -> str:
    return "[TOOL_CALLS] " + _dumps([{"name": name, "arguments": given} for name, given in calls])


def _mistral_new(calls: list[tuple[str, Arguments]]) -> str:
    return "".join(f"[TOOL_CALLS]{name}[ARGS]{_dumps(given)}" for name, given in calls)


def _llama_json(calls: list[tuple[str, Arguments]]) -> str:
    return "<|python_tag|>" + "; ".join(_dumps({"name": name, "parameters": given}) for name, given in calls)


def _pythonic(calls: list[tuple[str, Arguments]]) -> str:
    inner = ", ".join(f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})" for name, given in calls)
    return f"<|python_start|>[{inner}]<|python_end|>"


def _gemma_value(value: Any) -> str:
    match value:
        case str():
            return f'<|"|>{value}<|"|>'
        case dict():
            return "{" + ",".join(f"{key}:{_gemma_value(one)}" for key, one in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_gemma_value, value)) + "]"
    return _dumps(value)


def _gemma(calls: list[tuple[str, Arguments]]) -> str:
    return "".join(f"<|tool_call>call:{name}{_gemma_value(given)}<tool_call|>" for name, given in calls)


def _granite(calls: list[tuple[str, Arguments]]) -> str:
    return "<|tool_call|>" + _dumps([{"name": name, "arguments": given} for name, given in calls])


def _harmony(calls: list[tuple[str, Arguments]]) -> str:
    return "<|start|>assistant".join(
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{_dumps(given)}<|call|>" for name, given in calls
    )


_TOOL_CALL = ("<tool_call>", "</tool_call>")
_DEEPSEEK = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁end｜>", "```")

FAMILIES: dict[str, Family] = {
    "hermes": Family(_hermes, delimiters=_TOOL_CALL),
    "qwen": Family(_hermes, "<think>", "</think>", _TOOL_CALL),
    "qwen3_coder": Family(_qwen3_coder, "<think>", "</think>", (*_TOOL_CALL, "</function>")),
    "glm": Family(_glm, "<think>", "</think>", _TOOL_CALL),
    "deepseek_v3": Family(_deepseek_v3, "<think>", "</think>", _DEEPSEEK),
    "deepseek_v31": Family(_deepseek_v31, "<think>", "</think>", _DEEPSEEK[:3]),
    "kimi_k2": Family(_kimi, "<think>", "</think>", ("<|tool_calls_section_end|>", "<|tool_call_end|>")),
    "minimax": Family(_minimax, "<think>", "</think>", ("</minimax:tool_call>", "</invoke>")),
    "mistral": Family(_mistral_old, "[THINK]", "[/THINK]", ("]",)),
    "mistral, new": Family(_mistral_new, "[THINK]", "[/THINK]", ("]",)),
    "llama3_json": Family(_llama_json, delimiters=("]",)),
    "llama4_pythonic": Family(_pythonic, delimiters=("]", "<|python_end|>")),
    "gemma": Family(_gemma, "<|channel>thought\n", "<channel|>", ("<tool_call|>", "<end_function_call>")),
    "granite": Family(
        _granite, "Here is my thought process:", "Here is my response:", ("]", "</tool_call>", "<think>", "</think>")
    ),
    "harmony": Family(_harmony, "<|channel|>analysis<|message|>", "<|end|>"),
    "think": Family(lambda calls: "", "<think>", "</think>"),
}

_TEXT = st.text(st.sampled_from("ab <>{}[]\"'\\:,=/|\n\u00e9\U0001f600"), max_size=12).map(lambda text: text.replace('<|"', "<'"))
_SCALAR = st.one_of(_TEXT, st.integers(-99, 10**6), st.booleans(), st.none())
PLAIN_TEXT = st.text(st.sampled_from("ab c.\n\u00e9"), min_size=1, max_size=12).map(lambda text: f"w{text}w")


def arguments(*, tagged: bool) -> st.SearchStrategy[Arguments]:
    """Arguments of the tool f."""
    # A tagged value that is a string of null or of a bracket is told from another type by its schema alone.
    text = _TEXT.map(lambda one: f"x{one}x".replace("</", "< /")) if tagged else _TEXT
    return st.fixed_dictionaries(
        {},
        optional={
            "a": text,
            "b": st.integers(-99, 10**6),
            "c": st.lists(_SCALAR, max_size=3),
            "d": st.dictionaries(st.sampled_from(["k", "l"]), st.one_of(_SCALAR, st.lists(_SCALAR, max_size=2)), max_size=2),
        },
    )


def format_of(name: str) -> TurnFormat:
    """The format of a family, for a request with the tools above."""
    return replace(TURN_FORMATS[name.partition(",")[0]], types=TOOLS)


def parse(turn: TurnFormat, text: str, sizes: list[int], specials: tuple[str, ...] = ()) -> list[ChannelDelta]:
    """Parse a text in pieces of these sizes, in turn, with some texts as special tokens; after each the parser travels."""
    parser = turn_parser(turn)
    deltas: list[ChannelDelta] = []
    for segment in segments_of(text, specials):
        begin, n = 0, 0
        pieces: list[Segment] = [segment]
        if isinstance(segment, Text):
            pieces = []
            while begin < len(segment.text):
                pieces.append(Text(segment.text[begin : begin + sizes[n % len(sizes)]]))
                begin += sizes[n % len(sizes)]
                n += 1
        for piece in pieces:
            deltas += parser.feed([piece])
            parser = turn_parser(turn, parser.copy().state)
    deltas += parser.finish()
    assert parser.finish() == []
    return joined_deltas(deltas)


def segments_of(text: str, specials: tuple[str, ...]) -> list[Segment]:
    """The text with some texts as special tokens, which are not shown."""
    if not specials:
        return [Text(text)]
    parts = re.split("(" + "|".join(map(re.escape, specials)) + ")", text)
    return [Special(specials.index(part), part) if part in specials else Text(part) for part in parts if part]
