"""The laws of the design, each a property, each over every kind of tokenizer: those made by hand and the real ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from tests.support.laws import SUBJECTS, any_id, cuts, id_lists, judge, split, subject

TOKENS_ALONE = [
    name
    for name in SUBJECTS
    if name.partition(": ")[2] in ("ByteLevel", "ByteLevel 4", "Mistral", "Gemma", "Metaspace", "Metaspace never", "no decoder")
    or name.startswith("handmade: WordPiece")
    or ": " not in name
]
"""Subjects without rules over joined text, but for a Strip at its beginning."""

each_subject = pytest.mark.parametrize("name", SUBJECTS)


@each_subject
@given(data=st.data())
def test_stream_equals_one_shot(name: str, data: st.DataObject) -> None:
    """Law 1: deltas and finish together are the library's decode, for every split, with specials and without."""
    tokenizer = subject(name)
    ids, steps, skip = data.draw(id_lists(tokenizer)), data.draw(cuts), data.draw(st.booleans())
    stream = tokenizer.stream(skip_special_tokens=skip)
    text = "".join(map(stream.extend, split(ids, steps))) + stream.finish()
    assert text == judge(tokenizer, ids, skip_special_tokens=skip)
    assert text == tokenizer.decode(ids, skip_special_tokens=skip)


@each_subject
@given(data=st.data())
def test_text_is_never_taken_back(name: str, data: st.DataObject) -> None:
    """Law 2: what is out is a prefix of whatever the whole becomes, wherever the stream may end."""
    tokenizer = subject(name)
    ids = data.draw(id_lists(tokenizer))
    stream, text = tokenizer.stream(), ""
    for place, token_id in enumerate(ids):
        text += stream.step(token_id)
        for end in (place + 1, len(ids)):
            assert judge(tokenizer, ids[:end], skip_special_tokens=True).startswith(text)


@each_subject
@given(data=st.data())
def test_finish_gives_out_everything_once(name: str, data: st.DataObject) -> None:
    """Law 4: after finish nothing is held, a second one is empty, and a step raises."""
    tokenizer = subject(name)
    ids = data.draw(id_lists(tokenizer))
    stream = tokenizer.stream()
    text = stream.extend(ids) + stream.finish()
    assert text == judge(tokenizer, ids, skip_special_tokens=True)
    assert (stream.held, stream.held_because, stream.finished, stream.finish()) == ("", "", True, "")
    for refused in ([1], [1 << 50], []):
        with pytest.raises(detok.StreamFinished, match="takes no more ids"):
            stream.extend(refused)
    with pytest.raises(detok.StreamFinished, match="takes no more ids"):
        stream.step(1)


@each_subject
@given(data=st.data())
def test_prompt_is_context_only(name: str, data: st.DataObject) -> None:
    """Law 5: where the prompt's text is a prefix of the whole, the stream gives the rest; elsewhere never more than an ending."""
    tokenizer = subject(name)
    prompt, ids, skip = data.draw(id_lists(tokenizer)), data.draw(id_lists(tokenizer)), data.draw(st.booleans())
    stream = tokenizer.stream(prompt_ids=prompt, skip_special_tokens=skip)
    text = stream.extend(ids) + stream.finish()
    before = judge(tokenizer, prompt, skip_special_tokens=skip)
    whole = judge(tokenizer, prompt + ids, skip_special_tokens=skip)
    if whole.startswith(before):
        assert before + text == whole
    else:
        assert whole.endswith(text)


@each_subject
@given(data=st.data())
def test_priming_needs_only_the_end_of_a_prompt(name: str, data: st.DataObject) -> None:
    """Law 5: more text in front of a prompt that ends in the same ids changes nothing in the stream's own text."""
    tokenizer = subject(name)
    start, prompt, ids = (data.draw(id_lists(tokenizer, 6)) for _ in range(3))
    whole = judge(tokenizer, start + prompt + ids, skip_special_tokens=True)
    before = judge(tokenizer, start + prompt, skip_special_tokens=True)
    stream = tokenizer.stream(prompt_ids=iter(start + prompt))
    text = stream.extend(ids) + stream.finish()
    assert whole.endswith(text)
    assert not whole.startswith(before) or before + text == whole


