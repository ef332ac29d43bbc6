"""harmony: headers in any order, missing, or cut off; answers without any."""

from __future__ import annotations

from dataclasses import replace

import pytest

from detok.turns.formats import TURN_FORMATS
from tests.turns.turn_texts import parse

MARKS = ("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|call|>", "<|return|>")

C, M = "<|channel|>", "<|message|>"


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("specials", [(), MARKS], ids=["spelled", "tokens"])
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Hello, world", [("content", "Hello, world", "")]),
        ('{"a": 1}', [("content", '{"a": 1}', "")]),
        ("to be or not", [("content", "to be or not", "")]),
        ("final answer is 5", [("content", "final answer is 5", "")]),
        (f"{C}analysis{M}hm<|end|>words after", [("reasoning", "hm", ""), ("content", "words after", "")]),
        (f"{C}analysis{M}hm{C}final{M}ok<|end|><|start|>assistant", [("reasoning", "hm", ""), ("content", "ok", "")]),
        (f"{C}analysis", [("content", f"{C}analysis", "")]),
        (f"{C}final Hello, you", [("content", f"{C}final Hello, you", "")]),
        (f"assistant{C}final{M}x", [("content", "x", "")]),
        (f"{M}plain<|end|>", [("content", "plain", "")]),
        (
            f"analysis{M}hm<|end|><|start|>assistant<|start|>assistant{C}final{M}ok",
            [("reasoning", "hm", ""), ("content", "ok", "")],
        ),
        (f"{C}commentary to=functions.get_time <|constrain|>json{M}<|call|>", [("tool", "{}", "get_time")]),
        (f"{C}commentary to=functions.get_time <|constrain|>json{M}", [("tool", "{}", "get_time")]),
        (f"{C}commentary to=functions.get_time<|call|>", [("tool", "{}", "get_time")]),
        (f" to=functions.mcp:foo/bar{C}commentary json{M}{{}}<|call|>", [("tool", "{}", "mcp:foo/bar")]),
        (f'commentary to=f{M}{{"a": "x\ny"}}', [("tool", '{"a": "x\\ny"}', "f")]),
        (f"{C}commentary to=functions.f{M} \n null <|call|> x", [("tool", "{}", "f"), ("content", " x", "")]),
        (f"{C}commentary to=functions.f{M}  nullable = 5<|call|>", [("tool", "  nullable = 5", "f")]),
        (f"{C}commentary to=functions.f{M}nul", [("tool", "nul", "f")]),
        (f'{C}commentary to=functions.f{M} \n{{"a": 1}}<|call|>x', [("tool", '{"a": 1}', "f"), ("content", "x", "")]),
        (f'{C}commentary to=functions.f{M}{{"a": 1', [("tool", '{"a": 1', "f")]),
        (f"{C}commentary to=functions.f{M}{{}} tail<|call|>", [("tool", "{}", "f"), ("content", " tail", "")]),
        (f"{C}commentary to=functions.f code{M}f(x) = 5<|call|>", [("tool", "f(x) = 5", "f")]),
        (f"{C}analysis to=python code{M}print(1)<|call|>", [("reasoning", "print(1)", "")]),
        (f"{C}commentary to=assistant{M}x<|end|>", [("content", "x", "")]),
        (f"{C}final{M}a {M} b {C}odd, c<|end|>\n\nmore", [("content", f"a {M} b {C}odd, c", ""), ("content", "\n\nmore", "")]),
        (f"a{C}<|end|>b", [("content", "a", ""), ("content", "b", "")]),
        (f"a{C}<|start|>b", [("content", "a", ""), ("content", "<|start|>b", "")]),
        ("assistant " * 80, [("content", "assistant " * 80, "")]),
    ],
)
def test_what_a_header_says(text: str, parts: list[tuple[str, str, str]], specials: tuple[str, ...], size: int) -> None:
    """Whatever is missing, nothing is lost, and pieces do not matter."""
    if specials and f"{C}odd" in text:
        parts = [("content", f"a {M} b {C}odd, c", ""), ("content", "\n\nmore", "")]
    found = parse(TURN_FORMATS["harmony"], text, [size], specials)
    assert [(one.channel, one.text, one.name) for one in found] == parts


def test_tool_of_the_request_is_a_function_whatever_its_name() -> None:
    """`python` is built in, unless a tool is called so."""
    text = f"{C}analysis to=python{M}{{}}<|call|>"
    (part,) = parse(replace(TURN_FORMATS["harmony"], types={"python": {}}), text, [3])
    assert (part.channel, part.name) == ("tool", "python")


def test_calls_are_content_where_none_is_looked_for() -> None:
    """As they are written."""
    text = f"{C}commentary to=functions.f{M}{{}}<|call|>"
    (part,) = parse(replace(TURN_FORMATS["harmony"], calls=False), text, [1])
    assert (part.channel, part.text) == ("content", text.removesuffix("<|call|>"))
