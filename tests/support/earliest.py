"""Law 3 by brute force: what is certain after a list of ids, by decoding all that may follow it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import detok
from detok.core.decoding.texts import common_prefix

MAX_LISTS = 60_000
"""So many lists of the greatest length are decoded at most for each tokenizer."""

LOOK_AHEAD = 3
"""So many ids, at the least, lie beyond the lists that are judged."""

Ids = tuple[int, ...]


def certain_texts(decode: Callable[[Sequence[int]], str], ids: Sequence[int], length: int) -> dict[Ids, str]:
    """For each list of fewer than ``length`` ids the text that all lists up to that length which begin with it have in common."""
    certain: dict[Ids, str] = {}

    def visit(prefix: Ids) -> str:
        if len(prefix) == length:
            return decode(prefix)
        certain[prefix] = common_prefix([decode(prefix), *(visit((*prefix, token_id)) for token_id in ids)])
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


def assert_earliest(
    tokenizer: detok.Tokenizer,
    decode: Callable[[Sequence[int]], str],
    ids: Sequence[int] | None = None,
    *,
    skip_special_tokens: bool = False,
    clean_up: bool | None = None,
) -> None:
    """Over all lists of these ids, by default of all there are, exactly that is out which all that may follow have in common."""
    ids = tokenizer.ids if ids is None else ids
    length = longest(len(ids))
    certain = certain_texts(decode, ids, length)
    stream = tokenizer.stream(skip_special_tokens=skip_special_tokens, clean_up_tokenization_spaces=clean_up)
    for taken, text in given_out(stream, ids, length - LOOK_AHEAD):
        if taken:
            assert text == certain[taken], [tokenizer.piece(token_id).text for token_id in taken]
