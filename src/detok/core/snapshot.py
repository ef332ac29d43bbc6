"""
A stream's state as plain data.

A snapshot is a dict of version, tokenizer fingerprint, options, state and a checksum over them. Tuples become lists, bytes
``{"bytes": hex}`` and named tuples ``{name: fields}``, so that JSON and msgpack carry it. The checksum is there so that a state
which was damaged on its way is refused as a whole, not looked at piece by piece; it is no protection against forgery.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any
from zlib import crc32

from ..errors import OptionError, SnapshotError
from .branches import Branch
from .byte_runs import Broken, Run
from .joiners import Pending, Undecided
from .options import DecodeOptions
from .pipeline import State
from .tail import Cursor
from .window import WindowState

__all__ = ["SNAPSHOT_VERSION", "pack", "unpack"]

SNAPSHOT_VERSION = 1


def pack(state: Any, *, options: DecodeOptions, fingerprint: str) -> dict[str, Any]:
    """Return the snapshot of a state."""
    snapshot = {
        "detok": SNAPSHOT_VERSION,
        "tokenizer": fingerprint,
        "options": options.as_dict(),
        "state": _plain(state),
    }
    return {**snapshot, "check": _checksum(snapshot)}


def unpack(snapshot: object, *, fingerprint: str) -> tuple[DecodeOptions, Any]:
    """
    Return the options and the state of a snapshot.

    Raises:
        SnapshotError: It is of another version or tokenizer, or was damaged.
    """
    if not isinstance(snapshot, dict) or "detok" not in snapshot:
        raise SnapshotError("this is no snapshot of a detok stream; stream.snapshot() makes one")
    if snapshot["detok"] != SNAPSHOT_VERSION:
        raise SnapshotError(
            f"the snapshot has version {snapshot['detok']!r}, this detok reads version {SNAPSHOT_VERSION}; "
            "let the detok that made it finish the stream"
        )
    if snapshot.get("tokenizer") != fingerprint:
        raise SnapshotError(
            f"the snapshot was made with the tokenizer {snapshot.get('tokenizer')!r}, this one is {fingerprint!r}; "
            "restore it with the tokenizer that made it"
        )
    body = {key: value for key, value in snapshot.items() if key != "check"}
    if snapshot.get("check") != _checksum(body):
        raise SnapshotError("the snapshot was damaged on its way: its checksum does not fit; take a new one")
    try:
        options = DecodeOptions(**{field.name: snapshot["options"][field.name] for field in fields(DecodeOptions)})
    except (OptionError, LookupError, TypeError) as error:
        raise SnapshotError(f"the snapshot's options are not possible: {error}") from error
    return options, _state(snapshot["state"])


_KINDS = {kind.__name__: kind for kind in (State, Cursor, Pending, Branch, Run, Broken, Undecided, WindowState)}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        fields = [_plain(item) for item in value]
        name = type(value).__name__
        return {name: fields} if name in _KINDS else fields
    return {"bytes": value.hex()} if isinstance(value, bytes) else value


def _state(value: Any) -> Any:
    if isinstance(value, dict):
        ((name, content),) = value.items()
        return bytes.fromhex(content) if name == "bytes" else _KINDS[name](*map(_state, content))
    return tuple(map(_state, value)) if isinstance(value, (list, tuple)) else value


def _checksum(value: Any) -> int:
    """Over a spelling in which lists and tuples are alike, and dicts in any order."""
    return crc32(repr(_canonical(value)).encode("utf-8", "surrogatepass"))


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return [[key, _canonical(value[key])] for key in sorted(value, key=str)]
    return [_canonical(item) for item in value] if isinstance(value, (list, tuple)) else value
