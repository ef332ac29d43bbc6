"""The ``decoder`` section of a tokenizer.json, in all forms that ``tokenizers`` writes and reads, as rules of the core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.decoding.rules import (
    CTC,
    BPEDecoder,
    ByteFallback,
    ByteLevel,
    Fuse,
    JoinWithSpaces,
    Metaspace,
    Replace,
    Rule,
    Strip,
    WordPiece,
)
from ..errors import SourceError, UnknownDecoder

__all__ = ["DECODERS", "CompileRegex", "known_decoders", "rules_of"]

CompileRegex = Callable[[str, str], Callable[[str], str]]
"""(pattern, content) -> a function that replaces every match in a text, by the tokenizer's own engine."""

Json = Mapping[str, Any]

DECODERS: Mapping[str, Callable[[Json], Rule]] = {
    "ByteLevel": lambda _: ByteLevel(),
    "ByteFallback": lambda _: ByteFallback(),
    "Fuse": lambda _: Fuse(),
    "Strip": lambda decoder: Strip(decoder["content"], decoder["start"], decoder["stop"]),
    "Metaspace": lambda decoder: Metaspace(decoder["replacement"], keep_first=_keeps_first(decoder)),
    "WordPiece": lambda decoder: WordPiece(decoder["prefix"], decoder["cleanup"]),
    "BPEDecoder": lambda decoder: BPEDecoder(decoder["suffix"]),
    "CTC": lambda decoder: CTC(decoder["pad_token"], decoder["word_delimiter_token"], decoder["cleanup"]),
}
"""
The decoders that are one rule, by type: what makes the rule of the JSON value. Errors and help list these types.

A Sequence is flattened, null joins with spaces, and a Replace may need the library's own engine for regular expressions.
"""


def known_decoders() -> list[str]:
    """Return the types that are read."""
    return sorted([*DECODERS, "Replace", "Sequence", "null"], key=str.lower)


def rules_of(decoder: Mapping[str, Any] | None, *, source: object, compile_regex: CompileRegex) -> tuple[Rule, ...]:
    """
    Return the rules of a decoder, flat and in order.

    Args:
        decoder: The JSON value; None means that tokens are joined with spaces.
        source: What to name in an error.
        compile_regex: For Replace with a regular expression.

    Raises:
        UnknownDecoder: A type that is not known, anywhere in it.
        SourceError: A known type with a missing or wrong field.
    """
    if decoder is None:
        return (JoinWithSpaces(),)
    try:
        return tuple(_flatten(decoder, source, compile_regex))
    except (KeyError, TypeError, AttributeError) as error:
        accepted = "its fields are those that the tokenizers library writes"
        raise SourceError(
            source, found=f"a decoder with a missing or wrong field ({error}): {decoder}", accepted=accepted
        ) from error


def _flatten(decoder: Json, source: object, compile_regex: CompileRegex) -> list[Rule]:
    kind = decoder.get("type")
    if kind == "Sequence":
        return [rule for one in decoder["decoders"] for rule in _flatten(one, source, compile_regex)]
    if kind == "Replace":
        return [_replace(decoder["pattern"], decoder["content"], compile_regex)]
    if not isinstance(kind, str) or kind not in DECODERS:
        raise UnknownDecoder(source, decoder=kind, known=known_decoders())
    return [DECODERS[kind](decoder)]


def _replace(pattern: Mapping[str, str] | str, content: str, compile_regex: CompileRegex) -> Rule:
    if isinstance(pattern, str):
        return Replace(pattern, content)
    if "String" in pattern:
        return Replace(pattern["String"], content)
    regex = pattern["Regex"]
    return Replace(regex, content, compile_regex(regex, content), is_regex=True)


def _keeps_first(metaspace: Mapping[str, Any]) -> bool:
    """New form: prepend_scheme; old form: add_prefix_space, true if it is not there."""
    scheme = metaspace.get("prepend_scheme")
    return scheme == "never" if scheme is not None else metaspace.get("add_prefix_space") is False
