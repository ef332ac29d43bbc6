"""Snapshots as plain data: what goes in comes out, through JSON and msgpack, and what was changed is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.core.decoding.tail import Cursor
from detok.core.options import DecodeOptions
from detok.core.snapshot import SNAPSHOT_VERSION, Envelope, pack, unpack
from detok.turns.segments import Text

KINDS = {"Cursor": Cursor, "Text": Text}
ENVELOPE = Envelope.of("stream", DecodeOptions().as_dict(), "fingerprint")

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.builds(Cursor, st.tuples(inner), st.text()) | st.builds(Text, st.text())
    ),
    max_leaves=8,
)


def unpacked(snapshot: object) -> Any:
    """The state of a snapshot."""
    return unpack(snapshot, of="stream", options=DecodeOptions, fingerprint="fingerprint", kinds=KINDS)[1]


@given(plain)
def test_state_survives_every_way(state: Any) -> None:
    """As it is, as JSON, and as msgpack: values, their types, and named classes."""
    snapshot = pack(state, ENVELOPE, KINDS)
    ways = [snapshot, json.loads(json.dumps(snapshot, allow_nan=False))]
    if "\\ud" not in json.dumps(snapshot):
        # msgpack has no lone surrogates.
        ways.append(msgspec.msgpack.decode(msgspec.msgpack.encode(snapshot)))
    for way in ways:
        assert repr(unpacked(way)) == repr(state)


@pytest.mark.parametrize("number", [(1 << 63) - 1, 1 << 63, -(1 << 63), -(1 << 63) + 1, 1 << 80, math.inf, -math.inf])
def test_numbers_at_the_border_of_64_bits(number: float) -> None:
    """What msgpack cannot carry is written as text."""
    snapshot = pack((number,), ENVELOPE, KINDS)
    assert unpacked(msgspec.msgpack.decode(msgspec.msgpack.encode(snapshot))) == (number,)
    assert unpacked(json.loads(json.dumps(snapshot, allow_nan=False))) == (number,)


def test_nan_stays_one() -> None:
    """It is equal to nothing, so the checksum goes by how it is written."""
    (number,) = unpacked(json.loads(json.dumps(pack((math.nan,), ENVELOPE, KINDS), allow_nan=False)))
    assert math.isnan(number)


def test_order_of_keys_does_not_matter() -> None:
    """A store may sort them."""
    snapshot = pack((1,), ENVELOPE, KINDS)
    assert unpacked(json.loads(json.dumps(snapshot, sort_keys=True))) == (1,)
    assert unpacked(dict(reversed(snapshot.items()))) == (1,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"detok": SNAPSHOT_VERSION + 1}, f"has version {SNAPSHOT_VERSION + 1}, this detok reads version {SNAPSHOT_VERSION}"),
        ({"of": "request"}, "snapshot of a request, not of a stream"),
        ({"of": None}, "snapshot of a None, not of a stream"),
        ({"tokenizer": "other"}, "was made with the tokenizer 'other'"),
        ({"state": [2]}, "damaged on its way"),
        ({"check": 0}, "damaged on its way"),
        ({"options": {}}, "damaged on its way"),
        ({"more": 1}, "damaged on its way"),
    ],
)
def test_each_field_is_looked_at(change: dict[str, Any], message: str) -> None:
    """Each change is refused with its own reason, and so is a field that is missing."""
    with pytest.raises(detok.SnapshotError, match=message):
        unpacked({**pack((1,), ENVELOPE, KINDS), **change})
    snapshot = pack((1,), ENVELOPE, KINDS)
    for name in change:
        snapshot.pop(name, None)
    if "more" not in change:
        with pytest.raises(detok.SnapshotError):
            unpacked(snapshot)


@pytest.mark.parametrize("snapshot", [None, [], "detok", {}, {"options": {}}, 1])
def test_what_is_no_snapshot_is_refused(snapshot: Any) -> None:
    """With the call that makes one."""
    with pytest.raises(detok.SnapshotError, match=r"no snapshot of a detok stream; stream.snapshot\(\) makes one"):
        unpacked(snapshot)


@pytest.mark.parametrize("options", [{"skip_special_tokens": 1}, {"no_such": True}])
def test_options_that_are_not_possible_are_refused(options: dict[str, Any]) -> None:
    """With a checksum that fits: a detok of other options made it."""
    with pytest.raises(detok.SnapshotError, match="options are not possible"):
        unpacked(pack((1,), Envelope.of("stream", options, "fingerprint"), KINDS))
