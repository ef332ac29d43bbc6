"""
Ids out of a file, a pipe or an argument, as they come.

Two forms, a line at a time: integers separated by white space or commas, each complete at its separator; or a line of JSON, which
is an array of ids, or an object with one as "token_ids" or "ids" and perhaps "logprobs" beside it, and is one step.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..core.request.logprobs import as_logprobs
from ..errors import DetokError, OptionError

__all__ = ["IdReader", "InputError", "Item", "Step", "in_steps", "read_ids"]


class Step(NamedTuple):
    """Ids that came together."""

    ids: list[int]
    logprobs: list[float | None] | None = None
    """One for each id, if they were asked for and are there."""


Item = int | Step
"""An id, or a line of JSON."""

# More digits than any id has, and as many as Python's int() takes at once.
MAX_DIGITS = 4300
# A line of JSON is read whole; this many characters are some two million ids, far beyond any context.
MAX_JSON_LINE = 1 << 24

_WORD = re.compile(r"[^\s,]+")
_INTEGER = re.compile(rf"[+-]?[0-9]{{1,{MAX_DIGITS}}}").fullmatch


class InputError(DetokError, ValueError):
    """Something that is no id stands where ids are read."""

    def __init__(self, source: str, *, line: int, column: int, problem: str) -> None:
        super().__init__(source, line, column, problem)
        self.source, self.line, self.column, self.problem = source, line, column, problem

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}, column {self.column}: {self.problem}"


class IdReader:
    """
    Reads ids out of bytes that come in any pieces.

    Args:
        source: What to name in an error.
        with_logprobs: Read the "logprobs" of objects, too. If not, they may be anything.
    """

    def __init__(self, source: str, *, with_logprobs: bool = False) -> None:
        self._source = source
        self._with_logprobs = with_logprobs
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._pending = ""
        """The part of the current line that is not read yet."""

        self._line = 1
        self._column = 1
        """Where it begins."""

    def feed(self, data: bytes) -> Iterator[Item]:
        """
        Take bytes and give what is complete, in order.

        Raises:
            InputError: After all that stands before it was given.
        """
        *lines, rest = (self._pending + self._decoder.decode(data)).split("\n")
        for line in lines:
            yield from self._end_line(line)
        if not self._is_json(rest) and rest.strip():
            words = list(_WORD.finditer(rest))
            # The last word may go on, unless a separator follows it.
            end = words[-1].start() if words and words[-1].end() == len(rest) else len(rest)
            yield from self._numbers(rest[:end])
            self._column += end
            rest = rest[end:]
            if len(rest) > MAX_DIGITS:
                raise self._error(0, _no_id(rest))
        elif len(rest) > MAX_JSON_LINE:
            raise self._error(0, f"a line of JSON of more than {MAX_JSON_LINE} characters; spread the ids over more lines")
        self._pending = rest

    def finish(self) -> Iterator[Item]:
        """Give the rest: the end of the input ends an id and a line. Errors as `feed`."""
        yield from self._end_line(self._pending + self._decoder.decode(b"", final=True))
        self._pending = ""

    def _end_line(self, line: str) -> Iterator[Item]:
        if self._is_json(line):
            yield self._json(line)
        else:
            yield from self._numbers(line)
        self._line += 1
        self._column = 1

    def _is_json(self, line: str) -> bool:
        return self._column == 1 and line.lstrip()[:1] in ("[", "{")

    def _numbers(self, text: str) -> Iterator[int]:
        for word in _WORD.finditer(text):
            if not _INTEGER(word[0]):
                raise self._error(word.start(), _no_id(word[0]))
            yield int(word[0])

    def _json(self, line: str) -> Step:
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise self._error(error.pos, f"no JSON ({error.msg}); a line that begins with [ or {{ is read as JSON") from None
        except (ValueError, RecursionError) as error:
            raise self._error(0, f"no JSON ({error}); a line that begins with [ or {{ is read as JSON") from None
        key = logprobs = None
        if isinstance(value, dict):
            key = next((name for name in ("token_ids", "ids") if isinstance(value.get(name), list)), None)
            if key is None:
                raise self._error(0, 'the object has no array "token_ids" or "ids"')
            logprobs = value.get("logprobs") if self._with_logprobs else None
            value = value[key]
        ids: list[int] = []
        for item in value:
            if type(item) is not int:
                raise self._error(_place(line, key, len(ids)), _no_id(json.dumps(item, ensure_ascii=False)))
            ids.append(item)
        return Step(ids, None if logprobs is None else self._logprobs(line, logprobs, len(ids)))

    def _logprobs(self, line: str, values: object, count: int) -> list[float | None]:
        column = _after(line, "logprobs")
        if not isinstance(values, list):
            raise self._error(column, '"logprobs" is no array')
        try:
            return [one.logprob for one in as_logprobs(values, count)]
        except OptionError as error:
            raise self._error(column, f"{error.option} cannot be {error.value!r:.40}: {error.accepted}") from None

    def _error(self, offset: int, problem: str) -> InputError:
        return InputError(self._source, line=self._line, column=self._column + offset, problem=problem)


def read_ids(chunks: Iterable[bytes], source: str, *, with_logprobs: bool = False) -> Iterator[Item]:
    """Read all chunks, each as soon as it is there. Arguments and errors as `IdReader`."""
    reader = IdReader(source, with_logprobs=with_logprobs)
    for chunk in chunks:
        yield from reader.feed(chunk)
    yield from reader.finish()


def in_steps(items: Iterable[Item], size: int) -> Iterator[Step]:
    """
    Group ids into steps of ``size``; a line of JSON is a step of its own.

    What stands before an error, or before the end, is still given, in a step that may be smaller.
    """
    step: list[int] = []
    try:
        for item in items:
            if isinstance(item, int):
                step.append(item)
            if step and (len(step) == size or isinstance(item, Step)):
                yield Step(step)
                step = []
            if isinstance(item, Step):
                yield item
    except InputError:
        if step:
            yield Step(step)
        raise
    if step:
        yield Step(step)


def _no_id(found: str) -> str:
    found = found if len(found) <= 40 else f"{found[:40]}…"
    return f"{found!r} is no token id; ids are integers with white space or commas between them, or JSON lines such as [1, 2]"


def _place(line: str, key: str | None, index: int) -> int:
    """Where an item of an array begins in a valid line of JSON: the array is the line, or stands behind a key of its object."""
    array = (_skip(line, 0) if key is None else _after(line, key)) + 1
    for _ in range(index):
        _, array = _value(line, array)
    return _skip(line, array)


def _after(line: str, key: str) -> int:
    """Where the value of a key begins in a valid line of JSON that is an object; the last one, if the key is there twice."""
    start = _skip(line, 0) + 1
    found = start
    while line[_skip(line, start)] != "}":
        name, start = _value(line, start)
        found = _skip(line, start) if name == key else found
        _, start = _value(line, start)
    return found


def _value(line: str, start: int) -> tuple[object, int]:
    return json.JSONDecoder().raw_decode(line, _skip(line, start))


def _skip(line: str, start: int) -> int:
    while line[start] in " \t\r,:":
        start += 1
    return start
