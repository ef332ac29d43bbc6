"""
How much a chat template may do: a template comes from a model's repository, and is code that nobody here has read.

Two things are counted, never a clock. *Steps*: turns of loops, calls, items of lists that are made. *Characters*: of every text
that is made, on the way or put out. What can grow faster than what it is made of (``"a" * n``, ``replace``, a width) is looked at
before it is done; all else is at most a few times as large as its parts, and is counted when it is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, MappingView, Sequence, Sized
from string import Formatter
from typing import Any

__all__ = [
    "MAX_CHARACTERS",
    "MAX_STEPS",
    "Budget",
    "TooMuch",
    "check_filter",
    "growth_of_filter",
    "growth_of_method",
    "growth_of_operator",
    "pieces_of_method",
]

# The templates of real models take some thirty steps and touch a text some ten times a message: these are chats of 30,000
# messages or of 10 MB, and a few seconds for a template that means harm.
MAX_STEPS = 1_000_000
MAX_CHARACTERS = 1 << 27

READ_SHIFT = 2
"""To look through a text costs a quarter of making it."""

MAX_WIDTH = 10_000
"""Of anything that is filled up, indented or rounded."""

MAX_INDENT = 16
"""Spaces, of JSON."""

MAX_STRIPPED = 32
"""Different characters to strip a text of."""

MAX_PATH = 16
"""Parts of an attribute: ``map(attribute="a.b")`` has two."""

MAX_BITS = 4096
"""Of an integer."""

LONGEST_ESCAPE = 12
"""Characters that one becomes in HTML, in an address, in JSON or as Python writes it."""


class TooMuch(Exception):
    """A template passed a limit. Internal: it becomes a `ChatTemplateError` that knows the line."""


class Budget:
    """What is left for one rendering."""

    def __init__(self) -> None:
        self.steps = MAX_STEPS
        self.characters = MAX_CHARACTERS

    @property
    def used(self) -> float:
        """The share that was used up, of what is less left of."""
        return 1 - min(self.steps / MAX_STEPS, self.characters / MAX_CHARACTERS)

    def step(self, count: int = 1) -> None:
        """Count steps."""
        self.steps -= count
        if self.steps < 0:
            raise TooMuch(f"it takes more than {MAX_STEPS:,} steps (turns of loops, calls, items)")

    def will_step(self, count: int) -> None:
        """Refuse to take more steps than are left."""
        if count > self.steps:
            self.step(count)

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

    def spells(self, *values: Any) -> int:
        """The same of values that are written out, which is refused if it could be larger than what is left."""
        before = self.characters
        weight = self.weigh(*values)
        is_plain = all(isinstance(value, (str, bytes, int)) for value in values)
        self.grows(((before - self.characters) << READ_SHIFT) * (1 if is_plain else LONGEST_ESCAPE))
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
            fields = _percent_fields(left if isinstance(left, str) else left.decode("latin-1"))
            return _formatted(fields, right if isinstance(right, tuple) else (right,))
    return 0


def growth_of_method(owner: Any, name: str, arguments: Arguments) -> int:
    """Return how large the result of a method of a text or an integer may become, where it is not bounded by its parts."""
    if not isinstance(owner, (str, bytes, int)):
        return 0
    if isinstance(owner, int):
        return _width(arguments)
    match name:
        case "encode" | "format_map":
            raise TooMuch(f"it calls {name}, which no prompt is made with")
        case "format":
            return _formatted(_brace_fields(owner), arguments)  # type: ignore[arg-type]  # bytes have no format
        case "strip" | "lstrip" | "rstrip":
            return _stripped(owner, arguments)
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
            widest = max(_width(arguments), _width([_longest(arguments)]))
            if widest > MAX_INDENT:
                raise TooMuch(f"it indents or separates JSON by {widest:,} characters, and {MAX_INDENT} is the most")
            escaped = len(value) * LONGEST_ESCAPE if isinstance(value, str) else 0
            return (weight + 1) * widest * _depth(value) + escaped
        case "replace":
            return _replaced(str(value), [str(argument) for argument in arguments])
        case "join":
            return _length([value]) * _longest(arguments[:1])
        case "format":
            return _formatted(_percent_fields(str(value)), arguments)
        case "indent":
            size = _longest(arguments[:1]) if any(isinstance(one, str) for one in arguments[:1]) else _width(arguments)
            return str(value).count("\n") * size + size
        case "trim":
            return _stripped(str(value), arguments)
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


def _stripped(text: str | bytes, arguments: Arguments) -> int:
    """Each character of the text is looked for among those that are stripped."""
    size = _length(arguments)
    if size > MAX_STRIPPED:
        raise TooMuch(f"it strips a text of {size:,} characters, and {MAX_STRIPPED} is the most")
    return len(text) * size >> READ_SHIFT


def _depth(value: Any) -> int:
    """How many lists and objects are in one another."""
    depth, level = 1, [value]
    while level := [part for one in level if isinstance(one, (Mapping, list, tuple)) for part in _parts(one)]:
        depth += 1
    return depth


def pieces_of_method(owner: Any, name: str, arguments: Arguments) -> int:
    """Return how many pieces a text will be split in, counted without making all of them."""
    if not isinstance(owner, (str, bytes)) or name not in ("split", "rsplit", "splitlines"):
        return 0
    most = min((one for one in arguments if isinstance(one, int) and one >= 0), default=len(owner)) + 1
    by = next((one for one in arguments if isinstance(one, type(owner)) and one), None)
    if name != "splitlines" and by is not None:
        return min(most, owner.count(by) + 1)  # type: ignore[arg-type]  # of the same kind
    chunks = (owner[start : start + _CHUNK] for start in range(0, len(owner), _CHUNK))
    pieces = sum(len(chunk.splitlines() if name == "splitlines" else chunk.split()) for chunk in chunks)
    return pieces if name == "splitlines" else min(most, pieces)


def check_filter(name: str, args: Arguments, kwargs: Mapping[str, Any]) -> None:
    """Refuse an attribute that is a long way, which a filter goes for each item."""
    place = {"selectattr": 0, "rejectattr": 0, "groupby": 0, "sum": 0, "join": 1, "unique": 1, "min": 1, "max": 1, "sort": 2}.get(
        name
    )
    path = kwargs.get("attribute", args[place] if place is not None and place < len(args) else None)
    if isinstance(path, str) and path.count(".") + path.count(",") >= MAX_PATH:
        raise TooMuch(f"it asks for an attribute of more than {MAX_PATH} parts")


Fields = Sequence[str]
"""What says how wide each field of a format is."""


def _formatted(fields: Fields, arguments: Arguments) -> int:
    """Each field may show the longest argument, and as much as its width says."""
    if any(mark in field for field in fields for mark in "*{("):
        raise TooMuch("it takes the format of a format from elsewhere, which no prompt is made with")
    widths = [int(number[:6]) for field in fields for number in re.findall(r"\d+", field)]
    values = [part for one in arguments for part in _parts(one)]
    largest = max((len(one) if isinstance(one, Sized) else 64 for one in values), default=0)
    return len(fields) * (largest + _width(widths))


def _percent_fields(text: str) -> Fields:
    return _PERCENT.findall(text)


def _brace_fields(text: str) -> Fields:
    """As Python itself divides it; an index may have braces and colons of its own."""
    return [specification or "" for _, name, specification, _ in Formatter().parse(text) if name is not None]


_CHUNK = 1 << 16
# The name of a field, of which Python counts the brackets, and then flags, width and precision.
_PERCENT = re.compile(r"%(?:\([^()]*\))?((?:\([^()]*\()?[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?)[a-zA-Z%]?")
