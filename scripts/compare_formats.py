"""
Compare how detok and vLLM read turns: thousands of generated answers of each model family.

    python -m scripts.compare_formats --vllm-python VENV/bin/python --turns 200

vLLM is installed apart, as its requirements are large; its parsers run without an engine. Both get the same text, in the
vocabulary of Qwen 3
with the family's delimiters added. What differs is counted by the shape of the turn, with an example of each.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from detok.turns.channels import joined_deltas
from detok.turns.formats import TURN_FORMATS, parser_format
from detok.turns.parsers import turn_parser
from detok.turns.segments import Text
from detok.turns.tool_types import tool_types
from tests.turns.turn_texts import FAMILIES

from .fetch_vocabularies import fetch
from .vllm_parsers_names import PARSERS

SHAPES = (
    *("whole", "no reasoning", "text before", "text between", "text after"),
    *("cut off", "tag in a string", "mentioned", "no call"),
)

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "b": {"type": "integer"},
                    "c": {"type": "array", "items": {"type": "string"}},
                    "d": {"type": "object"},
                },
            },
        },
    },
    {"type": "function", "function": {"name": "g_2", "parameters": {"type": "object", "properties": {}}}},
]
WORDS = ("Rome", "a b", "x\ny", 'say "hi"', "Zo\u00eb", "1", "{}", "a\\b", "<b>", "it's")

Turn = dict[str, Any]


def generated(family: str, count: int, seed: int) -> Iterator[Turn]:
    """Turns of one family, of each shape in turn."""
    chance = random.Random(f"{family} {seed}")
    known = FAMILIES[family]
    for number in range(count):
        shape = SHAPES[number % len(SHAPES)]
        calls = [_call(chance) for _ in range(chance.choice((1, 1, 2)))]
        before, after = "", ""
        opening = f"{known.opens}hm{known.closes}" if known.opens and shape != "no reasoning" else ""
        if shape == "text before":
            before = "Well. "
        if shape == "tag in a string":
            marks = [mark for mark in known.delimiters if mark.startswith(("</", "<｜", "<|"))] or ["</x>"]
            calls[0][1]["a"] = f"a {chance.choice(marks)} b"
        text = known.write(calls)
        if shape == "text between":
            text = known.write(calls[:1]) + " and " + known.write(calls[-1:])
        elif shape == "text after":
            after = " Done."
        elif shape == "cut off":
            text = text[: chance.randrange(1, len(text))]
        elif shape == "mentioned":
            text = f"Use {re.split('f|g_2', text)[0].strip() or 'it'} for calls."
        elif shape == "no call":
            text = chance.choice(('{"answer": 1}', "[1, 2]", "f(1)", "Just text.", "a < b"))
        yield {"family": family, "shape": shape, "text": opening + before + text + after, "tools": TOOLS}


def _call(chance: random.Random) -> tuple[str, dict[str, Any]]:
    if chance.random() < 0.2:
        return "g_2", {}
    given: dict[str, Any] = {}
    if chance.random() < 0.8:
        given["a"] = chance.choice(WORDS)
    if chance.random() < 0.5:
        given["b"] = chance.randrange(-5, 1000)
    if chance.random() < 0.3:
        given["c"] = [chance.choice(WORDS[:3]) for _ in range(chance.randrange(3))]
    if chance.random() < 0.3:
        given["d"] = {"k": chance.choice(WORDS[:3])}
    return "f", given


def ours(turn: Turn) -> Turn:
    """What detok makes of a turn."""
    name = turn["family"].partition(",")[0]
    tool_parser, reasoning_parser = PARSERS[turn["family"]]
    made = parser_format(tool_parser, reasoning_parser) or TURN_FORMATS[name]
    parser = turn_parser(replace(made, types=tool_types(TOOLS)))
    deltas = joined_deltas(parser.feed([Text(turn["text"])]) + parser.finish())
    answer: Turn = {"reasoning": "", "content": "", "calls": []}
    for delta in deltas:
        if delta.channel == "tool":
            answer["calls"].append([delta.name, delta.text])
        else:
            answer[delta.channel] += delta.text
    return answer


def comparable(answer: Turn) -> Turn:
    """An answer without what says nothing: white space around texts, and the spelling of JSON."""
    if "error" in answer:
        return answer
    calls = [[name, _value(arguments)] for name, arguments in answer["calls"]]
    return {"reasoning": answer["reasoning"].strip(), "content": answer["content"].strip(), "calls": calls}


def _value(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


def main() -> None:
    """Compare, and print a table and examples."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--vllm-python", required=True, help="the Python of an environment with vLLM 0.32")
    options.add_argument("--turns", type=int, default=1000, help="of each family")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--examples", type=int, default=1, help="of each difference")
    options.add_argument("--family", action="append", help="this one only")
    given = options.parse_args()
    turns = [one for family in given.family or PARSERS for one in generated(family, given.turns, given.seed)]
    specials = {family: _specials(family, turns) for family in PARSERS}
    lines = "".join(json.dumps({**turn, "specials": specials[turn["family"]]}) + "\n" for turn in turns)
    command = [given.vllm_python, str(Path(__file__).with_name("vllm_parsers.py")), str(fetch("qwen3"))]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    _report(turns, answers, given.examples)


def _specials(family: str, turns: list[Turn]) -> list[str]:
    text = "".join(turn["text"] for turn in turns if turn["family"] == family)
    found = re.findall(r'<\|[a-z_]+\|?>|<[a-z_]+\|>|<｜[^<>]+｜>|\[/?[A-Z_]{4,}\]|<\|"\|>', text)
    return sorted(set(found))


def _report(turns: list[Turn], answers: list[Turn], examples: int) -> None:
    same: Counter[tuple[str, str]] = Counter()
    shown: Counter[tuple[str, str, str]] = Counter()
    total = Counter((turn["family"]) for turn in turns)
    for turn, answer in zip(turns, answers, strict=True):
        own = comparable(ours(turn))
        for way in ("whole", "streamed"):
            if own == comparable(answer[way]):
                same[turn["family"], way] += 1
                continue
            key = (turn["family"], way, turn["shape"])
            shown[key] += 1
            if shown[key] <= examples:
                print(f"{' / '.join(key)}\n  text  {turn['text']!r}\n  detok {own}\n  vLLM  {comparable(answer[way])}")
    print(f"\n{'family':16} {'turns':>6} {'whole':>7} {'stream':>7}   differences by shape (whole / streamed)")
    for family, count in total.items():
        shapes = ", ".join(
            f"{shape} {shown[family, 'whole', shape]}/{shown[family, 'streamed', shape]}"
            for shape in SHAPES
            if shown[family, "whole", shape] or shown[family, "streamed", shape]
        )
        print(f"{family:16} {count:6} {same[family, 'whole']:7} {same[family, 'streamed']:7}   {shapes}")


if __name__ == "__main__":
    main()
