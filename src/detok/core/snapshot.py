"""
The state of a stream or a request as plain data, for JSON and msgpack.

A snapshot is a dict: version, kind, tokenizer fingerprint, options, state, and a checksum of all of these. A stream that holds
the byte E3 as an example:

    value in memory                                        in the snapshot
    State(front=(), joint=Pending(b"\\xe3", Cursor(())))    {"State": [[], {"Pending": [{"bytes": "e3"}, …]}, false]}

So a tuple becomes a list, bytes become ``{"bytes": hex}``, and a value of a named class becomes ``{name: fields}``.

The checksum lets `unpack` refuse a damaged state at once, instead of checking each value of it. It does not protect against
forgery.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

from ..errors import DetokError, SnapshotError
from .decoding.branches import Branch
from .decoding.byte_runs import Broken, Run
from .decoding.joiners import MayBeLast, Pending
from .decoding.pipeline import State
from .decoding.tail import Cursor

SNAPSHOT_VERSION = 2

Kinds = Mapping[str, type]
"""The classes of the values in a state, by name: named tuples and dataclasses."""

STREAM_KINDS: Kinds = {kind.__name__: kind for kind in (State, Cursor, Pending, Branch, Run, Broken, MayBeLast)}

Options = TypeVar("Options")

Plain = Any
"""A value that JSON and msgpack can hold, or one of the classes in `Kinds`."""


class Envelope(NamedTuple):
    """The parts of a snapshot that do not change from step to step: all but the state. Made once for many snapshots."""

    fields: Mapping[str, Plain]
    check: int
    """The checksum of ``fields``. The checksum of a snapshot continues from it with the state."""

    @classmethod
    def of(cls, what: str, options: Mapping[str, Plain], fingerprint: str) -> Envelope:
        """
        Return the envelope for snapshots of one tokenizer and one choice of options.

        Args:
            what: "stream" or "request".
            options: The options as plain data.
            fingerprint: The fingerprint of the tokenizer.
        """
        fields = {"detok": SNAPSHOT_VERSION, "of": what, "tokenizer": fingerprint, "options": dict(options)}
        return cls(fields, _checksum(fields))


def pack(state: Plain, envelope: Envelope, kinds: Kinds = STREAM_KINDS) -> dict[str, Plain]:
    """Return the snapshot of a state."""
    plain, fields = _plain(state, kinds), envelope.fields
    return {**fields, "options": dict(fields["options"]), "state": plain, "check": _checksum(plain, envelope.check)}


def unpack(
    snapshot: object, *, of: str, options: Callable[..., Options], fingerprint: str, kinds: Kinds = STREAM_KINDS
) -> tuple[Options, Plain]:
    """
    Check a snapshot and return its options and its state.

    Args:
        snapshot: The dict that `pack` made, or the same after JSON or msgpack.
        of: The kind that is expected: "stream" or "request".
        options: The class of the options; called with them as keywords.
        fingerprint: The fingerprint of the tokenizer that restores it.
        kinds: The classes that the state may contain.

    Raises:
        SnapshotError: The snapshot has another version, kind or tokenizer, or it is damaged.
    """
    if not isinstance(snapshot, dict) or "detok" not in snapshot:
        raise SnapshotError(f"this is no snapshot of a detok {of}; {of}.snapshot() makes one")
    if snapshot["detok"] != SNAPSHOT_VERSION:
        raise SnapshotError(
            f"the snapshot has version {snapshot['detok']!r}, this detok reads version {SNAPSHOT_VERSION}; "
            f"let the detok that made it finish the {of}"
        )
    if snapshot.get("of") != of:
        raise SnapshotError(
            f"this is the snapshot of a {snapshot.get('of')}, not of a {of}; "
            "tokenizer.restore() goes on with a stream, tokenizer.restore_request() with a request"
        )
    if snapshot.get("tokenizer") != fingerprint:
        raise SnapshotError(
            f"the snapshot was made with the tokenizer {snapshot.get('tokenizer')!r}, this one is {fingerprint!r}; "
            "restore it with the tokenizer that made it"
        )
    head = {key: value for key, value in snapshot.items() if key not in ("state", "check")}
    if snapshot.get("check") != _checksum(snapshot.get("state"), _checksum(head)):
        raise SnapshotError("the snapshot was damaged on its way: its checksum does not fit; take a new one")
    try:
        made = options(**snapshot["options"])
    except (DetokError, LookupError, TypeError) as error:
        raise SnapshotError(f"the snapshot's options are not possible: {error}") from error
    return made, _state(snapshot["state"], kinds)


def _plain(value: Plain, kinds: Kinds) -> Plain:
    name = type(value).__name__
    if name in kinds and is_dataclass(value):
        value = tuple(getattr(value, field.name) for field in fields(value))
    if isinstance(value, (tuple, list)):
        items = [_plain(item, kinds) for item in value]
        return {name: items} if name in kinds else items
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    # JSON has no infinity, and msgpack has no integer of more than 64 bits.
    if isinstance(value, float) and not isfinite(value):
        return {"float": repr(value)}
    return {"int": str(value)} if isinstance(value, int) and abs(value) >> 63 else value


def _state(value: Plain, kinds: Kinds) -> Plain:
    if isinstance(value, dict):
        ((name, content),) = value.items()
        plain = _PLAIN.get(name)
        return plain(content) if plain is not None else kinds[name](*(_state(item, kinds) for item in content))
    return tuple(_state(item, kinds) for item in value) if isinstance(value, (list, tuple)) else value


_PLAIN: Mapping[str, Callable[[Plain], Plain]] = {"bytes": bytes.fromhex, "float": float, "int": int}


def _checksum(value: Plain, before: int = 0) -> int:
    """Return the checksum of plain data, continued from ``before``. Lists equal tuples, and the order of keys does not count."""
    return crc32(repr(_canonical(value)).encode("utf-8", "surrogatepass"), before)


def _canonical(value: Plain) -> Plain:
    if isinstance(value, dict):
        return {key: _canonical(value[key]) for key in sorted(value, key=str)}
    return [_canonical(item) for item in value] if isinstance(value, (list, tuple)) else value
