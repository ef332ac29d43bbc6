"""
Prompts to ids beside an event loop.

A short prompt is encoded at once, on the loop: to hand it to a thread would take longer. A long one goes to a thread, where the
encoder works without the interpreter lock. While all threads are busy requests wait in a bounded queue, and go on together with
those that have the same options.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Protocol, Self

from ..errors import EncoderClosed, OptionError, UsageError
from .lengths import Frame, LengthLimits, Truncation, TruncationSide, frame_of
from .waiting import Request, Waiting

__all__ = ["AsyncEncoder", "BatchEncoder"]

DEFAULT_INLINE_BYTES = 2048
DEFAULT_MAX_QUEUE = 1024
DEFAULT_MAX_BATCH_SIZE = 32

BATCH_OF_INLINE = 8
"""
The bytes of a batch, as a multiple of what is encoded on the loop: some four milliseconds of work.

To join requests saves the way to a thread and back for each, some 50 us. Beside the work on a long text that is nothing, while
those that were joined wait for one another, and other threads have less to do.
"""

Outcome = list[int] | BaseException


class BatchEncoder(Protocol):
    """A tokenizer, as far as it is needed here; threads call it at the same time."""

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]: ...
    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[list[int]]: ...


class AsyncEncoder:
    """
    Encodes for one event loop. Close it, or use it with ``async with``.

    Args:
        tokenizer: Encodes once while this is made, so that whatever it does at the first time is not done while somebody waits.
        inline_bytes: So many bytes of UTF-8 are encoded on the loop in each of its turns, 0 for none; ``tokenizer.async_encoder``
            knows how many its encoder does in half a millisecond.
        max_batch_size: Of requests that wait, so many go on together.
        max_batch_bytes: But not more bytes of UTF-8, unless one text alone has more; by default 8 times those that are encoded on
            the loop.
        max_wait: Seconds that a request may be kept for a fuller batch while others are in work. When nothing is in work, nothing
            is waited for.
        max_queue: So many may wait.
        max_workers: Threads; by default one for each core.
        max_characters, max_tokens: See `LengthLimits`.
        executor: Threads of somebody else, which stay open.

    Raises:
        OptionError: One of them cannot be.
        EncodeUnsupported: The tokenizer does not encode.
    """

    def __init__(
        self,
        tokenizer: BatchEncoder,
        *,
        inline_bytes: int = DEFAULT_INLINE_BYTES,
        max_batch_size: int = DEFAULT_MAX_BATCH_SIZE,
        max_batch_bytes: int | None = None,
        max_wait: float = 0.0,
        max_queue: int = DEFAULT_MAX_QUEUE,
        max_workers: int | None = None,
        max_characters: int | None = None,
        max_tokens: int | None = None,
        executor: Executor | None = None,
    ) -> None:
        workers = os.cpu_count() or 1 if max_workers is None else max_workers
        _check("inline_bytes", inline_bytes, least=0)
        if max_batch_bytes is None:
            max_batch_bytes = BATCH_OF_INLINE * (inline_bytes or DEFAULT_INLINE_BYTES)
        sizes = {"max_batch_size": max_batch_size, "max_batch_bytes": max_batch_bytes}
        for option, value in {**sizes, "max_queue": max_queue, "max_workers": workers}.items():
            _check(option, value, least=1)
        if not isinstance(max_wait, (int, float)) or not 0 <= max_wait < float("inf"):
            raise OptionError(option="max_wait", value=max_wait, accepted="it is a number of seconds, 0 or more")
        self._limits = LengthLimits(max_characters=max_characters, max_tokens=max_tokens)
        self._tokenizer = tokenizer
        self._frame = frame_of(tokenizer)
        self._inline_bytes = self._inline_left = inline_bytes
        self._max_batch_bytes, self._max_wait, self._max_workers = max_batch_bytes, max_wait, workers
        self._waiting = Waiting(max_size=max_queue, max_batch_size=max_batch_size, max_batch_bytes=max_batch_bytes)
        self._own_executor = None if executor is not None else ThreadPoolExecutor(workers, thread_name_prefix="detok-encode")
        self._executor: Executor | None = executor or self._own_executor
        self._jobs: set[asyncio.Future[list[Outcome]]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """So many requests wait for a thread."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """So many batches are in work."""
        return len(self._jobs)

    async def encode(
        self,
        text: str,
        *,
        add_special_tokens: bool = True,
        truncate_prompt_tokens: int | None = None,
        truncation_side: TruncationSide = "left",
    ) -> list[int]:
        """
        Return the ids of a text.

        Args:
            text: The prompt.
            add_special_tokens: Whether the encoder adds those of its template.
            truncate_prompt_tokens: Cut the ids to so many; the special tokens that the encoder adds stay.
            truncation_side: Where to cut.

        Raises:
            PromptTooLong: Before it is encoded if it has too many characters, behind that if it has too many tokens.
            EncoderBusy: Too many wait.
            EncoderClosed: There is no more encoding here.
            OptionError: The text cannot be encoded, or an option cannot be.
        """
        self._limits.check_text(text)
        cut = None if truncate_prompt_tokens is None else Truncation(truncate_prompt_tokens, truncation_side)
        if self._closed:
            raise EncoderClosed
        self._serve(asyncio.get_running_loop())
        size = self._size(text)
        if self._takes_inline(size):
            ids = self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        else:
            ids = await self._in_thread(text, size, bool(add_special_tokens))
        if cut is not None:
            ids = cut.cut(ids, self._frame if add_special_tokens else Frame())
        self._limits.check_ids(ids)
        return ids

    async def aclose(self) -> None:
        """
        Refuse what waits and what comes, and return when what is in work was delivered. A second call does nothing.

        Raises:
            UsageError: There is still something to do for another loop, and that runs.
        """
        if self._loop is not asyncio.get_running_loop():
            self._leave_loop()
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        _fail(self._waiting.clear(), EncoderClosed())
        try:
            while self._jobs:
                await asyncio.wait(self._jobs)
        finally:  # whoever is cancelled here has closed it all the same
            if self._own_executor is not None:
                self._own_executor.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """Belong to a loop: the first, or another when there is nothing left to do for that."""
        if self._loop is loop:
            return
        self._leave_loop()
        self._loop = loop
        self._refill()

    def _leave_loop(self) -> None:
        """Forget what was to be done for a loop that has ended: nobody is there to whom it could be delivered."""
        if self._loop is not None and self._loop.is_running() and (self._jobs or self._waiting):
            raise UsageError("an AsyncEncoder serves one event loop; make another with tokenizer.async_encoder()")
        self._jobs.clear()
        waiting = self._waiting.clear()
        if self._loop is not None and not self._loop.is_closed():  # it may run again
            _fail(waiting, EncoderClosed())
        self._timer = None

    def _size(self, text: str) -> int:
        """Bytes of UTF-8. To count those of a text that is too long for company takes long too, and its characters will do."""
        return len(text) if text.isascii() or len(text) > self._max_batch_bytes else len(text.encode("utf-8", "replace"))

    def _takes_inline(self, size: int) -> bool:
        """
        Whether a text may be encoded on the loop, which has so many bytes for each of its turns.

        Without the count a hundred short prompts that come at once would keep the loop as long as a long one.
        """
        if size > self._inline_left or not self._inline_bytes:
            return False
        if self._inline_left == self._inline_bytes and self._loop is not None:
            self._loop.call_soon(self._refill)
        self._inline_left -= max(1, size)
        return True

    def _refill(self) -> None:
        self._inline_left = self._inline_bytes

    async def _in_thread(self, text: str, size: int, add_special_tokens: bool) -> list[int]:
        assert self._loop is not None
        request = Request(
            text=text,
            size=size,
            add_special_tokens=add_special_tokens,
            arrived=self._loop.time(),
            future=self._loop.create_future(),
        )
        self._waiting.add(request)
        self._dispatch()
        try:
            return await request.future
        finally:
            self._waiting.remove([request])

    def _dispatch(self) -> None:
        """Give work to all threads that have none."""
        while self._waiting and len(self._jobs) < self._max_workers:
            batch = self._waiting.batch()
            if not batch or self._is_kept(batch):
                return
            self._waiting.remove(batch)
            self._start(batch)

    def _is_kept(self, batch: list[Request]) -> bool:
        """Whether a batch may still become fuller; then a timer looks again."""
        assert self._loop is not None
        if self._timer is not None:
            self._timer.cancel()
        left = batch[0].arrived + self._max_wait - self._loop.time()
        if not self._jobs or self._waiting.is_full(batch) or left <= 0:
            return False
        self._timer = self._loop.call_later(left, self._dispatch)
        return True

    def _start(self, batch: list[Request]) -> None:
        assert self._loop is not None
        texts = [request.text for request in batch]
        try:
            job = self._loop.run_in_executor(self._executor, _encode_all, self._tokenizer, texts, batch[0].add_special_tokens)
        except Exception as error:  # an executor that was shut down, or has no thread to give
            _fail(batch, error)
            return
        self._jobs.add(job)
        job.add_done_callback(partial(self._deliver, batch))

    def _deliver(self, batch: list[Request], job: asyncio.Future[list[Outcome]]) -> None:
        self._jobs.discard(job)
        error = EncoderClosed() if job.cancelled() else job.exception()
        outcomes = [error] * len(batch) if error is not None else job.result()
        for request, outcome in zip(batch, outcomes, strict=True):
            if request.future.done():
                continue
            if isinstance(outcome, BaseException):
                request.future.set_exception(outcome)
            else:
                request.future.set_result(outcome)
        self._dispatch()


def _fail(requests: Iterable[Request], error: Exception) -> None:
    for request in requests:
        if not request.future.done():
            request.future.set_exception(error)


def _check(option: str, value: object, *, least: int) -> None:
    if type(value) is not int or value < least:
        raise OptionError(option=option, value=value, accepted=f"it is a number, {least} or more")


def _encode_all(tokenizer: BatchEncoder, texts: Sequence[str], add_special_tokens: bool) -> list[Outcome]:
    """In a thread: the ids of each text, or what is wrong with it."""
    if len(texts) > 1:
        try:
            encoded = list(tokenizer.encode_batch(texts, add_special_tokens=add_special_tokens))
            if len(encoded) == len(texts):
                return list[Outcome](encoded)
        except BaseException:  # a panic in Rust is no Exception
            pass  # one of them is bad; alone, each tells whether it is the one
    outcomes: list[Outcome] = []
    for text in texts:
        try:
            outcomes.append(tokenizer.encode(text, add_special_tokens=add_special_tokens))
        except StopIteration as error:  # no future takes it; in a coroutine Python makes the same of it
            outcomes.append(RuntimeError(f"the tokenizer raised {error!r}"))
        except BaseException as error:  # as above
            outcomes.append(error)
    return outcomes
