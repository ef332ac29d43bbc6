"""What a consumer has not read yet: outputs that wait for it, made one when it is slow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from ..core.request.output import RequestOutput

__all__ = ["OpenRequest", "Outlet", "Pending"]


class Outlet(Protocol):
    """Where the outputs of a request go."""

    def put(self, output: RequestOutput) -> bool:
        """
        Take the next output, and say whether one was waiting already. The last one has a `finish_reason`.

        It is called from the midst of a step: it does not raise, and does not take long.
        """
        ...

    def __len__(self) -> int:
        """How many outputs wait here to be read, as far as that is known."""
        ...


class Pending:
    """
    The outputs of one request between the processor and a consumer. The consumer gets all that waits as one output.

    What waits is joined as it comes, neighbours of like size first, so that however slow a consumer is there are but a few
    pieces, and no text is copied more often than their number doubles.
    """

    __slots__ = ("_pieces", "_waiter")

    def __init__(self) -> None:
        self._pieces: list[RequestOutput] = []
        self._waiter: asyncio.Future[None] | None = None

    def put(self, output: RequestOutput) -> bool:
        """Add the next output, and say whether one was waiting already."""
        pieces = self._pieces
        was_waiting = bool(pieces)
        pieces.append(output)
        while len(pieces) > 1 and len(pieces[-2].token_ids) <= len(pieces[-1].token_ids):
            later = pieces.pop()
            pieces[-1] = pieces[-1].coalesce(later)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        return was_waiting

    async def get(self) -> RequestOutput:
        """Wait until there is something, and return all that there is. For one consumer."""
        while not self._pieces:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self.take()

    def take(self) -> RequestOutput:
        """Return all that there is, which is something."""
        # From the end, where the pieces are small.
        output = self._pieces.pop()
        while self._pieces:
            output = self._pieces.pop().coalesce(output)
        return output

    def __len__(self) -> int:
        return len(self._pieces)


class OpenRequest:
    """A request between an engine and its consumer."""

    __slots__ = ("fills_logprobs", "id", "outlet", "seconds", "silent", "told")

    def __init__(
        self, request_id: str, outlet: Outlet, told: Callable[[int], object] | None = None, *, fills_logprobs: bool = False
    ) -> None:
        self.id = request_id
        self.outlet = outlet
        self.told = told
        """Called with the tokens of the prompt that the engine had in its cache."""
        self.fills_logprobs = fills_logprobs
        """Whether a token of which the engine gives no logprob has an entry all the same."""
        self.seconds = 0.0
        """What decoding it took."""
        self.silent = 0
        """Tokens since text came out."""
