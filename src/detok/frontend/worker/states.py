"""The requests that a worker has: a bounded table, the least recently used first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from ...core.decoder import Decoder
from ...core.request.batch import BatchDecoder
from ...core.request.options import RequestOptions
from ...core.request.output import RequestOutput
from ...core.request.request import RequestDecoder
from ...errors import RequestFinished
from .payload import row_of
from .wire import Open, decode_plain, encode_plain

__all__ = ["States"]

# Sets of options that are worked out once for all requests that have them. A server has a handful; more cost time, not memory.
MAX_KEPT = 1024

Made = TypeVar("Made")


class States:
    """
    Args:
        decoder: Whose ids they are.

    Keys are integers; whose they are is the caller's matter.
    """

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._batch = BatchDecoder(decoder)
        self._used: OrderedDict[int, float] = OrderedDict()
        """When each was last used, in that order."""
        self._options: dict[bytes, RequestOptions] = {}

    def __len__(self) -> int:
        return len(self._used)

    def __contains__(self, key: int) -> bool:
        return key in self._used

    def open(self, key: int, opening: Open, now: float) -> None:
        """
        Take a request: a new one, or one that goes on. What its earlier rows give is thrown away.

        Raises:
            DuplicateRequest: The key is in use.
            DetokError: What was asked for is not possible.
        """
        if opening.snapshot is None:
            self._batch.open(key, opening.prompt_ids, self._asked(bytes(opening.options)))
        else:
            self._batch.adopt(key, self._restored(opening.snapshot))
        self._used[key] = now
        for index, tokens in enumerate(opening.tokens):
            (output,) = self._batch.step([(key, *row_of(tokens, opening.extras.get(index)))])
            if output.finish_reason is not None:
                del self._used[key]
                raise output.error or RequestFinished(output.finish_reason)

    def restore(self, key: int, snapshot: bytes, now: float) -> None:
        """Take back what `save` gave. Errors as `open`."""
        self._batch.adopt(key, self._restored(snapshot))
        self._used[key] = now

    def step(self, keys: Sequence[int], rows: Iterable[tuple[Any, ...]], now: float) -> list[RequestOutput]:
        """Take a step; arguments and result as those of `BatchDecoder.step`. The keys are those of the rows."""
        used, touch = self._used, self._used.move_to_end
        for key in keys:
            if key in used:
                used[key] = now
                touch(key)
        outputs = self._batch.step(rows)
        for key, output in zip(keys, outputs, strict=True):
            if output.finish_reason is not None:
                used.pop(key, None)
        return outputs

    def save(self, key: int) -> tuple[int, bytes]:
        """Return how many ids a request has taken, and its snapshot."""
        request = self._batch.request(key)
        return request.num_tokens, encode_plain(request.snapshot())

    def drop(self, key: int) -> None:
        """Forget a request, if it is there."""
        if self._used.pop(key, None) is not None:
            self._batch.release(key)

    def oldest(self) -> tuple[int, float] | None:
        """The key that was not used for the longest time, and when it was."""
        return next(iter(self._used.items()), None)

    def holding(self) -> int:
        """How many requests hold something back now. Looks at each."""
        return sum(bool(self._batch.request(key).held_because) for key in self._used)

    def __iter__(self) -> Iterator[int]:
        return iter(self._used)

    def _restored(self, snapshot: bytes) -> RequestDecoder:
        return self._decoder.restore_request(decode_plain(snapshot))

    def _asked(self, options: bytes) -> RequestOptions:
        """Return options as the wire has them, which are looked at once."""
        return _kept(self._options, options, lambda: RequestOptions.of(decode_plain(options)))


def _kept(kept: dict[Any, Made], key: Any, make: Callable[[], Made]) -> Made:
    """Return what was made for a key; after so many the memory begins again."""
    made = kept.get(key)
    if made is None:
        made = make()
        if len(kept) >= MAX_KEPT:
            kept.clear()
        kept[key] = made
    return made
