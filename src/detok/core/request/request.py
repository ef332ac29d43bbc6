"""
`RequestDecoder`: the ids of one request in, step by step; its outputs out. This module decides what a token does.

Nearly every token is *usual*: no stop completes in it, it ends nothing, and nobody wants more of it than its text. Its output is
one look-up at the *place* of the request (see `places`). The request pays the cost of the move, and goes to the next place; the
rest of its state is brought up to date when it is needed (`_catch_up`). All other tokens take the long way (`_take`), through the
node of the stream, the search for stops, the spans of undecided tokens, and the followers. The stop "END" as an example:

    feed     way                          output                               state afterwards
    "The"    look-up                      "The"                                spent: 1 token, 3 characters
    " E"     look-up; " E" is held as E   " "                                  spent: 2 tokens, 4 characters
    "ND"     no move: catch up, then      "", finish_reason "stop",            ended
             the long way                 stop_reason "END"
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn, SupportsIndex

from ...errors import OptionError, RequestFinished
from ...ids import as_ids
from ..decoding.automaton import Node
from ..options import PlainData
from ..snapshot import pack
from .compiled import CompiledRequest
from .ends import FinishReason, StopReason, as_end
from .followers import NO_LOGPROB, LogprobCollector
from .logprobs import Logprob, as_logprobs
from .output import OutputCollector, RequestOutput, merged
from .places import MAX_MOVES, NOWHERE, TOKEN, Move
from .snapshot import KINDS, End, RequestState, node_of, plain_node
from .spans import TokenSpans, Undecided, common_length, held_text

Ids = Iterable[SupportsIndex]
Logprobs = Iterable[Logprob | float | None] | None


class RequestDecoder:
    """
    One request: a stream with stops, limits and outputs. ``tokenizer.request()`` makes it.

    Give `feed` the ids of each step of the engine, and pass on each output that is true. An output with a ``finish_reason`` is
    the last one. If the engine ends the request, say so in `feed`, or call `finish`: held text comes out only then.

    For every split of the ids into steps, the outputs together have the same content. One request belongs to one thread at a
    time.

    >>> import detok
    >>> tokenizer = detok.load(detok.EMBEDDED)
    >>> request = tokenizer.request(stop=["END"])
    >>> outputs = [request.feed([token_id]) for token_id in tokenizer.encode("The END")]
    >>> "".join(output.text for output in outputs if output), outputs[-1].finish_reason, outputs[-1].stop_reason
    ('The ', 'stop', 'END')
    """

    __slots__ = (
        "_budget",
        "_collected",
        "_compiled",
        "_count",
        "_end",
        "_followers",
        "_given",
        "_last",
        "_left",
        "_node",
        "_noted",
        "_place",
        "_search",
        "_spans",
    )

    def __init__(self, compiled: CompiledRequest, node: Node) -> None:
        self._compiled = compiled
        self._node = node
        """The node of the stream."""
        self._last = node
        """The node of the stream before the end; not used before then."""
        self._search = compiled.search_start
        """The state of the search for stops."""
        self._count = 0
        """Number of tokens taken."""
        self._given = 0
        """Number of characters given out."""
        self._end: End | None = None
        self._spans = TokenSpans()
        self._followers = compiled.followers()
        self._collected = OutputCollector(compiled.options)
        self._noted: list[Move] = []
        """The moves of usual tokens that `_spans` and `_collected` do not include yet."""
        self._stand()

    def _stand(self) -> None:
        """Find the place of this request, and what the usual tokens that are looked up from there may cost."""
        compiled = self._compiled
        self._place, moves = NOWHERE, 0
        if compiled.is_plain and not self._followers and self._end is None and self._count >= compiled.options.min_tokens:
            at_once = compiled.gives_at_once
            self._place = compiled.places.at(self._node, self._search.candidate, compiled.ends, gives_at_once=at_once)
            moves = MAX_MOVES
            # The token that reaches `max_tokens`, and the one after which an output is due, take the long way: they do more.
            if compiled.options.max_tokens is not None:
                moves = min(moves, compiled.options.max_tokens - 1 - self._count)
            if not at_once:
                moves = min(moves, self._collected.until_due() - 1)
        self._budget = self._left = moves * TOKEN + TOKEN - 1
        """What the moves from here may cost, and what is left of it: the fields above do not include the difference yet."""

    def feed(
        self,
        token_ids: Iterable[SupportsIndex],
        logprobs: Iterable[Logprob | float | None] | None = None,
        finish_reason: FinishReason | None = None,
        stop_reason: str | int | None = None,
    ) -> RequestOutput:
        """
        Take the ids of one step, and return the output that is due; an empty one, which is false, if none is.

        All or nothing: if it raises, the request is unchanged.

        Args:
            token_ids: A list, numpy array or other iterable of integers. It may be empty.
            logprobs: A number, None or `Logprob` for each id. Give them in every step of the request, or in none.
            finish_reason: The reason, if the engine ended the request with this step. A stop that is found in the text has
                precedence. With "stop", a last id that is special or an end of sequence counts as the stop: it has no text.
            stop_reason: The stop, if the engine gives it: a token id, or the string. It counts only with a ``finish_reason``.

        Raises:
            RequestFinished: The request has ended, and there are more ids (with ``after_finish="error"``).
            OptionError: `logprobs`, `finish_reason` or `stop_reason` is not accepted.
            TokenTypeError: An id is not an integer.
            UnknownTokenId: The tokenizer does not have one of the ids (with ``unknown_ids="error"``).
            StopRegexTimeout: A search for a pattern took longer than `stop_regex_timeout`.
        """
        if logprobs is None and finish_reason is None and type(token_ids) is list:
            # A usual token. `BatchDecoder.step` repeats this look-up, since a call would cost half as much again.
            try:
                (token_id,) = token_ids
                move = self._place.moves[token_id]
            except (KeyError, ValueError, TypeError):
                return self._feed(token_ids, None, None, stop_reason)
            left = self._left - move[2]
            if left >= 0 and type(token_id) is int:
                self._left = left
                self._place = move[1]
                if move[3]:
                    self._noted.append(move)
                return move[0]
        return self._feed(token_ids, logprobs, finish_reason, stop_reason)

    def finish(self, finish_reason: FinishReason = "stop", stop_reason: str | int | None = None) -> RequestOutput:
        """
        End the request, and return its last output, with all text that was held. A second call returns an empty output.

        Args:
            finish_reason: The reason. A stop that completes in the held text has precedence.
            stop_reason: The stop, if the engine gives it: a token id, or the string.

        Raises:
            OptionError: `finish_reason` or `stop_reason` is not accepted.
            StopRegexTimeout: A search for a pattern took longer than `stop_regex_timeout`. The request is unchanged.
        """
        return self._feed((), None, finish_reason, stop_reason)

    def _feed(self, token_ids: Ids, logprobs: Logprobs, finish_reason: str | None, stop_reason: StopReason) -> RequestOutput:
        finish_reason, stop_reason = as_end(finish_reason, stop_reason)
        ids = as_ids(token_ids)
        if self._end is not None:
            if ids and self._compiled.options.after_finish == "error":
                raise RequestFinished(self._end.finish_reason)
            return RequestOutput()
        self._compiled.check_ids(ids)
        if logprobs is None and finish_reason is None:
            moves = self._usual(ids)
            if moves:
                self._left -= sum([move[2] for move in moves])
                self._place = moves[-1][1]
                self._noted += [move for move in moves if move[3]]
                if len(moves) == 1 or not self._compiled.gives_at_once:
                    return moves[0][0]
                return merged([move[0] for move in moves])
        self._catch_up()
        # A search for a pattern can time out in the middle of the step. So a twin takes the step, and this request becomes the
        # twin if that worked.
        taker = self._twin() if self._compiled.options.stop_regex else self
        output = taker._take(ids, taker._entries(ids, logprobs), finish_reason, stop_reason)
        if taker is not self:
            self._become(taker)
        output = self._collected.add(output)
        self._stand()
        return output

    def _twin(self) -> RequestDecoder:
        """Return an independent request with the same state, but without the gathered outputs."""
        twin = RequestDecoder(self._compiled, self._node)
        twin._become(self)
        twin._spans = self._spans.copy()
        twin._followers = tuple(follower.copy() for follower in self._followers)
        return twin

    def _become(self, other: RequestDecoder) -> None:
        """Take over the state of another request, but not its gathered outputs."""
        self._node, self._last, self._search = other._node, other._last, other._search
        self._count, self._given, self._end = other._count, other._given, other._end
        self._spans, self._followers = other._spans, other._followers

    def _usual(self, ids: Sequence[int]) -> list[Move]:
        """Return the moves of these ids, if all are usual here; else an empty list."""
        if len(ids) > self._left // TOKEN:
            self._catch_up()
            self._stand()
        compiled = self._compiled
        place = self._place
        moves: list[Move] = []
        if len(ids) <= self._left // TOKEN:
            for token_id in ids:
                move = place.moves.get(token_id) or compiled.places.learn(place, token_id, compiled.search)
                if move is None:
                    return []
                moves.append(move)
                place = move[1]
        return moves

    def _catch_up(self) -> None:
        """Bring the whole state up to date with the usual tokens that were looked up."""
        tokens, characters = divmod(self._budget - self._left, TOKEN)
        if not tokens:
            return
        self._budget = self._left
        noted, self._noted = self._noted, []
        assert self._place.node is not None
        self._node = self._place.node
        self._count += tokens
        self._given += characters
        if self._compiled.search is not None:
            self._search = self._compiled.search.at(self._place.candidate)
            self._add_spans(noted)
        if not self._compiled.gives_at_once:
            self._collected.gather([new for _, _, _, _, new, _ in noted])

    def _add_spans(self, noted: Sequence[Move]) -> None:
        """Add the last of the noted tokens to the spans: those after the stream was idle, whose spans are undecided."""
        # At the idle node all spans before are decided, so only the tokens after the last idle place are of interest.
        begin = len(noted)
        while begin and not noted[begin - 1][1].is_idle:
            begin -= 1
        if begin:
            self._spans.clear()
        for _, place, _, _, _, certain in noted[begin:]:
            assert place.node is not None
            self._spans.add(place.node, certain)
        self._spans.settle(is_idle=self._place.is_idle, wanted=False)

    def _entries(self, ids: Sequence[int], logprobs: Logprobs) -> Sequence[Logprob]:
        """Return a logprob for each id. Refuse logprobs that are given in some steps only."""
        has_logprobs = any(isinstance(one, LogprobCollector) for one in self._followers)
        if logprobs is None:
            if ids and has_logprobs:
                raise OptionError(option="logprobs", value=None, accepted=f"{_ALWAYS}; earlier steps had them")
            return [NO_LOGPROB] * len(ids)
        entries = as_logprobs(logprobs, len(ids))
        if ids and not has_logprobs:
            if self._count:
                raise OptionError(option="logprobs", value=logprobs, accepted=f"{_ALWAYS}; earlier steps had none")
            self._followers = (self._compiled.follower(LogprobCollector.__name__, ()), *self._followers)
        return entries

    def _take(
        self, ids: Sequence[int], entries: Sequence[Logprob], finish_reason: str | None, stop_reason: StopReason
    ) -> RequestOutput:
        """
        Take the ids of one step the long way, and the end if the engine gives one. Return the output of this step.

        Raises:
            StopRegexTimeout: A search for a pattern took longer than `stop_regex_timeout`.
        """
        compiled = self._compiled
        texts = []
        for index, token_id in enumerate(ids):
            for follower in self._followers:
                follower.step(self._node, token_id, entries[index])
            said = index == len(ids) - 1 and finish_reason == "stop" and compiled.ended_by(token_id, stop_reason)
            if said or (token_id in compiled.ends and self._count >= compiled.options.min_tokens):
                texts.append(self._take_end(token_id, stop_reason if said else None))
            else:
                texts.append(self._take_token(token_id))
                if self._end is None and self._count == compiled.options.max_tokens:
                    texts.append(self._finish("length", None))
            if self._end is not None:
                return self._output("".join(texts), ids, index + 1, entries)
        if finish_reason is not None:
            texts.append(self._finish(finish_reason, stop_reason))
        return self._output("".join(texts), ids, len(ids), entries)

    def _take_token(self, token_id: int) -> str:
        """Take an id the long way, and return the text that comes out."""
        self._count += 1
        if not self._compiled.options.detokenize:
            self._decide([0])
            return ""
        text, node = self._node.machine.advance(self._node, token_id)
        self._node = node
        wanted = bool(self._followers)
        if self._spans or not node.is_idle:
            # Spans are used by followers, and to find the token that a stop completes in. Else nobody needs them.
            if wanted or self._compiled.search is not None:
                self._spans.add(node, text)
        elif wanted:
            self._decide([len(text)])
        out = self._find_stop(text)
        if self._end is None and self._spans:
            self._decide(self._spans.settle(is_idle=node.is_idle, wanted=wanted))
        return out

    def _take_end(self, token_id: int, stop_reason: str | int | None) -> str:
        """Take the id that stops the request, and return the text that comes out. The engine may have given a ``stop_reason``."""
        self._count += 1
        if stop_reason is None and token_id in self._compiled.stop_ids:
            stop_reason = token_id
        if not self._compiled.options.detokenize:
            self._decide([0])
            return self._finish("stop", stop_reason)
        if not self._compiled.options.include_stop_str_in_output:
            self._spans.add(self._node, "")
            return self._finish("stop", stop_reason)
        text, after = self._compiled.shown(self._node, token_id)
        self._spans.add(after, text)
        # No stop counts in the text of the token itself. Text that was held before it, and is certain now, is searched.
        whole = text + held_text(after)
        own = common_length(held_text(self._node), whole)
        self._spans.end(held_text(after))
        return self._end_with("stop", stop_reason, whole[:own], whole[own:])

    def _finish(self, finish_reason: str, stop_reason: str | int | None) -> str:
        """End the stream, and return all text that was held, up to a stop that completes in it."""
        text = held_text(self._node) if self._compiled.options.detokenize else ""
        self._spans.end(text)
        return self._end_with(finish_reason, stop_reason, text)

    def _end_with(self, finish_reason: str, stop_reason: str | int | None, text: str, shown: str = "") -> str:
        """End with a last text. Return the part of it up to a stop, or all of it and ``shown``, which is not searched."""
        self._last, self._node = self._node, self._node.machine.finished
        out = self._find_stop(text, len(shown))
        if self._end is None:
            out += self._search.held + shown
            self._search = self._search._replace(held="")
            self._stop(finish_reason, stop_reason, self._count)
        return out

    def _find_stop(self, text: str, shown: int = 0) -> str:
        """
        Search new text for stops. Return the text that comes out; if a stop completes, end the request.

        Args:
            text: The text that has become certain.
            shown: Number of certain characters after it, in which no stop counts.
        """
        search = self._compiled.search
        if search is None or not text:
            return text
        out, self._search, found = search.scan(self._search, text, self._silent(text))
        if found is not None:
            cut = self._spans.cut(self._spans.first_with(found.after + shown)) if self._spans else 0
            if self._compiled.options.after_stop == "cut":
                for follower in self._followers:
                    follower.drop(cut)
            self._stop("stop", found.reason, self._count - cut)
        return out

    def _silent(self, text: str) -> int:
        """Return the number of characters of the new text that belong to the first `min_tokens` tokens: no stop counts there."""
        least = self._compiled.options.min_tokens
        if self._count <= least:
            return len(text)
        first = self._count - len(self._spans) + 1
        if least < first or not self._spans:
            return 0
        return max(0, len(text) - self._spans.end_of(least - first))

    def _stop(self, finish_reason: str, stop_reason: str | int | None, kept: int) -> None:
        self._end = End(finish_reason, stop_reason, kept)
        self._decide(self._spans.decided(ends=True))

    def _decide(self, lengths: list[int]) -> None:
        for follower in self._followers:
            follower.decide(lengths)

    def _output(self, text: str, ids: Sequence[int], taken: int, entries: Sequence[Logprob]) -> RequestOutput:
        """
        Return the output of one step, with the fields of the followers.

        Args:
            text: The text that comes out.
            ids, entries: The ids and logprobs of the step.
            taken: Number of these ids up to the end, the id that ended the request included.
        """
        self._given += len(text)
        output = RequestOutput(text, list(ids))
        if self._end is not None:
            self._say_end(output, self._end, taken)
            if self._compiled.options.after_stop == "keep":
                self._pass_end(self._end, ids[taken:], entries[taken:])
        for follower in self._followers:
            follower.take(output)
        return output

    def _say_end(self, output: RequestOutput, end: End, taken: int) -> None:
        """Set the fields of the last output: how the request ended, and which ids belong to it."""
        output.finish_reason, output.stop_reason, output.text_end = end.finish_reason, end.stop_reason, self._given
        ids = output.token_ids
        if self._compiled.options.after_stop == "keep":
            output.tokens_kept = self._count + len(ids) - taken
            return
        after = self._count - end.kept
        output.tokens_kept = end.kept
        kept = max(0, taken - after)
        output.token_ids = ids[:kept]
        if kept < len(ids):
            output.dropped_token_ids = ids[kept:]
        if after > taken:
            output.retracted_tokens = after - taken

    def _pass_end(self, end: End, ids: Sequence[int], entries: Sequence[Logprob]) -> None:
        """Pass the tokens after the end to the followers (``after_stop="keep"``)."""
        node = self._last
        for token_id, entry in zip(ids, entries, strict=True):
            for follower in self._followers:
                follower.step(node, token_id, entry)
            _, node = node.machine.advance(node, token_id)
        for follower in self._followers:
            follower.pass_end(self._count - end.kept + len(ids))

    @property
    def finished(self) -> bool:
        """Whether the request has ended."""
        return self._end is not None

    @property
    def finish_reason(self) -> str | None:
        """The reason why the request ended; None while it is open."""
        return None if self._end is None else self._end.finish_reason

    @property
    def num_tokens(self) -> int:
        """Number of ids taken."""
        return self._count + (self._budget - self._left) // TOKEN

    @property
    def held(self) -> str | bytes:
        """The text that is held, for display: first the part that may become a stop, then that which the stream holds."""
        return self._held()[0]

    @property
    def held_because(self) -> str:
        """The reason why something is held, such as "it may become a stop"; "" if nothing is held."""
        return self._held()[1]

    def _held(self) -> tuple[str | bytes, str]:
        self._catch_up()
        if self._end is not None or not self._compiled.options.detokenize:
            return "", ""
        held, why = self._node.machine.pipeline.held(self._node.state)
        stop = self._search.held
        if not stop:
            return held, why
        both = stop + held if isinstance(held, str) else stop.encode() + held
        return both, f"{why}, after what may become a stop" if why else "it may become a stop"

    def snapshot(self) -> PlainData:
        """
        Return the state of the request as a small dict of plain data, which JSON and msgpack can carry.

        ``tokenizer.restore_request(snapshot)`` makes a request that continues exactly from there, in another process too.
        """
        return pack(self._state(), self._compiled.envelope, KINDS)

    def _state(self) -> RequestState:
        """Return the state of this request as a value."""
        self._catch_up()
        tokens, *certain = self._spans.plain()
        undecided = tuple((plain_node(token.node), *token[1:]) for token in tokens)
        followers = tuple((type(follower).__name__, follower.plain()) for follower in self._followers)
        so_far = (plain_node(self._node), self._search.plain(), self._count, self._given, self._end)
        return RequestState(*so_far, undecided, tuple(certain), followers, self._collected.plain())

    @classmethod
    def restored(cls, compiled: CompiledRequest, state: RequestState) -> RequestDecoder:
        """Return a request with this state, from a snapshot."""
        request = cls(compiled, node_of(compiled.machine, state.node))
        if compiled.search is not None:
            request._search = compiled.search.state(*state.search)
        request._count, request._given, request._end = state.tokens, state.characters, state.end
        tokens = tuple(
            Undecided(None if plain is None else node_of(compiled.machine, plain), *lengths)
            for plain, *lengths in state.undecided
        )
        request._spans = TokenSpans(tokens, *state.certain)
        request._followers = tuple(compiled.follower(name, plain) for name, plain in state.followers)
        request._collected.restore(*state.collected)
        request._stand()
        return request

    def __reduce__(self) -> NoReturn:
        raise TypeError("a request is not pickled: send request.snapshot(), and go on with tokenizer.restore_request()")


# The rule for `logprobs`, in two error messages.
_ALWAYS = "logprobs must be given in every step or in none"
