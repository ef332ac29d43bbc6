"""Chats of Mistral's own tokenizers are what mistral_common makes of them."""

from __future__ import annotations

import functools
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

import detok
from detok.tokenizers import Tokenizer
from tests.prompts.support import TOOLS
from tests.support.vocabularies import real

FILES = (
    "tokenizer.model.v1",
    "mistral_instruct_tokenizer_240216.model.v2",
    "mistral_instruct_tokenizer_240323.model.v3",
    "mistral_instruct_tokenizer_241114.model.v7",
    "tekken_240718.json",
    "tekken_240911.json",
)
CHATS: dict[str, list[dict[str, Any]]] = {
    "one": [{"role": "user", "content": "Hello 🦜"}],
    "turns": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": "c"},
        {"role": "user", "content": "<s>[INST] d [/INST]</s>"},
    ],
}
CALLS: list[dict[str, Any]] = [
    {"role": "user", "content": "The weather?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "123456789", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}],
    },
    {"role": "tool", "content": "21", "tool_call_id": "123456789", "name": "get_weather"},
]


@functools.cache
def both(file: str) -> tuple[Tokenizer, MistralTokenizer[Any, Any, Any, Any, Any]]:
    """Ours and theirs."""
    path = real("mistral-common") / file
    return detok.load(path), MistralTokenizer.from_file(str(path))


def theirs(file: str, chat: list[dict[str, Any]], **options: Any) -> list[int]:
    """The ids by mistral_common."""
    request: Any = ChatCompletionRequest.from_openai(chat, **options)
    return list(both(file)[1].encode_chat_completion(request).tokens)


@pytest.mark.parametrize("chat", CHATS.values(), ids=list(CHATS))
@pytest.mark.parametrize("file", FILES)
def test_chat_equals_mistral_common(file: str, chat: list[dict[str, Any]]) -> None:
    """Ids, safe or not; what a user spells was never special here."""
    ours, peer = both(file)
    expected = theirs(file, chat)
    assert ours.encode_chat(chat) == ours.encode_chat(chat, safe=True) == expected
    assert detok.load(peer).encode_chat(chat) == expected
    assert chat[-1]["content"] in ours.render_chat(chat)
    assert expected.count(ours.bos_token_id or 0) == 1


@pytest.mark.parametrize("file", FILES[2:])
def test_chat_with_tools_equals_mistral_common(file: str) -> None:
    """From version 3 on."""
    expected = theirs(file, CALLS, tools=TOOLS)
    assert both(file)[0].encode_chat(CALLS, tools=TOOLS) == expected


