"""The state of a request as a value. `core.snapshot` turns it into plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...turns.channels import ChannelDelta
from ...turns.parsers import PARSER_KINDS
from ...turns.segments import Event, Special, Text
from ..decoding.automaton import Node, StreamMachine
from ..snapshot import STREAM_KINDS, Kinds, Plain, unpack
from .logprobs import TokenLogprob, TopLogprob
from .options import RequestOptions
from .stop_regex import RegexState


class End(NamedTuple):
    """How a request ended."""

    finish_reason: str
    stop_reason: str | int | None
    kept: int
    """Number of tokens that belong to it."""


class RequestState(NamedTuple):
    """The whole state of a request."""

    node: object
    """The state of the stream; None after the end."""

    search: tuple[str, tuple[RegexState, ...], str]
    """The search for stops, as `SearchState.plain` gives it."""

    tokens: int
    """Number of tokens taken."""

    characters: int
    """Number of characters given out."""

    end: End | None
    """None while the request is open."""

    undecided: tuple[tuple[Plain, ...], ...]
    """Each undecided token: the state of the stream after it, and the other fields of `Undecided`."""

    certain: tuple[Plain, ...]
    """The other arguments of `TokenSpans`: the certain text, two places in it, and the lengths of spans that are decided."""

    followers: tuple[tuple[str, Sequence[object]], ...]
    """For each follower: the name of its class, and its `plain`."""

    collected: tuple[Plain, ...]
    """The outputs that are not due yet, as `OutputCollector.plain` gives them."""


_VALUES = (*PARSER_KINDS, ChannelDelta, End, Event, RequestState, Special, Text, TokenLogprob, TopLogprob)
KINDS: Kinds = {**STREAM_KINDS, **{kind.__name__: kind for kind in _VALUES}}


def unpack_request(snapshot: object, fingerprint: str) -> tuple[RequestOptions, RequestState]:
    """
    Check the snapshot of a request, and return its options and state.

    Raises:
        SnapshotError: As `core.snapshot.unpack`.
    """
    return unpack(snapshot, of="request", options=RequestOptions, fingerprint=fingerprint, kinds=KINDS)


def plain_node(node: Node | None) -> object:
    """Return the state of a node; None for no node, and for the node after the end."""
    return None if node is None or node is node.machine.finished else node.state


def node_of(machine: StreamMachine, state: object) -> Node:
    """Return the node that `plain_node` made plain."""
    return machine.finished if state is None else machine.node(state)
