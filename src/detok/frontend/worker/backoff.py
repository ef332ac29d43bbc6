"""How long to wait before what keeps failing is tried again."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Backoff"]


@dataclass(slots=True)
class Backoff:
    """
    How long to wait before a worker is started again: longer each time, unless it had lived for a while.

    >>> backoff = Backoff(first=0.05, most=0.15, stable=10.0)
    >>> [backoff.delay(lived) for lived in (0.1, 0.1, 0.1, 60.0)]
    [0.05, 0.1, 0.15, 0.05]
    """

    first: float = 0.05
    most: float = 5.0
    stable: float = 10.0
    """Whoever lived so many seconds was well."""
    _next: float = field(default=0.0, init=False)

    def delay(self, lived: float) -> float:
        """Return the seconds to wait for one that lived so long."""
        delay = self.first if lived >= self.stable or not self._next else self._next
        self._next = min(2 * delay, self.most)
        return min(delay, self.most)