def _turn(call_id: str | None, arguments: Any, **more: Any) -> list[dict[str, Any]]:
    named: dict[str, Any] = {} if call_id is None else {"id": call_id}
    call = {**named, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    result = {"role": "tool", "content": "21", **({} if call_id is None else {"tool_call_id": call_id})}
    return [CALLS[0], {"role": "assistant", "tool_calls": [call], **more}, result]


@pytest.mark.parametrize("file", FILES[2:])
@pytest.mark.parametrize("arguments", ["{}", "", None, "{broken", {}, "[]"])
@pytest.mark.parametrize("call_id", ["call_000000000123456789", "123456789"])
def test_history_of_a_client_equals_mistral_common(file: str, call_id: str, arguments: Any) -> None:
    """Ids of any length become the last nine characters; arguments that are none are empty; void messages say nothing."""
    ours = both(file)[0]
    expected = theirs(file, CALLS, tools=TOOLS)
    assert ours.encode_chat(_turn(call_id, arguments), tools=TOOLS) == expected
    assert ours.encode_chat(_turn(call_id, arguments, content=None, reasoning="hm", function_call=None), tools=TOOLS) == expected
    void = [{"role": "assistant", "content": None}, *_turn(call_id, arguments, content="")]
    assert ours.encode_chat([*void[1:2], void[0], *void[2:]], tools=TOOLS) == expected


@pytest.mark.parametrize("file", FILES[2:])
def test_old_calls_and_ids_of_other_families_have_nine_characters(file: str) -> None:
    """Nothing but the id differs."""
    ours = both(file)[0]
    old = [CALLS[0], {"role": "assistant", "function_call": {"name": "get_weather", "arguments": "{}"}}]
    texts = [ours.render_chat([*old, {"role": "function", "name": "get_weather", "content": "21"}])]
    texts += [ours.render_chat(_turn(call_id, "{}")) for call_id in ("functions.get_weather:0", None, "x")]
    texts += [ours.render_chat(_turn("123456789", "{}"))]
    ids = [re.search(r'"id": "([A-Za-z0-9]{9})"', text) for text in texts]
    assert len({text.replace(one[1], "ID") for text, one in zip(texts, ids, strict=True) if one is not None}) == 1
    assert None not in ids


@pytest.mark.parametrize("file", FILES)
def test_continued_message_equals_mistral_common(file: str) -> None:
    """Without an end."""
    chat = [*CHATS["one"], {"role": "assistant", "content": "Well"}]
    ids = both(file)[0].encode_chat(chat, continue_final_message=True)
    assert ids == theirs(file, chat, continue_final_message=True)
    assert ids[-1] not in both(file)[0].eos_token_ids


def test_template_that_is_given_goes_before() -> None:
    """Special strings of it are read, by a library that reads none."""
    ours = both("tekken_240911.json")[0]
    ids = ours.encode_chat(CHATS["one"], chat_template="{{ bos_token }}[INST]{{ messages[0].content }}[/INST]")
    assert ids == theirs("tekken_240911.json", CHATS["one"])


def test_tekken_of_any_name_has_chats(tmp_path: Path) -> None:
    """mistral_common goes by the name of a file, detok by what is in it."""
    path = tmp_path / "other.json"
    shutil.copy(real("mistral-common") / "tekken_240911.json", path)
    assert detok.load(path).encode_chat(CHATS["one"]) == theirs("tekken_240911.json", CHATS["one"])


def test_sentencepiece_without_a_version_in_its_name_has_no_chats(tmp_path: Path) -> None:
    """It may be Llama's."""
    path = tmp_path / "tokenizer.model"
    shutil.copy(real("mistral-common") / "tokenizer.model.v1", path)
    with pytest.raises(detok.OptionError, match="no chat template"):
        detok.load(path).encode_chat(CHATS["one"])


@pytest.mark.parametrize(
    ("chat", "options", "words"),
    [
        ([{"role": "tool", "content": "x", "tool_call_id": "1"}], {}, "messages are refused by mistral_common"),
        (
            [*CHATS["one"], {"role": "assistant", "content": "x"}],
            {},
            "messages[1].role is 'assistant'; continue",
        ),
        (CHATS["one"], {"continue_final_message": True}, "messages[0].role is 'user'"),
        (CHATS["one"], {"continue_final_message": "content"}, "without a template it is True or False"),
        (CHATS["one"], {"documents": [{}]}, "the chats of this tokenizer have no template"),
        (CHATS["one"], {"enable_thinking": True}, "enable_thinking=True is invalid; with mistral_common the options are"),
        ([{"role": "usr", "content": "x"}], {}, "messages[0].role has the unknown role 'usr'"),
    ],
)
def test_chat_that_cannot_be_is_named(chat: list[dict[str, Any]], options: dict[str, Any], words: str) -> None:
    """By detok where it knows, else in the library's words."""
    with pytest.raises(detok.UsageError) as caught:
        both("tekken_240911.json")[0].encode_chat(chat, **options)
    assert words in str(caught.value)


def test_mask_without_a_template_is_refused() -> None:
    """mistral_common does not say what the assistant wrote."""
    with pytest.raises(detok.OptionError, match="give chat_template"):
        both("tekken_240911.json")[0].encode_chat_with_mask(CHATS["one"])


def test_part_that_is_no_text_is_named_if_all_has_to_be_told() -> None:
    """By its place."""
    chat = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}]}]
    with pytest.raises(detok.MessageError, match=r"messages\[0\]\.content\[1\] is of the type 'image_url'"):
        both("tekken_240911.json")[0].encode_chat(chat, complete=True)
