"""A transcript keeps what the model wrote, and encodes what is new, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.prompts.transcript import Part, Transcript
from tests.support.chats import CHATS, render_of
from tests.support.vocabularies import real_tokenizer

EMBEDDED = detok.load(detok.EMBEDDED)
BEGIN, END = "<|im_start|>", "<|im_end|>"


def chatml(messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool) -> str:
    """A small template with the embedded tokenizer's own special tokens."""
    text = "".join(f"{BEGIN}{each['role']}\n{each['content']}{END}\n" for each in messages)
    return text + f"{BEGIN}assistant\n" * add_generation_prompt


def encoded(text: str) -> list[int]:
    """Ids as the embedded tokenizer has them, without special tokens of its own."""
    return EMBEDDED.encode(text, add_special_tokens=False)


def spelled(text: str) -> list[int]:
    """Tokens of one byte, as no encoder splits a text."""
    return [token_id for byte in text.encode() for token_id in encoded(chr(byte))]


def user(content: str) -> dict[str, Any]:
    """A question."""
    return {"role": "user", "content": content}


def assistant(content: str) -> dict[str, Any]:
    """An answer."""
    return {"role": "assistant", "content": content}


class Counting:
    """A tokenizer and a template that count what they are given."""

    special_ids = EMBEDDED.special_ids

    def __init__(self) -> None:
        self.encoded = self.rendered = 0

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        self.encoded += len(text)
        return EMBEDDED.encode(text, add_special_tokens)

    def decode(self, ids: Iterable[Any], skip_special_tokens: bool = True) -> str:
        return EMBEDDED.decode(ids, skip_special_tokens)

    def token_bytes(self, token_id: Any) -> bytes:
        return EMBEDDED.token_bytes(token_id)

    def render(self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool) -> str:
        self.rendered += sum(len(str(each["content"])) for each in messages)
        return chatml(messages, add_generation_prompt=add_generation_prompt)


def test_messages_alone_are_the_template() -> None:
    """Encoded as one text, with the beginning of the answer, unless the last message is one."""
    chat = [{"role": "system", "content": "Be brief."}, user("Hi"), assistant("Yes?"), user("Bye")]
    transcript = EMBEDDED.transcript(render=chatml)
    for count, message in enumerate(chat, 1):
        transcript.add_message(message)
        begins = message["role"] != "assistant"
        assert transcript.ids == encoded(chatml(chat[:count], add_generation_prompt=begins))
    assert EMBEDDED.transcript(render=chatml).ids == []


def test_what_the_model_wrote_is_never_encoded_again() -> None:
    """However it splits its words."""
    transcript = EMBEDDED.transcript(render=chatml)
    transcript.add_message(user("Hi"))
    wrote = [*spelled("Good morning to you"), *encoded(END)]
    transcript.add_generated(wrote)
    transcript.add_message(user("And?"))
    first = encoded(chatml([user("Hi")], add_generation_prompt=True))
    rest = encoded("\n" + chatml([user("And?")], add_generation_prompt=True))
    assert transcript.ids == [*first, *wrote, *rest]
    assert len(transcript) == len(transcript.ids)
    assert transcript.parts == (
        Part("messages", 0, len(first)),
        Part("generated", len(first), len(first) + len(wrote)),
        Part("messages", len(first) + len(wrote), len(transcript)),
    )


