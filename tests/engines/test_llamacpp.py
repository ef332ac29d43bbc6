"""llama.cpp's side of a request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from detok import Logprob
from detok.engines.base import EngineOutput
from detok.engines.llamacpp import LlamaCpp, LlamaCppCall
from detok.errors import OptionError
from tests.engines.support import ids_of, recorded, request


def answer(tokens: list[int], stop_type: str = "limit", **more: Any) -> bytes:
    """An answer."""
    return json.dumps({"tokens": tokens, "stop": True, "stop_type": stop_type, **more}).encode()


def generate(call: LlamaCppCall, *, context: int = 10_000) -> tuple[list[dict[str, Any]], list[EngineOutput]]:
    """Play a server that counts upwards and never stops by itself: what it was asked, and what was read."""
    asked, outputs = [], []
    for body in call.bodies():
        asked.append(body)
        at = len(body["prompt"])
        outputs.append(call.read(answer([*range(at, min(at + body["n_predict"], context))])))
        if outputs[-1].finish_reason is not None:
            break
    return asked, outputs


def test_calls_grow_and_end_with_max_tokens() -> None:
    """One token, so that the first comes soon; then as many as there are, up to the limit of a call."""
    asked, outputs = generate(LlamaCpp(tokens_per_call=8).begin(request(max_tokens=30)))
    assert [body["n_predict"] for body in asked] == [1, 1, 2, 4, 8, 8, 6]
    assert ids_of(outputs) == [*range(3, 33)]
    assert [output.finish_reason for output in outputs] == [None] * 6 + ["length"]
    assert all(body["prompt"] == [1, 2, 3, *range(3, len(body["prompt"]))] for body in asked)
    assert all(body["return_tokens"] and body["cache_prompt"] and not body["stream"] for body in asked)


def test_each_call_draws_by_a_seed_of_its_own() -> None:
    """The same seed would draw the same numbers again; without one the server takes a new one each time."""
    asked, _ = generate(LlamaCpp().begin(request(max_tokens=8, seed=100)))
    assert [body["seed"] for body in asked] == [100, 101, 102, 104]
    asked, _ = generate(LlamaCpp().begin(request(max_tokens=2)))
    assert all("seed" not in body for body in asked)


def test_full_context_ends_a_request_without_max_tokens() -> None:
    """It gives fewer tokens than it was asked for, and at last none."""
    asked, outputs = generate(LlamaCpp().begin(request()), context=20)
    assert (ids_of(outputs), outputs[-1].finish_reason) == ([*range(3, 20)], "length")
    assert [body["n_predict"] for body in asked] == [1, 1, 2, 4, 8, 16]


def test_end_of_sequence_is_a_stop() -> None:
    """Its id is among the tokens, as those of parts of characters are."""
    call = LlamaCpp().begin(request())
    outputs = [call.read(recorded(f"llamacpp-{part}.json")) for part, _ in zip((1, 2, 3), call.bodies(), strict=False)]
    assert [output.token_ids for output in outputs] == [[271], [127], [234, 2]]
    assert [output.finish_reason for output in outputs] == [None, None, "stop"]


@pytest.mark.parametrize(("stop_type", "reason"), [("eos", "stop"), ("word", "stop"), ("none", "abort")])
def test_end_has_its_reason(stop_type: str, reason: str) -> None:
    """As llama.cpp names it."""
    call = LlamaCpp().begin(request())
    next(call.bodies())
    assert call.read(answer([5], stop_type)).finish_reason == reason


def test_logprobs_are_none_where_llamacpp_has_none() -> None:
    """It has no entry for a token that ends within a character."""
    call = LlamaCpp().begin(request(logprobs=1))
    body = next(call.bodies())
    assert body["n_probs"] == 1
    assert call.read(recorded("llamacpp-logprobs.json")).logprobs == [
        Logprob(-0.5, None, ((5, -0.5),)),
        Logprob(None),
        Logprob(-0.25, None, ((163, -0.25),)),
        Logprob(-1.5, None, ((7, -0.5),)),
    ]


def test_body_has_its_names() -> None:
    """vLLM's names become its own; what it does not have is left out."""
    sampling: dict[str, Any] = {
        "repetition_penalty": 1.1,
        "top_k": 5,
        "min_tokens": 3,
        "logprobs": 0,
        "logit_bias": {"7": -1.5},
        "stop": ["x"],
    }
    body = next(LlamaCpp().begin(request(**sampling)).bodies())
    assert body == {
        "repeat_penalty": 1.1,
        "top_k": 5,
        "n_probs": 1,
        "logit_bias": [[7, -1.5]],
        "stream": False,
        "return_tokens": True,
        "cache_prompt": True,
        "prompt": [1, 2, 3],
        "n_predict": 1,
    }


@pytest.mark.parametrize("data", [b"", b"{}", b'{"tokens":[1],"stop":false}', b'{"tokens":[-1],"stop":true}', answer([1], "odd")])
def test_answer_that_llamacpp_does_not_give_is_refused(data: bytes) -> None:
    """Nothing of it is guessed."""
    call = LlamaCpp().begin(request())
    next(call.bodies())
    with pytest.raises(ValueError, match=r"."):
        call.read(data)


def test_error_in_an_answer_ends_the_request() -> None:
    """In its words."""
    output = LlamaCpp().begin(request()).read(b'{"error":{"code":500,"message":"no slot","type":"server_error"}}')
    assert (output.finish_reason, output.error, output.error_status) == ("error", "no slot", 500)


def test_max_tokens_below_one_are_refused() -> None:
    """llama.cpp would take 0 for something else."""
    with pytest.raises(OptionError, match="max_tokens=0"):
        LlamaCpp().begin(request(max_tokens=0))


def test_tokens_per_call_below_one_are_refused() -> None:
    """It would never end."""
    with pytest.raises(OptionError, match="tokens_per_call=0"):
        LlamaCpp(tokens_per_call=0)


def test_cached_tokens_are_those_that_the_first_call_found() -> None:
    """Those after it find what this request put there."""
    call = LlamaCpp().begin(request(max_tokens=2))
    bodies = call.bodies()
    found = []
    for cached in (7, 9):
        next(bodies)
        said = json.loads(answer([5]))
        found.append(call.read(json.dumps({**said, "timings": {"cache_n": cached, "prompt_n": 1}}).encode()).cached_tokens)
    assert found == [7, None]
