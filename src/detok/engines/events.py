"""Bodies of HTTP answers cut into what they say: server-sent events, or one JSON value."""

from __future__ import annotations

from typing import Protocol

__all__ = ["MAX_EVENT_BYTES", "Answer", "EventStream", "EventTooLong", "OneValue"]

# An event that SGLang sends has all the ids so far and their logprobs: some MB for the longest outputs.
MAX_EVENT_BYTES = 64 << 20


class EventTooLong(ValueError):
    """An event has more than `MAX_EVENT_BYTES`."""

    def __str__(self) -> str:
        return f"one event has more than {MAX_EVENT_BYTES:,} bytes"


class Answer(Protocol):
    """Takes the bytes of an answer however they are cut, and gives the data of what is complete."""

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes, and return the data of each event that they complete."""
        ...

    def finish(self) -> list[bytes]:
        """Take the end of the answer, and return the data of what that completes."""
        ...


class EventStream:
    r"""
    The data of server-sent events, as the HTML standard reads them (section 9.2.6), but for a byte order mark, which none sends.

    Lines end with LF, CR LF or CR; the `data` lines of an event are joined with LF; comments and other fields are passed over. An
    event ends with an empty line: what comes after the last one is not complete and is dropped.

    >>> EventStream().feed(b": hello\n\ndata: 1\ndata: 2\n\nevent: x\r\ndata:3\r\n\r\ndata: 4\n")
    [b'1\n2', b'3']
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_event_bytes
        self._line: list[bytes] = []
        """The parts of a line that has no end yet."""
        self._data: list[bytes] = []
        """The data lines of an event that has no end yet."""
        self._line_bytes = self._data_bytes = 0
        self._after_cr = False
        """The last byte was a CR, which ended a line already: an LF that follows belongs to it."""

    def feed(self, data: bytes) -> list[bytes]:
        """
        Take bytes, and return the data of each event that they complete.

        Raises:
            EventTooLong: An event is longer than allowed.
        """
        if not data:
            return []
        if (quick := self._whole(data)) is not None:
            return quick
        if self._after_cr:
            data = data.removeprefix(b"\n")
        self._after_cr = data.endswith(b"\r")
        events: list[bytes] = []
        for line in data.splitlines(keepends=True):
            self._line_bytes += len(line)
            if self._line_bytes + self._data_bytes > self._max:
                raise EventTooLong
            content = line.rstrip(b"\r\n")
            if len(content) == len(line):
                self._line.append(line)
                continue
            if self._line:
                content = b"".join((*self._line, content))
                self._line = []
            self._end_line(content, events)
        return events

    def finish(self) -> list[bytes]:
        """An event without its empty line is not complete."""
        return []

    def _whole(self, data: bytes) -> list[bytes] | None:
        """
        Return the events that bytes complete which are cut as engines mostly cut them; None for all others.

        That is a whole event, its line alone, or the end of that line: there is nothing to look for in it but line ends.
        """
        if self._after_cr or self._data or b"\r" in data:
            return None
        if not self._line:
            first = data.find(b"\n")
            if not data.startswith(b"data: ") or len(data) > self._max or 0 <= first < len(data) - 2:
                return None
            if first < 0:
                self._line.append(data)
                self._line_bytes = len(data)
                return []
            return [data[6:-2]] if first == len(data) - 2 and data.endswith(b"\n\n") else None
        if data != b"\n\n" or len(self._line) > 1 or not self._line[0].startswith(b"data: "):
            return None
        event = self._line.pop()[6:]
        self._line_bytes = 0
        return [event]

    def _end_line(self, line: bytes, events: list[bytes]) -> None:
        self._line_bytes = 0
        if line.startswith(b"data:"):
            self._data_bytes += len(line)
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line:
            if self._data:
                events.append(b"\n".join(self._data))
            self._data = []
            self._data_bytes = 0


class OneValue:
    """An answer that is one value as a whole."""

    def __init__(self, *, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_bytes
        self._parts: list[bytes] = []
        self._bytes = 0

    def feed(self, data: bytes) -> list[bytes]:
        """
        Keep bytes.

        Raises:
            EventTooLong: There are more than allowed.
        """
        self._bytes += len(data)
        if self._bytes > self._max:
            raise EventTooLong
        self._parts.append(data)
        return []

    def finish(self) -> list[bytes]:
        """Return all of it."""
        return [b"".join(self._parts)]
