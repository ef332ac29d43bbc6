"""vLLM's side of a request."""

from __future__ import annotations

from typing import Any

import pytest

from detok import Logprob
from detok.engines.base import EngineOutput
from detok.engines.events import EventStream
from detok.engines.vllm import Vllm
from detok.errors import OptionError, TokenTypeError
from tests.engines.support import ids_of, recorded, request


def read(name: str) -> list[EngineOutput]:
    """What a recording says, but for its end mark."""
    call = Vllm().begin(request())
    *events, end = EventStream().feed(recorded(name))
    assert end == b"[DONE]"
    return [call.read(event) for event in events]


def test_body_has_ids_and_sampling_by_its_own_names() -> None:
    """Detok's own options and those that are None stay here, two stand beside the rest, and vLLM is to make no text."""
    sampling: dict[str, Any] = {
        "max_tokens": 5,
        "stop": ["x"],
        "n": 1,
        "seed": None,
        "logprobs": 2,
        "priority": 3,
        "skip_special_tokens": True,
        "detokenize": True,
    }
    assert [*Vllm(model="m").begin(request(prompt=(7, 8), **sampling)).bodies()] == [
        {
            "request_id": "a",
            "token_ids": [7, 8],
            "stream": True,
            "priority": 3,
            "sampling_params": {"max_tokens": 5, "logprobs": 2, "detokenize": False},
            "model": "m",
        }
    ]


def test_stream_gives_several_ids_in_an_event_and_its_end() -> None:
    """The event about usage says nothing."""
    outputs = read("vllm.sse")
    assert [output.token_ids for output in outputs] == [[271], [9906, 11], [127], [234], ()]
    assert [output.finish_reason for output in outputs] == [None, None, None, "length", None]
    assert {output.request_id for output in outputs} == {"a"}


def test_stop_token_is_among_the_ids_and_the_reason() -> None:
    """`RequestDecoder` decides what of it is text."""
    outputs = read("vllm-stop.sse")
    assert (ids_of(outputs), outputs[-1].finish_reason, outputs[-1].stop_reason) == ([13, 8789, 128009], "stop", 128009)


def test_logprobs_are_one_for_each_id() -> None:
    """With rank and alternatives, in the engine's order."""
    assert [output.logprobs for output in read("vllm-logprobs.sse")] == [
        [Logprob(-0.5, 1, ((40, -0.5), (41, -1.25)))],
        [Logprob(-2.0, 7, ((41, -2.0), (3, -0.1), (4, -3.5))), Logprob(-9999.0, 900, ())],
        None,
    ]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ('"abort"', ("abort", None, None)),
        ('"repetition"', ("stop", "repetition", None)),
        ('"error"', ("error", None, "the engine ended the request with an error")),
    ],
)
def test_end_without_ids_has_its_reason(reason: str, expected: tuple[str | None, ...]) -> None:
    """One that detok has no name for is a stop, and says which."""
    output = Vllm().begin(request()).read(b'{"choices":[{"index":0,"token_ids":[],"finish_reason":%b}]}' % reason.encode())
    assert (output.finish_reason, output.stop_reason, output.error) == expected


@pytest.mark.parametrize(
    ("error", "message", "status"),
    [
        ('{"message":"Token id 9 is out of vocabulary","type":"BadRequestError","param":null,"code":400}', "Token id 9", 400),
        ('{"message":"EngineCore died","type":"InternalServerError","code":500}', "EngineCore died", 500),
        ('{"message":"odd","code":7}', "odd", None),
        ('"just words"', "just words", None),
    ],
)
def test_error_in_the_stream_has_its_words_and_status(error: str, message: str, status: int | None) -> None:
    """vLLM refuses an unknown id like this, and says so when a generation fails; a code that is no status is none."""
    output = Vllm().begin(request()).read(b'{"error": %b}' % error.encode())
    assert (output.finish_reason, output.error_status) == ("error", status)
    assert output.error is not None
    assert output.error.startswith(message)


@pytest.mark.parametrize(
    "event",
    [
        b"",
        b"[]",
        b'{"choices":[{"index":1,"token_ids":[1]}]}',
        b'{"choices":[{"index":0,"token_ids":[1]},{"index":1,"token_ids":[1]}]}',
        b'{"choices":[{"token_ids":[-1]}]}',
        b'{"choices":[{"token_ids":["1"]}]}',
        b'{"choices":[{"token_ids":[1],"logprobs":{"content":[]}}]}',
        b'{"choices":[{"token_ids":[1],"logprobs":{"content":[{"token_id":2,"logprob":-1.0}]}}]}',
        b'{"choices":[{"token_ids":[1],"finish_reason":5}]}',
    ],
)
def test_event_that_vllm_does_not_send_is_refused(event: bytes) -> None:
    """Nothing of it is guessed."""
    with pytest.raises(ValueError, match=r"."):
        Vllm().begin(request()).read(event)


def test_request_that_cannot_be_is_refused() -> None:
    """Two choices in one, or something that is no id."""
    with pytest.raises(OptionError, match="n=2"):
        Vllm().begin(request(n=2))
    with pytest.raises(TokenTypeError, match=r"prompt_ids\[1\]"):
        Vllm().begin(request(prompt=(1, "2")))  # type: ignore[arg-type]  # that is the test


def test_aborts_are_one_post_by_the_ids_that_vllm_gives() -> None:
    """It puts a prefix before them."""
    expected = [("/inference/v1/abort_requests", {"request_ids": ["generate-tokens-a", "generate-tokens-b"]})]
    assert Vllm().aborts(["a", "b"]) == expected


def test_cached_tokens_are_waited_for_if_they_are_asked_for() -> None:
    """They stand behind the end: the request ends with them, and loses nothing."""
    call = Vllm(cached_tokens=True).begin(request())
    (body,) = call.bodies()
    assert body["stream_options"] == {"include_usage": True}
    end = b'{"choices": [{"index": 0, "token_ids": [5, 6], "finish_reason": "stop", "stop_reason": 6}]}'
    assert call.read(b'{"choices": [{"index": 0, "token_ids": [4]}]}').token_ids == [4]
    assert call.read(end) == EngineOutput(request_id="a")
    told = call.read(b'{"choices": [], "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}}}')
    assert (told.token_ids, told.finish_reason, told.stop_reason, told.cached_tokens) == ([5, 6], "stop", 6, 8)
    # A vLLM that was not started with --enable-prompt-tokens-details says how many tokens there are, and no more.
    call = Vllm(cached_tokens=True).begin(request())
    call.read(end)
    told = call.read(b'{"choices": [], "usage": {"prompt_tokens": 9}}')
    assert (told.token_ids, told.finish_reason, told.cached_tokens) == ([5, 6], "stop", None)
    assert Vllm().begin(request()).read(end).finish_reason == "stop"
