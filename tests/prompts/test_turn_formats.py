"""Which format a tokenizer's models write, and where in a turn a prompt leaves off."""

from __future__ import annotations

import pytest

import detok
from detok.prompts.turn_formats import detect_format, turn_after, turn_for
from detok.turns.formats import TURN_FORMATS, parser_format
from tests.support.trl_templates import trl_templates
from tests.support.vocabularies import real

TOKENIZER = detok.load(detok.EMBEDDED)
CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'


@pytest.mark.parametrize(
    ("name", "found"),
    [("qwen3", "qwen"), ("gptoss", "harmony"), ("llama3", "llama3_json"), ("deepseek-v3", "deepseek_v3"), ("gemma3", None)],
)
def test_format_of_a_real_vocabulary_is_found(name: str, found: str | None) -> None:
    """By its template, or else by its special tokens; and it is said by which."""
    detected = detect_format(detok.load(real(name)))
    assert detected.name == found
    assert detected.format == (None if found is None else TURN_FORMATS[found])
    assert detected.because


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("<tool_call> <think>", "qwen"), ("<tool_call>", "hermes"), ("<think>", "think"),
        ("<tool_call><function=", "qwen3_coder"),
        ("<tool_call><arg_key>", "glm"), ("<|tool_calls_section_begin|>", "kimi_k2"), ("<minimax:tool_call>", "minimax"),
        ("<｜tool▁calls▁begin｜>", "deepseek_v31"), ("<｜tool▁calls▁begin｜>```json", "deepseek_v3"),
        ("[TOOL_CALLS]", "mistral"), ("<|start_header_id|> \"parameters\"", "llama3_json"),
        ("<|python_start|>", "llama4_pythonic"),
        ("<|tool_call>call:", "gemma"), ("<start_function_call>", "gemma"), ("<|tool_call|>", "granite"),
        ("<|channel|><|message|>", "harmony"),
    ],
)  # fmt: skip
def test_template_decides(template: str, found: str) -> None:
    """What it writes of earlier turns is what the model writes."""
    assert detect_format(TOKENIZER, template).name == found


TRL = {
    "qwen3": "qwen", "qwen2_5": "hermes", "qwen3_instruct_2507": "hermes", "qwen3_vl": "hermes", "qwen3_5_think": "qwen3_coder",
    "qwen3_8": "qwen3_coder", "nemotron_3_nano": "qwen3_coder", "glm4moe": "glm", "deepseekv3": "deepseek_v3",
    "gptoss": "harmony", "gemma4": "gemma", "gemma4_v5": "gemma", "llama3_1": "llama3_json", "llama3_2": "llama3_json",
}  # fmt: skip


@pytest.mark.parametrize(("name", "found"), TRL.items())
def test_format_of_a_familys_own_template_is_found(name: str, found: str) -> None:
    """As trl ships it."""
    assert detect_format(TOKENIZER, trl_templates()[name]).name == found


@pytest.mark.parametrize(
    ("prompt", "start"),
    [
        ("<|im_start|>assistant\n<think>\n", "reasoning"),
        ("<|im_start|>assistant\n<think>\nso far I", "reasoning"),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", "content"),
        ("<|im_start|>assistant\n", ""),
        ("<think>a<|im_end|>\n<|im_start|>assistant\n", ""),
        ("", ""),
    ],
)
def test_reasoning_that_the_prompt_opens_goes_on(prompt: str, start: str) -> None:
    """A template may end inside of it, or a message be continued there. What a user wrote opens nothing."""
    ids = TOKENIZER.encode(prompt, add_special_tokens=False)
    assert turn_after(TURN_FORMATS["qwen"], TOKENIZER, ids).start == start
    implied = parser_format(None, "deepseek_r1")
    assert implied is not None
    (part, *_) = TOKENIZER.parse_turn(TOKENIZER.encode("x</think>", add_special_tokens=False), implied, prompt_ids=ids)
    assert part.channel == ("content" if start == "content" else "reasoning")


def test_formats_without_reasoning_do_not_look() -> None:
    """Whatever the prompt ends in."""
    ids = TOKENIZER.encode("<think>", add_special_tokens=False)
    assert turn_after(TURN_FORMATS["hermes"], TOKENIZER, ids) is TURN_FORMATS["hermes"]


@pytest.mark.parametrize(
    ("prompt", "start"),
    [
        ("<|start|>assistant", ""),
        ("<|start|>assistant<|channel|>analysis<|message|>so", "reasoning"),
        ("<|start|>assistant<|channel|>final<|message|>The", "content"),
        ("<|start|>user<|message|>hi<|end|><|start|>assistant", ""),
    ],
)
def test_message_of_harmony_goes_on(prompt: str, start: str) -> None:
    """In its channel."""
    tokenizer = detok.load(real("gptoss"))
    ids = tokenizer.encode(prompt, add_special_tokens=False)
    assert turn_after(TURN_FORMATS["harmony"], tokenizer, ids).start == start
    (part,) = tokenizer.parse_turn(tokenizer.encode("answer", add_special_tokens=False), "harmony", prompt_ids=ids)
    assert (part.channel, part.text) == (start or "content", "answer")


def test_turn_is_parsed_without_a_server() -> None:
    """Each part with its place in the text with special tokens."""
    text = f"<think>hm</think>Well.\n{CALL}"
    parts = TOKENIZER.parse_turn(TOKENIZER.encode(text, add_special_tokens=False), "qwen")
    assert [(one.channel, one.name, one.text) for one in parts] == [
        ("reasoning", "", "hm"),
        ("content", "", "Well.\n"),
        ("tool", "f", '{"a": 1}'),
    ]
    assert [text[one.begin : one.end] for one in parts] == ["hm", "Well.\n", CALL.removesuffix("</tool_call>")]


def test_format_that_is_not_found_is_to_be_named() -> None:
    """As with a vocabulary that has none of the delimiters."""
    with pytest.raises(detok.OptionError, match="name one of 'think'"):
        detok.load(real("gemma3")).parse_turn([1], "auto")


def test_request_without_tools_has_no_calls() -> None:
    """They are content, as they are written; and so with `tool_choice` "none"."""
    tools = [{"type": "function", "function": {"name": "f"}}]
    ids = TOKENIZER.encode(CALL, add_special_tokens=False)
    for turn, channel in (
        (turn_for(TURN_FORMATS["qwen"], tools=None), "content"),
        (turn_for(TURN_FORMATS["qwen"], tools=tools, looks_for_calls=False), "content"),
        (turn_for(TURN_FORMATS["qwen"], tools=tools), "tool"),
    ):
        (part,) = TOKENIZER.parse_turn(ids, turn)
        assert part.channel == channel
        assert channel == "tool" or part.text == CALL


def test_format_travels_as_plain_data() -> None:
    """With what it knows of the request."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}}]
    turn = turn_for(TURN_FORMATS["qwen3_coder"], tools=tools)
    request = TOKENIZER.request(channels=turn)
    text = ""
    for token_id in TOKENIZER.encode("<tool_call><function=f><parameter=a>12</parameter></function>", add_special_tokens=False):
        text += "".join(delta.text for delta in request.feed([token_id]).channels or ())
        request = TOKENIZER.restore_request(request.snapshot())
    assert text == '{"a": 12}'
