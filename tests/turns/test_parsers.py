"""Every format on well-formed, cut-off, nested, misspelt and merely mentioned markup: nothing is lost, and nothing depends on
pieces."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detok.turns.channels import ChannelDelta
from detok.turns.formats import TurnFormat
from detok.turns.harmony import MAX_HEADER
from detok.turns.parsers import turn_parser
from detok.turns.segments import Text
from detok.turns.tags import MAX_HELD
from tests.turns.turn_texts import FAMILIES, PLAIN_TEXT, Arguments, Family, arguments, format_of, parse

TAGGED = ("qwen3_coder", "glm", "minimax", "gemma")
NAMES = sorted(FAMILIES)
CALLING = [name for name in NAMES if name != "think"]


@st.composite
def calls(draw: st.DrawFn, name: str, least: int = 1) -> list[tuple[str, Arguments]]:
    """Calls of tools that the request has."""
    one: st.SearchStrategy[tuple[str, Arguments]] = st.one_of(
        st.tuples(st.just("f"), arguments(tagged=name in TAGGED)), st.tuples(st.just("g_2"), st.just({}))
    )
    return draw(st.lists(one, min_size=least, max_size=3))


@st.composite
def turns(draw: st.DrawFn, name: str) -> str:
    """A turn, whole or not: what a model wrote, or wrote about."""
    family = FAMILIES[name]
    call = family.write(draw(calls(name)))
    marks = [mark for mark in (family.opens, family.closes, *family.delimiters) if mark]
    marks += re.findall(r"<[^<>\s]+>|\[[A-Z_]+\]|```", call)
    pieces = st.one_of(
        PLAIN_TEXT,
        st.just(call),
        st.sampled_from(marks),
        st.just("\n"),
        st.just(" "),
        st.sampled_from(['{"', "{", "}", "[", '"name"']),
    )
    text = "".join(draw(st.lists(pieces, min_size=1, max_size=5)))
    if draw(st.booleans()):
        text = text[: draw(st.integers(0, len(text)))]
    if draw(st.booleans()) and text:
        place = draw(st.integers(0, len(text) - 1))
        text = text[:place] + draw(st.sampled_from(["", "x", "<", '"', "}", "\\"])) + text[place + 1 :]
    return text


def tokens_of(family: Family) -> tuple[str, ...]:
    """What of a family's markup is a special token in some vocabulary."""
    written = family.write([("f", {"a": "x"}), ("g_2", {})]) + " ".join((family.opens, family.closes, *family.delimiters))
    return tuple(
        dict.fromkeys(re.findall(r"<\|[a-z_]{3,}\|?>|<｜[^<>]+｜>|\[/?[A-Z_]{4,}\]|<[a-z_]+\|>|</?[a-z_]+>|<\|\"\|>", written))
    )


def check_accounts(text: str, deltas: list[ChannelDelta], family: Family) -> None:
    """Each character is in a part, or is a delimiter or white space between delimiters."""
    place = 0
    left = []
    for delta in deltas:
        assert place <= delta.begin <= delta.end
        left.append(text[place : delta.begin])
        place = delta.end
        if delta.channel != "tool":
            assert delta.text == text[delta.begin : delta.end]
    left.append(text[place:])
    if family.write.__name__ == "_harmony":
        # Headers are delimiters: what says something in them is in `header`, or they begin no message.
        header = (
            r"(?:<\|(?:start|channel|constrain)\|>[ \t]*[^\s<]*|to=[^\s<]*|assistant|analysis|commentary|final|json|code|\s)*"
        )
        pattern = rf"(?:{header}<\|(?:message|end|call|return|start)\|>|\s)*{header}"
    else:
        marks = (family.opens, family.closes, *family.delimiters)
        pattern = rf"(?:{'|'.join(re.escape(mark) for mark in marks if mark)}|\s)*"
    for one in left:
        assert re.fullmatch(pattern, one), one


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_nothing_is_lost_and_pieces_do_not_matter(name: str, data: st.DataObject) -> None:
    """
    One character at a time, all at once and in any pieces: the same parts, which account for every character.

    Whether delimiters are text or tokens.
    """
    text = data.draw(turns(name))
    turn, family = format_of(name), FAMILIES[name]
    specials = data.draw(st.sampled_from([(), tokens_of(family)]))
    whole = parse(turn, text, [len(text) or 1], specials)
    check_accounts(text, whole, family)
    assert parse(turn, text, [1], specials) == whole
    assert parse(turn, text, data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)), specials) == whole


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_no_call_is_made_where_none_is_looked_for(name: str, data: st.DataObject) -> None:
    """Without tools, calls are content as they are written."""
    text = data.draw(turns(name))
    turn = replace(format_of(name), calls=False)
    whole = parse(turn, text, [len(text) or 1])
    assert all(delta.channel != "tool" for delta in whole)
    check_accounts(text, whole, FAMILIES[name])
    assert parse(turn, text, [1]) == whole


