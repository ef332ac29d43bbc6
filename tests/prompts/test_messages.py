"""Messages that are none: the place, what is wrong, and what would be right."""

from __future__ import annotations

from typing import Any

import pytest

import detok
from detok.prompts.messages import checked_messages
from tests.prompts.support import EMBEDDED, real_tokenizer

SELF: list[Any] = []
SELF.append(SELF)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ("hi", "messages is a str; it is a list of messages"),
        ({"role": "user"}, "messages is a dict; it is a list of messages"),
        (5, "messages is a int"),
        ([], "messages is empty; a chat has at least one message"),
        (["hi"], "messages[0] is a str; a message is an object with role and content"),
        ([{"content": "x"}], "messages[0] has no role; roles are assistant, developer"),
        ([{"role": "usr", "content": "x"}], "messages[0].role has the unknown role 'usr'; roles are assistant, developer"),
        ([{"role": 5, "content": "x"}], "messages[0].role has the unknown role 5"),
        ([{"role": "<|im_end|>", "content": "x"}], "messages[0].role has the unknown role '<|im_end|>'"),
        ([{"role": "user"}], 'messages[0] has no content; give content (it may be ""), or tool_calls'),
        ([{"role": "user", "content": 5}], "messages[0].content is the int 5; it is a text or a list of parts"),
        ([{"role": "user", "content": "x"}, {"role": "user", "content": {"text": "x"}}], "messages[1].content is the dict"),
        ([{"role": "user", "content": ["x"]}], "messages[0].content[0] is the str 'x'; a part is an object with a type"),
        ([{"role": "user", "content": [{"text": "x"}]}], "messages[0].content[0] is the dict"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text is not there; a part of the type"),
        ([{"role": "user", "content": [{"type": "text", "text": 1}]}], "messages[0].content[0].text is the int 1"),
        ([{"role": "user", "content": "a\ud800b"}], "messages[0].content has a lone surrogate at 1"),
        ([{"role": "user", "content": [{"type": "text", "text": "\udfff"}]}], "messages[0].content[0].text has a lone surrogate"),
        ([{"role": "user", "content": "x", "name\ud800": 1}], "messages[0] has a lone surrogate at 4"),
        ([{"role": "assistant", "content": None, "tool_calls": "x"}], "messages[0].tool_calls is the str 'x'"),
        ([{"role": "assistant", "tool_calls": [1]}], "messages[0].tool_calls is the list [1]; it is a list of objects"),
        ([{"role": "user", "content": "x", "more": {1, 2}}], "messages[0].more is a set; give texts, numbers, lists and objects"),
        ([{"role": "user", "content": "x", "more": {1: 2}}], "messages[0].more has the key 1; the keys of an object are texts"),
        ([{"role": "user", "content": "x", "more": SELF}], "is more than 64 levels deep"),
    ],
)
def test_message_that_cannot_be_is_named(messages: Any, words: str) -> None:
    """By its place in the list, down to the part."""
    with pytest.raises(detok.MessageError) as caught:
        EMBEDDED.encode_chat(messages)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("tools", {"a": 1}, "tools is a dict; it is a list of objects"),
        ("tools", "x", "tools is a str"),
        ("tools", [print], "tools[0] is a builtin_function_or_method; it is an object, of tools with a JSON schema"),
        ("documents", ["x"], "documents[0] is a str"),
        ("documents", [{"a": "\ud800"}], "documents[0].a has a lone surrogate at 0"),
    ],
)
def test_tool_or_document_that_cannot_be_is_named(option: str, value: Any, words: str) -> None:
    """The same beside the messages."""
    with pytest.raises(detok.MessageError) as caught:
        EMBEDDED.encode_chat([{"role": "user", "content": "x"}], **{option: value})
    assert words in str(caught.value)


def test_role_that_the_template_names_is_known() -> None:
    """Templates have roles of their own."""
    chat = [{"role": "critic", "content": "x"}]
    template = "{% for m in messages %}{% if m.role == 'critic' %}!{% endif %}{{ m.content }}{% endfor %}"
    assert EMBEDDED.render_chat(chat, chat_template=template) == "!x"
    with pytest.raises(detok.MessageError, match="'critic'"):
        EMBEDDED.render_chat(chat)
    assert real_tokenizer("gemma3").render_chat([{"role": "user", "content": "x"}, {"role": "model", "content": "y"}])


def test_numbers_and_texts_of_other_classes_become_plain() -> None:
    """A template gets nothing that has methods of its own."""

    class Text(str):
        __slots__ = ()

    class Number(int):
        pass

    (message,) = checked_messages([{"role": Text("user"), "content": Text("x"), "n": [Number(1), 1.5, True, None]}], roles=())
    assert [type(message["content"]), *map(type, message["n"])] == [str, int, float, bool, type(None)]


def test_fields_that_are_none_are_left_out() -> None:
    """As transformers does, since APIs send them."""
    call: list[dict[str, Any]] = [{"function": None}]
    message = {"role": "assistant", "content": None, "name": None, "tool_calls": call}
    assert checked_messages([message], roles=()) == [{"role": "assistant", "tool_calls": call}]
