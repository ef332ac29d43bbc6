"""One BOS: from the encoder, the text, the template, or from here."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest
import tiktoken
import tokenizers
from tokenizers.processors import TemplateProcessing

import detok
from detok.tokenizers import Tokenizer
from scripts.fetch_vocabularies import VOCABULARIES
from tests.prompts.support import real_tokenizer
from tests.support.vocabularies import real

LLAMA_BOS = "<|begin_of_text|>"


def llama3() -> Tokenizer:
    """Llama 3 as its makers mended it: with a BOS in front of a text."""
    tokenizer = tokenizers.Tokenizer.from_file(str(real("llama3") / "tokenizer.json"))
    bos = (LLAMA_BOS, tokenizer.token_to_id(LLAMA_BOS))
    tokenizer.post_processor = TemplateProcessing(single=f"{LLAMA_BOS} $A", special_tokens=[bos])
    return detok.load(tokenizer)


def fresh(name: str) -> tuple[Tokenizer, str]:
    """A tokenizer that has not warned yet, and the text of its BOS."""
    tokenizer = llama3() if name == "llama3" else real_tokenizer(name)
    tokenizer.prompts.memory.met_double_bos = False
    assert tokenizer.bos_token_id is not None
    return tokenizer, tokenizer.piece(tokenizer.bos_token_id).text


WITH_BOS = ("llama3", "gemma3", "mistral-v1")


@pytest.mark.parametrize("name", WITH_BOS)
def test_prompt_with_a_bos_of_its_own_has_one(name: str) -> None:
    """The ids of the text without it, and a warning, once."""
    tokenizer, bos = fresh(name)
    expected = tokenizer.encode(f"{bos}Hi there", add_special_tokens=False)
    assert tokenizer.encode(f"{bos}Hi there")[:2] == [tokenizer.bos_token_id] * 2
    with pytest.warns(detok.DoubleBosWarning, match="2 times") as caught:
        assert tokenizer.encode_prompt(f"{bos}Hi there") == expected
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tokenizer.encode_prompt(f"{bos}Hi there") == expected
        assert tokenizer.encode_prompt(f"{bos}Hi there", add_special_tokens=False) == expected


@pytest.mark.parametrize("name", WITH_BOS)
def test_prompt_without_a_bos_of_its_own_gets_one(name: str) -> None:
    """Or none, as asked for, and without a word."""
    tokenizer, _ = fresh(name)
    bare = tokenizer.encode("Hi there", add_special_tokens=False)
    assert tokenizer.encode_prompt("Hi there") == [tokenizer.bos_token_id, *bare]
    assert tokenizer.encode_prompt("Hi there", add_special_tokens=False) == bare


@pytest.mark.parametrize("name", WITH_BOS)
def test_chat_has_one_bos(name: str) -> None:
    """From its template, whatever the encoder would add; a template that writes two has one as well."""
    tokenizer, bos = fresh(name)
    chat = [{"role": "user", "content": "Hi"}]
    template = "{{ bos }}{% for m in messages %}{{ m.content }}{% endfor %}"
    ids = tokenizer.encode_chat(chat, chat_template=template, bos=bos)
    assert ids == tokenizer.encode(f"{bos}Hi", add_special_tokens=False)
    with pytest.warns(detok.DoubleBosWarning, match="3 times"):
        assert tokenizer.encode_chat(chat, chat_template=template, bos=bos * 3) == ids
    assert tokenizer.encode_chat(chat, chat_template=template, bos="") == tokenizer.encode("Hi", add_special_tokens=False)


@pytest.mark.parametrize("name", WITH_BOS)
def test_double_bos_does_what_it_says(name: str) -> None:
    """Warn each time, raise, or leave them."""
    tokenizer, bos = fresh(name)
    text = f"{bos}Hi"
    both = tokenizer.encode(text)
    for _ in range(2):
        with pytest.warns(detok.DoubleBosWarning, match="they stay"):
            assert tokenizer.encode_prompt(text, double_bos="warn") == both
    assert tokenizer.encode_prompt(text, double_bos="allow") == both
    with pytest.raises(detok.DoubleBos) as caught:
        tokenizer.encode_prompt(text, double_bos="error")
    assert (caught.value.token_id, caught.value.text) == (tokenizer.bos_token_id, bos)


def test_double_bos_that_there_is_not_is_refused() -> None:
    """Before anything is encoded."""
    tokenizer = detok.load(detok.EMBEDDED)
    wrong: Any = "mend"
    with pytest.raises(detok.OptionError, match="'fix', 'warn', 'error', 'allow'"):
        tokenizer.encode_prompt("x", double_bos=wrong)
    with pytest.raises(detok.OptionError, match="'fix', 'warn', 'error', 'allow'"):
        tokenizer.encode_chat([], double_bos=wrong)


def test_token_twice_that_begins_no_prompt_stays() -> None:
    """Only BOS is too much twice."""
    tokenizer = detok.load(detok.EMBEDDED)
    ids = tokenizer.encode_prompt("<|im_end|><|im_end|>!")
    assert ids[:2] == [tokenizer.eos_token_ids[0]] * 2
    assert tokenizer.encode_prompt("!!") == tokenizer.encode("!!")


def test_two_cls_are_one_too() -> None:
    """What the encoder puts in front of a text is its BOS, by whatever name."""
    tokenizer = real_tokenizer("minilm")
    with pytest.warns(detok.DoubleBosWarning, match=r"\[CLS\]"):
        assert tokenizer.encode_prompt("[CLS] hi", double_bos="warn")[:2] == [tokenizer.bos_token_id] * 2


def test_encoder_that_adds_nothing_gets_bos_here() -> None:
    """tiktoken knows no such flag: Llama's ranks begin with BOS all the same, OpenAI's with none."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    for special, adds in (({LLAMA_BOS: 256, "<|eot_id|>": 257}, True), ({"<|endoftext|>": 256}, False)):
        tokenizer = detok.load(tiktoken.Encoding("x", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens=special))
        assert "encode adds no special tokens" in tokenizer.description
        assert tokenizer.encode("Hi") == [72, 105]
        assert tokenizer.encode_prompt("Hi") == ([256] if adds else []) + [72, 105]
        assert tokenizer.encode_prompt("Hi", add_special_tokens=False) == [72, 105]
        assert tokenizer.bos_token_id == (256 if adds else None)
        assert tokenizer.eos_token_ids == ((257,) if adds else (256,))
        if adds:
            with pytest.warns(detok.DoubleBosWarning):
                assert tokenizer.encode_prompt(f"{LLAMA_BOS}Hi") == [256, 72, 105]


