"""
The keys and values at the beginning of a GGUF file, read strictly; what follows them, the tensors, is never touched.

The format is described in ``docs/gguf.md`` of ggml. The package ``gguf`` reads it too, but makes an array object of every string,
which takes ten seconds for a large vocabulary; it judges this reader in the tests.
"""

from __future__ import annotations

import mmap
import struct
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path

from ..errors import SourceError

__all__ = ["Value", "read"]

Value = bool | int | float | str | list[bytes] | Sequence[float]
"""Numbers in an array are an `array.array`; strings in an array stay bytes, since the pieces of a vocabulary may be no UTF-8."""

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ACCEPTED = "a GGUF file of version 2 or 3 was expected, whole at least up to its tensors"

STRING, ARRAY = 8, 9
# Type number to the letter that both `struct` and `array` have for it; a bool is a byte in an array.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
SMALLEST_ENTRY = 8 + 4 + 1
"""A key without characters, a type and one byte."""


def read(path: Path) -> dict[str, Value]:
    """
    Return all keys of a file with their values.

    Nothing is taken on trust: a count or a length that the file is too short for is refused before anything is made of it,
    so that neither time nor memory can go beyond the size of the file.

    Raises:
        SourceError: It is no GGUF file, of another version, cut off, or contradicts itself; the message says where.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise SourceError(path, found="does not begin with GGUF", accepted=ACCEPTED)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Reader(path, data).entries()
    except OSError as error:
        raise SourceError(path, found=f"cannot be read ({error.strerror})", accepted=ACCEPTED) from error


class _Reader:
    """A place in the file, which only moves forward."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path = path
        self._data = data
        self._size = len(data)
        self._at = len(MAGIC)
        self._key = "the header"
        self._order = "<"

    def entries(self) -> dict[str, Value]:
        version = self._scalar("I")
        if version not in VERSIONS and version & 0xFFFF == 0:
            # Since version 3 a file may be big-endian; nothing but the version tells.
            self._order = ">"
            version = int.from_bytes(version.to_bytes(4, "little"), "big")
        if version not in VERSIONS:
            raise self._fault(f"is a GGUF file of version {version}")
        self._scalar("Q")  # the number of tensors
        count = self._scalar("Q")
        self._check(count, SMALLEST_ENTRY, f"{count} keys")
        entries: dict[str, Value] = {}
        for _ in range(count):
            key = self._string().decode(errors="replace")
            self._key = repr(key)
            if key in entries:
                raise self._fault(f"has the key {key!r} twice")
            entries[key] = self._value(self._scalar("I"))
        return entries

    def _value(self, kind: int) -> Value:
        if kind == STRING:
            return self._string().decode(errors="replace")
        if kind != ARRAY:
            letter = self._letter(kind)
            return bool(self._scalar("B")) if letter == "?" else self._scalar(letter)
        kind, count = self._scalar("I"), self._scalar("Q")
        if kind == STRING:
            self._check(count, 8, f"{count} strings")
            return self._strings(count)
        if kind == ARRAY:
            raise self._fault(f"has an array of arrays at {self._key}, which llama.cpp does not read either")
        return self._numbers(self._letter(kind), count)

    def _letter(self, kind: int) -> str:
        letter = SCALARS.get(kind)
        if letter is None:
            raise self._fault(f"has a value of the unknown type {kind} at {self._key}")
        return letter

    def _scalar(self, letter: str) -> int:
        """One number; what is annotated as int is a float for the letters f and d."""
        form = struct.Struct(self._order + letter)
        self._check(1, form.size, "a number")
        (value,) = form.unpack_from(self._data, self._at)
        self._at += form.size
        number: int = value
        return number

    def _string(self) -> bytes:
        length = self._scalar("Q")
        self._check(length, 1, f"a string of {length} bytes")
        start, self._at = self._at, self._at + length
        return self._data[start : self._at]

    def _strings(self, count: int) -> list[bytes]:
        # The hot loop of loading: a vocabulary has 200,000 of these, and as many merges.
        data, at, last = self._data, self._at, self._size - 8
        unpack = struct.Struct(f"{self._order}Q").unpack_from
        strings: list[bytes] = []
        for _ in range(count):
            if at > last:
                raise self._cut_off(f"{count} strings")
            (length,) = unpack(data, at)
            start, at = at + 8, at + 8 + length
            strings.append(data[start:at])
        if at > self._size:
            raise self._cut_off(f"{count} strings")
        self._at = at
        return strings

    def _numbers(self, letter: str, count: int) -> Sequence[float]:
        numbers: array[float] = array("B" if letter == "?" else letter)
        self._check(count, numbers.itemsize, f"{count} numbers")
        start, self._at = self._at, self._at + count * numbers.itemsize
        numbers.frombytes(self._data[start : self._at])
        if (self._order == "<") != (sys.byteorder == "little"):
            numbers.byteswap()
        return numbers

    def _check(self, count: int, size: int, what: str) -> None:
        if count * size > self._size - self._at:
            raise self._cut_off(what)

    def _cut_off(self, what: str) -> SourceError:
        return self._fault(f"ends at {self._size} bytes in the middle of {self._key}: {what} should follow byte {self._at}")

    def _fault(self, found: str) -> SourceError:
        return SourceError(self._path, found=found, accepted=ACCEPTED)
