"""A request and its consumer, in any order of steps, ends, snapshots and slow reading, against the oracle."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import detok
from tests.core.request.test_request_laws import COLLIDING, stops
from tests.support.handmade import BYTE_LEVEL, make
from tests.support.oracle import Expected, expected

TOKENIZER = detok.load(make(BYTE_LEVEL, COLLIDING, special=["ĊĊ"]))
some_ids = st.lists(st.sampled_from(TOKENIZER.ids), max_size=4)


class RequestMachine(RuleBasedStateMachine):
    """Everything a frontend may do with a request."""

    request: detok.RequestDecoder
    fed: list[int]
    wanted: dict[str, Any]
    pending: detok.RequestOutput | None
    read: list[detok.RequestOutput]

    @initialize(
        stop=stops,
        include=st.booleans(),
        least=st.integers(0, 3),
        kind=st.sampled_from(["delta", "cumulative", "final"]),
        interval=st.integers(1, 3),
        logprobs=st.booleans(),
        segments=st.booleans(),
    )
    def open(self, stop: list[str], include: bool, least: int, kind: Any, interval: int, logprobs: bool, segments: bool) -> None:
        """Open a request with any options."""
        self.kind, self.logprobs = kind, logprobs
        self.wanted = {"stop": stop, "include": include, "min_tokens": least}
        self.request = TOKENIZER.request(
            stop=stop, include_stop_str_in_output=include, min_tokens=least, output=kind, stream_interval=interval,
            segments=segments, after_finish="ignore",
        )  # fmt: skip
        self.fed, self.pending, self.read = [], None, []

    def _took(self, output: detok.RequestOutput) -> None:
        self.pending = output if self.pending is None else self.pending.coalesce(output)

    @rule(ids=some_ids)
    def feed(self, ids: list[int]) -> None:
        """A step of any number of ids; a finished request ignores it."""
        if not self.request.finished:
            self.fed += ids
        self._took(self.request.feed(ids, [-1.0] * len(ids) if self.logprobs else None))

    @rule()
    def read_output(self) -> None:
        """The consumer takes what has gathered."""
        if self.pending:
            self.read.append(self.pending)
        self.pending = None

    @rule()
    def restore(self) -> None:
        """The request goes on somewhere else."""
        self.request = TOKENIZER.restore_request(json.loads(json.dumps(self.request.snapshot())))

    @precondition(lambda self: not self.request.finished)
    @rule(reason=st.sampled_from(["length", "abort", "error"]))
    def finish(self, reason: Any) -> None:
        """The engine ends it."""
        self.wanted["finish_reason"] = reason
        self._took(self.request.finish(reason))

    @invariant()
    def outputs_agree(self) -> None:
        """What came out is a beginning of the expected text; at the end it is that, with its ids and tiles."""
        if not hasattr(self, "request"):
            return
        outputs = [*self.read, *([self.pending] if self.pending else [])]
        if self.kind != "delta":
            outputs = outputs[-1:]
        text = "".join(output.text for output in outputs)
        wanted = expected(TOKENIZER.decode, self.fed, **self.wanted)
        assert wanted.text.startswith(text)
        if self.request.finished:
            self._all_there(outputs, text, wanted)

    def _all_there(self, outputs: list[detok.RequestOutput], text: str, wanted: Expected) -> None:
        last = outputs[-1]
        assert (text, last.finish_reason, last.stop_reason) == (wanted.text, wanted.finish_reason, wanted.stop_reason)
        ids = [token_id for output in outputs for token_id in output.token_ids]
        assert ids[: last.tokens_kept] == wanted.token_ids
        assert self.kind == "delta" or ids == wanted.token_ids
        if self.logprobs and self.fed:
            assert [entry.token for output in outputs for entry in output.logprobs or ()] == wanted.tiles
        segments = [segment for output in outputs for segment in output.segments or ()]
        if segments:
            assert "".join(one.text if isinstance(one, detok.Text) else one.shown for one in segments) == text
            specials = [one.token_id for one in segments if isinstance(one, detok.Special)]
            assert specials == [token_id for token_id in wanted.token_ids if token_id in TOKENIZER.special_ids]


TestRequestMachine = RequestMachine.TestCase
TestRequestMachine.settings = settings(stateful_step_count=20)
