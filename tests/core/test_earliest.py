"""
Law 3, proven: after each step exactly that is out which no continuation could change.

For a small vocabulary all lists of ids up to a length are decoded by the tokenizer's own library. What is certain after a list is
then no matter of opinion: it is the longest common prefix of the texts of all lists that continue it, itself included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

import detok
from detok.core.cleanup import TRANSFORMERS_CLEANUP, clean_up
from detok.core.texts import common_prefix
from tests.support.handmade import CLEANED, HANDMADE, STRIPPED, cleaned, handmade, stripped

MAX_LISTS = 60_000
"""So many lists of the greatest length are decoded at most for each tokenizer."""

LOOK_AHEAD = 3
"""So many ids, at the least, lie beyond the lists that are judged."""

Ids = tuple[int, ...]


def certain_texts(decode: Callable[[Sequence[int]], str], ids: Sequence[int], length: int) -> dict[Ids, str]:
    """For each list of up to ``length`` ids the text that all lists of up to that length which begin with it have in common."""
    certain: dict[Ids, str] = {}

    def visit(prefix: Ids) -> str:
        texts = [decode(prefix)]
        if len(prefix) < length:
            texts += [visit((*prefix, token_id)) for token_id in ids]
        certain[prefix] = common_prefix(texts)
        return certain[prefix]

    visit(())
    return certain


def given_out(stream: detok.TextStream, ids: Sequence[int], length: int) -> Iterator[tuple[Ids, str]]:
    """For each list of up to ``length`` ids the text that is out after it, each stream going on from the snapshot of another."""
    queue: list[tuple[Ids, str, detok.TextStream]] = [((), "", stream)]
    for prefix, text, before in queue:
        yield prefix, text
        if len(prefix) < length:
            for token_id in ids:
                after = before.copy()
                queue.append(((*prefix, token_id), text + after.step(token_id), after))


def longest(count: int) -> int:
    """The greatest length of which there are no more lists than `MAX_LISTS`."""
    length = 1
    while count ** (length + 1) <= MAX_LISTS:
        length += 1
    return length


def assert_earliest(tokenizer: detok.Tokenizer, decode: Callable[[Sequence[int]], str], clean_up: bool = False) -> None:
    """What is out after each step is the longest common prefix of all texts that may still come."""
    length = longest(len(tokenizer.ids))
    certain = certain_texts(decode, tokenizer.ids, length)
    stream = tokenizer.stream(skip_special_tokens=False, clean_up_tokenization_spaces=clean_up)
    for ids, text in given_out(stream, tokenizer.ids, length - LOOK_AHEAD):
        if ids:
            assert text == certain[ids], [tokenizer.piece(token_id).text for token_id in ids]


@pytest.mark.parametrize("name", HANDMADE)
def test_step_gives_out_all_that_is_certain(name: str) -> None:
    """Every decoder of the library, and rows of them."""
    library, tokenizer = handmade(name)
    assert_earliest(tokenizer, lambda ids: str(library.decode(ids, skip_special_tokens=False)))


@pytest.mark.parametrize("name", CLEANED)
def test_step_gives_out_all_that_is_certain_under_clean_up(name: str) -> None:
    """Ten replacements over the whole text, behind each way of joining tokens."""
    library, tokenizer = cleaned(name)

    def decode(ids: Sequence[int]) -> str:
        return clean_up(str(library.decode(ids, skip_special_tokens=False)), TRANSFORMERS_CLEANUP)

    assert_earliest(tokenizer, decode, clean_up=True)


@pytest.mark.parametrize(("start", "stop"), [(1, 0), (0, 1), (0, 2), (2, 1)])
@pytest.mark.parametrize("name", STRIPPED)
def test_step_gives_out_all_that_is_certain_under_strip(name: str, start: int, stop: int) -> None:
    """Strip behind each way of joining; the library's own panics on short texts, so it is done here."""
    library, tokenizer = stripped(name, start, stop)

    def decode(ids: Sequence[int]) -> str:
        text = str(library.decode(ids, skip_special_tokens=False))
        leading = min(start, len(text) - len(text.lstrip(" ")))
        text = text[leading:]
        trailing = min(stop, len(text) - len(text.rstrip(" ")))
        return text[: len(text) - trailing]

    assert_earliest(tokenizer, decode)
