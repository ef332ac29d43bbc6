"""A whole request as plain data; `core.snapshot` says how it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...turns.channels import ChannelDelta
from ...turns.parsers import PARSER_KINDS
from ...turns.segments import Event, Special, Text
from ..decoding.automaton import Node, StreamMachine
from ..snapshot import STREAM_KINDS, Kinds, unpack
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
    """Where a request stands."""

    node: object
    """The state of the stream; None after its end."""

    search: tuple[str, tuple[RegexState, ...], str]
    """As `SearchState.plain`."""

    tokens: int
    """Taken."""

    characters: int
    """Given out."""

    end: End | None

    undecided: tuple[tuple[Any, ...], ...]
    """Each undecided token: the state of the stream after it, and the other fields of `Undecided`."""

    certain: tuple[Any, ...]
    """The certain text beside them, as `TokenSpans` takes it."""

    followers: tuple[tuple[str, Sequence[object]], ...]
    """Each with the name of its class and its `plain`."""

    collected: tuple[Any, ...]
    """As `OutputCollector.plain`."""


_VALUES = (*PARSER_KINDS, ChannelDelta, End, Event, RequestState, Special, Text, TokenLogprob, TopLogprob)
KINDS: Kinds = {**STREAM_KINDS, **{kind.__name__: kind for kind in _VALUES}}


def unpack_request(snapshot: object, fingerprint: str) -> tuple[RequestOptions, RequestState]:
    """
    Return the options and the state of a request.

    Raises:
        SnapshotError: As `unpack`.
    """
    return unpack(snapshot, of="request", options=RequestOptions, fingerprint=fingerprint, kinds=KINDS)


def plain_node(node: Node | None) -> object:
    """Return the state of a node; None for no node and for the one after the end."""
    return None if node is None or node is node.machine.finished else node.state


def node_of(machine: StreamMachine, state: object) -> Node:
    """Return the node of what `plain_node` gave."""
    return machine.finished if state is None else machine.node(state)
