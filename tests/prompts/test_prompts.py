"""`Prompts` is a part of a tokenizer, and needs little of one."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Sequence
from typing import SupportsIndex
from weakref import ref

import pytest

import detok
from detok.core.vocabulary import Piece
from detok.prompts.chats import ChatOptions
from detok.prompts.facts import PromptFacts, PromptSupport
from detok.prompts.prompts import MAX_TEMPLATES, PromptMemory, Prompts
from tests.prompts.support import EMBEDDED
from tests.support.handmade import FUSE, make

CHAT = [{"role": "user", "content": "ab<e>"}]
TEMPLATE = "<s>{{ messages[0].content }}<e>"


class Letters:
    """What `TextCodec` asks for and nothing else: a letter is its code point; two specials, one of which encode may put first."""

    special_ids = frozenset({1, 2})

    def __init__(self, facts: PromptFacts, *, adds_bos: bool) -> None:
        self.prompt_facts = facts
        self.texts = {1: "<s>", 2: "<e>"}
        self.added_texts = {text: token_id for token_id, text in self.texts.items()}
        self._adds_bos = adds_bos

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Letters, and specials where they are spelled."""
        for token_id, special in self.texts.items():
            text = text.replace(special, chr(token_id))
        return [1] * (add_special_tokens and self._adds_bos) + [*map(ord, text)]

    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[list[int]]:
        """One by one."""
        return [self.encode(text, add_special_tokens) for text in texts]

    def piece(self, token_id: SupportsIndex) -> Piece:
        """A special or a letter."""
        token_id = int(token_id)
        text = self.texts.get(token_id)
        return Piece(chr(token_id)) if text is None else Piece(text, special=True, added=True)

    def token_bytes(self, token_id: SupportsIndex) -> bytes:
        """Its text."""
        return self.piece(token_id).text.encode()


def prompts(*, adds_bos: bool = True, **facts: object) -> Prompts:
    """Of letters."""
    known = PromptFacts(**facts)  # type: ignore[arg-type]  # whatever a test gives
    return Prompts(Letters(known, adds_bos=adds_bos), PromptMemory(PromptSupport()))


def test_prompts_need_no_more_of_a_tokenizer_than_a_codec() -> None:
    """All that they do, without a tokenizer."""
    made = prompts(chat_templates={"default": TEMPLATE})
    assert made.bos_token_id == 1
    assert made.encode("ab") == [1, 97, 98]
    assert made.encode_batch(["a", "b"]) == [[1, 97], [1, 98]]
    assert made.encode_rendered("<s>a") == [1, 97]
    assert made.encode_chat(CHAT, ChatOptions()) == [1, 97, 98, 2, 2]
    assert made.render_chat(CHAT, ChatOptions()) == "<s>ab<e><e>"
    assert [(token.text, token.start, token.end) for token in made.tokenize("ab")] == [("<s>", 0, 0), ("a", 0, 1), ("b", 1, 2)]


def test_bos_comes_from_the_files_or_from_the_encoder() -> None:
    """And is put in front where the files want one that encode does not add."""
    assert prompts(bos_token_id=2).bos_token_id == 2
    assert prompts(adds_bos=False).bos_token_id is None
    assert prompts(adds_bos=False, bos_token_id=1).encode("a") == [97]
    assert prompts(adds_bos=False, bos_token_id=1, add_bos_token=True).encode("a") == [1, 97]
    assert prompts(adds_bos=False, bos_token_id=1, add_bos_token=True).encode("a", add_special_tokens=False) == [97]


def test_whether_two_bos_were_met_is_an_attribute() -> None:
    """The warning comes once for each object."""
    made = prompts()
    assert not made.memory.met_double_bos
    with pytest.warns(detok.DoubleBosWarning):
        assert made.encode("<s>a") == [1, 97]
    assert made.memory.met_double_bos
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made.encode("<s>a") == [1, 97]
    with pytest.warns(detok.DoubleBosWarning):
        assert prompts().encode("<s>a") == [1, 97]


def test_templates_are_remembered_up_to_a_limit() -> None:
    """What must not be spelled in a template is found once for it; a hostile row of templates does not grow the memory."""
    tokenizer = detok.load(make(FUSE, ["a", "<s>"], special=["<s>"]))
    chat = [{"role": "user", "content": "a"}]
    for number in range(2 * MAX_TEMPLATES + 1):
        tokenizer.encode_chat(chat, chat_template=f"{{{{ messages[0].content }}}}{{# {number} #}}", safe=True)
        assert 0 < len(tokenizer.prompts.memory.controls) <= MAX_TEMPLATES


def test_a_tokenizer_has_its_prompts_and_is_a_decoder_alone() -> None:
    """No order of base classes decides what ends an answer."""
    assert detok.Tokenizer.__bases__ == (detok.Decoder,)
    assert isinstance(EMBEDDED.prompts, Prompts)
    assert EMBEDDED.eos_token_ids == EMBEDDED.prompts.facts.eos_token_ids != ()
    assert EMBEDDED.bos_token_id == EMBEDDED.prompts.bos_token_id
    assert EMBEDDED.prompt_facts is EMBEDDED.prompts.facts
    assert EMBEDDED.prompts.memory is EMBEDDED.prompts.memory
    assert EMBEDDED.request().feed([39, EMBEDDED.eos_token_ids[0]]).finish_reason == "stop"


def test_a_pickled_tokenizer_has_prompts_of_its_own() -> None:
    """They encode with the tokenizer that came out, and know whether the warning was given."""
    tokenizer = detok.load(detok.EMBEDDED)
    tokenizer.prompts.memory.met_double_bos = True
    tokenizer.encode_chat(CHAT, safe=True)
    twin = pickle.loads(pickle.dumps(tokenizer))
    assert twin.prompts.memory is not tokenizer.prompts.memory
    assert twin.prompts._codec is twin
    assert twin.prompts.memory.met_double_bos
    assert twin.eos_token_ids == tokenizer.eos_token_ids
    assert twin.encode_chat(CHAT, safe=True) == tokenizer.encode_chat(CHAT, safe=True)


def test_a_tokenizer_that_nobody_uses_is_freed_at_once() -> None:
    """Its prompts do not keep it; who keeps its prompts keeps it."""
    tokenizer = detok.load(make(FUSE, ["a", "<s>"], special=["<s>"]))
    tokenizer.encode_chat([{"role": "user", "content": "a"}], chat_template="{{ messages[0].content }}", safe=True)
    kept, seen = tokenizer.prompts, ref(tokenizer)
    del tokenizer
    assert kept.encode("a") == [0]
    del kept
    assert seen() is None