@each_subject
@given(data=st.data())
def test_snapshot_goes_on_exactly(name: str, data: st.DataObject) -> None:
    """Law 9: a stream that is kept as JSON after any step, and restored, gives what it would have given."""
    tokenizer = subject(name)
    ids, cut, skip = data.draw(id_lists(tokenizer)), data.draw(st.integers(0, 12)), data.draw(st.booleans())
    stream = tokenizer.stream(prompt_ids=ids[:cut:2], skip_special_tokens=skip, byte_fallback="exact")
    kept: list[str] = [stream.extend(ids[:cut])]
    restored = tokenizer.restore(json.loads(json.dumps(stream.snapshot())))
    assert (restored.held, restored.held_because) == (stream.held, stream.held_because)
    assert restored.snapshot() == stream.snapshot()
    for token_id in ids[cut:]:
        kept.append(stream.step(token_id))
        assert restored.step(token_id) == kept[-1]
    assert restored.finish() == stream.finish()


@each_subject
@given(data=st.data())
def test_eager_and_exact_agree_on_valid_text(name: str, data: st.DataObject) -> None:
    """Both byte-fallback modes give the same text where it is valid; the eager one holds three bytes at most."""
    tokenizer = subject(name)
    ids = data.draw(id_lists(tokenizer))
    eager = tokenizer.stream(byte_fallback="eager")
    text = ""
    for token_id in ids:
        text += eager.step(token_id)
        assert eager.held_because != "open byte run"
        if eager.held_because == "incomplete character" and name in TOKENS_ALONE:
            assert isinstance(eager.held, bytes)
            assert len(eager.held) <= 3
    text += eager.finish()
    known = [token_id for token_id in ids if tokenizer.vocabulary.piece(token_id) and token_id not in tokenizer.special_ids]
    if "\ufffd" not in b"".join(map(tokenizer.token_bytes, known)).decode(errors="replace"):
        assert text == tokenizer.decode(ids)


@each_subject
@given(data=st.data())
def test_refused_id_leaves_the_stream_as_it_was(name: str, data: st.DataObject) -> None:
    """Law 2: with unknown_ids="error" an id that is not there raises, and nothing of the step that had it was taken."""
    tokenizer = subject(name)
    known = [token_id for token_id in data.draw(id_lists(tokenizer)) if tokenizer.vocabulary.piece(token_id) is not None]
    unknown = data.draw(st.sampled_from([tokenizer.vocab_size, -1, -tokenizer.vocab_size, 1 << 33]))
    stream = tokenizer.stream(unknown_ids="error")
    text = ""
    for token_id in known:
        before = stream.snapshot()
        with pytest.raises(detok.UnknownTokenId, match=f"no id {unknown} at position 1"):
            stream.extend([token_id, unknown])
        with pytest.raises(detok.UnknownTokenId, match=f"no id {unknown}$"):
            stream.step(unknown)
        assert stream.snapshot() == before
        text += stream.step(token_id)
    assert text + stream.finish() == judge(tokenizer, known, skip_special_tokens=True)


@each_subject
@given(data=st.data())
def test_no_list_of_integers_raises(name: str, data: st.DataObject) -> None:
    """Law 2: any integers at all are ids."""
    tokenizer = subject(name)
    ids = data.draw(st.lists(st.integers() | any_id(tokenizer), max_size=10))
    for options in ({}, {"unknown_ids": "replace"}, {"spaces_between_special_tokens": False, "skip_special_tokens": False}):
        chosen: dict[str, Any] = dict(options)
        stream = tokenizer.stream(prompt_ids=ids, **chosen)
        text = stream.extend(ids) + stream.finish()
        assert isinstance(text, str)


@pytest.mark.parametrize("name", TOKENS_ALONE)
@given(data=st.data())
def test_token_bytes_tile_the_text(name: str, data: st.DataObject) -> None:
    """Law 10: behind a first word, the text is the bytes of the ids one after another, whatever stands beside them."""
    tokenizer = subject(name)
    drawn = data.draw(id_lists(tokenizer))
    known = [token_id for token_id in drawn if tokenizer.vocabulary.piece(token_id) is not None]
    first = next(i for i in tokenizer.ids if tokenizer.token_text(i).strip(" �") and tokenizer.token_text(i).isascii())
    text = tokenizer.decode([first, *known], skip_special_tokens=False, byte_fallback="eager")
    begin = tokenizer.decode([first], skip_special_tokens=False)
    assert text == (begin.encode() + b"".join(map(tokenizer.token_bytes, known))).decode(errors="replace")
    for token_id in known:
        assert tokenizer.token_text(token_id) == tokenizer.token_bytes(token_id).decode(errors="replace")
