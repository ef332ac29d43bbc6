"""What a template puts behind the assistant's words, found without the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import detok
from detok.prompts.turns import MARK, behind_turn, special_pattern, still_to_say

Chat = Sequence[Mapping[str, Any]]
SPECIAL = special_pattern(["</s>", "</s>>", "<end>"])


def plain(messages: Chat, *, add_generation_prompt: bool) -> str:
    """A template without special tokens."""
    return "".join(f"{each['role']}: {each['content']}\n" for each in messages) + "assistant:" * add_generation_prompt


def test_end_and_rest_are_told_apart() -> None:
    """What ends the turn is what stands behind it when nothing follows."""
    assert behind_turn(plain, [], [{"role": "user", "content": "x"}], add_generation_prompt=True) == (
        "\n",
        "user: x\nassistant:",
    )


def test_mark_is_none_that_anybody_says() -> None:
    """A message that says the mark is no turn of the assistant."""
    _, rest = behind_turn(plain, [], [{"role": "user", "content": f"{MARK} {MARK}1"}], add_generation_prompt=False)
    assert rest == f"user: {MARK} {MARK}1\n"


def test_template_that_hides_the_assistant_is_refused() -> None:
    """Nothing can be found behind words that are not there."""
    with pytest.raises(detok.OptionError, match="show what the assistant says"):
        behind_turn(lambda messages, add_generation_prompt: "nothing", [], [], add_generation_prompt=True)


def test_error_of_a_template_is_its_own() -> None:
    """As it was raised."""

    def refuses(messages: Chat, *, add_generation_prompt: bool) -> str:
        raise RuntimeError("no such role")

    with pytest.raises(RuntimeError, match="no such role"):
        behind_turn(refuses, [], [{"role": "user", "content": "x"}], add_generation_prompt=True)


@pytest.mark.parametrize("takes", ["objects", "json", "nothing"])
def test_calls_of_tools_are_said_as_the_template_wants_them(takes: str) -> None:
    """Arguments as an object beside empty content, as JSON beside None, or no calls at all."""

    def render(messages: Chat, *, add_generation_prompt: bool) -> str:
        text = ""
        for each in messages:
            calls = each.get("tool_calls", [])
            for call in calls:
                arguments = call["function"]["arguments"]
                if takes == "nothing":
                    continue
                if isinstance(arguments, str) != (takes == "json") or (each["content"] is None) != (takes == "json"):
                    raise TypeError("not these arguments")
                text += f"call {call['id']} {call['function']['name']} {arguments}"
            text += f"{'' if calls else each['content']}<end>"
        return text

    results = [{"role": "tool", "name": "sum", "tool_call_id": "42", "content": "7"}, {"role": "tool", "content": "8"}]
    end, rest = behind_turn(render, [], [*results, {"role": "user", "content": "x"}], add_generation_prompt=True)
    assert end.endswith("<end>")
    assert rest == "7<end>8<end>x<end>"


@pytest.mark.parametrize(
    ("end", "calls", "ended", "left"),
    [
        ("</s>\n", False, True, "\n"),
        ("</s>\n", False, False, "</s>\n"),
        (" </s><end>", False, True, "<end>"),
        ("</s>>", False, True, ""),
        ("\n", False, True, "\n"),
        ("\n### more </s>", False, True, "\n### more </s>"),
        ("", False, True, ""),
        ('"}</tool></s>\n', True, True, "\n"),
        ('"}</tool></s>\n', True, False, "</s>\n"),
        ('"}</tool>', True, True, ""),
        ('"}</tool>', True, False, ""),
    ],
)
def test_end_is_said_once(end: str, calls: bool, ended: bool, left: str) -> None:
    """What the model has written already, an end or what closes a call, is not said again; what it has not, is."""
    assert still_to_say(end, SPECIAL, calls=calls, ended=ended) == left


def test_tokenizer_without_special_tokens_has_no_end() -> None:
    """Then all is said."""
    assert special_pattern([]) is None
    assert special_pattern([""]) is None
    assert still_to_say("\n", None, calls=False, ended=True) == "\n"


def test_chat_that_may_not_end_with_an_answer_has_all_in_its_end() -> None:
    """As mistral_common has it; the end that the model wrote is found all the same."""

    def render(messages: Chat, *, add_generation_prompt: bool) -> str:
        if not add_generation_prompt:
            raise ValueError("the user has to speak last")
        return "".join(f"[{each['role']}]{each['content']}</s>" for each in messages)

    end, rest = behind_turn(render, [], [{"role": "user", "content": "x"}], add_generation_prompt=True)
    assert (end, rest) == ("</s>[user]x</s>", "")
    assert still_to_say(end, SPECIAL, calls=False, ended=True) == "[user]x</s>"
