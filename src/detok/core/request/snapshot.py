"""A whole request as plain data; see `core.snapshot`."""

from __future__ import annotations

from typing import Any

from ..automaton import Node
from ..snapshot import STREAM_KINDS, Kinds, pack, unpack
from .channels import ChannelDelta
from .collected import Collected
from .logprobs import Ledger, TokenLogprob, TopLogprob
from .options import RequestOptions
from .plan import Plan, RequestedOf
from .progress import End, Progress
from .segments import Event, Segmenter, Special, Text
from .stop_search import SearchState
from .tiling import Tiling, Undecided
from .turns import PARSER_KINDS, turn_parser

__all__ = ["pack_request", "unpack_request"]

KINDS: Kinds = {
    **STREAM_KINDS,
    **{kind.__name__: kind for kind in (*PARSER_KINDS, ChannelDelta, End, Event, Special, Text, TokenLogprob, TopLogprob)},
}


def pack_request(plan: Plan, at: Progress, collected: Collected) -> dict[str, Any]:
    """Return the snapshot of a request."""
    state = (
        _state(at.node),
        SearchState(at.candidate, at.patterns).plain(),
        at.held,
        at.count,
        at.given,
        at.end,
        ([(_state(token.node), *token[1:]) for token in at.tiling], *at.tiling.plain()),
        None if at.ledger is None else at.ledger.plain(),
        None if at.segmenter is None else at.segmenter.plain(),
        None if at.splitter is None else at.splitter.state,
        collected.plain(),
    )
    return pack(state, plan.envelope, KINDS)


def unpack_request(snapshot: object, decoder: RequestedOf) -> tuple[Plan, Progress, Collected]:
    """
    Return what a request is made of.

    Raises:
        SnapshotError: As `unpack`.
    """
    options, state = unpack(snapshot, of="request", options=RequestOptions, fingerprint=decoder.fingerprint, kinds=KINDS)
    stream, search, held, count, given, end, tiling, ledger, segmenter, splitter, unsent = state
    plan = decoder.plan(options)
    tokens, *places = tiling
    at = Progress(plan, plan.machine.finished if stream is None else plan.machine.node(stream))
    at.candidate, at.patterns = (None, ()) if plan.search is None else plan.search.state(search)
    at.held, at.count, at.given = held, count, given
    at.end = end
    at.tiling = Tiling(tuple(_undecided(plan, *token) for token in tokens), *places)
    at.ledger = None if ledger is None else Ledger(*ledger)
    at.segmenter = None if segmenter is None else Segmenter(*segmenter)
    at.splitter = None if splitter is None or plan.table is None else turn_parser(plan.table, splitter)
    at.go_to(at.node)
    collected = Collected(options)
    collected.restore(*unsent)
    return plan, at, collected


def _undecided(plan: Plan, state: Any, *lengths: int) -> Undecided:
    return Undecided(None if state is None else plan.machine.node(state), *lengths)


def _state(node: Node | None) -> Any:
    return None if node is None or node is node.automaton.finished else node.state
