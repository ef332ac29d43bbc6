"""Conversations as clients send them back are what transformers renders of what vLLM's Python front makes of them."""

from __future__ import annotations

import functools
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

import detok
from detok.prompts.history import arguments_as_object
from detok.prompts.templates import compiled
from tests.prompts.conversations import TOOLS, as_vllm, conversation, joined
from tests.prompts.support import EMBEDDED, real_tokenizer
from tests.support.trl_templates import trl_templates

Chat = list[dict[str, Any]]

VOCABULARIES = ("qwen3", "llama3", "gemma3", "deepseek-v3")
SPECIAL: dict[str, Any] = dict(EMBEDDED.prompt_facts.special_tokens)

OTHERWISE = {
    # They show calls beside no content, and arguments as JSON alone: the front's prompts would have lost the calls, or failed.
    "deepseek_r1_distill": {"calls", "instructions"},
    "deepseekv3": {"calls"},
    "deepseek-v3": {"calls"},
    # They show the first instruction alone, without a word about the others.
    "gptoss": {"instructions"},
    "qwen3_vl": {"instructions"},
}
"""Templates with which some conversations become more than the front would make of them."""


@functools.cache
def templates() -> dict[str, str]:
    """By their names. Those for training write the same prompts, with marks."""
    trl = {name: text for name, text in trl_templates().items() if not name.endswith("_training")}
    return trl | {name: real_tokenizer(name).chat_templates["default"] for name in VOCABULARIES}


def theirs(template: str, chat: Chat, **options: Any) -> str | None:
    """By transformers; None if the template refuses the chat."""
    try:
        given: dict[str, Any] = {"conversations": [chat], "tools": TOOLS, "add_generation_prompt": True, **SPECIAL, **options}
        rendered: Any = render_jinja_template(chat_template=template, **given)
    except Exception:  # whatever a template raises
        return None
    return str(rendered[0][0])


def ours(template: str, chat: Chat, **options: Any) -> str | None:
    """By detok, the same."""
    try:
        return EMBEDDED.render_chat(chat, chat_template=template, tools=TOOLS, **options)
    except detok.ChatTemplateError:
        return None


def as_front(name: str, chat: Chat) -> str | None:
    """What vLLM's front and transformers make of a conversation, whose instructions are joined if the template refuses them."""
    template = templates()[name]
    takes = compiled(template).content_format([{"role": "user", "content": "x"}], SPECIAL)
    given = as_vllm(chat, template, parts=takes != "text")
    if takes == "parts":
        given = [_in_parts(message) for message in given]
    found = theirs(template, given)
    return theirs(template, joined(given)) if found is None else found


