"""The files behind `wordlists`, read strictly: vocab.json, merges.txt, CLIP's list of merges, BERT's vocab.txt."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import SourceError
from .reading import MAX_ID, read_file, refuse_byte_order_mark

__all__ = [
    "CLIP_MERGES",
    "WORD_END",
    "added_tokens",
    "clip_vocabulary",
    "merges_of",
    "text_of",
    "vocabulary_of_json",
    "vocabulary_of_lines",
]

Merges = Sequence[tuple[str, str]]

# CLIP's list is 3 MB large; a file of 1 MB may say that it is a terabyte.
MAX_UNPACKED = 1 << 26
# What CLIP takes of a longer list: 49,152 entries less 256 letters, as many with an end of word, and two special tokens.
CLIP_MERGES = 49_152 - 256 - 2
WORD_END = "</w>"
# What Unicode calls white space, and Rust takes off the end of a line; Python's own rstrip takes four control characters more.
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
# The letters of GPT-2's byte alphabet, in the order in which CLIP counts them, which is that of their code points.
LETTERS = [*map(chr, (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x144)))]


def text_of(path: Path, accepted: str) -> str:
    """
    Return the text of a file, unpacked.

    Raises:
        SourceError: It cannot be read, is empty, damaged, too large or no UTF-8.
    """
    data = read_file(path, accepted)
    try:
        if data.startswith(b"\x1f\x8b"):
            with gzip.open(io.BytesIO(data)) as file:
                data = file.read(MAX_UNPACKED + 1)
            if len(data) > MAX_UNPACKED:
                raise SourceError(path, found=f"unpacks to more than {MAX_UNPACKED:,} bytes", accepted=accepted)
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(path, found=f"line {line} is no UTF-8", accepted=accepted) from error
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(path, found=f"cannot be unpacked ({error})", accepted=accepted) from error


def vocabulary_of_json(path: Path, text: str, accepted: str) -> tuple[dict[str, int], list[str]]:
    """
    Return the ids of a vocab.json, and what is strange about it: an entry that is there twice, of which the last counts.

    Raises:
        SourceError: It is no JSON object of ids.
    """
    refuse_byte_order_mark(text[:1].encode(errors="replace"), path)
    twice: dict[str, None] = {}

    def last(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in items:
            if key in found:
                twice[key] = None
            found[key] = value
        return found

    try:
        vocabulary = json.loads(text, object_pairs_hook=last)
    except (ValueError, RecursionError) as error:
        raise SourceError(path, found=f"is no JSON, or only the beginning of it ({error})", accepted=accepted) from error
    if not isinstance(vocabulary, dict) or not vocabulary:
        found = "an empty object" if vocabulary == {} else f"a {type(vocabulary).__name__}"
        raise SourceError(path, found=f"is JSON but {found}", accepted=accepted)
    for entry, token_id in vocabulary.items():
        if entry.encode(errors="replace").decode() != entry:
            raise SourceError(path, found=f"the entry {entry!r} has a lone surrogate", accepted="entries are text")
        if type(token_id) is not int or not 0 <= token_id <= MAX_ID:
            raise SourceError(path, found=f"the entry {entry!r} has {token_id!r} for an id", accepted=accepted)
    return vocabulary, [f"{path.name} has {_some(list(twice))} twice, and the last one counts"] if twice else []


def merges_of(path: Path, text: str, *, limit: int | None = None) -> Merges:
    """
    Return the merges of a merges.txt, or of CLIP's list; a first line may be a title. Of two equal ones the later counts.

    Args:
        path: For errors.
        text: The content.
        limit: So many are wanted; what follows them is not looked at.

    Raises:
        SourceError: A line is not two parts with a space between.
    """
    merges: list[tuple[str, str]] = []
    for number, line in enumerate(_lines(text), 1):
        if not line or line.startswith("#version") or (number == 1 and "#version" in line):
            continue
        first, _, second = line.partition(" ")
        if not first or not second or " " in second:
            accepted = "a merge is two parts with one space between them"
            raise SourceError(path, found=f"line {number} is {line!r}", accepted=accepted)
        merges.append((first, second))
        if len(merges) == limit:
            break
    return merges


def clip_vocabulary(merges: Merges, specials: Sequence[str]) -> dict[str, int]:
    """
    Return CLIP's ids, which follow from its merges: letters, letters at the end of a word, what is merged, special tokens.

    What two merges give has the later id, as in CLIP's own code.
    """
    entries = [*LETTERS, *(letter + WORD_END for letter in LETTERS), *(first + second for first, second in merges), *specials]
    return {entry: token_id for token_id, entry in enumerate(entries)}


def vocabulary_of_lines(path: Path, text: str) -> tuple[dict[str, int], list[str]]:
    """
    Return the ids of a vocab.txt, and what is strange about it.

    A line is an entry, without white space at its end, and its place is the id. As the tokenizers library reads it, of two equal
    lines the last counts, and the id of the first has no token.
    """
    vocabulary: dict[str, int] = {}
    holes = {}
    for token_id, line in enumerate(text.removesuffix("\n").split("\n")):
        entry = line.rstrip(WHITE_SPACE)
        if entry in vocabulary:
            holes[vocabulary[entry]] = entry
        vocabulary[entry] = token_id
    strange = []
    if text.startswith("\ufeff"):
        strange.append(f"{path.name} starts with a byte order mark, which is a part of its first token")
    if holes:
        first, entry = next(iter(holes.items()))
        more = f", and {len(holes) - 1:,} more" if len(holes) > 1 else ""
        found = f"line {vocabulary[entry] + 1} of {path.name} is {entry!r}, as line {first + 1} is"
        strange.append(f"{found}, so that the id {first} has no token{more}")
    return vocabulary, strange


def added_tokens(directory: Path) -> Mapping[str, int]:
    """The ids of an added_tokens.json, which older directories have; none if it is not there. Errors as `vocabulary_of_json`."""
    path = directory / "added_tokens.json"
    accepted = "an object of tokens and ids was expected; mend it or take it away"
    if not path.is_file() or not (text := text_of(path, accepted)).strip("{} \t\r\n"):
        return {}
    return vocabulary_of_json(path, text, accepted)[0]


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def _lines(text: str) -> list[str]:
    """The lines, as Python reads a text file: only these three ends count, whatever else Unicode calls the end of a line."""
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
