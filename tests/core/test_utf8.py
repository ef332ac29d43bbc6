"""Incomplete is not invalid: every byte string of up to four bytes from each class that UTF-8 tells apart."""

from __future__ import annotations

from functools import cache
from itertools import product

from detok.core.utf8 import decode_lossy, decode_strict, may_begin, resets

# One byte from each class of RFC 3629's table, and the borders of each.
BYTES = [0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF]
CONTINUATIONS = [0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF]


@cache
def can_become_valid(data: bytes) -> bool:
    """Whether some bytes behind ``data`` make it valid, tried out."""
    for length in range(4):
        for end in product(CONTINUATIONS, repeat=length):
            try:
                (data + bytes(end)).decode()
            except UnicodeDecodeError:
                continue
            return True
    return False


def test_only_what_can_become_valid_is_kept() -> None:
    """The rest is kept if and only if it may yet be a character; the whole is always the lossy decode."""
    for length in range(1, 5):
        for data in map(bytes, product(BYTES, repeat=length)):
            text, rest = decode_lossy(b"", data)
            assert text + rest.decode(errors="replace") == data.decode(errors="replace")
            assert not rest or (len(rest) <= 3 and can_become_valid(rest))
            assert rest or not can_become_valid(data[-1:]) or data[-1] < 0x80, data


def test_strict_gives_up_exactly_when_nothing_can_help() -> None:
    """None if and only if no continuation makes the bytes valid."""
    for length in range(1, 4):
        for data in map(bytes, product(BYTES, repeat=length)):
            decoded = decode_strict(b"", data)
            assert (decoded is not None) == can_become_valid(data)
            if decoded is not None:
                assert decoded[0].encode() + decoded[1] == data


def test_lossy_does_not_depend_on_the_split() -> None:
    """Two pieces give what one gives."""
    for data in map(bytes, product(BYTES, repeat=3)):
        whole = decode_lossy(b"", data)
        for cut in range(4):
            text, pending = decode_lossy(b"", data[:cut])
            more, pending = decode_lossy(pending, data[cut:])
            assert (text + more, pending) == whole


def test_settles_means_that_the_past_does_not_matter() -> None:
    """If it says so, the incomplete rest is the same behind every incomplete beginning."""
    beginnings = [b"", b"\xc2", b"\xe0", b"\xe1", b"\xe1\x80", b"\xf0", b"\xf1\x80", b"\xf1\x80\x80", b"\xed"]
    for length in range(1, 5):
        for data in map(bytes, product(BYTES[:12:2] + BYTES[12:], repeat=length)):
            rests = {decode_lossy(beginning, data)[1] for beginning in beginnings}
            assert len(rests) == 1 or not resets(data)


def test_may_begin_excludes_other_characters() -> None:
    """Bytes exclude the characters that they do not begin, but never U+FFFD."""
    assert may_begin("あ".encode()[:2], "あ")
    assert not may_begin("あ".encode()[:2], ".")
    assert may_begin(b"\xe3", "\ufffd")
