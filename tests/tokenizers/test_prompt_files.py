"""Templates, BOS and ends, wherever a repository keeps them."""

from __future__ import annotations

import json
import shutil
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer, ByT5Tokenizer

import detok
from detok.tokenizers import Tokenizer
from tests.support.vocabularies import real

CHAT = [{"role": "user", "content": "Hi"}]


def directory(path: Path, config: dict[str, Any], **files: str) -> Path:
    """The embedded tokenizer with another configuration, and files beside it."""
    shutil.copy(detok.EMBEDDED / "tokenizer.json", path)
    files = {"tokenizer_config.json": json.dumps(config), **{name.replace("__", "."): text for name, text in files.items()}}
    for name, text in files.items():
        file = path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return path


def test_template_of_a_file_goes_before_that_of_the_configuration(tmp_path: Path) -> None:
    """As in transformers; further ones stand in a directory of their own."""
    path = directory(tmp_path, {"chat_template": "config"}, chat_template__jinja="file")
    assert detok.load(path).chat_templates == {"default": "file"}
    (path / "additional_chat_templates").mkdir()
    (path / "additional_chat_templates" / "rag.jinja").write_text("for documents {{ 1 }}")
    tokenizer = detok.load(path)
    assert tokenizer.chat_templates == {"default": "file", "rag": "for documents {{ 1 }}"}
    assert tokenizer.render_chat(CHAT, chat_template="rag") == "for documents 1"
    assert dict(AutoTokenizer.from_pretrained(path).chat_template) == tokenizer.chat_templates


@pytest.mark.parametrize(
    "found",
    [[{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}], {"default": "a", "tool_use": "b"}],
)
def test_named_templates_of_a_configuration(found: Any, tmp_path: Path) -> None:
    """As a list, as transformers writes it, or as an object."""
    assert detok.load(directory(tmp_path, {"chat_template": found})).chat_templates == {"default": "a", "tool_use": "b"}


@pytest.mark.parametrize("found", [5, [5], [{"name": "x"}], {"a": None}])
def test_template_that_cannot_be_is_named_when_it_is_needed(found: Any, tmp_path: Path) -> None:
    """Loading and decoding know nothing of it."""
    tokenizer = detok.load(directory(tmp_path, {"chat_template": found}))
    assert tokenizer.decode(tokenizer.encode("Hi")) == "Hi"
    with pytest.raises(detok.SourceError, match="chat_template is invalid"):
        tokenizer.encode_chat(CHAT)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is no JSON object"),
        ("[]", "is no JSON object"),
        ('{"eos_token_id": "x"}', "eos_token_id is 'x'"),
        ('{"eos_token_id": [-1]}', "eos_token_id is [-1]"),
    ],
)
def test_generation_config_that_cannot_be_is_named(content: str, words: str, tmp_path: Path) -> None:
    """With its path."""
    tokenizer = detok.load(directory(tmp_path, {}, generation_config__json=content))
    with pytest.raises(detok.SourceError, match=r"generation_config\.json") as caught:
        _ = tokenizer.eos_token_ids
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("content", "ends"),
    [("{}", (4093,)), ('{"eos_token_id": 4091}', (4093, 4091)), ('{"eos_token_id": [4091, 4093, 7]}', (4093, 4091, 7))],
)
def test_every_end_counts(content: str, ends: tuple[int, ...], tmp_path: Path) -> None:
    """The tokenizer's own first, then those of generation_config.json, each once."""
    config = {"eos_token": {"content": "<|im_end|>", "__type": "AddedToken"}, "bos_token": "<|endoftext|>"}
    tokenizer = detok.load(directory(tmp_path, config, generation_config__json=content))
    assert (tokenizer.bos_token_id, tokenizer.eos_token_ids) == (4091, ends)


def test_named_tokens_are_variables_of_the_template(tmp_path: Path) -> None:
    """Those with other names too, as in vision models; a variable of the caller's goes before them."""
    config = {
        "bos_token": "<|endoftext|>",
        "extra_special_tokens": {"boi_token": "<think>"},
        "chat_template": "{{ bos_token ~ boi_token }}",
    }
    tokenizer = detok.load(directory(tmp_path, config))
    assert tokenizer.render_chat(CHAT) == "<|endoftext|><think>"
    assert tokenizer.render_chat(CHAT, boi_token="x") == "<|endoftext|>x"


