"""SGLang's side of a request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from detok import Logprob
from detok.engines.base import EngineOutput
from detok.engines.events import EventStream
from detok.engines.sglang import Sglang
from tests.engines.support import recorded, request


def read(data: bytes) -> list[EngineOutput]:
    """What a stream says, but for its end mark."""
    call = Sglang().begin(request(logprobs=2))
    return [call.read(event) for event in EventStream().feed(data) if event != b"[DONE]"]


def event(ids: list[int], total: int, finish: dict[str, Any] | None = None, **meta: Any) -> bytes:
    """An event."""
    return json.dumps({"output_ids": ids, "meta_info": {"completion_tokens": total, "finish_reason": finish, **meta}}).encode()


def test_cumulative_and_incremental_streams_say_the_same() -> None:
    """Ids, logprobs, the end: told apart by `completion_tokens`, event by event."""
    cumulative, incremental = read(recorded("sglang-cumulative.sse")), read(recorded("sglang-incremental.sse"))
    assert cumulative == incremental
    assert [output.token_ids for output in cumulative] == [[271], [9906, 11], [127], [128009]]
    assert [output.logprobs for output in cumulative][1:3] == [
        [Logprob(-1.5, None, ((6, -0.75), (9906, -1.5))), Logprob(-0.25, None, ((11, -0.25), (7, -3.0)))],
        [Logprob(-4.0, None, ())],
    ]
    assert (cumulative[-1].finish_reason, cumulative[-1].stop_reason) == ("stop", 128009)


def test_first_event_is_the_same_in_both_forms() -> None:
    """And an event without anything new says nothing, in both."""
    call = Sglang().begin(request())
    steps = [event([1, 2], 2), event([1, 2], 2), event([], 2), event([3], 3), event([1, 2, 3, 4], 4)]
    assert [call.read(step).token_ids for step in steps] == [[1, 2], [], [], [3], [4]]


@pytest.mark.parametrize(("ids", "total"), [([1, 2, 3], 2), ([1], 4), ([], 3), ([1], 2), ([1], 1), ([], 1)])
def test_count_that_fits_neither_form_is_refused(ids: list[int], total: int) -> None:
    """Ids would be lost or come twice. Two came before."""
    call = Sglang().begin(request())
    call.read(event([8, 9], 2))
    with pytest.raises(ValueError, match=rf"completion_tokens is {total} after 2, with {len(ids)} output_ids"):
        call.read(event(ids, total))


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ({"type": "stop", "matched": 2}, ("stop", 2, None, None)),
        ({"type": "stop", "matched": "END"}, ("stop", "END", None, None)),
        ({"type": "stop", "matched": [1, 2]}, ("stop", None, None, None)),
        ({"type": "length", "length": 3}, ("length", None, None, None)),
        ({"type": "abort", "message": "Aborted", "status_code": None}, ("abort", None, "Aborted", None)),
        ({"type": "abort", "message": "too long", "status_code": 400, "err_type": "x"}, ("error", None, "too long", 400)),
    ],
)
def test_end_has_its_reason(finish: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """With a status an abort is an error; without, somebody stopped the request over there."""
    output = Sglang().begin(request()).read(event([5, 6, 7], 3, finish))
    assert (output.finish_reason, output.stop_reason, output.error, output.error_status) == expected
    assert output.token_ids == [5, 6, 7]


def test_abort_that_does_not_know_what_came_ends_well() -> None:
    """A request that was stopped while it waited to go on says that it has no tokens."""
    call = Sglang().begin(request())
    call.read(event([5, 6], 2))
    output = call.read(event([], 0, {"type": "abort", "message": "Aborted"}))
    assert (output.token_ids, output.finish_reason) == ([], "abort")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"output_ids":[1],"meta_info":{}}',
        b'{"output_ids":[-1],"meta_info":{"completion_tokens":1}}',
        b'{"output_ids":[1],"meta_info":{"completion_tokens":1,"output_token_logprobs":[]}}',
    ],
)
def test_event_that_sglang_does_not_send_is_refused(data: bytes) -> None:
    """Without a count the two forms could not be told apart."""
    with pytest.raises(ValueError, match=r"."):
        Sglang().begin(request()).read(data)


def test_body_has_its_names() -> None:
    """vLLM's names become its own; what it would refuse is left out, and so is what its scheduler fails at."""
    sampling: dict[str, Any] = {
        "max_tokens": 5,
        "min_tokens": 2,
        "seed": 7,
        "top_k": 0,
        "logprobs": 2,
        "stop": ["x"],
        "structured_outputs": {},
    }
    assert [*Sglang().begin(request(**sampling, temperature=0.5)).bodies()] == [
        {
            "rid": "a",
            "input_ids": [1, 2, 3],
            "stream": True,
            "sampling_params": {"max_new_tokens": 5, "sampling_seed": 7, "temperature": 0.5},
            "return_logprob": True,
            "top_logprobs_num": 2,
        }
    ]


def test_aborts_are_one_post_each() -> None:
    """It takes one id at a time."""
    assert Sglang().aborts(["a", "b"]) == [("/abort_request", {"rid": "a"}), ("/abort_request", {"rid": "b"})]


def test_cached_tokens_of_the_prompt_are_told() -> None:
    """In the last event, as in each."""
    call = Sglang().begin(request())
    call.read(event([1], 1, cached_tokens=7))
    assert call.read(event([1, 2], 2, {"type": "stop"}, cached_tokens=7)).cached_tokens == 7
    assert Sglang().begin(request()).read(event([1], 1, {"type": "stop"})).cached_tokens is None
