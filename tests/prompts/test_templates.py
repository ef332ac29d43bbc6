"""Templates: which one, what it gets, and what its errors say."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

import detok
from detok.prompts import templates as templates_module
from detok.prompts.limits import Budget
from detok.prompts.marks import unused_characters
from detok.prompts.templates import ChatTemplate, choose, compiled
from tests.prompts.support import CHATS, EMBEDDED, TEMPLATES, TOOLS

CHAT = CHATS["one"]


def rendered(template: str, chat: list[dict[str, Any]] = CHAT, **options: Any) -> str:
    """The text by the embedded tokenizer."""
    return EMBEDDED.render_chat(chat, chat_template=template, **options)


@pytest.mark.parametrize(
    ("template", "line", "problem"),
    [
        ("a\n{% for %}", 2, "Expected an expression"),
        ("a\n\n{{ raise_exception('roles must alternate') }}", 3, "roles must alternate"),
        ("{{ nothing.at.all }}", 1, "'nothing' is undefined"),
        ("a\n{{ 1 + 'a' }}", 2, "TypeError: unsupported operand"),
        ("{% macro m(x) %}\n{{ x.y.z }}\n{% endmacro %}\n{{ m(1) }}", 2, "has no attribute 'y'"),
        ("{% for i in range(10 ** 9) %}{% endfor %}", 1, "Range too big"),
        ("{{ 1 / 0 }}", 1, "ZeroDivisionError"),
        ("{{ x | nofilter }}", 1, "No filter named 'nofilter'"),
    ],
)
def test_error_of_a_template_has_its_line(template: str, line: int, problem: str) -> None:
    """Of its syntax, of its own refusals, of its code: where it stands in the template."""
    with pytest.raises(detok.ChatTemplateError) as caught:
        rendered(template)
    assert (caught.value.template, caught.value.line) == ("given", line)
    assert problem in caught.value.problem
    assert f"chat template 'given', line {line}: " in str(caught.value)


def test_template_out_of_all_bounds_is_refused() -> None:
    """Too long, or too deep for a parser."""
    with pytest.raises(detok.ChatTemplateError, match="131,072 characters"):
        ChatTemplate("{{ 1 }}" * 20_000)
    with pytest.raises(detok.ChatTemplateError, match="calls itself without an end"):
        ChatTemplate("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}")


def test_choice_among_named_templates() -> None:
    """By name; with tools "tool_use"; else "default"; a single one by any name; a text with a brace is a template."""
    named = {"default": "{{ 1 }}", "tool_use": "{{ 2 }}", "rag": "{{ 3 }}"}
    assert choose(named, None, has_tools=False).source == "{{ 1 }}"
    assert choose(named, None, has_tools=True).source == "{{ 2 }}"
    assert choose(named, "rag", has_tools=True).source == "{{ 3 }}"
    assert choose(named, "{{ 4 }}", has_tools=True).source == "{{ 4 }}"
    assert choose({"x": "{{ 5 }}"}, None, has_tools=True).source == "{{ 5 }}"


@pytest.mark.parametrize(
    ("templates", "asked", "words"),
    [
        ({}, None, "chat_template=None is invalid; this tokenizer has no chat template; give one"),
        ({"a": "", "b": ""}, None, "this tokenizer has several; name one of 'a', 'b'"),
        ({"a": ""}, "c", "chat_template='c' is invalid; it is a Jinja template, or one of the tokenizer's own: 'a'"),
        ({}, "c", "it has none"),
        ({}, 5, "it is a name or a Jinja template"),
    ],
)
def test_choice_that_cannot_be_names_those_that_can(templates: dict[str, str], asked: Any, words: str) -> None:
    """The error lists them."""
    with pytest.raises(detok.OptionError) as caught:
        choose(templates, asked, has_tools=False)
    assert words in str(caught.value)


def test_template_gets_the_time_that_is_given() -> None:
    """So that a prompt can be made again; by default it is the clock's."""
    now = datetime(2026, 2, 3, 4, 5)
    assert rendered("{{ strftime_now('%d %b %Y %H:%M') }}", now=now) == "03 Feb 2026 04:05"
    assert rendered("{{ strftime_now('%Y') }}").isdigit()


