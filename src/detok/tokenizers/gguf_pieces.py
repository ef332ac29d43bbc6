"""
What an entry of a GGUF vocabulary is: its bytes, and whether it is printed at all.

As ``llama_token_to_piece`` has it: read in llama.cpp's ``src/llama-vocab.cpp`` (llama-cpp-python 0.3.36) and compared with it
in the tests. The type of an entry decides, but llama.cpp sets some types right by the entry's text first, and so it is done here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ..core.decoding.rules import byte_level_bytes, byte_of

__all__ = [
    "BYTE",
    "CONTROL",
    "NORMAL",
    "UNKNOWN",
    "USER_DEFINED",
    "Spelling",
    "byte_level",
    "corrected",
    "escaped",
    "piece_bytes",
    "spaced",
]

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
"""Of `tokenizer.ggml.token_type`; 5 is unused, and any other is treated alike: it gives nothing."""

Spelling = Callable[[bytes], bytes]
"""The bytes that an entry as the file has it stands for."""


def spaced(entry: bytes) -> bytes:
    """SentencePiece's spelling: ``▁`` is a space."""
    return entry.replace(_SPACE, b" ")


def byte_level(entry: bytes) -> bytes:
    """GPT-2's byte alphabet; a character outside it shows that it is, and the entry with it."""
    text = entry.decode(errors="replace")
    if _IN_ALPHABET(text):
        return byte_level_bytes(text)
    return b"".join(
        byte_level_bytes(character)
        if _IN_ALPHABET(character)
        else b"[UNK_BYTE_0x%b%b]" % (character.encode().hex().encode(), entry)
        for character in text
    )


def escaped(entry: bytes) -> bytes:
    r"""RWKV's spelling: ``\t``, ``\n``, ``\r``, ``\xHH``; any other backslash only vanishes."""
    return _ESCAPE.sub(_unescape, entry)


_SPACE = "▁".encode()
_IN_ALPHABET = re.compile("[!-~¡-¬®-ń]*").fullmatch
_ESCAPE = re.compile(rb"\\(x[0-9a-f]{2}|.|\Z)", re.DOTALL)
_CONTROLS = {b"t": b"\t", b"n": b"\n", b"r": b"\r"}


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code[1:], 16)]) if len(code) == 3 else _CONTROLS.get(code, code)


def piece_bytes(entry: bytes, kind: int, spelling: Spelling) -> bytes:
    """Return what an entry gives when it is printed."""
    if spelling is escaped or kind == NORMAL:
        return spelling(entry)
    if kind in (UNKNOWN, CONTROL, USER_DEFINED):
        return entry
    if kind == BYTE:
        byte = byte_of(entry.decode(errors="replace"))
        return b"" if byte is None else bytes([byte])
    return b""


def corrected(types: Sequence[int], ids: Mapping[bytes, int], metadata: Mapping[str, object]) -> Sequence[int]:
    """
    Return the types with those set right that llama.cpp knows better by the text.

    Args:
        types: As the file has them, one for each entry.
        ids: Where each entry stands.
        metadata: Tells which markers for filling in the middle the file names itself; for these the text is not looked at.
    """
    found: dict[int, int] = {}
    for keys, names in FILL_IN_THE_MIDDLE:
        named = any(_is_id(metadata.get(f"tokenizer.ggml.{key}_token_id"), len(types)) for key in keys)
        present = [ids[name] for name in map(str.encode, names) if name in ids]
        if present and not named:
            # llama.cpp takes one of several, by the order of a hash table; here it is the first.
            found[min(present)] = CONTROL
    texts = {name for name in ENDS_OF_GENERATION if name.encode() in ids}
    found |= {ids[name.encode()]: CONTROL for name in texts}
    found |= {ids[name]: USER_DEFINED for name in map(str.encode, HARMONY) if name in ids}
    calls = not texts.isdisjoint({"<|call|>", "<|calls|>"})
    if "<|end|>" in texts and calls and not texts.isdisjoint({"<|return|>", "<|flush|>"}):
        found[ids[b"<|end|>"]] = USER_DEFINED  # the end of a message, not of the answer
    if {"</s>", "<|tool_response>"} <= texts:
        found[ids[b"</s>"]] = NORMAL  # Gemma 4 uses it as a tag of HTML
    changes = {token_id: kind for token_id, kind in found.items() if types[token_id] != kind}
    if not changes:
        return types
    types = list(types)
    for token_id, kind in changes.items():
        types[token_id] = kind
    return types


def _is_id(value: object, size: int) -> bool:
    return isinstance(value, int) and 0 <= value < size


ENDS_OF_GENERATION = (
    *("<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>"),
    *("<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>"),
    *("<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~["),
)
"""Entries that end an answer, whatever their type: they are control tokens."""

FILL_IN_THE_MIDDLE = (
    (
        ("fim_pre", "prefix"),
        (
            *("<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>"),
            *("<|code_prefix|>", "<|prefix|>"),
        ),
    ),
    (
        ("fim_suf", "suffix"),
        (
            *("<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>"),
            *("<|code_suffix|>", "<|suffix|>"),
        ),
    ),
    (
        ("fim_mid", "middle"),
        (
            *("<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>"),
            *("<|code_middle|>", "<|middle|>"),
        ),
    ),
    (("fim_pad",), ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]")),
    (("fim_rep",), ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>")),
    (("fim_sep",), ("<|file_sep|>",)),
)
"""Keys of the metadata that name a marker, and the texts by which it is known where they do not."""

HARMONY = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")
"""Markers of gpt-oss that are always printed."""
