"""
How much a chat template may do: a template comes from a model's repository, and is code that nobody here has read.

Two things are counted, never a clock. *Steps*: turns of loops, calls, items of lists that are made. *Characters*: of every text
that is made, on the way or put out. What can grow faster than what it is made of (``"a" * n``, ``replace``, a width) is looked at
before it is done; all else is at most a few times as large as its parts, and is counted when it is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, MappingView, Sequence, Sized
from typing import Any

__all__ = ["MAX_CHARACTERS", "MAX_STEPS", "Budget", "TooMuch", "growth_of_filter", "growth_of_method", "growth_of_operator"]

# The templates of real models take some thirty steps and touch a text some ten times a message: these are chats of 30,000
# messages or of 10 MB, and a few seconds for a template that means harm.
MAX_STEPS = 1_000_000
MAX_CHARACTERS = 1 << 27

READ_SHIFT = 2
"""To look through a text costs a quarter of making it."""

MAX_WIDTH = 10_000
"""Of anything that is filled up, indented or rounded."""

MAX_BITS = 4096
"""Of an integer."""

LONGEST_ESCAPE = len("&quot;")

DEEP = 16
"""More levels than JSON that a template writes has."""


class TooMuch(Exception):
    """A template passed a limit. Internal: it becomes a `ChatTemplateError` that knows the line."""


class Budget:
    """What is left for one rendering."""

    def __init__(self) -> None:
        self.steps = MAX_STEPS
        self.characters = MAX_CHARACTERS

    def step(self, count: int = 1) -> None:
        """Count steps."""
        self.steps -= count
        if self.steps < 0:
            raise TooMuch(f"it takes more than {MAX_STEPS:,} steps (turns of loops, calls, items)")

    def write(self, count: int) -> None:
        """Count characters."""
        self.characters -= count
        if self.characters < 0:
            raise TooMuch(f"it makes more than {MAX_CHARACTERS:,} characters")

    def read(self, text: str | bytes) -> None:
        """Count a text that is looked through."""
        self.write(len(text) >> READ_SHIFT)

    def made(self, value: Any) -> Any:
        """Count a value that was made, and return it; one that makes its items later counts them then."""
        if isinstance(value, (str, bytes)):
            self.write(len(value))
        elif isinstance(value, (list, tuple, dict, set)):
            self.step(len(value))
        elif isinstance(value, int):
            if value.bit_length() > MAX_BITS:
                raise TooMuch(f"it makes an integer of more than {MAX_BITS:,} bits")
        elif isinstance(value, Iterator):
            return self._counted(value)
        return value

    def _counted(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            self.step()
            yield item

    def weigh(self, *values: Any) -> int:
        """
        Count a step for each part of values, however deep: what writing them out, comparing or sorting them would look at.

        A list that holds another one twice, and so on, is exponentially larger than its making was. Returns the number of parts.
        """
        weight = 0
        open_ends = list(values)
        while open_ends:
            one = open_ends.pop()
            if isinstance(one, (str, bytes)):
                self.read(one)
            elif isinstance(one, (Mapping, MappingView, list, tuple, set, frozenset)):
                self.step(len(one))
                weight += len(one)
                open_ends += one  # type: ignore[arg-type]  # a MappingView of a dict can be iterated over
                if isinstance(one, Mapping):
                    open_ends += one.values()
        return weight

    def grows(self, size: int) -> None:
        """Refuse to make what would be larger than what is left."""
        if size > self.characters:
            self.write(size)


Arguments = Sequence[Any]


def growth_of_operator(operator: str, left: Any, right: Any) -> int:
    """Return how large ``left operator right`` may become, where that is more than both together."""
    match operator:
        case "*" if isinstance(left, int) and isinstance(right, int):
            _check_bits(left.bit_length() + right.bit_length())
        case "*":
            for many, what in ((left, right), (right, left)):
                if isinstance(many, int) and isinstance(what, Sized):
                    return max(many, 0) * len(what)
        case "**" if isinstance(left, int) and isinstance(right, int):
            _check_bits(left.bit_length() * max(right, 0))
        case "%" if isinstance(left, (str, bytes)):
            return _formatted(left, _PERCENT, right if isinstance(right, tuple) else (right,))
    return 0


def growth_of_method(owner: Any, name: str, arguments: Arguments) -> int:
    """Return how large the result of a method of a text or an integer may become, where it is not bounded by its parts."""
    if not isinstance(owner, (str, bytes, int)):
        return 0
    if isinstance(owner, int):
        return _width(arguments)
    match name:
        case "format" | "format_map":
            return _formatted(owner, _BRACES, arguments)
        case "replace":
            return _replaced(owner, arguments)
        case "join":
            return len(owner) * _length(arguments)
        case "translate":
            return len(owner) * _longest(arguments)
        case "center" | "ljust" | "rjust" | "zfill" | "expandtabs":
            return len(owner) * _width(arguments) if name == "expandtabs" else _width(arguments)
    return 0


def growth_of_filter(name: str, value: Any, arguments: Arguments, weight: int) -> int:
    """The same of a filter; ``weight`` is the number of parts of its value."""
    match name:
        case "tojson":
            # Indented and separated: at each part, by as much as it is deep.
            return weight * max(_width(arguments), _width([_longest(arguments)])) * DEEP
        case "replace":
            return _replaced(str(value), [str(argument) for argument in arguments])
        case "join":
            return _length([value]) * _longest(arguments[:1])
        case "format":
            return _formatted(str(value), _PERCENT, arguments)
        case "indent":
            size = _longest(arguments[:1]) if any(isinstance(one, str) for one in arguments[:1]) else _width(arguments)
            return str(value).count("\n") * size + size
        case "wordwrap":
            return len(str(value)) * _longest(arguments) if _width(arguments) else 0
        case "e" | "escape" | "forceescape" | "urlencode":
            return len(str(value)) * LONGEST_ESCAPE
        case "center" | "round" | "batch" | "slice" | "truncate":
            return _width(arguments)
    return 0


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, (list, tuple)) else (value,)


def _check_bits(count: int) -> None:
    if count > MAX_BITS:
        raise TooMuch(f"it makes an integer of more than {MAX_BITS:,} bits")


def _width(arguments: Arguments) -> int:
    """The largest integer, refused if it is no width."""
    width = max((abs(one) for one in arguments if isinstance(one, int)), default=0)
    if width > MAX_WIDTH:
        raise TooMuch(f"it asks for a width or a number of {width:,}, and {MAX_WIDTH:,} is the most")
    return width


def _length(arguments: Arguments) -> int:
    return max((len(one) for one in arguments if isinstance(one, Sized)), default=0)


def _longest(arguments: Arguments) -> int:
    """The length of the longest text among arguments and what mappings and lists among them hold."""
    texts = [part for one in arguments for part in _parts(one)]
    return max((len(text) for text in texts if isinstance(text, (str, bytes))), default=1)


def _replaced(text: str | bytes, arguments: Arguments) -> int:
    match arguments:
        case [str() | bytes() as old, str() | bytes() as new, *_] if type(old) is type(text) or isinstance(old, str):
            count: int = text.count(old)  # type: ignore[arg-type]  # the same kind, or Python refuses it itself
            return count * len(new)
    return 0


def _formatted(text: str | bytes, specification: re.Pattern[str], arguments: Arguments) -> int:
    """Each field may show the longest argument, and as much as its width says."""
    shown = text if isinstance(text, str) else text.decode("latin-1")
    fields = specification.findall(shown)
    if any(mark in field for field in fields for mark in ("*", "{")):
        _width(arguments)
    widths = [int(number) for field in fields for number in re.findall(r"\d+", field)]
    values = [part for one in arguments for part in _parts(one)]
    largest = max((len(one) if isinstance(one, Sized) else 64 for one in values), default=0)
    return len(fields) * (largest + _width(arguments=[min(width, MAX_WIDTH + 1) for width in widths]))


_PERCENT = re.compile(r"%(?:\([^)]*\))?([-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?)[a-zA-Z%]")
# From the colon to the end of the field, fields inside it included.
_BRACES = re.compile(r"\{[^{}:]*:?((?:[^{}]|\{[^{}]*\})*)\}")