def test_drift_shows_what_a_client_with_text_would_send() -> None:
    """A model that splits a word differently from the encoder, as in reinforcement learning."""
    transcript = EMBEDDED.transcript(render=chatml)
    transcript.add_message(user("Hi"))
    start = len(transcript)
    transcript.add_generated([*spelled(" how"), *encoded(" day"), *encoded(END)])
    transcript.add_message(user("And?"))
    drift = transcript.drift(block_size=4)
    assert drift.first == start
    assert [place.text for place in drift.places] == [" how"]
    assert drift.lost_tokens == (len(transcript) // 4 - start // 4) * 4
    same = EMBEDDED.transcript(render=chatml)
    same.add_message(user("Hi"))
    same.add_generated([*encoded(" how day"), *encoded(END)])
    assert not same.drift()


@pytest.mark.parametrize("ended", [True, False])
def test_turn_that_was_cut_off_is_ended_by_the_template(ended: bool) -> None:
    """With the end that the model wrote, or without one: the text is that of the template either way."""
    transcript = EMBEDDED.transcript(render=chatml)
    transcript.add_message(user("Hi"))
    transcript.add_generated([*encoded("Good day"), *(encoded(END) if ended else [])])
    transcript.add_message(user("And?"))
    chat = [user("Hi"), assistant("Good day"), user("And?")]
    assert transcript.ids == encoded(chatml(chat, add_generation_prompt=True))


def test_other_end_of_the_model_is_not_doubled() -> None:
    """A special token of its own ends a turn too, unless the caller knows better."""
    other = EMBEDDED.encode("<|endoftext|>", add_special_tokens=False)
    assert len(other) == 1
    rest = {True: "\n", False: f"{END}\n", None: "\n"}
    for ends_turn, between in rest.items():
        transcript = EMBEDDED.transcript(render=chatml)
        transcript.add_message(user("Hi"))
        before = transcript.ids
        transcript.add_generated([*encoded("Good"), *other], ends_turn=ends_turn)
        transcript.add_message(user("And?"))
        behind = encoded(between + chatml([user("And?")], add_generation_prompt=True))
        assert transcript.ids == [*before, *encoded("Good"), *other, *behind]


def test_reading_changes_nothing() -> None:
    """Two messages in a row are one text to the template, whether somebody looks between them or not."""
    looked, not_looked = (EMBEDDED.transcript(render=chatml) for _ in range(2))
    for content in ("Hi", "there"):
        for transcript in (looked, not_looked):
            transcript.add_message(user(content))
        assert looked.ids == looked.ids
        assert looked.drift() == looked.drift()
    assert looked.ids == not_looked.ids == encoded(chatml([user("Hi"), user("there")], add_generation_prompt=True))
    looked.ids.append(7)
    assert looked.ids == not_looked.ids


def test_message_is_kept_as_it_was() -> None:
    """The caller may go on with the object."""
    transcript = EMBEDDED.transcript(render=chatml)
    message = user("Hi")
    transcript.add_message(message)
    message["content"] = "Something else"
    assert transcript.ids == encoded(chatml([user("Hi")], add_generation_prompt=True))


def test_text_is_added_as_it_is() -> None:
    """A prompt, what was generated, more text: the encoder's own special tokens only in front of all."""
    mistral = real_tokenizer("mistral-v1")
    transcript = mistral.transcript()
    transcript.add_text("Once upon")
    assert transcript.ids == mistral.encode("Once upon")
    assert transcript.ids[0] == mistral.encode("<s>", add_special_tokens=False)[0]
    transcript.add_generated(wrote := mistral.encode("a time", add_special_tokens=False))
    before = transcript.ids
    transcript.add_text("there was")
    assert transcript.ids[: len(before)] == before == [*mistral.encode("Once upon"), *wrote]
    assert mistral.decode(transcript.ids) == "Once upon a timethere was"  # no space that nobody wrote
    assert [part.kind for part in transcript.parts] == ["text", "generated", "text"]


def test_special_tokens_of_a_text_can_be_chosen() -> None:
    """With them in the middle, or without at the beginning."""
    mistral = real_tokenizer("mistral-v1")
    transcript = mistral.transcript()
    transcript.add_text("Once", add_special_tokens=False)
    assert transcript.ids == mistral.encode("Once", add_special_tokens=False)
    transcript.add_text("upon", add_special_tokens=True)
    assert transcript.ids == [*mistral.encode("Once", add_special_tokens=False), *mistral.encode("upon")]


def test_text_begins_the_answer_or_stands_in_it() -> None:
    """The beginning of an answer that is given, and a tool's result in the middle of one, are parts of the turn."""
    transcript = EMBEDDED.transcript(render=chatml)
    transcript.add_message(user("Hi"))
    transcript.add_text("Sure, ")
    transcript.add_generated(encoded("look"))
    transcript.add_text("[it rains]")
    transcript.add_message(user("And?"))
    assert EMBEDDED.decode(transcript.ids, skip_special_tokens=False) == chatml(
        [user("Hi"), assistant("Sure, look[it rains]"), user("And?")], add_generation_prompt=True
    )
    transcript = EMBEDDED.transcript(render=chatml)
    transcript.add_message(user("Hi"))
    transcript.add_text(f"No.{END}")
    transcript.add_message(user("Why?"))
    assert EMBEDDED.decode(transcript.ids, skip_special_tokens=False) == chatml(
        [user("Hi"), assistant("No."), user("Why?")], add_generation_prompt=True
    )


def test_cost_of_a_turn_does_not_grow_with_the_history() -> None:
    """Turn 2 and turn 50 render and encode as many characters."""
    counting = Counting()
    transcript = Transcript(counting, render=counting.render)
    costs = []
    for _ in range(50):
        counting.encoded = counting.rendered = 0
        transcript.add_message(user("A question of some length?"))
        assert transcript.ids
        transcript.add_generated([*encoded("An answer of some length."), *encoded(END)])
        costs.append((counting.encoded, counting.rendered))
    assert len(set(costs[1:])) == 1


@pytest.mark.parametrize("name", CHATS)
def test_transcript_of_a_real_model_equals_its_template(name: str) -> None:
    """If the model splits its words as the encoder does, three turns are what the template makes of the whole chat."""
    tokenizer, render = real_tokenizer(name), render_of(name)
    for instructions, end in product([[], [{"role": "system", "content": "Be brief."}]], ["", CHATS[name]]):
        transcript = tokenizer.transcript(render=render)
        chat: list[dict[str, Any]] = list(instructions)
        transcript.add_messages(chat)
        for number in range(3):
            chat.append(user(f"Question {number}, naïve 🦜?"))
            transcript.add_message(chat[-1])
            expected = tokenizer.encode(render(chat, add_generation_prompt=True), add_special_tokens=False)
            assert transcript.ids == expected
            chat.append(assistant(f"Answer {number}: yes."))
            transcript.add_generated(tokenizer.encode(chat[-1]["content"] + end, add_special_tokens=False))
        assert not transcript.drift()


def test_results_of_tools_follow_the_call_that_the_model_wrote() -> None:
    """Qwen 3, Llama 3 and DeepSeek say calls in three ways; what closes one is not written twice."""
    result = {"role": "tool", "name": "weather", "tool_call_id": "abcdefghi", "content": "sunny"}
    behind = {
        "qwen3": "\n<|im_start|>user\n<tool_response>\nsunny\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
        "llama3": "<|start_header_id|>tool<|end_header_id|>\n\nsunny<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        "deepseek-v3": "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>sunny<｜tool▁output▁end｜><｜tool▁outputs▁end｜>",
    }
    for name, expected in behind.items():
        tokenizer = real_tokenizer(name)
        for end in (CHATS[name], ""):
            transcript = tokenizer.transcript(render=render_of(name))
            transcript.add_message(user("How is the weather?"))
            transcript.add_generated(tokenizer.encode("<tool_call>weather</tool_call>" + end, add_special_tokens=False))
            before = len(transcript)
            transcript.add_message(result)
            missing = "" if end else CHATS[name]
            assert tokenizer.decode(transcript.ids[before:], skip_special_tokens=False) == missing + expected


def test_template_that_refuses_leaves_the_transcript_as_it_was() -> None:
    """Gemma wants roles to alternate; the transcript goes on with what it takes."""
    tokenizer, render = real_tokenizer("gemma3"), render_of("gemma3")
    transcript = tokenizer.transcript(render=render)
    transcript.add_message(user("Hi"))
    before = transcript.ids
    with pytest.raises(Exception, match="alternate"):
        transcript.add_message(user("Hi again"))
    assert transcript.ids == before
    transcript.add_generated(tokenizer.encode("Yes?", add_special_tokens=False))
    with pytest.raises(Exception, match="alternate"):
        transcript.add_messages([user("a"), user("b")])
    transcript.add_message(user("Bye"))
    assert "a<end_of_turn>" not in tokenizer.decode(transcript.ids, skip_special_tokens=False)


def test_instructions_that_a_template_gathers_in_front_are_refused_later() -> None:
    """DeepSeek writes all of them at the beginning: behind a turn they would be lost. Others show them where they stand."""
    reminder = {"role": "system", "content": "e"}
    for name in CHATS:
        tokenizer = real_tokenizer(name)
        transcript = tokenizer.transcript(render=render_of(name))
        transcript.add_messages([{"role": "system", "content": "Be brief."}, user("Hi")])
        transcript.add_generated(tokenizer.encode("Yes?" + CHATS[name], add_special_tokens=False))
        before = transcript.ids
        for messages in ([reminder, user("Bye")], [user("Bye"), reminder], [reminder]):
            if name == "gemma3":  # knows none but the first message
                continue
            if name == "deepseek-v3":
                with pytest.raises(detok.OptionError, match="give it at the beginning of the chat"):
                    transcript.add_messages(messages)
                assert transcript.ids == before
            else:
                again = tokenizer.transcript(render=render_of(name))
                again.add_generated([*before, *tokenizer.eos_token_ids[:1]])
                again.add_messages(messages)
                assert tokenizer.encode("system", add_special_tokens=False)[0] in again.ids[len(before) :]


@pytest.mark.parametrize("message", [{"content": "no role"}, {"role": 5, "content": ""}, "text", None])
def test_what_is_no_message_is_named(message: Any) -> None:
    """All or none: the good one before it is not added either."""
    transcript = EMBEDDED.transcript(render=chatml)
    with pytest.raises(detok.OptionError, match=r"^message="):
        transcript.add_messages([user("Hi"), message])
    assert transcript.ids == []


def test_message_without_a_template_is_refused() -> None:
    """And says what to do instead."""
    with pytest.raises(detok.OptionError, match="add_text"):
        Transcript(EMBEDDED).add_message(user("Hi"))


def test_what_are_no_ids_is_refused() -> None:
    """Nothing is added."""
    transcript = EMBEDDED.transcript(render=chatml)
    transcript.add_message(user("Hi"))
    before = transcript.ids
    with pytest.raises(detok.TokenTypeError):
        transcript.add_generated([1, "2"])  # type: ignore[list-item]  # that is the point
    assert transcript.ids == before


@given(st.lists(st.tuples(st.text(max_size=8), st.lists(st.integers(0, 4000), max_size=8), st.booleans()), max_size=4))
def test_ids_only_grow_and_keep_what_was_generated(turns: list[tuple[str, list[int], bool]]) -> None:
    """Whatever is asked and answered: what was sent is a prefix of what will be sent, and each answer stands where it came."""
    transcript = EMBEDDED.transcript(render=chatml)
    sent: list[int] = []
    for question, answer, ended in turns:
        transcript.add_message(user(question))
        assert transcript.ids[: len(sent)] == sent
        sent = [*transcript.ids, *answer, *(encoded(END) if ended else [])]
        transcript.add_generated(sent[len(transcript) :])
        assert transcript.ids == sent
    assert [part.start for part in transcript.parts] == [0, *(part.end for part in transcript.parts)][: len(transcript.parts)]


def test_encoder_that_reads_special_tokens_can_be_given() -> None:
    """For tokenizers whose encode takes them for text; what the template writes, and drift, go through it."""

    class Blind(Counting):
        """Spells special tokens out."""

        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            return [token_id for character in text for token_id in encoded(character)]

    transcript = Transcript(Blind(), render=chatml, encode=encoded)
    transcript.add_message(user("Hi"))
    transcript.add_generated([*encoded("Good day"), *encoded(END)])
    transcript.add_message(user("And?"))
    chat = [user("Hi"), assistant("Good day"), user("And?")]
    assert transcript.ids == encoded(chatml(chat, add_generation_prompt=True))
    assert not transcript.drift()


@pytest.mark.parametrize("name", ["qwen3", "llama3"])
def test_own_template_is_the_default(name: str) -> None:
    """A tokenizer that has a chat template needs nothing else: the ids of its transcript are those of `encode_chat`."""
    tokenizer = real_tokenizer(name)
    if not tokenizer.chat_templates:
        pytest.skip(f"{name} is fetched without a chat template")
    transcript = tokenizer.transcript()
    chat = [user("Hi"), assistant("Hello there."), user("Bye")]
    transcript.add_message(chat[0])
    assert transcript.ids == tokenizer.encode_chat(chat[:1])
    transcript.add_generated(tokenizer.encode("Hello there.", add_special_tokens=False) + list(tokenizer.eos_token_ids[:1]))
    transcript.add_message(chat[2])
    assert tokenizer.decode(transcript.ids).count("Hello there.") == 1
    assert transcript.ids[: len(tokenizer.encode_chat(chat[:1]))] == tokenizer.encode_chat(chat[:1])


def test_transcript_is_never_safe() -> None:
    """What would have to be disguised is refused, not silently left open."""
    with pytest.raises(detok.OptionError, match="safe=True"):
        EMBEDDED.transcript(safe=True)
