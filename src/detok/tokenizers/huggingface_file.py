"""A tokenizer.json as a file: read by the tokenizers library, and where that refuses it, what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import SourceError
from .decoder_json import rules_of
from .reading import is_panic, library, refuse_byte_order_mark

__all__ = ["ACCEPTED", "compile_regex", "read", "the_library", "unlimited"]

ACCEPTED = "a tokenizer.json of the Hugging Face tokenizers library was expected"


def the_library() -> Any:
    """Import the tokenizers library; raise `MissingExtra` if it is not installed."""
    return library("tokenizers", extra="hf", purpose="a tokenizer.json")


def read(path: Path) -> Any:
    """
    Return what the library reads in a tokenizer.json, with the truncation and padding that stand there.

    Raises:
        SourceError: The library refuses it.
        UnknownDecoder: Its decoder has a type that detok does not know either.
        MissingExtra: The library is not installed.
    """
    tokenizers = the_library()
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises Exception itself, for every fault of a file
        return _second_try(path, tokenizers, error)
    except BaseException as error:
        if not is_panic(error):
            raise
        raise SourceError(path, found=f"the tokenizers library breaks down over it: {error}", accepted=ACCEPTED) from error


def unlimited(tokenizer: Any) -> Any:
    """A file may carry the truncation and padding of its training; a serving stack wants all of its text, and nothing else."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _second_try(path: Path, tokenizers: Any, error: Exception) -> Any:
    """Say what is wrong with a file that the library refused; old forms that it no longer reads are brought up to date."""
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise SourceError(path, found=f"cannot be read ({fault.strerror})", accepted=ACCEPTED) from fault
    refuse_byte_order_mark(data, path)
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as fault:
        raise SourceError(path, found=f"is no JSON, or only the beginning of it ({fault})", accepted=ACCEPTED) from fault
    if not isinstance(content, dict) or not isinstance(content.get("model"), dict):
        found = "is JSON but no tokenizer: " + (
            f'it has no "model", only {", ".join(map(repr, list(content)[:5])) or "nothing"}'
            if isinstance(content, dict)
            else f"a {type(content).__name__}"
        )
        raise SourceError(path, found=found, accepted=ACCEPTED) from error
    if isinstance(content.get("decoder"), dict):
        rules_of(content["decoder"], source=path, compile_regex=partial(compile_regex, path))
    if _modernise(content):
        try:
            return tokenizers.Tokenizer.from_str(json.dumps(content))
        except Exception as second:  # as above
            error = second
    raise SourceError(path, found=f"the tokenizers library refuses it: {error}", accepted=ACCEPTED) from error


def _modernise(value: Any) -> bool:
    """Give old Metaspace forms the field that newer libraries ask for; true if there was one."""
    if isinstance(value, list):
        return sum(_modernise(item) for item in value) > 0
    if not isinstance(value, dict):
        return False
    if value.get("type") == "Metaspace" and value.get("add_prefix_space") is False and "prepend_scheme" not in value:
        value["prepend_scheme"] = "never"
        return True
    return sum(_modernise(value.get(part)) for part in ("decoder", "pre_tokenizer", "decoders", "pretokenizers")) > 0


def compile_regex(source: object, pattern: str, content: str) -> Callable[[str], str]:
    """
    Return what replaces every match of a regular expression, by the library's own engine, so that no other dialect comes in.

    Raises:
        SourceError: The library refuses the pattern; it names ``source``.
    """
    try:
        return LibraryRegex(pattern, content)
    except Exception as error:  # the library raises Exception itself
        raise SourceError(source, found=f"the decoder's pattern {pattern!r} is refused: {error}", accepted=ACCEPTED) from error


class LibraryRegex:
    """Replaces every match of a regular expression. It is pickled by what it was made of, as the library's object cannot be."""

    def __init__(self, pattern: str, content: str) -> None:
        tokenizers = the_library()
        self._made_of = (pattern, content)
        self._decode = tokenizers.decoders.Replace(tokenizers.Regex(pattern), content).decode

    def __call__(self, text: str) -> str:
        return str(self._decode([text]))

    def __reduce__(self) -> tuple[type[LibraryRegex], tuple[str, str]]:
        return LibraryRegex, self._made_of
