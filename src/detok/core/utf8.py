"""
Bytes to characters, chunk by chunk: valid UTF-8 is RFC 3629, and invalid bytes follow Unicode 3.9.

An incomplete character is kept as ``pending``, three bytes at most. *Invalid* is not *incomplete*: bytes that no continuation can
make valid become U+FFFD at once.

    bytes       characters       pending     why
    F0 9F 98                     F0 9F 98    incomplete: one more byte may complete it
    F0 41       U+FFFD "A"                   invalid: 41 cannot follow F0
    E3 81 FF    U+FFFD U+FFFD                E3 81 is one maximal subpart, FF is another
    ED A0       U+FFFD U+FFFD                the beginning of a surrogate, which RFC 3629 section 3 forbids

One U+FFFD for each maximal subpart is Unicode's "Substitution of Maximal Subparts" (3.9). Rust's ``String::from_utf8_lossy`` does
the same, and with it the ByteLevel decoder of ``tokenizers``, which our text must equal.

CPython's incremental codec does the work. The last line of the table is the exception: CPython would wait for a third byte.
"""

from __future__ import annotations

from codecs import utf_8_decode

REPLACEMENT = "\ufffd"


def decode_lossy(pending: bytes, data: bytes) -> tuple[str, bytes]:
    """
    Decode ``pending + data``; return the characters and the bytes of an incomplete last character (0 to 3).

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
    """Do the same as `decode_lossy`, but leave out bytes that belong to no character (ByT5)."""
    joined = pending + data
    text, used = utf_8_decode(joined, "ignore", False)
    rest = joined[used:]
    return (text, b"") if rest[:1] == b"\xed" and rest[1:] >= b"\xa0" else (text, rest)


def decode_strict(pending: bytes, data: bytes) -> tuple[str, bytes] | None:
    """Do the same for bytes that must be valid; return None as soon as no continuation can make them valid."""
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
    """Do the same as `decode_lossy`, but write one U+FFFD for each byte that belongs to no character (SentencePiece)."""
    out = []
    for byte in data:
        decoded = decode_strict(pending, bytes([byte]))
        if decoded is None:
            # Each pending byte is invalid by itself: all but the first are continuation bytes, which begin no character.
            out.append(REPLACEMENT * len(pending))
            decoded = decode_strict(b"", bytes([byte])) or (REPLACEMENT, b"")
        text, pending = decoded
        out.append(text)
    return "".join(out), pending


def may_begin(pending: bytes, character: str) -> bool:
    """Whether the incomplete bytes ``pending`` may become ``character``: completed by later bytes, or as U+FFFD if invalid."""
    return character == REPLACEMENT or character.encode().startswith(pending)


def resets(data: bytes) -> bool:
    """
    Whether the bytes that are pending after ``data`` do not depend on the bytes before it.

    True in two cases. A byte of ``data`` starts a character: it ends any incomplete character before it. Or ``data`` has four
    bytes: a character that began earlier takes at most three continuation bytes, so the fourth is not part of it.
    """
    return len(data) >= 4 or any(byte & 0xC0 != 0x80 for byte in data)
