"""The grammar of each model family's calls, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from .base import Grammar
from .either import EitherCalls
from .headed import HeadedCalls
from .heads import ARGUMENTS, CALL_ID, NAME, SPACE, WORD, Element, Heads
from .json_calls import JsonCalls
from .literals import LiteralCalls
from .tagged import TaggedCalls

__all__ = ["GRAMMARS", "grammar"]

Texts = tuple[str, ...]
Sequence = tuple[str | Element, ...]

JSON_BEGINS = Element(r'[{\["n]')
IDENTIFIER = Element(r"[^\W\d]\w{0,127}")

_DEEPSEEK_BEGIN, _DEEPSEEK_END, _DEEPSEEK_SEP = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"
_KIMI_BEGIN, _KIMI_END, _KIMI_ARGUMENTS = "<|tool_call_begin|>", "<|tool_call_end|>", "<|tool_call_argument_begin|>"


def _json(opens: Texts, closes: Texts) -> Grammar:
    return JsonCalls(opens, closes)


def _llama_json(opens: Texts, closes: Texts) -> Grammar:
    return JsonCalls(opens, closes, bare=("{", "["))


def _within(opens: Texts, *calls: Sequence) -> tuple[Heads, Heads]:
    """Heads with one of the opening delimiters before them, or without; and those without alone."""
    heads = tuple((one, SPACE, *call) for one in opens for call in calls)
    return Heads((*heads, *calls)), Heads(calls)


def _headed(
    opens: Texts, closes: Texts, begin: str, end: Texts, calls: tuple[Sequence, ...], *marks: str, numbered: bool = False
) -> Grammar:
    heads, next_heads = _within(opens, *calls)
    return HeadedCalls((*opens, begin), heads, next_heads, (*end, *closes), closes, numbered, marks=marks)


def _deepseek_v3(opens: Texts, closes: Texts) -> Grammar:
    head: Sequence = (_DEEPSEEK_BEGIN, WORD, _DEEPSEEK_SEP, NAME, "\n```json\n", SPACE, ARGUMENTS)
    calls = ((*head, JSON_BEGINS), (*head, "```"))
    return _headed(opens, closes, _DEEPSEEK_BEGIN, ("```", _DEEPSEEK_END), calls, _DEEPSEEK_SEP)


def _deepseek_v31(opens: Texts, closes: Texts) -> Grammar:
    head: Sequence = (_DEEPSEEK_BEGIN, SPACE, NAME, SPACE, _DEEPSEEK_SEP, SPACE, ARGUMENTS)
    calls = ((*head, JSON_BEGINS), (*head, _DEEPSEEK_END))
    return _headed(opens, closes, _DEEPSEEK_BEGIN, (_DEEPSEEK_END,), calls, _DEEPSEEK_SEP)


def _kimi_k2(opens: Texts, closes: Texts) -> Grammar:
    head: Sequence = (_KIMI_BEGIN, SPACE, NAME, SPACE, _KIMI_ARGUMENTS, SPACE, ARGUMENTS)
    calls = ((*head, JSON_BEGINS), (*head, _KIMI_END))
    return _headed(opens, closes, _KIMI_BEGIN, (_KIMI_END,), calls, _KIMI_ARGUMENTS, numbered=True)


def _mistral(opens: Texts, closes: Texts) -> Grammar:
    calls: list[Sequence] = []
    for one in opens:
        name: Sequence = (one, SPACE, NAME)
        calls += [(*name, SPACE, "[ARGS]", SPACE, ARGUMENTS, JSON_BEGINS), (*name, SPACE, ARGUMENTS, "{")]
        calls += [(*name, "[CALL_ID]", CALL_ID, "[ARGS]", SPACE, ARGUMENTS, JSON_BEGINS)]
    named = HeadedCalls(opens, Heads(tuple(calls)), Heads(()), opens, (), marks=("[ARGS]", "[CALL_ID]"))
    return EitherCalls(JsonCalls(opens, closes), named)


def _qwen3_coder(opens: Texts, closes: Texts) -> Grammar:
    name: Sequence = ("<function=", NAME, ">", SPACE, ARGUMENTS)
    heads, next_heads = _within(opens, (*name, "<parameter="), (*name, "</function>"))
    return TaggedCalls(
        (*opens, "<function="), heads, next_heads, "<parameter=", (">",), "</parameter>", "</function>",
        ("</function>", *closes), closes, lines=True,
    )  # fmt: skip


def _glm(opens: Texts, closes: Texts) -> Grammar:
    calls = tuple((one, SPACE, NAME, SPACE, ARGUMENTS, after) for one in opens for after in ("<arg_key>", *closes))
    key_ends = ("</arg_key>", "<arg_value>")
    return TaggedCalls(opens, Heads(calls), Heads(()), "<arg_key>", key_ends, "</arg_value>", closes[0], closes, closes)


def _minimax(opens: Texts, closes: Texts) -> Grammar:
    calls = []
    for quote in ('"', "'", ""):
        name: Sequence = (f"<invoke name={quote}", NAME, f"{quote}>", SPACE, ARGUMENTS)
        calls += [(*name, "<parameter name="), (*name, "</invoke>")]
    heads, next_heads = _within(opens, *calls)
    return TaggedCalls(
        (*opens, "<invoke name="), heads, next_heads, "<parameter name=", (">",), "</parameter>", "</invoke>",
        ("</invoke>", *closes), closes,
    )  # fmt: skip


def _llama4_pythonic(opens: Texts, closes: Texts) -> Grammar:
    name: Sequence = (NAME, SPACE, "(", SPACE, ARGUMENTS)
    calls: list[Sequence] = [(*name, ")"), (*name, IDENTIFIER, SPACE, "=")]
    heads = tuple((*opening, SPACE, "[", SPACE, *call) for opening in ((), *((one,) for one in opens)) for call in calls)
    next_heads = Heads(tuple((",", SPACE, *call) for call in calls))
    quotes = ("'", '"')
    return LiteralCalls(opens, Heads(heads), next_heads, "=", ")", quotes, True, ("]", *closes), closes, bare=("[",))


def _gemma(opens: Texts, closes: Texts) -> Grammar:
    calls = tuple((one, SPACE, "call:", NAME, "{", ARGUMENTS) for one in opens)
    quotes = ('<|"|>', "<escape>")
    return LiteralCalls(opens, Heads(calls), Heads(()), ":", "}", quotes, False, closes, closes, marks=quotes)


GRAMMARS: Mapping[str, Callable[[Texts, Texts], Grammar]] = {
    "json": _json,
    "llama3_json": _llama_json,
    "llama4_pythonic": _llama4_pythonic,
    "deepseek_v3": _deepseek_v3,
    "deepseek_v31": _deepseek_v31,
    "kimi_k2": _kimi_k2,
    "mistral": _mistral,
    "qwen3_coder": _qwen3_coder,
    "glm": _glm,
    "minimax": _minimax,
    "gemma": _gemma,
}


@lru_cache(maxsize=64)
def grammar(name: str, opens: Texts, closes: Texts) -> Grammar:
    """Return the grammar of this name with these delimiters around its calls, the same one each time."""
    return GRAMMARS[name](opens, closes)