def test_json_has_no_escapes() -> None:
    """Neither ASCII's nor HTML's, and options of Python's own."""
    tools = [{"a": "<日本> & 'x'"}]
    assert rendered("{{ tools | tojson }}", tools=tools) == '[{"a": "<日本> & \'x\'"}]'
    template = "{{ tools | tojson(ensure_ascii=true, separators=(',', ':')) }}"
    assert rendered(template, tools=tools) == '[{"a":"<\\u65e5\\u672c> & \'x\'"}]'


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{% for m in messages %}{{ m.content | trim }}!{% endfor %}", "a\nb!"),
        ("{% for m in messages %}{{ m['content'] + '' }}!{% endfor %}", "a\nb!"),
        ("{% for m in messages %}{% for p in m.content %}[{{ p.text }}]{% endfor %}!{% endfor %}", "[a][b]!"),
        ("{% for m in messages %}{{ m.content if m.content is string else m.content[0].text }}!{% endfor %}", "a!"),
    ],
)
def test_content_of_parts_is_what_the_template_takes(template: str, text: str) -> None:
    """A template that knows texts alone gets one, with a line for each part."""
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert rendered(template, [{"role": "user", "content": parts}]) == text


def test_content_of_text_is_a_part_where_the_template_takes_parts_alone() -> None:
    """It would go through the letters of a text, and find nothing."""
    template = (
        "{% for m in messages %}{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}{% endfor %}"
    )
    assert rendered(template) == CHAT[0]["content"]


@pytest.mark.parametrize(
    "refusal",
    [
        "{% if messages[0].role != 'system' %}{{ raise_exception('no system') }}{% endif %}",
        "{% if not tools %}{{ raise_exception('no tools') }}{% endif %}",
        "{% if not tools or messages[0].role != 'system' %}{{ raise_exception('neither') }}{% endif %}",
        "{% if not mode %}{{ raise_exception('no mode') }}{% endif %}",
        "{{ bos_token + '' }}{% if mode is undefined %}{{ raise_exception('no mode') }}{% endif %}",
        "{{ tools[0].function.name + '' }}",
    ],
)
def test_content_of_parts_does_not_depend_on_what_came_before(refusal: str) -> None:
    """A template that refuses a small chat, or did so before, is understood all the same."""
    template = refusal + "{% for m in messages %}{{ m.content | trim }}!{% endfor %}"
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    chat: list[dict[str, Any]] = [{"role": "system", "content": "s"}, {"role": "user", "content": parts}]
    tools = [{"type": "function", "function": {"name": "f"}}]
    compiled.cache_clear()
    for fails in (False, True, True):
        if fails:
            with pytest.raises(detok.ChatTemplateError):
                rendered(template, CHAT, bos_token=None)
        assert rendered(template, chat, tools=tools, mode="x", bos_token="").endswith("s!a\nb!")


def test_template_that_does_too_much_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To find out what it takes, and not again."""
    made: list[Budget] = []

    def budget() -> Budget:
        made.append(Budget())
        return made[-1]

    monkeypatch.setattr(templates_module, "Budget", budget)
    with pytest.raises(detok.ChatTemplateError, match="steps"):
        rendered("{% for i in range(9999) %}{% for i in range(9999) %}{% endfor %}{% endfor %}")
    assert len(made) == 1


def test_content_with_an_image_is_refused_by_a_template_of_text() -> None:
    """It would be written as Python writes an object."""
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}]
    with pytest.raises(detok.MessageError, match=r"messages\[0\].content\[1\] is of the type 'image_url'"):
        rendered("{% for m in messages %}{{ m.content | trim }}{% endfor %}", [{"role": "user", "content": parts}])


def test_continued_message_that_the_template_hides_is_refused() -> None:
    """There is no place to go on at."""
    chat = [*CHAT, {"role": "assistant", "content": "x"}]
    with pytest.raises(detok.MessageError, match=r"messages\[1\].content is not shown"):
        rendered("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}", chat, continue_final_message=True)
    with pytest.raises(detok.MessageError, match=r"messages\[1\].thinking is not shown"):
        rendered("{{ messages[0].content }}", [*CHAT, {**chat[1], "thinking": "y"}], continue_final_message="thinking")


def test_continued_message_of_another_role_is_refused() -> None:
    """Only what the assistant wrote can be gone on with."""
    with pytest.raises(detok.MessageError) as caught:
        rendered(TEMPLATES["plain"], continue_final_message=True)
    assert caught.value.place == "messages[0].role"
    assert "is 'user'; continue_final_message goes on with what the assistant wrote" in str(caught.value)


def test_continued_message_without_text_is_refused() -> None:
    """No content, or only images."""
    last: dict[str, Any] = {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}
    with pytest.raises(detok.MessageError, match=r"messages\[1\] has no content"):
        rendered(TEMPLATES["plain"], [*CHAT, last], continue_final_message=True)
    last = {"role": "assistant", "content": [{"type": "image"}]}
    parts = "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}"
    with pytest.raises(detok.MessageError, match=r"messages\[1\].content has no text"):
        rendered(parts, [*CHAT, last], continue_final_message=True)


@pytest.mark.parametrize("value", [5, [5], ["text"], [{"text": 5}], {"text": "a"}, True])
def test_continued_field_that_is_no_text_is_refused(value: Any) -> None:
    """Whatever else a message may have in a field of its own."""
    last = {"role": "assistant", "content": "x", "extra": value}
    with pytest.raises(detok.MessageError, match=r"messages\[1\].extra has no text"):
        rendered("{{ messages[1].extra }}", [*CHAT, last], continue_final_message="extra")


@pytest.mark.parametrize("option", [{"add_generation_prompt": "no"}, {"continue_final_message": 1}, {"safe": "no"}])
def test_switch_that_is_neither_on_nor_off_is_refused(option: dict[str, Any]) -> None:
    """A text would count as on."""
    with pytest.raises(detok.OptionError, match=f"{next(iter(option))}=.* is invalid; it is True or False"):
        rendered("x", **option)


def test_empty_list_of_tools_is_a_chat_with_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in transformers."""
    templates = {"default": "{{ 1 }}", "tool_use": "{{ 2 }}"}
    monkeypatch.setitem(vars(EMBEDDED), "prompt_facts", replace(EMBEDDED.prompt_facts, chat_templates=templates))
    assert [EMBEDDED.render_chat(CHAT, tools=tools) for tools in (None, [], TOOLS)] == ["1", "2", "2"]


