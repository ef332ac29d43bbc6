"""The laws for a tokenizer of whatever kind, judged by its own library, and law 3 by brute force over a few of its ids."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from functools import partial
from typing import SupportsIndex

from hypothesis import strategies as st

import detok
from detok.inspection import check
from tests.support import earliest
from tests.support.laws import cuts, id_lists, split

TEXTS = (
    "Hello, world!  Two spaces.",
    "naïve café — déjà vu",
    "日本語のテキスト、한국어",
    "👩‍👩‍👧 🦜\n\n\tx = 1;",
    "a\u0301\ufffd",
)


def assert_laws(tokenizer: detok.Tokenizer, data: st.DataObject) -> None:
    """Laws 1, 2, 4, 5 and 9 on one list of ids, in one split, with special tokens or without."""
    ids, steps, skip = data.draw(id_lists(tokenizer)), data.draw(cuts), data.draw(st.booleans())

    def judge(some: Sequence[int]) -> str:
        return tokenizer.library.decode(some, skip_special_tokens=skip)

    whole = judge(ids)
    assert tokenizer.decode(ids, skip) == whole
    stream, text, taken = tokenizer.stream(skip_special_tokens=skip), "", 0
    for step in split(ids, steps):
        text += stream.extend(step)
        taken += len(step)
        assert judge(ids[:taken]).startswith(text)
        assert whole.startswith(text)
        stream = tokenizer.restore(json.loads(json.dumps(stream.snapshot())))
    assert text + stream.finish() == whole
    assert (stream.held, stream.finish()) == ("", "")
    cut = data.draw(st.integers(0, len(ids)))
    primed, before = tokenizer.stream(ids[:cut], skip_special_tokens=skip), judge(ids[:cut])
    text = "".join(map(primed.step, ids[cut:])) + primed.finish()
    assert before + text == whole if whole.startswith(before) else whole.endswith(text)


def assert_token_bytes_tile(tokenizer: detok.Tokenizer, first: int, data: st.DataObject) -> None:
    """Law 10: behind a word the text is the bytes of the ids, one after another, where they are valid."""
    known = [token_id for token_id in data.draw(id_lists(tokenizer)) if tokenizer.vocabulary.piece(token_id) is not None]
    joined = b"".join(map(tokenizer.token_bytes, [first, *known]))
    if joined.decode(errors="ignore").encode() == joined:
        assert tokenizer.decode([first, *known], False).lstrip(" ") == joined.decode().lstrip(" ")


def assert_earliest(tokenizer: detok.Tokenizer, ids: Sequence[int], *, skip_special_tokens: bool) -> None:
    """Law 3 over all lists of these ids, by the library's decode."""
    judge = partial(tokenizer.library.decode, skip_special_tokens=skip_special_tokens)
    earliest.assert_earliest(tokenizer, judge, ids, skip_special_tokens=skip_special_tokens)


def assert_check_finds_nothing(tokenizer: detok.Tokenizer, lists: int) -> None:
    """The certificate, over lists that are made to hurt."""
    certificate = check(tokenizer, lists=lists)
    assert certificate.ok, certificate.differences
    assert not certificate.library_failures


def assert_pickled_is_the_same(tokenizer: detok.Tokenizer) -> None:
    """A tokenizer goes to another process whole: what it decodes, encodes and says."""
    twin = pickle.loads(pickle.dumps(tokenizer))
    ids = tokenizer.encode(TEXTS[0])
    assert (twin.fingerprint, twin.description) == (tokenizer.fingerprint, tokenizer.description)
    assert (twin.encode(TEXTS[0]), twin.decode(ids, False)) == (ids, tokenizer.decode(ids, False))
    for skip in (True, False):
        assert twin.library.decode(ids, skip_special_tokens=skip) == tokenizer.library.decode(ids, skip_special_tokens=skip)


class CountingPrompt:
    """A prompt that counts how many of its ids are read."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids, self.read = ids, 0

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, place: int) -> int:
        self.read += 1
        return self.ids[place]

    def __iter__(self) -> Iterator[SupportsIndex]:
        raise AssertionError("a prompt with a length is not copied")


def assert_priming_reads_only_the_end(tokenizer: detok.Tokenizer, ids: Sequence[int]) -> None:
    """Law 5: however long a prompt is, a few ids of it are looked at."""
    prompt = CountingPrompt([*ids] * (20_000 // len(ids)))
    text = tokenizer.stream(prompt_ids=prompt).extend(ids)
    assert prompt.read <= 8 + 2 * len(ids)
    assert tokenizer.library.decode([*ids, *ids], skip_special_tokens=True).endswith(text)


def mutated(whole: bytes, data: st.DataObject) -> bytes:
    """A file with a stretch of bytes cut, doubled or changed, or one that ends early."""
    start = data.draw(st.integers(0, len(whole)) | st.integers(0, 2000))
    end = min(len(whole), start + data.draw(st.integers(0, 50)))
    middle = data.draw(st.sampled_from([b"", whole[start:end] * 2]) | st.binary(max_size=8))
    return whole[:start] + middle + (b"" if data.draw(st.booleans()) and data.draw(st.booleans()) else whole[end:])
