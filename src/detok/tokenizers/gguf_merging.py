"""
Text to ids for the GGUF vocabularies that are spelled as SentencePiece's are: llama (pairs merged by score) and gemma4 (by rank).

As ``llm_tokenizer_spm`` and ``llm_tokenizer_bpe`` of llama.cpp's ``src/llama-vocab.cpp`` do it, which is SentencePiece's own way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

from .reading import utf8

__all__ = ["MergingEncoder", "merge"]

Priority = Callable[[bytes, bytes], float | None]
"""How early two neighbours are merged, the smallest first; None if they never are."""


class MergingEncoder:
    """
    Merges the characters of a text to entries.

    Args:
        ids: The entries with their places.
        priority: Which neighbours are merged first.
        added: Entries that are found in a text as they stand, before anything else is done with it.
        eats_spaces: Those of them that swallow the white space behind them.
        prefixes_space: Whether a text gets a space in front, and again behind each added entry.
        by_lines: Whether line breaks and what stands between them are merged apart, and breaks that are an entry are taken whole.
    """

    def __init__(
        self,
        ids: Mapping[bytes, int],
        priority: Priority,
        *,
        added: Sequence[bytes],
        eats_spaces: Sequence[bytes] = (),
        prefixes_space: bool = False,
        by_lines: bool = False,
    ) -> None:
        self._ids = ids
        self._priority = priority
        self._prefix = b" " if prefixes_space else b""
        self._by_lines = by_lines
        self._entries = sorted(added, key=len, reverse=True)
        self._eats_spaces = frozenset(eats_spaces)
        self._added = self._pattern(frozenset())

    def _pattern(self, without: frozenset[bytes]) -> re.Pattern[bytes]:
        read = [entry for entry in self._entries if entry not in without]
        found = [b"(%b)%b" % (re.escape(entry), _SPACES if entry in self._eats_spaces else b"") for entry in read]
        return re.compile(b"|".join(found) or b"(?!)")

    def __call__(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return self._encode(utf8(text), self._added)

    def plain(self, text: str, *, control: frozenset[str], before: str | None, after: str | None) -> list[int]:
        """Encode a part of a text; see `PlainEncoder`. Behind an added entry a text begins anew."""
        data = utf8(text)
        if before and before.encode() in self._eats_spaces:
            data = data.lstrip(b" \t\n\v\f\r")
        return self._encode(data, self._pattern(frozenset(map(str.encode, control))))

    def _encode(self, data: bytes, added: re.Pattern[bytes]) -> list[int]:
        at, ids = 0, list[int]()
        for match in added.finditer(data):
            ids += self._merged(data[at : match.start()])
            ids.append(self._ids[match[match.lastindex or 0]])
            at = match.end()
        return ids + self._merged(data[at:])

    def _merged(self, data: bytes) -> list[int]:
        if not data:
            return []
        data = (self._prefix + data).replace(b" ", "▁".encode())
        words = _LINES.findall(data) if self._by_lines else [data]
        return [token_id for word in words for symbol in self._symbols(word) for token_id in self._ids_of(symbol)]

    def _symbols(self, word: bytes) -> list[bytes]:
        is_entry = self._by_lines and word in self._ids and not word.strip(b"\n")
        return [word] if is_entry else merge(word, self._priority)

    def _ids_of(self, symbol: bytes) -> list[int]:
        """The id of what merging left over; of a character that has none, those of its bytes, as far as there are any."""
        whole = self._ids.get(symbol)
        if whole is not None:
            return [whole]
        found = [self._ids.get(b"<0x%02X>" % byte, self._ids.get(bytes([byte]))) for byte in symbol]
        return [token_id for token_id in found if token_id is not None]


def merge(word: bytes, priority: Priority) -> list[bytes]:
    """
    Merge neighbours, beginning with single characters: the best pair of all first, of equal ones the leftmost.

    Time is O(n log n).

    >>> ranks = {(b"a", b"b"): 0, (b"a", b"a"): 1}
    >>> merge(b"aab", lambda left, right: ranks.get((left, right)))
    [b'a', b'ab']
    """
    symbols: list[bytes] = _CHARACTERS.findall(word)
    before = list(range(-1, len(symbols) - 1))
    after = [*range(1, len(symbols)), -1]

    def pair(left: int) -> Iterator[tuple[float, int, int]]:
        """The pair that begins at ``left``, if it is ever merged; its size tells later whether it is still the same."""
        right = after[left]
        if left >= 0 and right >= 0:
            rank = priority(symbols[left], symbols[right])
            if rank is not None:
                yield rank, left, len(symbols[left]) + len(symbols[right])

    queue = [entry for left in range(len(symbols)) for entry in pair(left)]
    heapify(queue)
    while queue:
        _, left, size = heappop(queue)
        right = after[left]
        if not symbols[left] or right < 0 or len(symbols[left]) + len(symbols[right]) != size:
            continue
        symbols[left] += symbols[right]
        symbols[right] = b""
        after[left] = after[right]
        if after[left] >= 0:
            before[after[left]] = left
        for entry in (*pair(before[left]), *pair(left)):
            heappush(queue, entry)
    return [symbol for symbol in symbols if symbol]


_CHARACTERS = re.compile(rb"[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]*")
_LINES = re.compile(rb"[^\n]+|\n+")
_SPACES = rb"[ \t\n\v\f\r]*"
