"""Chats are what ``apply_chat_template`` of transformers makes of them: text and ids."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from transformers import AutoTokenizer

import detok
from tests.prompts.support import CHATS, EMBEDDED, TEMPLATES, TOOLS, real_tokenizer
from tests.support.vocabularies import real

WITH_TEMPLATE = ("llama3", "gemma3", "qwen3", "deepseek-v3")
"""The real vocabularies that bring one."""

OPTIONS: dict[str, dict[str, Any]] = {
    "bare": {"add_generation_prompt": False},
    "prompt": {"add_generation_prompt": True},
    "tools": {"add_generation_prompt": True, "tools": TOOLS},
    "documents": {"add_generation_prompt": False, "documents": [{"title": "T", "text": "a\nb"}], "extra": [1, "ü"]},
    "no thinking": {"add_generation_prompt": True, "enable_thinking": False},
}


@functools.cache
def theirs(name: str) -> Any:
    """The tokenizer as transformers loads it."""
    return AutoTokenizer.from_pretrained(real(name) if name else detok.EMBEDDED)


def outcome(render: Any) -> Any:
    """What comes out, or that the template refuses the chat."""
    try:
        return render()
    except Exception as error:
        return type(error).__name__ in ("TemplateError", "UndefinedError", "TypeError", "ChatTemplateError") or error


def assert_same(name: str, chat: list[dict[str, Any]], judged: list[dict[str, Any]] | None = None, **options: Any) -> None:
    """Text, ids, and ids with nothing to keep from being special; of a chat that transformers may get in another shape."""
    ours, peer = real_tokenizer(name) if name else EMBEDDED, theirs(name)
    judged = chat if judged is None else judged
    text = outcome(lambda: peer.apply_chat_template(judged, tokenize=False, **options))
    assert outcome(lambda: ours.render_chat(chat, **options)) == text
    if isinstance(text, str):
        ids = peer.apply_chat_template(judged, tokenize=True, return_dict=False, **options)
        assert ours.encode_chat(chat, double_bos="allow", **options) == ids
        assert ours.encode_chat(chat, double_bos="allow", safe=True, **options) == ids


# DeepSeek-V3's loses calls in every shape that transformers hands on: test_history has what detok makes of them.
REAL = [(name, chat) for name in WITH_TEMPLATE for chat in CHATS if name != "deepseek-v3" or chat not in ("tools", "calls alone")]


@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
@pytest.mark.parametrize(("name", "of"), REAL, ids=["-".join(one) for one in REAL])
def test_chat_of_a_real_template_equals_transformers(name: str, of: str, options: dict[str, Any]) -> None:
    """Systems, tools, empty contents, white space, thoughts. A content of null is an empty one (see `test_history`)."""
    chat = CHATS[of]
    assert_same(name, chat, [{**message, "content": message["content"] or ""} for message in chat], **options)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
@pytest.mark.parametrize("chat", CHATS.values(), ids=list(CHATS))
@pytest.mark.parametrize("template", TEMPLATES.values(), ids=list(TEMPLATES))
def test_chat_of_a_handmade_template_equals_transformers(
    template: str, chat: list[dict[str, Any]], options: dict[str, Any]
) -> None:
    """Every part of Jinja that templates use."""
    assert_same("", chat, chat_template=template, **options)


@pytest.mark.parametrize("end", ["Well, ", "Well", " a\n", "<think>\nhm"])
@pytest.mark.parametrize("name", WITH_TEMPLATE)
def test_continued_message_equals_transformers(name: str, end: str) -> None:
    """The text ends where the message does, with the white space that the template leaves it."""
    assert_same(name, [*CHATS["one"], {"role": "assistant", "content": end}], continue_final_message=True)


@pytest.mark.parametrize("template", [TEMPLATES["plain"], TEMPLATES["blocks"]])
@pytest.mark.parametrize("content", ["Well, ", [{"type": "text", "text": "a "}, {"type": "image"}]])
def test_continued_message_of_a_handmade_template_equals_transformers(template: str, content: Any) -> None:
    """Contents of parts too, as far as the template shows them."""
    parts = "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}!{% endfor %}"
    chat = [{"role": "user", "content": "x" if isinstance(content, str) else [{"type": "text", "text": "x"}]}]
    chosen = template if isinstance(content, str) else parts
    assert_same("", [*chat, {"role": "assistant", "content": content}], continue_final_message=True, chat_template=chosen)


def test_continued_field_equals_transformers() -> None:
    """Reasoning can be continued, under whatever name the template knows it."""
    template = "{% for m in messages %}{{ m.content }}{{ m.thinking }}{% endfor %}"
    chat = [*CHATS["one"], {"role": "assistant", "reasoning": "so ", "content": ""}]
    assert_same("", chat, continue_final_message="reasoning", chat_template=template)


@pytest.mark.parametrize("chat", CHATS.values(), ids=list(CHATS))
def test_assistant_mask_equals_transformers(chat: list[dict[str, Any]]) -> None:
    """A token with a character of the assistant's is the assistant's."""
    template = TEMPLATES["generation"]
    chat = [{**message, "content": message["content"] or ""} for message in chat]
    ids, mask = EMBEDDED.encode_chat_with_mask(chat, chat_template=template, add_generation_prompt=False)
    peer = theirs("").apply_chat_template(
        chat, chat_template=template, return_dict=True, tokenize=True, return_assistant_tokens_mask=True
    )
    assert (ids, mask) == (peer["input_ids"], peer["assistant_masks"])
    assert sum(mask) == 0 or "assistant" in {message["role"] for message in chat}