def ranks_with_bos() -> Tokenizer:
    """Ranks of bytes, to which Llama's BOS belongs, and whose encode adds none."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    special = {LLAMA_BOS: 256, "<|eot_id|>": 257}
    return detok.load(tiktoken.Encoding("x", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens=special))


@pytest.mark.parametrize("make", [llama3, ranks_with_bos])
def test_encoder_of_an_event_loop_gives_one_bos(make: Any) -> None:
    """Alone, in a batch, and cut: what `encode_prompt` gives."""
    tokenizer: Tokenizer = make()
    texts = ["Hi", f"{LLAMA_BOS}Hi", "long " * 99, f"{LLAMA_BOS}{'long ' * 99}", "long" * 99]

    async def serve(**options: Any) -> list[list[int]]:
        async with tokenizer.async_encoder(inline_bytes=64, max_workers=1) as encoder:
            return list(await asyncio.gather(*(encoder.encode(text, **options) for text in texts)))

    with pytest.warns(detok.DoubleBosWarning):
        assert asyncio.run(serve()) == [tokenizer.encode_prompt(text) for text in texts]
    bare = asyncio.run(serve(add_special_tokens=False))
    assert bare == [tokenizer.encode_prompt(text, add_special_tokens=False) for text in texts]
    cut = asyncio.run(serve(truncate_prompt_tokens=3))
    assert cut == [[ids[0], *ids[1:][-2:]] for ids in map(tokenizer.encode_prompt, texts)]


@pytest.mark.parametrize("make", [llama3, ranks_with_bos])
def test_transcript_begins_with_one_bos(make: Any) -> None:
    """Whoever brings it: a text, the encoder, the template, a message; or two of them, one after another."""
    tokenizer: Tokenizer = make()
    bos = tokenizer.bos_token_id
    assert bos is not None

    def render(messages: Any, *, add_generation_prompt: bool) -> str:
        return LLAMA_BOS + "".join(message["content"] for message in messages)

    def ids_of(*parts: str | dict[str, str]) -> list[int]:
        transcript = tokenizer.transcript(render=render)
        for part in parts:
            if isinstance(part, str):
                transcript.add_text(part)
            else:
                transcript.add_message(part)
        assert transcript.ids == [one for part in transcript.parts for one in transcript.ids[part.start : part.end]]
        return transcript.ids

    expected = [bos, *tokenizer.encode("Hi", add_special_tokens=False)]
    assert ids_of("Hi") == expected
    with pytest.warns(detok.DoubleBosWarning):
        assert ids_of(f"{LLAMA_BOS}Hi") == expected
    assert ids_of({"role": "user", "content": "Hi"}) == expected
    assert ids_of({"role": "user", "content": f"{LLAMA_BOS}Hi"}) == expected
    assert ids_of(LLAMA_BOS, f"{LLAMA_BOS}Hi") == expected
    assert ids_of(LLAMA_BOS, {"role": "user", "content": "Hi"}) == expected
    transcript = tokenizer.transcript(render=render, double_bos="error")
    with pytest.raises(detok.DoubleBos):
        transcript.add_text(f"{LLAMA_BOS * 2}Hi")
    assert transcript.ids == []
    transcript.add_generated([bos, bos])  # what a model wrote stays
    assert transcript.ids == [bos, bos]
    with pytest.raises(detok.OptionError, match="double_bos"):
        tokenizer.transcript(double_bos="mend")


def test_configuration_that_wants_bos_is_heard() -> None:
    """deepseek-v3's says so, and its tokenizer.json does not do it."""
    tokenizer = real_tokenizer("deepseek-v3")
    assert tokenizer.encode("Hi") == tokenizer.encode("Hi", add_special_tokens=False)
    assert tokenizer.encode_prompt("Hi") == [tokenizer.bos_token_id, *tokenizer.encode("Hi")]


@pytest.mark.parametrize("text", ["a\ud800", 5, None])
def test_prompt_that_is_no_text_is_refused(text: Any) -> None:
    """With the tokenizer's own words."""
    with pytest.raises(detok.OptionError, match="lone surrogates"):
        detok.load(detok.EMBEDDED).encode_prompt(text)


@pytest.mark.parametrize("name", sorted(name for name, one in VOCABULARIES.items() if not one.large))
def test_prompt_without_special_tokens_is_the_library_s_encode(name: str) -> None:
    """Whatever the vocabulary, `encode_prompt` changes nothing but BOS."""
    directory = real(name)
    for path in sorted(directory.iterdir()):
        if path.name.endswith("_config.json") or path.name == "special_tokens_map.json":
            continue
        tokenizer = real_tokenizer(name) if path.name == "tokenizer.json" else detok.load(path)
        try:
            ids = tokenizer.encode("Hi, Zoë! 日本")
        except detok.EncodeUnsupported:
            assert tokenizer.bos_token_id is None
            continue
        assert tokenizer.encode_prompt("Hi, Zoë! 日本")[-len(ids) :] == ids
        assert len(tokenizer.encode_prompt("Hi, Zoë! 日本")) <= len(ids) + 1
