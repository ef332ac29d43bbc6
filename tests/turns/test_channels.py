"""Channels: delimiters that are special tokens, text, or text over several tokens, for the tables that come along."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok import CHANNEL_TABLES, ChannelDelta, ChannelTable, Delimiter
from detok.turns.channels import ChannelSplitter
from tests.support.handmade import make

SPECIALS = ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>", "<|constrain|>"]
PIECES = [
    *SPECIALS,
    *"<>/|abcdehiklmnorstuw_ .:={}\n",
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


def parts_of(ids: Sequence[int], channels: str | ChannelTable, steps: int = 1) -> list[tuple[str, str, str]]:
    """Channel, text and header of each part."""
    request = TOKENIZER.request(channels=channels)
    outputs = [request.feed(ids[start : start + steps]) for start in range(0, len(ids), steps)]
    outputs.append(request.finish("stop"))
    parts: dict[int, tuple[str, str, str]] = {}
    for output in outputs:
        for channel, text, part, header in output.channels or ():
            before = parts.get(part, (channel, "", header))
            assert (before[0], before[2]) == (channel, header)
            parts[part] = (channel, before[1] + text, header)
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
    """Two calls, with content before and between: nothing runs together."""
    ids = ids_of("hi", "<tool_call>", "{a}", "</tool_call>", "\n", "<tool_call>", "{b}", "</tool_call>")
    assert parts_of(ids, "hermes") == [("content", "hi", ""), ("tool", "{a}", ""), ("content", "\n", ""), ("tool", "{b}", "")]


def test_qwen_has_both() -> None:
    """A tool call is one only outside of reasoning."""
    ids = ids_of("<think>", "<tool_call>", "</think>", "a", "<tool_call>", "{}", "</tool_call>")
    assert parts_of(ids, "qwen") == [("reasoning", "<tool_call>", ""), ("content", "a", ""), ("tool", "{}", "")]


def test_harmony_is_routed_by_its_headers() -> None:
    """The header says what a message is: reasoning, a call with its recipient, the final answer, a preamble."""
    ids = ids_of(
        "<|channel|>", "analysis".replace("y", "i"), "<|message|>", "hm", "<|end|>",
    )  # fmt: skip
    assert parts_of(ids, "harmony")[0][1:] == ("hm", "<|channel|>analisis")
    splitter = ChannelSplitter(CHANNEL_TABLES["harmony"])
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
    assert deltas == [
        ChannelDelta("reasoning", "hm", 0, "<|channel|>analysis"),
        ChannelDelta("tool", "{}", 1, "assistant<|channel|>commentary to=functions.f <|constrain|>json"),
        ChannelDelta("content", "42", 2, "assistant<|channel|>final"),
    ]


def test_delimiter_may_be_an_id() -> None:
    """Of a token that is not special, too: its text is then in no channel."""
    table = ChannelTable("content", {"content": (Delimiter(PIECES.index("think"), "reasoning"),), "reasoning": ()})
    assert parts_of(ids_of("a", "think", "b", "think"), table) == [("content", "a", ""), ("reasoning", "bthink", "")]


def test_output_may_begin_inside_reasoning() -> None:
    """Behind a prompt that ends in the opening delimiter."""
    table = CHANNEL_TABLES["think"].starting_in("reasoning")
    assert parts_of(ids_of("a", "</think>", "b"), table) == [("reasoning", "a", ""), ("content", "b", "")]


def test_what_never_becomes_a_delimiter_comes_out() -> None:
    """Half a delimiter at the end, or with a special token in the middle of it, is text."""
    assert parts_of(ids_of("a</thin"), CHANNEL_TABLES["think"].starting_in("reasoning")) == [("reasoning", "a</thin", "")]
    ids = [*ids_of("<th"), PIECES.index("<|end|>"), *ids_of("ink>")]
    assert parts_of(ids, "think") == [("content", "<think>", "")]


def test_table_without_a_way_is_refused() -> None:
    """A delimiter that leads nowhere, or a start that is not there, is named."""
    with pytest.raises(detok.OptionError, match="'nowhere' is invalid; the table has the channels content"):
        ChannelTable("content", {"content": (Delimiter("x", "nowhere"),)})
    with pytest.raises(detok.OptionError, match="start='other'"):
        ChannelTable("other", {"content": ()})


@given(
    ids=st.lists(st.sampled_from(range(len(PIECES))), max_size=14),
    name=st.sampled_from(sorted(CHANNEL_TABLES)),
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