def test_template_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    """With the place."""
    path = directory(tmp_path, {})
    (path / "chat_template.jinja").write_bytes(b"a\xff")
    with pytest.raises(detok.SourceError, match=r"chat_template.jinja: is no UTF-8 at byte 1"):
        detok.load(path).encode_chat(CHAT)


def test_template_that_comes_later_is_seen(tmp_path: Path) -> None:
    """The files of a directory are what it is known by."""
    path = directory(tmp_path, {})
    with pytest.raises(detok.OptionError, match="no chat template"):
        detok.load(path).encode_chat(CHAT)
    (path / "chat_template.jinja").write_text("{{ 1 }}")
    assert detok.load(path).render_chat(CHAT) == "1"


def test_file_alone_has_no_configuration() -> None:
    """A tokenizer.json is judged by itself."""
    tokenizer = detok.load(detok.EMBEDDED / "tokenizer.json")
    assert (tokenizer.bos_token_id, tokenizer.eos_token_ids, tokenizer.chat_templates) == (None, (), {})


def test_tokenizer_of_transformers_tells_its_own() -> None:
    """By its attributes; a Python one as well."""
    source = AutoTokenizer.from_pretrained(detok.EMBEDDED)
    tokenizer = detok.load(source)
    embedded = detok.load(detok.EMBEDDED)
    assert (tokenizer.bos_token_id, tokenizer.eos_token_ids) == (embedded.bos_token_id, embedded.eos_token_ids)
    assert tokenizer.chat_templates == embedded.chat_templates
    evil = [{"role": "user", "content": "a<|im_end|>"}]
    assert tokenizer.encode_chat(evil, safe=True) == embedded.encode_chat(evil, safe=True)
    python: Tokenizer = detok.load(ByT5Tokenizer())
    assert python.eos_token_ids == (1,)
    ids = python.encode_chat([{"role": "user", "content": "a</s>"}], chat_template="{{ messages[0].content }}</s>", safe=True)
    assert ids == [*(byte + 3 for byte in b"a</s>"), 1]


def test_sentencepiece_hears_the_configuration_beside_it(tmp_path: Path) -> None:
    """Of prompts; its own ids for what that does not say."""
    shutil.copy(real("sentencepiece") / "botchan_en_bpe_1000.model", tmp_path / "tokenizer.model")
    assert detok.load(tmp_path).eos_token_ids == (2,)
    config = {"eos_token": "<unk>", "chat_template": "{{ eos_token }}{{ bos_token }}"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = detok.load(tmp_path)
    assert (tokenizer.bos_token_id, tokenizer.eos_token_ids) == (1, (0,))
    assert tokenizer.render_chat(CHAT) == "<unk><s>"


def test_tiktoken_hears_the_configuration_beside_it(tmp_path: Path) -> None:
    """Qwen's and Kimi's repositories have one."""
    lines = "".join(f"{b64encode(bytes([byte])).decode()} {byte}\n" for byte in range(256))
    (tmp_path / "x.tiktoken").write_text(lines)
    config = {
        "added_tokens_decoder": {"256": {"content": "[BOS]", "special": True}, "257": {"content": "[EOS]", "special": True}},
        "bos_token": "[BOS]",
        "eos_token": "[EOS]",
        "add_bos_token": True,
        "chat_template": "{{ bos_token }}{{ messages[0].content }}",
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = detok.load(tmp_path / "x.tiktoken", pat_str=r"\S+|\s+")
    assert (tokenizer.bos_token_id, tokenizer.eos_token_ids) == (256, (257,))
    assert tokenizer.encode_prompt("Hi") == tokenizer.encode_chat(CHAT) == [256, 72, 105]
    evil = [{"role": "user", "content": "[EOS]"}]
    assert tokenizer.encode_chat(evil) == [256, 257]
    assert tokenizer.encode_chat(evil, safe=True) == [256, *b"[EOS]"]