def _in_parts(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"] or [{"type": "text", "text": ""}]
    return {**message, "content": [{"type": "text", "text": content}] if isinstance(content, str) else content}


NAMES = sorted(
    {file for file in trl_templates() if not file.endswith("_training")} | set(VOCABULARIES),
)


@pytest.mark.parametrize("name", NAMES)
def test_random_conversations_equal_what_the_front_renders(name: str) -> None:
    """Calls with every kind of arguments, contents and results of every kind, several instructions."""
    otherwise = OTHERWISE.get(name, set())
    shown = 0
    for seed in range(12):
        chat = conversation(seed, calls="calls" not in otherwise, instructions="instructions" not in otherwise)
        expected = as_front(name, chat)
        found = ours(templates()[name], chat)
        # gpt-oss refuses what its own answers have, and gets it in two messages.
        if expected is not None or name != "gptoss":
            assert found == expected, (seed, chat)
        shown += found is not None
    assert shown, "a template that refuses everything shows nothing"


RECORDED = json.loads((Path(__file__).parent / "vllm_prompts.json").read_text(encoding="utf-8"))
"""What `vllm-rs render` of vLLM 0.32 made of conversations like these: 250 of 250 were the same with Qwen3's template."""


@pytest.mark.parametrize("recorded", RECORDED, ids=range(len(RECORDED)))
def test_prompt_is_the_one_that_vllm_rendered(recorded: dict[str, Any]) -> None:
    """Its renderer in Rust, over real vocabularies."""
    tokenizer = real_tokenizer(recorded["vocabulary"])
    ids = tokenizer.encode_chat(recorded["messages"], tools=TOOLS if recorded["tools"] else None)
    assert tokenizer.decode(ids, skip_special_tokens=False) == recorded["prompt"]


@pytest.mark.parametrize("name", [name for name, kinds in OTHERWISE.items() if "calls" in kinds])
def test_calls_that_the_front_would_lose_are_shown(name: str) -> None:
    """Whatever their content is; a content beside them is shown, too."""
    contents: tuple[Any, ...] = (None, "", [], "Let me see.")
    for content in contents:
        function = {"name": "get_weather", "arguments": '{"city":"東京"}'}
        call = {"id": "call_1", "type": "function", "function": function}
        answer = {"role": "assistant", "content": content, "tool_calls": [call]}
        chat: Chat = [
            {"role": "user", "content": "The weather?"},
            answer,
            {"role": "tool", "tool_call_id": "call_1", "content": "21"},
        ]
        text = ours(templates()[name], chat) or ""
        assert 'get_weather\n```json\n{"city":"東京"}\n```' in text
        assert text.count("Let me see.") == (content == "Let me see.")
        assert "21" in text.partition("```json")[2]


@pytest.mark.parametrize("name", [name for name, kinds in OTHERWISE.items() if "instructions" in kinds])
def test_instructions_that_would_be_lost_are_joined(name: str) -> None:
    """The same prompt as of the one that they make."""
    chat = [{"role": "system", "content": "A"}, {"role": "user", "content": "B"}, {"role": "system", "content": "C"}]
    one = [{"role": "system", "content": "A\n\nC"}, {"role": "user", "content": "B"}]
    text = ours(templates()[name], chat)
    assert text is not None
    assert text == ours(templates()[name], one)


def test_answer_of_gptoss_can_be_sent_back() -> None:
    """Reasoning, content and a call in one message, which its template refuses."""
    call = {"id": "call_1", "type": "function", "function": {"name": "book", "arguments": "{}"}}
    answer = {"role": "assistant", "content": "Said", "reasoning": "Thought", "tool_calls": [call]}
    text = ours(templates()["gptoss"], [{"role": "user", "content": "Hi"}, answer, {"role": "tool", "content": "Done"}])
    assert text is not None
    places = [text.index(part) for part in ("final<|message|>Said", "analysis<|message|>Thought", "to=functions.book", "Done")]
    assert places == sorted(places)


CALLS = """{% for m in messages %}{{ m.role }}:{{ m.name }}:{{ m.content }}{% for c in m.tool_calls or [] %}
{{- "[" ~ c.id ~ "|" ~ c.function.name ~ "|" ~ c.function.arguments | tojson ~ "]" }}{% endfor %};{% endfor %}"""


def written(*messages: dict[str, Any], template: str = CALLS, **options: Any) -> str:
    """What a template writes that shows everything."""
    return EMBEDDED.render_chat(messages, chat_template=template, **options)


CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1.0}'}}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"role": "assistant"}, "assistant::;"),
        ({"role": "assistant", "content": None}, "assistant::;"),
        ({"role": "assistant", "content": [], "tool_calls": []}, "assistant::;"),
        ({"role": "assistant", "content": None, "tool_calls": None, "function_call": None, "audio": None}, "assistant::;"),
        ({"role": "assistant", "content": None, "refusal": "No."}, "assistant::No.;"),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}, "assistant::No.;"),
        ({"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "text", "text": "b"}]}, "user::a\nb;"),
        ({"role": "user", "content": [{"type": "text", "text": None}]}, "user::;"),
        ({"role": "user", "content": None}, "user::;"),
        ({"role": "tool"}, "tool::;"),
        ({"role": "assistant", "tool_calls": [CALL]}, 'assistant::[a|f|{"x": 1.0}];'),
        ({"role": "assistant", "function_call": CALL["function"]}, 'assistant::[|f|{"x": 1.0}];'),
        ({"role": "assistant", "tool_calls": [{"name": "f", "arguments": "{}"}]}, "assistant::[|f|{}];"),
        ({"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}, "assistant::[|f|{}];"),
    ],
)
def test_message_in_every_shape_of_the_api(message: dict[str, Any], text: str) -> None:
    """Null, absent, void, old."""
    assert written(message) == text


def test_result_has_the_name_of_its_call() -> None:
    """By its id, else in order; one that it has itself stays; an id from nowhere tells nothing."""
    other = {**CALL, "id": "b", "function": {"name": "g", "arguments": "{}"}}
    calling = {"role": "assistant", "tool_calls": [CALL, other]}
    results: Chat = [{"role": "tool", "tool_call_id": "b", "content": "1"}, {"role": "tool", "tool_call_id": "a", "content": "2"}]
    assert written(calling, *results).endswith("tool:g:1;tool:f:2;")
    assert written(calling, *({"role": "tool", "content": one["content"]} for one in results)).endswith("tool:f:1;tool:g:2;")
    assert written(calling, {**results[0], "name": "mine"}).endswith("tool:mine:1;")
    assert written(calling, {**results[0], "tool_call_id": "z"}).endswith("tool::1;")
    old: Chat = [{"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}, {"role": "function", "content": "1"}]
    assert written(*old).endswith("tool:f:1;")


@pytest.mark.parametrize(
    "calls", [{}, {"type": "custom", "custom": {"name": "f"}}, {"function": None}, {"function": {}}, {"id": 5}]
)
def test_call_that_is_none_is_named(calls: dict[str, Any]) -> None:
    """By its place."""
    with pytest.raises(detok.MessageError, match=r"messages\[1\]\.tool_calls\[1\]"):
        written({"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [CALL, {"id": "x", **calls}]})
    with pytest.raises(detok.MessageError, match=r"messages\[0\]\.function_call"):
        written({"role": "assistant", "function_call": {"arguments": "{}"}})
    with pytest.raises(detok.MessageError, match=r"messages\[0\]\.audio"):
        written({"role": "assistant", "audio": {"id": "x"}})


DEEP = '{"a":' * 5000 + "1" + "}" * 5000


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ('{"a": {"b": [1, 2.5, null]}}', {"a": {"b": [1, 2.5, None]}}),
        ('{"a": "\\ud83d"}', {"a": "\ufffd"}),
        ('{"a": "\\ud83e\\udd9c"}', {"a": "🦜"}),
        (DEEP, {}),
        ('{"a":' * 70 + "1" + "}" * 70, {}),
        (" ", {}),
        (7, {}),
        ([], {}),
        ("true", {}),
    ],
    ids=range(9),
)
def test_arguments_become_an_object(given: Any, found: Any) -> None:
    """Of whatever the model wrote there."""
    assert arguments_as_object(given) == found


MISTRAL = """{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }}[/INST]
{%- elif m.tool_calls %}[TOOL_CALLS] [{% for c in m.tool_calls %}
{%- if not c.id is defined or c.id | length != 9 %}{{ raise_exception('ids have length 9') }}{% endif %}
{{- {'name': c.function.name, 'arguments': c.function.arguments, 'id': c.id} | tojson }}{% endfor %}]
{%- elif m.role == 'tool' %}{% if m.tool_call_id | length != 9 %}{{ raise_exception('ids have length 9') }}{% endif %}
[TOOL_RESULTS] {{ m.content }} {{ m.tool_call_id }}[/TOOL_RESULTS]{% else %}{{ m.content }}{% endif %}{% endfor %}"""

KIMI = """{% for m in messages %}{{ m.role }}|{{ m.content }}{% for c in m.tool_calls or [] %}
<call>{{ c.id }}<arguments>{{ c.function.arguments | tojson }}</call>{% endfor %}
{%- if m.role == 'tool' %}## Return of {{ m.tool_call_id }}{% endif %}{% endfor %}"""


def _called(*ids: str | None) -> Chat:
    named = [{} if one is None else {"id": one} for one in ids]
    calls = [{"type": "function", "function": {"name": "f", "arguments": "{}"}, **one} for one in named]
    results = [{"role": "tool", "content": "1", **({} if one is None else {"tool_call_id": one})} for one in ids]
    return [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": calls}, *results]


@pytest.mark.parametrize(
    "ids", [("call_0123456789abcdef",), ("functions.f:0", "functions.f:1"), (None, None), ("a", "b" * 40), ("",)]
)
def test_ids_have_nine_characters_where_a_template_wants_them(ids: tuple[str | None, ...]) -> None:
    """Calls and results have the same; the same conversation has the same again; no two are one."""
    text = written(*_called(*ids), template=MISTRAL)
    calls, results = re.findall(r'"id": "(\w{9})"', text), re.findall(r"1 (\w{9})\[", text)
    assert calls == results
    assert len(set(calls)) == len(ids)
    assert text == written(*_called(*ids), template=MISTRAL)


def test_ids_that_are_right_stay() -> None:
    """Of nine characters, and those of Kimi's models; others have the name there that stands nowhere else."""
    assert '"id": "ABCdef123"' in written(*_called("ABCdef123"), template=MISTRAL)
    assert "<call>functions.f:7<arguments>" in written(*_called("functions.f:7"), template=KIMI)
    text = written(*_called("call_1", "call_2"), template=KIMI)
    assert "<call>functions.f:0<arguments>" in text
    assert "<call>functions.f:1<arguments>" in text
    assert text.endswith("## Return of functions.f:0tool|1## Return of functions.f:1")


def test_developer_is_a_system_message_where_the_template_knows_no_other() -> None:
    """Joined with the others; where it is known, it stays."""
    chat: Chat = [
        {"role": "user", "content": "a"},
        {"role": "developer", "content": "b", "tools": []},
        {"role": "system", "content": "c"},
    ]
    assert written(*chat) == "system::b\n\nc;user::a;"
    known = CALLS + "{# 'developer' #}"
    assert written(*chat, template=known) == "user::a;developer::b;system::c;"


def test_error_of_a_template_names_the_message() -> None:
    """The first with which it says so."""
    chat: Chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "system", "content": "c"}]
    strict = "{% for m in messages %}{% if m.content == 'c' %}{{ raise_exception('no') }}{% endif %}{{ m.content }}{% endfor %}"
    with pytest.raises(detok.ChatTemplateError, match=r"line 1: no \(at messages\[2\]\)") as caught:
        written(*chat, {"role": "user", "content": "d"}, template=strict)
    assert caught.value.place == "messages[2]"


def test_questions_about_a_template_have_a_budget_each() -> None:
    """One that takes long is refused; many that take little are not, whoever asked them before."""
    loops = "{% for i in range(60000) %}{% endfor %}"
    calling = {"role": "assistant", "tool_calls": [CALL]}
    silent = "{% for m in messages %}{{ m.content }}{% endfor %}"
    with pytest.raises(detok.ChatTemplateError, match="steps"):
        written({"role": "user", "content": "x"}, calling, template=loops + silent)
    assert written({"role": "user", "content": "x"}, template=loops + silent) == "x"
    roles = [f"role{number}" for number in range(40)]
    template = "{% for i in range(4000) %}{% endfor %}" + CALLS + f"{{% set roles = {roles} %}}"
    chat = [{"role": role, "content": "x"} for role in roles]
    assert written(*chat, template=template, complete=True).count("x") == len(roles)


DROPS = "{% for m in messages %}{% if m.role in ('user', 'assistant') %}{{ m.content }}{% endif %}{% endfor %}"


@pytest.mark.parametrize("role", ["system", "developer", "tool", "function"])
def test_role_that_is_not_shown_is_refused_if_all_has_to_be(role: str) -> None:
    """Otherwise the prompt is the one that transformers makes."""
    chat = [{"role": "user", "content": "a"}, {"role": role, "content": "b"}, {"role": "user", "content": "c"}]
    assert written(*chat, template=DROPS) == "ac"
    with pytest.raises(detok.MessageError, match=rf"messages\[1\]\.role is '{'tool' if role == 'function' else role}'"):
        written(*chat, template=DROPS, complete=True)


@pytest.mark.parametrize("kind", ["image_url", "input_audio", "file", "video", "whatever"])
def test_part_that_is_no_text_is_refused_if_all_has_to_be(kind: str) -> None:
    """Templates pass over parts that they do not know."""
    parts = "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}"
    chat = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": kind, kind: {"url": "x"}}]}]
    assert written(*chat, template=parts) == "a"
    with pytest.raises(detok.MessageError, match=rf"messages\[0\]\.content\[1\] is of the type '{kind}'"):
        written(*chat, template=parts, complete=True)


ODD: tuple[Any, ...] = (None, "", 0, 2.5, True, [], {}, "x", "\ud800", [None], [[]], {"a": None}, "{", '{"a":1}', "tool")
FIELDS = ("content", "tool_calls", "function_call", "tool_call_id", "name", "reasoning", "thinking", "refusal", "audio", "tools")
USUAL: dict[str, tuple[Any, ...]] = {
    "content": ("hi", None, [{"type": "text", "text": "a"}], [{"type": "refusal", "refusal": "c"}], [{"type": "image"}]),
    "tool_calls": ([CALL], [{**CALL, "id": None}], [{**CALL, "id": "a", "type": None}], [{"name": "f", "arguments": [1]}]),
    "function_call": ({"name": "f", "arguments": "{"}, {"name": "f"}),
    "tool_call_id": ("a", "b"),
}


def _odd(chance: random.Random, depth: int = 0) -> Any:
    if depth > 2 or chance.random() < 0.6:
        return chance.choice(ODD)
    names = ("type", "text", "id", "function", "name", "arguments")
    if chance.random() < 0.5:
        return [_odd(chance, depth + 1) for _ in range(chance.randint(0, 2))]
    return {chance.choice(names): _odd(chance, depth + 1) for _ in range(chance.randint(0, 2))}


def test_no_message_is_anything_but_rendered_or_refused() -> None:
    """Whatever stands in its fields; and what came in is not changed."""
    roles = ("user", "assistant", "assistant", "system", "developer", "tool", "function", "critic")
    outcomes = {"rendered": 0, "refused": 0}
    for seed in range(300):
        chance = random.Random(seed)
        chat = [
            {
                "role": chance.choice(roles),
                **{
                    name: chance.choice(USUAL[name]) if name in USUAL and chance.random() < 0.8 else _odd(chance)
                    for name in chance.sample(FIELDS, chance.randint(0, 4))
                },
            }
            for _ in range(chance.randint(1, 4))
        ]
        before = repr(chat)
        template = templates()[chance.choice(NAMES)]
        try:
            EMBEDDED.render_chat(chat, chat_template=template, complete=seed % 2 == 0, safe=seed % 3 == 0)
            outcomes["rendered"] += 1
        except (detok.MessageError, detok.ChatTemplateError):
            outcomes["refused"] += 1
        assert repr(chat) == before
    assert min(outcomes.values()) > 20