@pytest.mark.parametrize("name", ["kimi_k2", "deepseek_v31", "gemma"])
def test_call_that_is_not_looked_for_is_shown_with_its_tokens(name: str) -> None:
    """Though special tokens are skipped elsewhere."""
    text = FAMILIES[name].write([("f", {"a": "x"})])
    specials = tuple(re.findall(r"<\|[^<>\s]+\|?>|<｜[^<>]+｜>|<tool_call\|>", text))
    (part,) = parse(replace(format_of(name), calls=False), text, [1], specials)
    assert (part.channel, part.text) == ("content", text)


@pytest.mark.parametrize("as_tokens", [False, True])
@pytest.mark.parametrize("name", CALLING)
@given(data=st.data())
def test_well_formed_turns_are_read(name: str, as_tokens: bool, data: st.DataObject) -> None:
    """Reasoning, text before calls, and calls with the very arguments, whether delimiters are tokens or spelled."""
    family = FAMILIES[name]
    made = data.draw(calls(name))
    before = data.draw(st.one_of(st.just(""), PLAIN_TEXT)) if name not in ("harmony",) else ""
    thought = data.draw(st.one_of(st.just(""), PLAIN_TEXT)) if family.opens else ""
    start = "<|start|>assistant" if name == "harmony" else ""
    text = (f"{family.opens}{thought}{family.closes}{start}" if thought else "") + before + family.write(made)
    specials = (
        tuple(dict.fromkeys(re.findall(r"<\|[a-z_]{3,}\|?>|<｜[^<>]+｜>|\[[A-Z_]{4,}\]|<tool_call\|>|<\|\"\|>", text)))
        if as_tokens
        else ()
    )
    deltas = parse(format_of(name), text, [data.draw(st.integers(1, 50))], specials)
    assert "".join(delta.text for delta in deltas if delta.channel == "reasoning") == thought
    assert "".join(delta.text for delta in deltas if delta.channel == "content") == before
    assert [(one.name, json.loads(one.text)) for one in deltas if one.channel == "tool"] == made
    assert [delta.part for delta in deltas] == list(range(len(deltas)))


@pytest.mark.parametrize("name", CALLING)
def test_what_is_held_is_bounded(name: str) -> None:
    """A head that never ends is content after a named number of characters, and then is heard at once."""
    family = FAMILIES[name]
    text = family.write([("f", {})])
    opening = text[: text.index("f")]
    limit = max(MAX_HELD, MAX_HEADER)
    for filler in ("a", " ", '{"x": "', "["):
        parser = turn_parser(format_of(name))
        given = ""
        for char in opening + filler * (limit + limit // 8):
            given += "".join(delta.text for delta in parser.feed([Text(char)]))
            assert len(repr(parser.state)) < 2 * limit + 1000
        assert len(given) > 0


def _work(turn: TurnFormat, text: str) -> int:
    """Calls of functions in detok.turns, and characters that they were given, until a text is parsed."""
    work = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal work
        if event == "call" and "/detok/turns/" in frame.f_code.co_filename.replace("\\", "/"):
            given = frame.f_locals.get("text")
            work += 1 + (len(given) if isinstance(given, str) else 0)

    sys.setprofile(count)
    try:
        parse(turn, text, [1 << 20])
    finally:
        sys.setprofile(None)
    return work


@pytest.mark.parametrize("name", NAMES)
def test_work_is_linear(name: str) -> None:
    """Many openings that become nothing cost the same each."""
    text = FAMILIES[name].write([("f", {"a": "x"})])[: 40 if name != "think" else 0] or "<think>"
    few, many = (_work(format_of(name), text * count) for count in (100, 400))
    assert few < many < 5 * few