def test_continuing_and_prompting_at_once_is_refused() -> None:
    """A chat ends in one way."""
    chat = [*CHAT, {"role": "assistant", "content": "x"}]
    with pytest.raises(detok.OptionError, match="leave one of them out"):
        EMBEDDED.encode_chat(chat, continue_final_message=True, add_generation_prompt=True)


def test_mask_without_a_generation_block_is_refused() -> None:
    """Nothing says what the assistant wrote; a mask of zeros would train nothing."""
    with pytest.raises(detok.OptionError, match=r"no \{% generation %\} block"):
        EMBEDDED.encode_chat_with_mask(CHAT)


def test_blocks_of_generation_inside_macros_and_blocks_count_too() -> None:
    """Wherever the text ends up, the mask follows it."""
    template = (
        "{% macro m(x) %}<{% generation %}{{ x }}{% endgeneration %}>{% endmacro %}"
        "{% set s %}{% generation %}a{% generation %}b{% endgeneration %}c{% endgeneration %}{% endset %}{{ m('x') }}-{{ s }}"
    )
    ids, mask = EMBEDDED.encode_chat_with_mask(CHAT, chat_template=template)
    assert EMBEDDED.decode(ids) == "<x>-abc"
    assert EMBEDDED.decode([one for one, wrote in zip(ids, mask, strict=True) if wrote]) == "xabc"
    assert rendered(template) == "<x>-abc"


def test_variables_may_be_anything_of_json() -> None:
    """And what is no variable is an argument."""
    assert rendered("{{ a.b[0] }}{{ c }}", a={"b": [1]}, c="ü") == "1ü"
    with pytest.raises(detok.MessageError, match=r"a is a function"):
        rendered("{{ a }}", a=rendered)


def test_template_gets_copies() -> None:
    """What it does to the chat is not done to the caller's."""
    chat = [{"role": "user", "content": [{"type": "text", "text": "a"}]}]
    rendered("{% for m in messages %}{{ dict(m, content=1) }}{% endfor %}", chat, tools=TOOLS)
    assert chat == [{"role": "user", "content": [{"type": "text", "text": "a"}]}]


def test_marks_are_characters_that_nothing_has() -> None:
    """In texts, keys and lists; the first ones that are free."""
    assert unused_characters(["a"], 2) == ["\ufdd0", "\ufdd1"]
    assert unused_characters([{"\ufdd0": ["\ufdd2"]}], 2) == ["\ufdd1", "\ufdd3"]
    everything = "".join(map(chr, [*range(0xFDD0, 0xFDF0), *range(0x10F000, 0x10FFFE)]))
    with pytest.raises(detok.MessageError, match="every character"):
        unused_characters([everything], 1)


def test_missing_jinja_names_the_extra() -> None:
    """Chats need a library; prompts do not."""
    code = (
        "import sys; sys.modules['jinja2'] = None\n"
        "import detok\n"
        "tokenizer = detok.load(detok.EMBEDDED)\n"
        "assert tokenizer.encode_prompt('Hi')\n"
        "try: tokenizer.encode_chat([{'role': 'user', 'content': 'Hi'}])\n"
        "except detok.MissingExtra as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "a chat template needs the library 'jinja2'; install it with: pip install 'detok[chat]'\n"
