"""Where a request stands, and the one place where it is decided what a token does to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..automaton import Node, Table
from .channels import TurnFollower
from .harmony import HarmonyParser
from .logprobs import Ledger, Logprob
from .output import RequestOutput
from .plan import Plan
from .segments import Segmenter
from .stop_regex import RegexState
from .stop_search import SearchState
from .stops import Candidate
from .tags import TagParser
from .tiling import Tiling, agree, rest
from .turns import turn_parser

__all__ = ["Progress"]

NEVER = 0
"""`Progress.quick_until` of a request in which every token goes the long way."""

ALWAYS = 1 << 62

# So many tokens may be undecided before it is looked whether they still are, if nobody wants their tiles.
MAX_UNASKED = 16
# So many tokens may wait for their tiles, if somebody does.
MAX_WAITING = 4096


class End(NamedTuple):
    """How a request ended."""

    finish_reason: str
    stop_reason: str | int | None
    kept: int
    """So many tokens belong to it."""


class Progress:
    """All of a request that changes with a token."""

    __slots__ = (
        "candidate",
        "count",
        "end",
        "given",
        "held",
        "last",
        "ledger",
        "moves",
        "node",
        "patterns",
        "plan",
        "quick_until",
        "segmenter",
        "splitter",
        "tiling",
        "whole",
    )  # fmt: skip

    plan: Plan
    node: Node
    last: Node
    """Where the stream stood when it ended; until then without meaning."""
    whole: Table
    candidate: Candidate | None
    """Where the search for stop strings stands."""
    patterns: tuple[RegexState, ...]
    """Where the searches for patterns stand."""
    moves: dict[str, tuple[str, Candidate]] | None
    """What is remembered of the candidate; None if there are no stop strings."""
    held: str
    """Text that is certain, but may yet belong to a stop."""
    count: int
    """Tokens taken."""
    given: int
    """Characters given out."""
    quick_until: int
    """While fewer tokens than this were taken, one that is whole characters may go the short way."""
    end: End | None
    tiling: Tiling
    ledger: Ledger | None
    segmenter: Segmenter | None
    splitter: TurnFollower | None

    def __init__(self, plan: Plan, node: Node) -> None:
        self.plan = plan
        self.candidate, self.patterns = (None, ()) if plan.search is None else plan.search.start
        self.held = ""
        self.count = 0
        self.given = 0
        self.end = None
        self.tiling = Tiling()
        self.ledger = None
        self.segmenter = Segmenter() if plan.wants_segments else None
        self.splitter = None if plan.table is None else turn_parser(plan.table)
        self.last = node
        self.go_to(node)

    def copy(self) -> Progress:
        """Return another one that stands here too."""
        other = Progress.__new__(Progress)
        for field in Progress.__slots__:
            value = getattr(self, field)
            copies = isinstance(value, (Tiling, Ledger, Segmenter, TagParser, HarmonyParser))
            setattr(other, field, value.copy() if copies else value)
        return other

    def go_to(self, node: Node) -> None:
        """Stand at a node, and see whether the next token may go the short way."""
        plan, options = self.plan, self.plan.options
        self.node = node
        self.whole = node.whole
        self.moves = None if self.candidate is None else self.candidate.moves
        may = plan.is_plain and self.ledger is None and self.end is None and self.count >= options.min_tokens
        self.quick_until = NEVER if not may else ALWAYS if options.max_tokens is None else options.max_tokens - 1

    def quick(self, token_id: int) -> str | None:
        """
        Take an id the short way, and return the text that comes out; None, with nothing changed, if it has to go the long way.

        Short is what was done before: the move of the stream and that of the search are both remembered.
        """
        move = self.node.moves.get(token_id)
        if move is None:
            return None
        text, after = move
        if self.moves is not None:
            candidate = self.candidate
            if text:
                found = self.moves.get(text)
                if found is None:
                    return None
                text, candidate = found
            if after is after.automaton.settled:
                self.tiling.clear()
            elif len(self.tiling.steps) < MAX_UNASKED:
                self.tiling.steps.append((after, move[0]))
            else:
                return None
            if candidate is not self.candidate and candidate is not None:
                self.become(candidate)
        if after is not self.node:
            self.node = after
            self.whole = after.whole
        self.count += 1
        self.given += len(text)
        return text

    def become(self, candidate: Candidate) -> None:
        """Take the next candidate for a stop string; if there are no patterns, it is all that is held."""
        self.candidate = candidate
        self.moves = candidate.moves
        if self.plan.search is not None and self.plan.search.holds:
            self.held = candidate.text

    def follow(self, node: Node, candidate: Candidate | None, count: int, given: int) -> None:
        """Stand where so many tokens have led that a `BatchDecoder` took by `Places`, and that gave so many characters."""
        if candidate is not None:
            self.become(candidate)
        self.count += count
        self.given += given
        self.go_to(node)

    def feed(self, ids: Sequence[int], logprobs: Sequence[Logprob], finish_reason: str | None, stop_reason: Any) -> RequestOutput:
        """
        Take the ids of one step, and the engine's end if it says one; return what is new.

        Raises:
            StopRegexTimeout: A pattern took too long; throw this object away, a copy is as before.
        """
        texts = []
        last = len(ids) - 1
        for index, token_id in enumerate(ids):
            if self.ledger is not None:
                self.ledger.step(self.plan.entry(self.node, token_id, logprobs[index]))
            if self.segmenter is not None:
                self.segmenter.step(self.plan.special(token_id))
            said = index == last and finish_reason == "stop" and self.plan.ends_here(token_id, stop_reason)
            if said or (token_id in self.plan.ends and self.count >= self.plan.options.min_tokens):
                texts.append(self._terminate(token_id, stop_reason if said else None))
            else:
                texts.append(self._take(token_id))
                if self.end is None and self.count == self.plan.options.max_tokens:
                    texts.append(self._finish("length", None))
            if self.end is not None:
                return self._output("".join(texts), ids, index + 1, logprobs)
        if finish_reason is not None:
            texts.append(self._finish(finish_reason, stop_reason))
        return self._output("".join(texts), ids, len(ids), logprobs)

    def _take(self, token_id: int) -> str:
        """Take an id, and return the text that comes out."""
        self.count += 1
        if not self.plan.options.detokenize:
            self._decide([0])
            return ""
        node = self.node
        text, after = node.moves.get(token_id) or node.automaton.advance(node, token_id)
        return self._add(token_id, text, after)

    def _terminate(self, token_id: int, stop_reason: Any) -> str:
        """Take the id that stops the request, with or without its text; ``stop_reason`` is the engine's, if it gave one."""
        self.count += 1
        if stop_reason is None and token_id in self.plan.stop_ids:
            stop_reason = token_id
        if not self.plan.options.detokenize:
            self._decide([0])
            return self._finish("stop", stop_reason)
        if not self.plan.options.include_stop_str_in_output:
            self.tiling.steps.append((self.node, ""))
            return self._finish("stop", stop_reason)
        text, after = self.plan.shown(self.node, token_id)
        self.tiling.steps.append((after, text))
        # Its own text is none to search, but it may decide what was held before.
        whole = text + rest(after)
        own = agree(rest(self.node), whole)
        self.tiling.end(rest(after))
        return self._end_with("stop", stop_reason, whole[:own], whole[own:])

    def _finish(self, finish_reason: str, stop_reason: Any) -> str:
        """End the stream, and return all that was held, up to a stop that completes in it."""
        text = rest(self.node) if self.plan.options.detokenize else ""
        self.tiling.end(text)
        return self._end_with(finish_reason, stop_reason, text)

    def _end_with(self, finish_reason: str, stop_reason: Any, text: str, shown: str = "") -> str:
        """Return what comes out of the last text, up to a stop that completes in it, and else what is shown behind it."""
        self.last, self.node = self.node, self.node.automaton.finished
        out = self._search(text, len(shown))
        if self.end is None:
            out += self.held + shown
            self.held = ""
            self._stop(finish_reason, stop_reason, self.count)
        self.go_to(self.node)
        return out

    def _add(self, token_id: int, text: str, after: Node) -> str:
        """Take a token's text and the node behind it; return the text that comes out."""
        self.node = after
        if self.tiling or after is not after.automaton.settled:
            # Without a stop nobody asks where a token's text ends, if not for its tile.
            if self._is_asked or self.plan.search is not None:
                self.tiling.steps.append((after, text))
        elif self._is_asked:
            self._decide([len(text)])
        out = self._search(text)
        if self.end is None and self.tiling:
            self._settle(text)
        self.go_to(self.node)
        return out

    def _settle(self, text: str) -> None:
        """Take out the tokens whose tiles are decided."""
        is_settled = self.node is self.node.automaton.settled
        if is_settled and not self._is_asked:
            self.tiling.clear()
        elif not (text or is_settled):
            self.tiling.take_steps()
        elif is_settled or (self._is_asked and self.tiling.is_ripe) or len(self.tiling.steps) > MAX_UNASKED:
            self._decide(self.tiling.decided(ends=is_settled))
        while self._is_asked and len(self.tiling) > MAX_WAITING:
            self._decide(self.tiling.release())

    def _search(self, text: str, shown: int = 0) -> str:
        """
        Search the new text for stops; return what comes out of it, and end the request if one completed.

        Args:
            text: What has become certain.
            shown: So much certain text stands behind it in which no stop counts.
        """
        search = self.plan.search
        if search is None or not text:
            return text
        silent = self._silent(text)
        state = SearchState(self.candidate, self.patterns)
        if silent:
            state, _ = search.scan(state, text[:silent], counts=False)
        state, match = search.scan(state, text[silent:])
        self.candidate, self.patterns = state
        whole = self.held + text
        if match is None:
            held = search.held(state)
            self.held = whole[len(whole) - held :]
            return whole[: len(whole) - held]
        end = len(self.held) + silent + match.end
        self.held = ""
        kept = self.count
        if self.tiling:
            behind = self.tiling.cut(self.tiling.first_with(len(whole) - end + shown))
            kept -= behind
            self._drop(behind)
        self._stop("stop", match.reason, kept)
        return whole[: end - match.length if search.holds else end]

    def _silent(self, text: str) -> int:
        """How much of the new text belongs to the first `min_tokens` tokens, in which no stop counts."""
        least = self.plan.options.min_tokens
        if self.count <= least:
            return len(text)
        first = self.count - len(self.tiling) + 1
        if least < first or not self.tiling:
            return 0
        return max(0, len(text) - self.tiling.end_of(least - first))

    def _drop(self, count: int) -> None:
        """Leave out the last tokens: they stand behind a stop."""
        if self.ledger is not None and self.plan.options.after_stop == "cut":
            self.ledger.drop(count)
        if self.segmenter is not None:
            self.segmenter.drop(count)

    def _stop(self, finish_reason: str, stop_reason: Any, kept: int) -> None:
        self.end = End(finish_reason, stop_reason, kept)
        self._decide(self.tiling.decided(ends=True))

    @property
    def _is_asked(self) -> bool:
        """Whether the tile of every token is asked for."""
        return self.ledger is not None or self.segmenter is not None

    def _decide(self, lengths: list[int]) -> None:
        if self.ledger is not None:
            self.ledger.decide(lengths)
        if self.segmenter is not None:
            self.segmenter.decide(lengths)

    def _output(self, text: str, ids: Sequence[int], taken: int, logprobs: Sequence[Logprob]) -> RequestOutput:
        """Return what is new: the text, the ids, and what was asked for beside them."""
        end = self.end
        self.given += len(text)
        output = RequestOutput(text, list(ids))
        if end is not None:
            self._end_of(output, end, ids, taken, logprobs)
        if self.ledger is not None:
            output.logprobs = self.ledger.take(text, ends=end is not None)
        if self.segmenter is not None:
            segments = self.segmenter.take(text, ends=end is not None)
            if self.plan.options.segments:
                output.segments = segments
            if self.splitter is not None:
                output.channels = self.splitter.feed(segments) + (self.splitter.finish() if end is not None else [])
        return output

    def _end_of(self, output: RequestOutput, end: End, ids: Sequence[int], taken: int, logprobs: Sequence[Logprob]) -> None:
        output.finish_reason = end.finish_reason
        output.stop_reason = end.stop_reason
        output.text_end = self.given
        count = self.count - end.kept
        if self.plan.options.after_stop == "keep":
            output.tokens_kept = self.count + len(ids) - taken
            if self.ledger is not None:
                self._note_behind(ids[taken:], logprobs[taken:])
                self.ledger.decide([0] * (count + len(ids) - taken))
            return
        output.tokens_kept = end.kept
        kept = max(0, taken - count)
        output.token_ids = list(ids[:kept])
        if kept < len(ids):
            output.dropped_token_ids = list(ids[kept:])
        if count > taken:
            output.retracted_tokens = count - taken

    def _note_behind(self, ids: Sequence[int], logprobs: Sequence[Logprob]) -> None:
        """Keep the logprobs of tokens behind the end, although nothing of the text is theirs."""
        node = self.last
        for token_id, logprob in zip(ids, logprobs, strict=False):
            if self.ledger is not None:
                self.ledger.step(self.plan.entry(node, token_id, logprob))
            _, node = node.automaton.advance(node, token_id)
