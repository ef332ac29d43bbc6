"""
`RequestDecoder`: the ids of one request in, step by step; what its client gets out. Here it is decided what a token does.

Nearly every token is usual: it is whole characters, or the next part of one, no stop completes in it, and nobody wants more than
text. What it does is one look-up at the *place* where the request stands (see `places`). The moves that were looked up are kept
in a short list, and everything else is brought up to date from them when it is needed (`_catch_up`). All other tokens go the
long way (`_take`): the stream's node, the search for stops, the spans of undecided tokens, the followers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Literal, NoReturn, SupportsIndex, get_args

from ...errors import OptionError, RequestFinished, TokenTypeError
from ...ids import as_id, as_ids
from ..decoding.automaton import Node
from ..options import check_choice
from ..snapshot import pack
from .compiled import CompiledRequest
from .followers import NO_LOGPROB, LogprobCollector
from .logprobs import Logprob, as_logprobs
from .output import NOT_DUE, OutputCollector, RequestOutput, merged
from .places import NOWHERE, Move
from .snapshot import KINDS, End, RequestState, node_of, plain_node
from .spans import TokenSpans, Undecided, common_length, held_text

FinishReason = Literal["stop", "length", "abort", "error"]

# Maximum usual tokens that are looked up before all else catches up: what is not yet counted is bounded (law 8).
MAX_RECENT = 256


def as_end(finish_reason: Any, stop_reason: Any) -> tuple[FinishReason | None, str | int | None]:
    """Return how an engine says that a request ended, and what stopped it; or raise `OptionError`."""
    if finish_reason is None and stop_reason is None:
        return None, None
    check_choice("finish_reason", finish_reason, (None, *get_args(FinishReason)))
    if stop_reason is None or isinstance(stop_reason, str):
        return finish_reason, stop_reason
    try:
        return finish_reason, as_id(stop_reason)
    except TokenTypeError:
        accepted = "it is a string, a token id or None"
        raise OptionError(option="stop_reason", value=stop_reason, accepted=accepted) from None


class RequestDecoder:
    """
    One request: a stream, where it stops, and what its client is given. Made by ``tokenizer.request()``.

    However the ids are cut into steps, the outputs say the same in all. One request belongs to one thread at a time.

    >>> import detok
    >>> tokenizer = detok.load(detok.EMBEDDED)
    >>> request = tokenizer.request(stop=["END"])
    >>> outputs = [request.feed([token_id]) for token_id in tokenizer.encode("The END")]
    >>> "".join(output.text for output in outputs if output), outputs[-1].finish_reason, outputs[-1].stop_reason
    ('The ', 'stop', 'END')
    """

    __slots__ = (
        "_collected",
        "_compiled",
        "_count",
        "_end",
        "_followers",
        "_given",
        "_gives_at_once",
        "_last",
        "_moves",
        "_node",
        "_place",
        "_recent",
        "_room",
        "_search",
        "_spans",
    )

    def __init__(self, compiled: CompiledRequest, node: Node) -> None:
        self._compiled = compiled
        self._node = node
        """Where the stream stands."""
        self._last = node
        """Where the stream stood when it ended; until then without meaning."""
        self._search = compiled.search_start
        """Where the search for stops stands."""
        self._count = 0
        """Tokens taken."""
        self._given = 0
        """Characters given out."""
        self._end: End | None = None
        self._spans = TokenSpans()
        self._followers = compiled.followers()
        self._collected = OutputCollector(compiled.options)
        self._gives_at_once = compiled.gives_at_once
        self._recent: list[Move] = []
        """The moves of usual tokens; what stands above does not know of them yet."""
        self._stand()

    def _stand(self) -> None:
        """Find the place where this request stands, and how many usual tokens may be looked up from it on."""
        compiled = self._compiled
        self._place = NOWHERE
        self._room = 0
        if compiled.is_plain and not self._followers and self._end is None and self._count >= compiled.options.min_tokens:
            self._place = compiled.places.at(self._node, self._search.candidate, compiled.ends)
            self._room = MAX_RECENT
            if compiled.options.max_tokens is not None:
                self._room = min(self._room, compiled.options.max_tokens - 1 - self._count)
            if not self._gives_at_once:
                self._room = min(self._room, self._collected.until_due() - 1)
        self._moves = self._place.moves
        """The moves of the place where the request stands after the recent ones."""

    def feed(
        self,
        token_ids: Iterable[SupportsIndex],
        logprobs: Iterable[Logprob | float | None] | None = None,
        finish_reason: FinishReason | None = None,
        stop_reason: str | int | None = None,
    ) -> RequestOutput:
        """
        Take the ids of one step, and return what is due now.

        All or nothing: if it raises, the request is as before.

        Args:
            token_ids: A list, numpy array or any iterable of integers; none at all is fine.
            logprobs: One for each id; in every step of the request, or in none. A number, None, or a `Logprob`.
            finish_reason: Why the engine ended the request with this step, if it did. A stop that is found in the text comes
                before. With "stop", a last id that is special or an end of sequence is taken for what stopped it.
            stop_reason: What the engine says it was, if it says: an id, or the string.

        Raises:
            RequestFinished: The request has ended, and there are more ids (with ``after_finish="error"``).
            OptionError: `logprobs` or `finish_reason` is not accepted.
            TokenTypeError: One of the ids is no integer.
            UnknownTokenId: With ``unknown_ids="error"``, wherever in the step it stands.
            StopRegexTimeout: A pattern took too long.
        """
        if logprobs is None and finish_reason is None and type(token_ids) is list:
            # A usual token. `BatchDecoder.step` has this look-up too, since a call would cost half as much again.
            try:
                (token_id,) = token_ids
                move = self._moves[token_id]
            except (KeyError, ValueError, TypeError):
                return self._feed(token_ids, None, None, stop_reason)
            recent = self._recent
            if len(recent) < self._room and type(token_id) is int:
                recent.append(move)
                self._moves = move[1]
                return move[0] if self._gives_at_once else NOT_DUE
        return self._feed(token_ids, logprobs, finish_reason, stop_reason)

    def finish(self, finish_reason: FinishReason = "stop", stop_reason: str | int | None = None) -> RequestOutput:
        """
        End the request and return all that is still due. A second call returns an empty output.

        Raises:
            OptionError: There is no such reason.
            StopRegexTimeout: A pattern took too long.
        """
        return self._feed((), None, finish_reason, stop_reason)

    def _feed(self, token_ids: Any, logprobs: Any, finish_reason: Any, stop_reason: Any) -> RequestOutput:
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
                self._recent += moves
                self._moves = moves[-1][1]
                if not self._gives_at_once:
                    return NOT_DUE
                return moves[0][0] if len(moves) == 1 else merged([move[0] for move in moves])
        self._catch_up()
        entries = self._entries(ids, logprobs)
        if self._compiled.options.stop_regex:
            # A pattern can fail halfway, so a twin goes ahead and this one follows if it arrived.
            twin = self._twin()
            output = twin._take(ids, entries, finish_reason, stop_reason)
            self._become(twin)
        else:
            output = self._take(ids, entries, finish_reason, stop_reason)
        output = self._collected.add(output)
        self._stand()
        return output

    def _twin(self) -> RequestDecoder:
        """Return another request that stands here too; it has gathered nothing."""
        twin = RequestDecoder(self._compiled, self._node)
        twin._become(self)
        twin._spans = self._spans.copy()
        twin._followers = tuple(follower.copy() for follower in self._followers)
        return twin

    def _become(self, other: RequestDecoder) -> None:
        """Stand where another request stands, but for what was gathered."""
        self._node, self._last, self._search = other._node, other._last, other._search
        self._count, self._given, self._end = other._count, other._given, other._end
        self._spans, self._followers = other._spans, other._followers

    def _usual(self, ids: Sequence[int]) -> list[Move]:
        """Return the moves of these ids from here, if all are usual; else nothing."""
        if len(ids) > self._room - len(self._recent):
            self._catch_up()
            self._stand()
        compiled = self._compiled
        place = self._recent[-1][2] if self._recent else self._place
        moves: list[Move] = []
        if len(ids) <= self._room:
            for token_id in ids:
                move = place.moves.get(token_id) or compiled.places.learn(place, token_id, compiled.search)
                if move is None:
                    return []
                moves.append(move)
                place = move[2]
        return moves

    def _catch_up(self) -> None:
        """Bring everything up to date with the usual tokens that were looked up."""
        moves = self._recent
        if not moves:
            return
        self._recent = []
        self._place = moves[-1][2]
        assert self._place.node is not None
        self._room -= len(moves)
        self._node = self._place.node
        self._count += len(moves)
        self._given += sum(map(_LENGTH, moves))
        if self._compiled.search is not None:
            self._search = self._compiled.search.at(self._place.candidate)
            self._add_spans(moves)
        if not self._gives_at_once:
            self._collected.gather([move[0] for move in moves])

    def _add_spans(self, moves: Sequence[Move]) -> None:
        """Keep the tokens at the end whose spans are undecided; without a stop nobody asks where a token's text ends."""
        begin = len(moves)
        while begin and not moves[begin - 1][2].is_idle:
            begin -= 1
        if begin:
            self._spans.clear()
        for _, _, place, certain, _ in moves[begin:]:
            if place.node is not None:
                self._spans.add(place.node, certain)

    def _entries(self, ids: Sequence[int], logprobs: Any) -> Sequence[Logprob]:
        """Return what the engine says of each id; see that it says so in every step or in none."""
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

    def _take(self, ids: Sequence[int], entries: Sequence[Logprob], finish_reason: Any, stop_reason: Any) -> RequestOutput:
        """
        Take the ids of one step the long way, and the engine's end if it says one; return what is new.

        Raises:
            StopRegexTimeout: A pattern took too long.
        """
        compiled = self._compiled
        texts = []
        last = len(ids) - 1
        for index, token_id in enumerate(ids):
            for follower in self._followers:
                follower.step(self._node, token_id, entries[index])
            said = index == last and finish_reason == "stop" and compiled.ended_by(token_id, stop_reason)
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
        """Take an id, and return the text that comes out."""
        self._count += 1
        if not self._compiled.options.detokenize:
            self._decide([0])
            return ""
        text, node = self._node.machine.advance(self._node, token_id)
        self._node = node
        wanted = bool(self._followers)
        if self._spans or not node.is_idle:
            # Without a stop nobody asks where a token's text ends, if not for its span.
            if wanted or self._compiled.search is not None:
                self._spans.add(node, text)
        elif wanted:
            self._decide([len(text)])
        out = self._find_stop(text)
        if self._end is None and self._spans:
            self._decide(self._spans.settle(text=text, is_idle=node.is_idle, wanted=wanted))
        return out

    def _take_end(self, token_id: int, stop_reason: str | int | None) -> str:
        """Take the id that stops the request, with or without its text; ``stop_reason`` is the engine's, if it gave one."""
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
        # No stop counts in the token's own text, but the token may decide what was held before it.
        whole = text + held_text(after)
        own = common_length(held_text(self._node), whole)
        self._spans.end(held_text(after))
        return self._end_with("stop", stop_reason, whole[:own], whole[own:])

    def _finish(self, finish_reason: str, stop_reason: str | int | None) -> str:
        """End the stream, and return all that was held, up to a stop that completes in it."""
        text = held_text(self._node) if self._compiled.options.detokenize else ""
        self._spans.end(text)
        return self._end_with(finish_reason, stop_reason, text)

    def _end_with(self, finish_reason: str, stop_reason: str | int | None, text: str, shown: str = "") -> str:
        """Return what comes out of the last text, up to a stop in it; without one, ``shown`` too, which is not searched."""
        self._last, self._node = self._node, self._node.machine.finished
        out = self._find_stop(text, len(shown))
        if self._end is None:
            out += self._search.held + shown
            self._search = self._search._replace(held="")
            self._stop(finish_reason, stop_reason, self._count)
        return out

    def _find_stop(self, text: str, shown: int = 0) -> str:
        """
        Search the new text for stops; return what comes out of it, and end the request if one completed.

        Args:
            text: What has become certain.
            shown: Number of certain characters after it in which no stop counts.
        """
        search = self._compiled.search
        if search is None or not text:
            return text
        out, self._search, found = search.scan(self._search, text, self._silent(text))
        if found is not None:
            kept = self._count
            if self._spans:
                cut = self._spans.cut(self._spans.first_with(found.after + shown))
                kept -= cut
                if self._compiled.options.after_stop == "cut":
                    for follower in self._followers:
                        follower.drop(cut)
            self._stop("stop", found.reason, kept)
        return out

    def _silent(self, text: str) -> int:
        """Return how much of the new text belongs to the first `min_tokens` tokens, in which no stop counts."""
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
        Return what is new: the text, the ids, and what was asked for beside them.

        Args:
            text: What comes out.
            ids, entries: Of the step.
            taken: Number of the ids that came before the end, the one that ended the request included.
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
        """Write into the last output how the request ended, and which ids belong to it."""
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
        """Tell the followers of the tokens after the end."""
        node = self._last
        for token_id, entry in zip(ids, entries, strict=True):
            for follower in self._followers:
                follower.step(node, token_id, entry)
            _, node = node.machine.advance(node, token_id)
        for follower in self._followers:
            follower.pass_end(self._count - end.kept + len(ids))

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return self._end is not None

    @property
    def finish_reason(self) -> str | None:
        """Why it ended; None while it goes on."""
        return None if self._end is None else self._end.finish_reason

    @property
    def num_tokens(self) -> int:
        """Number of ids that were taken."""
        return self._count + len(self._recent)

    @property
    def held(self) -> str | bytes:
        """What is held, for display: a candidate for a stop, and after it what the stream holds."""
        return self._held()[0]

    @property
    def held_because(self) -> str:
        """Why something is held, in a few words; "" if nothing is."""
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

    def snapshot(self) -> dict[str, Any]:
        """
        Return where the request stands, as small plain data that survives JSON and msgpack.

        ``tokenizer.restore_request(snapshot)`` goes on exactly from there, in another process too.
        """
        return pack(self._state(), self._compiled.envelope, KINDS)

    def _state(self) -> RequestState:
        """Return where this request stands, as a value."""
        self._catch_up()
        tokens, *certain = self._spans.plain()
        undecided = tuple((plain_node(token.node), *token[1:]) for token in tokens)
        followers = tuple((type(follower).__name__, follower.plain()) for follower in self._followers)
        so_far = (plain_node(self._node), self._search.plain(), self._count, self._given, self._end)
        return RequestState(*so_far, undecided, tuple(certain), followers, self._collected.plain())

    @classmethod
    def restored(cls, compiled: CompiledRequest, state: RequestState) -> RequestDecoder:
        """Return a request that stands where another one stood when its snapshot was taken."""
        machine = compiled.machine
        request = cls(compiled, node_of(machine, state.node))
        if compiled.search is not None:
            request._search = compiled.search.state(*state.search)
        request._count, request._given, request._end = state.tokens, state.characters, state.end
        tokens = tuple(
            Undecided(None if plain is None else node_of(machine, plain), *lengths) for plain, *lengths in state.undecided
        )
        request._spans = TokenSpans(tokens, *state.certain)
        request._followers = tuple(compiled.follower(name, plain) for name, plain in state.followers)
        request._collected.restore(*state.collected)
        request._stand()
        return request

    def __reduce__(self) -> NoReturn:
        raise TypeError("a request is not pickled: send request.snapshot(), and go on with tokenizer.restore_request()")


_LENGTH = itemgetter(4)
"""The length of the text of a move."""

# What `logprobs` has to be.
_ALWAYS = "logprobs must be given in every step or in none"
