"""Calls of every format with JSON arguments, as models do write them: strange names, strange JSON, calls within strings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from detok.turns.channels import ChannelDelta
from tests.turns.turn_texts import FAMILIES, format_of, parse

Writer = Callable[[str, str], str]

_THINK_TOOLS = ("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>", "<｜tool▁call▁end｜><｜tool▁calls▁end｜>")

WRITERS: dict[str, Writer] = {
    "hermes": lambda name, given: f'<tool_call>\n{{"name": "{name}", "arguments": {given}}}\n</tool_call>',
    "qwen": lambda name, given: f'<tool_call>\n{{"name": "{name}", "arguments": {given}}}\n</tool_call>',
    "deepseek_v3": lambda name, given: f"{_THINK_TOOLS[0]}function<｜tool▁sep｜>{name}\n```json\n{given}\n```{_THINK_TOOLS[1]}",
    "deepseek_v31": lambda name, given: f"{_THINK_TOOLS[0]}{name}<｜tool▁sep｜>{given}{_THINK_TOOLS[1]}",
    "kimi_k2": lambda name, given: (
        f"<|tool_calls_section_begin|><|tool_call_begin|>{name}:0<|tool_call_argument_begin|>{given}"
        "<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "mistral": lambda name, given: f'[TOOL_CALLS] [{{"name": "{name}", "arguments": {given}}}]',
    "mistral, new": lambda name, given: f"[TOOL_CALLS]{name}[ARGS]{given}",
    "llama3_json": lambda name, given: f'<|python_tag|>{{"name": "{name}", "parameters": {given}}}',
    "granite": lambda name, given: f'<|tool_call|>[{{"name": "{name}", "arguments": {given}}}]',
    "harmony": lambda name, given: f"<|channel|>commentary to={name} <|constrain|>json<|message|>{given}<|call|>",
}
"""How one call is written, by its name and the text of its arguments."""

STRANGE = '{"a": "x", "b": 1e5, "a" : "y",\n "n": 1.50, "z": -0, "d": {"k": [1.0, 2E+3, true, null]}, "u": "\\u00e9\\/"}'
"""Duplicate keys, numbers that are rarely spelt so, white space: a text that no `json.dumps` gives back."""

CASES = [(name, tokens) for name in WRITERS for tokens in (False, True)]


def test_every_format_of_json_is_here() -> None:
    """A new one is to be added."""
    tagged = {"qwen3_coder", "glm", "minimax", "gemma", "llama4_pythonic", "think"}
    assert WRITERS.keys() == FAMILIES.keys() - tagged


def read(name: str, text: str, *, tokens: bool) -> list[ChannelDelta]:
    """The parts of a turn: the same one character at a time and in larger pieces, with delimiters as text or as tokens."""
    found = re.findall(r"<\|[a-z_]{3,}\|>|<｜[^<>]+｜>|\[[A-Z_]{4,}\]|</?tool_call>", text) if tokens else []
    specials = tuple(dict.fromkeys(found))
    whole = parse(format_of(name), text, [len(text)], specials)
    assert parse(format_of(name), text, [1], specials) == whole
    assert parse(format_of(name), text, [3, 1, 5], specials) == whole
    return whole


def told(parts: list[ChannelDelta]) -> list[tuple[str, str, str]]:
    """Channel, name and text."""
    return [(one.channel, one.name, one.text) for one in parts]


@pytest.mark.parametrize(("name", "tokens"), CASES)
def test_arguments_are_the_very_text_that_was_written(name: str, tokens: bool) -> None:
    """Numbers, order, duplicates and spaces are as the model wrote them."""
    assert told(read(name, WRITERS[name]("f", STRANGE), tokens=tokens)) == [("tool", "f", STRANGE)]


@pytest.mark.parametrize(("name", "tokens"), CASES)
def test_control_characters_in_strings_are_escaped(name: str, tokens: bool) -> None:
    """Models write them raw, and JSON does not have them."""
    (part,) = read(name, WRITERS[name]("f", '{"a": "x\ny\x01\t\x1f"}'), tokens=tokens)
    assert json.loads(part.text) == {"a": "x\ny\x01\t\x1f"}


@pytest.mark.parametrize(("name", "tokens"), CASES)
@pytest.mark.parametrize(
    ("written", "called"),
    [
        ("f", "f"),
        ("functions.f", "f"),
        ("mcp:foo/bar", "mcp:foo/bar"),
        ("mcp__foo__bar-2", "mcp__foo__bar-2"),
        ("server.tool", "server.tool"),
    ],
)
def test_name_is_the_tools_own(name: str, tokens: bool, written: str, called: str) -> None:
    """With ":" and "/" in it, as behind MCP; without the prefix that some models put before every function."""
    assert told(read(name, WRITERS[name](written, "{}"), tokens=tokens)) == [("tool", called, "{}")]


@pytest.mark.parametrize(("name", "tokens"), CASES)
@pytest.mark.parametrize("quoted", ["call", "tags", "opening"])
def test_markup_in_a_string_is_part_of_it(name: str, tokens: bool, quoted: str) -> None:
    """A call that writes about calls is one."""
    call = WRITERS[name]("f", "{}")
    if name == "harmony" and tokens:
        # The token that ends a message does so wherever it comes: no text has it.
        call = call.removesuffix("<|call|>")
    tags = " ".join(re.findall(r"<[^<>]+>|\[[A-Z_]+\]|```", call))
    said = {"call": call, "tags": tags, "opening": call[: call.index("f")]}[quoted]
    given = json.dumps({"a": said, "b": 1}, ensure_ascii=False)
    parts = told(read(name, WRITERS[name]("f", given) + " after", tokens=tokens))
    assert parts == [("tool", "f", given), ("content", "", " after")]


@pytest.mark.parametrize(("name", "tokens"), CASES)
def test_text_between_calls_is_content(name: str, tokens: bool) -> None:
    """Where it was written."""
    first, second = WRITERS[name]("f", '{"b": 1}'), WRITERS[name]("g_2", "{}")
    parts = told(read(name, f"{first} and {second} end", tokens=tokens))
    assert parts == [("tool", "f", '{"b": 1}'), ("content", "", " and "), ("tool", "g_2", "{}"), ("content", "", " end")]


@pytest.mark.parametrize(("name", "tokens"), CASES)
def test_arguments_that_are_cut_off_stay_so(name: str, tokens: bool) -> None:
    """At any place: what was given is the beginning of what the model would have written."""
    text = WRITERS[name]("f", STRANGE)
    begin = text.index(STRANGE)
    for end in range(begin + 1, begin + len(STRANGE), 3):
        (part,) = read(name, text[:end], tokens=tokens)
        assert (part.channel, part.name) == ("tool", "f")
        # Of an escape that is cut off nothing is lost; it is not JSON any more than what it is in.
        assert STRANGE.startswith(part.text.rstrip("\\")), text[:end]


@pytest.mark.parametrize("given", ["null", "", " ", "{}"])
@pytest.mark.parametrize("name", ["hermes", "qwen", "llama3_json", "granite", "mistral", "kimi_k2", "deepseek_v31", "harmony"])
def test_call_without_arguments_has_an_empty_object(name: str, given: str) -> None:
    """Whether they are null, or not there."""
    text = WRITERS[name]("g_2", given)
    if not given.strip():
        text = re.sub(r', "(?:arguments|parameters)": ?', "", text)
    assert told(read(name, text, tokens=False)) == [("tool", "g_2", "{}")]


@pytest.mark.parametrize("name", ["hermes", "qwen", "llama3_json", "granite", "mistral"])
def test_one_delimiter_may_hold_several_calls(name: str) -> None:
    """As a list, or one after another; each is a call."""
    key = "parameters" if name == "llama3_json" else "arguments"
    calls = [f'{{"name": "f", "{key}": {{"b": 1}}}}', f'{{"name": "g_2", "{key}": {{}}}}']
    opening, closing = {"hermes": ("<tool_call>", "</tool_call>"), "qwen": ("<tool_call>", "</tool_call>")}.get(
        name, ({"llama3_json": "<|python_tag|>", "granite": "<|tool_call|>", "mistral": "[TOOL_CALLS]"}.get(name, ""), "")
    )
    expected = [("tool", "f", '{"b": 1}'), ("tool", "g_2", "{}")]
    assert told(read(name, f"{opening}[{', '.join(calls)}]{closing}", tokens=False)) == expected
    assert told(read(name, f"{opening}{calls[0]}\n{calls[1]}{closing}", tokens=False)) == expected
