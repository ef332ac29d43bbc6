"""Bytes into characters, as they come: RFC 3629, and Unicode chapter 3.9 for what is not valid.

An incomplete character is kept as ``pending``, at most three bytes. *Invalid* is not *incomplete*: as soon as no
continuation could make the bytes valid, they are U+FFFD, one for each maximal subpart ("Substitution of Maximal Subparts",
Unicode 3.9), which is also what Rust's ``String::from_utf8_lossy`` does, the judge for ByteLevel decoders.

CPython's incremental codec does the work, but for one case: it waits after ED A0..BF, the beginning of a surrogate,
which RFC 3629 section 3 forbids, so that nothing could make it valid.
"""

from __future__ import annotations

from codecs import utf_8_decode

REPLACEMENT = "\ufffd"


def decode_lossy(pending: bytes, data: bytes) -> tuple[str, bytes]:
    """
    Decode ``pending + data`` and return the characters that are certain and the incomplete rest (0 to 3 bytes).

    >>> decode_lossy(b"\\xf0\\x9f", b"\\x98")
    ('', b'\\xf0\\x9f\\x98')
    >>> decode_lossy(b"\\xf0", b"A")
    ('\ufffdA', b'')
    """
    joined = pending + data
    text, used = utf_8_decode(joined, "replace", False)
    rest = joined[used:]
    if rest[:1] == b"\xed" and rest[1:] >= b"\xa0":
        return text + REPLACEMENT * 2, b""
    return text, rest


def decode_ignoring(pending: bytes, data: bytes) -> tuple[str, bytes]:
    """The same as `decode_lossy`, but bytes that belong to no character vanish."""
    joined = pending + data
    text, used = utf_8_decode(joined, "ignore", False)
    rest = joined[used:]
    return (text, b"") if rest[:1] == b"\xed" and rest[1:] >= b"\xa0" else (text, rest)


def decode_strict(pending: bytes, data: bytes) -> tuple[str, bytes] | None:
    """The same for bytes that must be valid; None if no continuation can make them so."""
    joined = pending + data
    try:
        text, used = utf_8_decode(joined, "strict", False)
    except UnicodeDecodeError:
        return None
    rest = joined[used:]
    if rest[:1] == b"\xed" and rest[1:] >= b"\xa0":
        return None
    return text, rest


def decode_per_byte(pending: bytes, data: bytes) -> tuple[str, bytes]:
    """The same as `decode_lossy`, but with one U+FFFD for each byte that belongs to no character, as SentencePiece has it."""
    out = []
    for byte in data:
        decoded = decode_strict(pending, bytes([byte]))
        if decoded is None:
            # The bytes that were kept begin no character, and only the first of them could.
            out.append(REPLACEMENT * len(pending))
            decoded = decode_strict(b"", bytes([byte])) or (REPLACEMENT, b"")
        text, pending = decoded
        out.append(text)
    return "".join(out), pending


def may_begin(pending: bytes, character: str) -> bool:
    """Whether the incomplete bytes ``pending`` may turn out to be ``character``: by completing it, or as U+FFFD."""
    return character == REPLACEMENT or character.encode().startswith(pending)


def resets(data: bytes) -> bool:
    """
    Whether the incomplete rest after ``data`` is the same whatever stood before it.

    True if a byte in it starts a character, since that ends whatever was incomplete, or if it has four continuation bytes,
    of which the last cannot belong to a character that began before.
    """
    return len(data) >= 4 or any(byte & 0xC0 != 0x80 for byte in data)
