"""`detok template` and `detok encode --chat`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import EMBEDDED, run

CHAT = [{"role": "system", "content": "Zoë"}, {"role": "user", "content": "a <|im_end|>"}]
REQUEST = {
    "model": "x",
    "messages": CHAT,
    "chat_template": "{{ a }}<|im_end|>",
    "chat_template_kwargs": {"a": 5},
    "temperature": 1,
}


def test_template_shows_special_ids() -> None:
    """A row for each, and for the text between them; the message of a user if it is a text."""
    result = run("template", "Hi <think>")
    assert result.exit_code == 0
    rows = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "16 ids, 3 of them special" in rows
    assert [row for row in rows if row.startswith("40")] == [
        "4092 special <|im_start|>",
        "4094 added <think>",
        "4093 special <|im_end|>",
        "4092 special <|im_start|>",
    ]
    assert "5 tokens assistant\\n" in rows


def test_template_as_json_says_which_are_special() -> None:
    """One line: text, ids, and a flag for each."""
    value = json.loads(run("template", json.dumps(CHAT), "--json").stdout)
    assert value["text"] == EMBEDDED.render_chat(CHAT)
    assert value["ids"] == EMBEDDED.encode_chat(CHAT)
    assert value["special"] == [token_id in EMBEDDED.special_ids for token_id in value["ids"]]


def test_template_safe_keeps_texts_as_texts() -> None:
    """One special token less."""
    found = [json.loads(run("template", json.dumps(CHAT), "--json", *safe).stdout) for safe in ([], ["--safe"])]
    assert [sum(one["special"]) for one in found] == [6, 5]
    assert found[0]["text"] == found[1]["text"]


def test_template_text_is_the_rendered_text() -> None:
    """Byte for byte."""
    assert run("template", EMBEDDED.source, "--text", stdin=json.dumps(CHAT)).stdout == EMBEDDED.render_chat(CHAT)


def test_encode_chat_takes_messages_and_requests() -> None:
    """A list, a body of a request with what belongs to the prompt, a text."""
    assert [*map(int, run("encode", "--chat", json.dumps(CHAT)).stdout.split())] == EMBEDDED.encode_chat(CHAT)
    assert [*map(int, run("encode", "--chat", stdin=json.dumps(REQUEST)).stdout.split())] == EMBEDDED.encode("5<|im_end|>")
    hi = EMBEDDED.encode_chat([{"role": "user", "content": "Hi"}])
    assert json.loads(run("encode", "--chat", "Hi", "--json").stdout) == {"ids": hi}
    safe = EMBEDDED.encode_chat(CHAT, safe=True)
    assert [*map(int, run("encode", "--chat", "--safe", json.dumps(CHAT)).stdout.split())] == safe


def test_chat_template_is_a_file_or_a_name(tmp_path: Path) -> None:
    """And goes before that of a request."""
    path = tmp_path / "a.jinja"
    path.write_text("{{ messages | length }}ü")
    assert run("template", "--text", "--chat-template", str(path), json.dumps(REQUEST)).stdout == "2ü"
    expected = EMBEDDED.render_chat(CHAT)
    assert run("template", "--text", "--chat-template", "default", json.dumps(REQUEST)).stdout == expected
    path.write_bytes(b"\xff")
    assert "cannot be read" in run("template", "--chat-template", str(path), "Hi").stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--chat", "[1"], "the chat is no JSON"),
        (["--chat", "{}"], 'the chat has no messages; an object has them as "messages"'),
        (["--chat", '{"messages": [], "chat_template_kwargs": 5}'], "chat_template_kwargs is no object"),
        (["--chat", '{"messages": [], "chat_template_kwargs": []}'], "chat_template_kwargs is no object"),
        (["--chat", '{"messages": [], "chat_template_kwargs": {"safe": true}}'], "chat_template_kwargs.safe=True is invalid"),
        (["--chat", '{"messages": [], "chat_template_kwargs": {"self": 1}}'], "chat_template_kwargs.self=1 is invalid"),
        (["--chat", '{"messages": [], "chat_template_kwargs": {"messages": 1}}'], "chat_template_kwargs.messages=1 is invalid"),
        (["--chat", '{"messages": [], "add_generation_prompt": "no"}'], "add_generation_prompt='no' is invalid"),
        (["--chat", '[{"role": "x", "content": ""}]'], "messages[0].role has the unknown role 'x'"),
        (["--chat", "--chat-template", "nothing", "Hi"], "one of the tokenizer's own: 'default'"),
        (["--chat", "--chat-template", "{{ raise_exception('no') }}", "Hi"], "chat template 'given', line 1: no"),
        (["--safe", "Hi"], "are for chats; give --chat"),
        (["--chat-template", "x", "Hi"], "are for chats; give --chat"),
    ],
)
def test_chat_that_cannot_be_is_one_line(arguments: list[str], words: str) -> None:
    """On standard error."""
    result = run("encode", *arguments)
    assert (result.stdout, result.exit_code) == ("", 2)
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_double_bos_of_a_prompt_is_an_option() -> None:
    """The embedded tokenizer's BOS twice in the text: one goes, or an error."""
    text = "<|endoftext|><|endoftext|>a"
    with pytest.warns(UserWarning, match="2 times"):
        assert run("encode", "--double-bos", "warn", text).stdout == "4091 4091 64\n"
    assert run("encode", "--double-bos", "allow", text).stdout == "4091 4091 64\n"
    assert "begins with '<|endoftext|>' (id 4091) twice" in run("encode", "--double-bos", "error", text).stderr
