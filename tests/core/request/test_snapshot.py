"""A whole request as plain data: every kind of value that a request may hold survives."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

import detok
from detok.core.request.snapshot import KINDS, End, node_of, plain_node
from tests.support.handmade import FALLBACK, FUSE, byte_tokens, make, sequence

TOKENS = ["<s>", *byte_tokens("あA".encode()), "a", "b", "<think>", "</think>"]
SPECIAL, E3, X81, X82, BYTE_A, A, B, THINK, UNTHINK = range(len(TOKENS))
TOKENIZER = detok.load(make(sequence(FALLBACK, FUSE), TOKENS, special=["<s>"], added=["<think>", "</think>"]))

TABLE = detok.TURN_FORMATS["think"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stop": ["ab", "あA"]},
        {"stop_regex": "b+a"},
        {"segments": True},
        {"channels": TABLE, "segments": True, "output": "cumulative"},
        {"output": "final", "stop": "zz"},
        {"stream_interval": 3},
        {"stop": "b", "after_stop": "keep", "after_finish": "ignore"},
        {"detokenize": False},
    ],
    ids=repr,
)
@pytest.mark.parametrize("has_logprobs", [False, True])
def test_request_goes_on_from_plain_data_after_every_token(options: dict[str, Any], has_logprobs: bool) -> None:
    """In an open run, with a candidate, after the end: output by output, and the snapshot of the twin is the same."""
    entry = [detok.Logprob(-0.5, 1, [(A, -0.5), (E3, float("-inf"))])] if has_logprobs else None
    request = TOKENIZER.request(**{"after_finish": "ignore", **options})
    for token_id in (A, E3, X81, SPECIAL, X82, BYTE_A, THINK, A, A, B, B, A):
        snapshot = request.snapshot()
        twins = [
            TOKENIZER.restore_request(json.loads(json.dumps(snapshot, allow_nan=False))),
            TOKENIZER.restore_request(msgspec.msgpack.decode(msgspec.msgpack.encode(snapshot))),
        ]
        given = request.feed([token_id], entry)
        for twin in twins:
            assert twin.snapshot() == snapshot
            assert (twin.held, twin.held_because, twin.num_tokens) == _held(snapshot)
            assert twin.feed([token_id], entry) == given
    assert TOKENIZER.restore_request(request.snapshot()).finish() == request.finish()


def _held(snapshot: Any) -> tuple[str | bytes, str, int]:
    """What a request that stands here shows."""
    request = TOKENIZER.restore_request(snapshot)
    return request.held, request.held_because, request.num_tokens


def test_node_after_the_end_is_nothing() -> None:
    """And nothing is the node after the end, or none at all."""
    machine = TOKENIZER.stream()._node.machine
    assert plain_node(None) is plain_node(machine.finished) is None
    assert node_of(machine, None) is machine.finished
    assert node_of(machine, plain_node(machine.idle)) is machine.idle


def test_classes_of_values_are_told_apart_by_name() -> None:
    """No two of them have one name."""
    assert len({*KINDS.values()}) == len(KINDS)
    assert KINDS["End"] is End
