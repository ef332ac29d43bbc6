"""Channels: delimiters that are special tokens, text, or text over several tokens, for the formats that come along."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok import TURN_FORMATS, ReasoningFormat, ToolFormat, TurnFormat
from detok.turns.parsers import turn_parser
from tests.support.handmade import make

SPECIALS = ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>", "<|constrain|>"]
PIECES = [
    *SPECIALS,
    *'<>/|abcdefghiklmnorstuw_ .:={}\n",',
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "think",
    ">\n",
    "</",
]
TOKENIZER = detok.load(make({"type": "Fuse"}, PIECES, special=SPECIALS, added=["<think>", "</think>"]))


def ids_of(*pieces: str) -> list[int]:
    """The id of each piece, or of each of its characters."""
    return [PIECES.index(part) for piece in pieces for part in ([piece] if piece in PIECES else piece)]


def parts_of(ids: Sequence[int], channels: str | TurnFormat, steps: int = 1) -> list[tuple[str, str, str]]:
    """Channel, text and header of each part."""
    request = TOKENIZER.request(channels=channels)
    outputs = [request.feed(ids[start : start + steps]) for start in range(0, len(ids), steps)]
    outputs.append(request.finish("stop"))
    parts: dict[int, tuple[str, str, str]] = {}
    for output in outputs:
        for delta in output.channels or ():
            before = parts.get(delta.part, (delta.channel, "", delta.header or delta.name))
            assert (before[0], before[2]) == (delta.channel, delta.header or delta.name)
            parts[delta.part] = (delta.channel, before[1] + delta.text, before[2])
    assert list(parts) == sorted(parts)
    return [*parts.values()]


@pytest.mark.parametrize("steps", [1, 2, 100])
@pytest.mark.parametrize("spelled", [False, True])
def test_reasoning_is_split_from_content(steps: int, spelled: bool) -> None:
    """Whether the delimiters are tokens of their own or spelled in characters."""
    opening, closing = ("<" + "think" + ">", "</" + "think" + ">") if not spelled else ("<think>", "</think>")
    ids = ids_of(*(opening if spelled else [opening]), "\n", "abc", *(closing if spelled else [closing]), "hello")
    assert parts_of(ids, "think", steps) == [("reasoning", "\nabc", ""), ("content", "hello", "")]


def test_tool_calls_in_a_row_are_parts_of_their_own() -> None:
    """Two calls, with content before, and white space between that belongs to the delimiters."""
    call = '{"name":"b","arguments":{"a":"b"}}'
    ids = ids_of("hi", "<tool_call>", call, "</tool_call>", "\n", "<tool_call>", call, "</tool_call>")
    assert parts_of(ids, "hermes") == [("content", "hi", ""), ("tool", '{"a":"b"}', "b"), ("tool", '{"a":"b"}', "b")]


def test_what_is_no_call_is_content_as_it_is_written() -> None:
    """With its delimiters, in reasoning too."""
    ids = ids_of("<think>", "<tool_call>", "</think>", "a", "<tool_call>", "{}", "</tool_call>")
    assert parts_of(ids, "qwen") == [("reasoning", "<tool_call>", ""), ("content", "a<tool_call>{}</tool_call>", "")]


def test_harmony_is_routed_by_its_headers() -> None:
    """The header says what a message is: reasoning, a call with its recipient, the final answer, a preamble."""
    ids = ids_of(
        "<|channel|>", "analysis".replace("y", "i"), "<|message|>", "hm", "<|end|>",
    )  # fmt: skip
    assert parts_of(ids, "harmony")[0][1:] == ("hm", "<|channel|>analisis")
    splitter = turn_parser(TURN_FORMATS["harmony"])
    deltas = splitter.feed(
        [
            detok.Special(1, "<|channel|>"), detok.Text("analysis"), detok.Special(2, "<|message|>"), detok.Text("hm"),
            detok.Special(3, "<|end|>"), detok.Special(0, "<|start|>"), detok.Text("assistant"), detok.Special(1, "<|channel|>"),
            detok.Text("commentary to=functions.f "), detok.Special(6, "<|constrain|>"), detok.Text("json"),
            detok.Special(2, "<|message|>"), detok.Text("{}"), detok.Special(4, "<|call|>"), detok.Special(0, "<|start|>"),
            detok.Text("assistant"), detok.Special(1, "<|channel|>"), detok.Text("final"), detok.Special(2, "<|message|>"),
            detok.Text("42"), detok.Special(5, "<|return|>"),
        ]
    )  # fmt: skip
    assert [(one.channel, one.text, one.part, one.header, one.name) for one in deltas] == [
        ("reasoning", "hm", 0, "<|channel|>analysis", ""),
        ("tool", "{}", 1, "assistant<|channel|>commentary to=functions.f <|constrain|>json", "f"),
        ("content", "42", 2, "assistant<|channel|>final", ""),
    ]


def test_delimiter_may_be_an_id() -> None:
    """Of a token that is not special, too: its text is then in no channel."""
    think = PIECES.index("think")
    turn = TurnFormat(ReasoningFormat((think,), (PIECES.index(">\n"),)))
    assert parts_of(ids_of("think", "b", "think", ">\n", "a"), turn) == [("reasoning", "bthink", ""), ("content", "a", "")]


def test_output_may_begin_inside_reasoning() -> None:
    """Behind a prompt that ends in the opening delimiter."""
    table = TURN_FORMATS["think"].starting_in("reasoning")
    assert parts_of(ids_of("a", "</think>", "b"), table) == [("reasoning", "a", ""), ("content", "b", "")]


def test_what_never_becomes_a_delimiter_comes_out() -> None:
    """Half a delimiter at the end, or with a special token in the middle of it, is text."""
    assert parts_of(ids_of("a</thin"), TURN_FORMATS["think"].starting_in("reasoning")) == [("reasoning", "a</thin", "")]
    ids = [*ids_of("<th"), PIECES.index("<|end|>"), *ids_of("ink>")]
    assert parts_of(ids, "think") == [("content", "<think>", "")]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"reasoning": {"opens": ["<r>"]}}, "channels.reasoning"),
        ({"reasoning": {"opens": [""], "closes": ["x"]}}, "reasoning.opens"),
        ({"reasoning": {"opens": [" <r>"], "closes": ["x"]}}, "reasoning.opens"),
        ({"tools": {"opens": ["<c>"], "grammar": "x"}}, "tools.grammar='x'"),
        ({"tools": {"like": "hermes", "opens": []}}, "tools.opens"),
        ({"tools": "think"}, "channels.tools='think'"),
        ({"tools": 5}, "channels.tools=5"),
        ({"think": "x"}, "channels.think"),
        ({"start": "nowhere"}, "start='nowhere'"),
        ({"layout": "x"}, "layout='x'"),
        ("thinking", "'qwen3_coder'"),
        (5, "channels=5"),
    ],
)
def test_format_that_is_none_is_refused(table: object, words: str) -> None:
    """By name: what is wrong, and what is possible."""
    with pytest.raises(detok.OptionError) as error:
        TOKENIZER.request(channels=table)
    assert words in str(error.value)


def test_format_may_be_a_table_of_its_own() -> None:
    """Halves are named, or written; a half may be like another one but for its delimiters."""
    table = {"reasoning": "think", "tools": {"like": "hermes", "opens": ["<c>"], "closes": ["</c>"]}}
    call = '{"name":"b","arguments":{}}'
    ids = ids_of("<think>", "a", "</think>", "<c>", call, "</c>")
    assert parts_of(ids, table) == [("reasoning", "a", ""), ("tool", "{}", "b")]  # type: ignore[arg-type]
    made = TurnFormat(ReasoningFormat(("<think>",), ("</think>",)), ToolFormat("json", ("<c>",), ("</c>",)))
    assert parts_of(ids, made) == parts_of(ids, table)  # type: ignore[arg-type]


def test_tokens_of_parts_are_counted() -> None:
    """Those of delimiters are in none."""
    request = TOKENIZER.request(channels="qwen", output="final")
    request.feed(ids_of("<think>", "ab", "think", "</think>", "hello"))
    deltas = request.finish("stop").channels or []
    assert [(one.text, one.tokens) for one in deltas] == [("abthink", 3), ("hello", 5)]


@given(
    ids=st.lists(st.sampled_from(range(len(PIECES))), max_size=14),
    name=st.sampled_from(sorted(TURN_FORMATS)),
    steps=st.integers(1, 4),
)
def test_channels_do_not_depend_on_steps_or_travel(ids: list[int], name: str, steps: int) -> None:
    """Any split gives the same parts, and a request that is restored after each step goes on in its channel."""
    wanted = parts_of(ids, name, max(1, len(ids)))
    assert parts_of(ids, name, steps) == wanted
    request = TOKENIZER.request(channels=name)
    text = ""
    for token_id in ids:
        text += "".join(delta.text for delta in request.feed([token_id]).channels or ())
        request = TOKENIZER.restore_request(request.snapshot())
    text += "".join(delta.text for delta in request.finish("stop").channels or ())
    assert text == "".join(part[1] for part in wanted)


def test_channels_alone_give_no_segments() -> None:
    """Each is given if it was asked for; text by channel alone is something to pass on, too."""
    output = TOKENIZER.request(channels="think").feed([0])
    assert (output.segments, output.channels is None) == (None, False)
    assert TOKENIZER.request(channels="think", segments=True).feed([0]).segments is not None
    late = detok.RequestOutput()
    late.channels = [detok.ChannelDelta("content", "x", 0)]
    assert late
