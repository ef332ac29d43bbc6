"""transformers in process: a tiny random model is a real engine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from detok.engines.opening import open_engine
from detok.engines.transformers import TransformersEngine
from detok.errors import DuplicateRequest, EngineError, OptionError, SourceError
from tests.engines.support import ids_of, request, until_ended

torch = pytest.importorskip("torch", reason="no torch, which is an extra of its own (750 MB): pip install 'detok[torch]'")
transformers = pytest.importorskip("transformers")

END = 2


@pytest.fixture(scope="module")
def model() -> Any:
    """A Llama of one layer with 64 tokens."""
    transformers.set_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=128,
        bos_token_id=1,
        eos_token_id=END,
    )
    return transformers.LlamaForCausalLM(config).eval()


def run(model: Any, test: Any) -> None:
    """Run a test on an engine, for as long as a test may take."""

    async def limited() -> None:
        engine = TransformersEngine(model)
        async with asyncio.timeout(60):
            await test(engine)
            await engine.close()

    asyncio.run(limited())


async def generated(engine: TransformersEngine, name: str = "a", **sampling: Any) -> tuple[list[int], Any, Any]:
    """Run a request to its end: its ids, and how it ended."""
    await engine.submit(request(name, **sampling))
    outputs = (await until_ended(engine, [name]))[name]
    assert all(len(output.token_ids) == 1 for output in outputs)
    return ids_of(outputs), outputs[-1].finish_reason, outputs[-1].stop_reason


def greedy(model: Any, count: int) -> list[int]:
    """What the model says, computed without `generate`."""
    ids = [1, 2, 3]
    for _ in range(count):
        ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[3:]


def test_ids_are_those_of_the_model_without_the_prompt(model: Any) -> None:
    """Greedy, up to max_tokens, one output for each."""
    expected = greedy(model, 8)
    assert END not in expected

    async def test(engine: TransformersEngine) -> None:
        assert await generated(engine, temperature=0, max_tokens=8) == (expected, "length", None)

    run(model, test)


def test_stop_token_ends_and_is_among_the_ids(model: Any) -> None:
    """One of the request's own is the reason; min_tokens keeps it away."""
    expected = greedy(model, 8)
    stop = expected[3]
    at = expected.index(stop) + 1

    async def test(engine: TransformersEngine) -> None:
        stopped = await generated(engine, temperature=0, max_tokens=8, stop_token_ids=[stop])
        assert stopped == (expected[:at], "stop", stop)
        ids, reason, _ = await generated(engine, temperature=0, max_tokens=8, stop_token_ids=[stop], min_tokens=8)
        assert (len(ids), reason) == (8, "length")
        assert stop not in ids[:7]

    run(model, test)


def test_end_of_sequence_ends_unless_it_is_ignored(model: Any) -> None:
    """It is the model's, and no reason of the request."""

    async def test(engine: TransformersEngine) -> None:
        hot: dict[str, Any] = {"temperature": 50.0, "top_k": -1, "max_tokens": 120}
        results = [await generated(engine, seed=seed, **hot) for seed in range(20)]
        stopped = [ids for ids, reason, stop in results if (reason, stop) == ("stop", None)]
        assert stopped
        assert all(ids[-1] == END and END not in ids[:-1] for ids in stopped)
        seed = results.index((stopped[0], "stop", None))
        ids, reason, _ = await generated(engine, seed=seed, ignore_eos=True, **hot)
        assert (ids[: len(stopped[0])], len(ids), reason) == (stopped[0], 120, "length")

    run(model, test)


def test_seed_gives_the_same_ids_again(model: Any) -> None:
    """Another one gives others."""

    async def test(engine: TransformersEngine) -> None:
        hot: dict[str, Any] = {"temperature": 50.0, "max_tokens": 20, "ignore_eos": True}
        first, second, other = [await generated(engine, seed=seed, **hot) for seed in (1, 1, 2)]
        assert first == second != other

    run(model, test)


def test_logprobs_are_the_models_own_before_temperature(model: Any) -> None:
    """Of the token, its rank, and the most likely ones."""

    async def test(engine: TransformersEngine) -> None:
        await engine.submit(request(temperature=50.0, seed=3, max_tokens=5, logprobs=2, ignore_eos=True))
        ids = [1, 2, 3]
        for output in (await until_ended(engine, "a"))["a"]:
            scores = model(torch.tensor([ids])).logits[0, -1].detach().log_softmax(-1)
            (token_id,), (logprob,) = output.token_ids, output.logprobs or ()
            best = scores.argsort(descending=True).tolist()
            assert not isinstance(logprob, float)
            assert logprob is not None
            assert logprob.logprob == pytest.approx(float(scores[token_id]), abs=1e-5)
            assert logprob.rank == best.index(token_id) + 1
            assert [other for other, _ in logprob.top] == best[:2]
            assert [score for _, score in logprob.top] == pytest.approx([float(scores[one]) for one in best[:2]], abs=1e-5)
            ids.append(token_id)

    run(model, test)


def test_requests_wait_for_each_other(model: Any) -> None:
    """All are answered, each with its own ids."""
    expected = greedy(model, 8)

    async def test(engine: TransformersEngine) -> None:
        names = [f"r{number}" for number in range(5)]
        for number, name in enumerate(names):
            await engine.submit(request(name, temperature=0, max_tokens=number + 1))
        outputs = await until_ended(engine, names)
        assert [ids_of(outputs[name]) for name in names] == [expected[: number + 1] for number in range(5)]

    run(model, test)


def test_abort_stops_one_that_runs_and_one_that_waits(model: Any) -> None:
    """No output comes any more, and the thread is free for the next."""

    async def test(engine: TransformersEngine) -> None:
        calls = []
        handle = model.register_forward_hook(lambda *_: calls.append(1))
        await engine.submit(request("runs", ignore_eos=True, max_tokens=125))
        await engine.submit(request("waits", ignore_eos=True, max_tokens=125))
        outputs = engine.outputs()
        assert (await anext(outputs))[0].request_id == "runs"
        await engine.abort(["runs", "waits", "unknown"])
        assert await generated(engine, "next", temperature=0, max_tokens=3) == (greedy(model, 3), "length", None)
        handle.remove()
        assert len(calls) < 125

    run(model, test)


def test_close_ends_outputs_and_refuses_more(model: Any) -> None:
    """What runs is stopped."""

    async def test(engine: TransformersEngine) -> None:
        await engine.submit(request(ignore_eos=True, max_tokens=125))
        await engine.close()
        assert [batch async for batch in engine.outputs()] == []
        with pytest.raises(EngineError, match="closed"):
            await engine.submit(request())

    run(model, test)


@pytest.mark.parametrize(
    ("prompt", "sampling", "message", "param"),
    [
        ([], {}, "the prompt has no ids", "prompt_ids"),
        ([1, 64], {}, "token id 64 is out of vocabulary, which has 64", "prompt_ids"),
        ([-1], {}, "token id -1 is out of vocabulary, which has 64", "prompt_ids"),
        ([1] * 100, {"max_tokens": 29}, "100 ids and 29 tokens to come are more than the model's context of 128", "max_tokens"),
        ([1] * 128, {}, "128 ids and 1 tokens to come are more than the model's context of 128", "max_tokens"),
        ([1], {"max_tokens": 0}, "max_tokens is 0, and it is 1 or more", "max_tokens"),
    ],
)
def test_request_that_the_model_cannot_take_is_refused(
    model: Any, prompt: list[int], sampling: dict[str, Any], message: str, param: str
) -> None:
    """As an engine behind HTTP does, and before the model sees it."""

    async def test(engine: TransformersEngine) -> None:
        with pytest.raises(EngineError) as caught:
            await engine.submit(request(prompt=prompt, **sampling))
        assert (caught.value.message, caught.value.status, caught.value.param) == (message, 400, param)

    run(model, test)


def test_request_without_max_tokens_fills_the_context(model: Any) -> None:
    """And no more."""

    async def test(engine: TransformersEngine) -> None:
        ids, reason, _ = await generated(engine, temperature=0, ignore_eos=True)
        assert (len(ids), reason) == (125, "length")

    run(model, test)


def test_request_twice_or_for_two_choices_is_refused(model: Any) -> None:
    """As by any engine."""

    async def test(engine: TransformersEngine) -> None:
        await engine.submit(request())
        with pytest.raises(DuplicateRequest, match="'a' is open"):
            await engine.submit(request())
        with pytest.raises(OptionError, match="n=2"):
            await engine.submit(request("b", n=2))

    run(model, test)


def test_failure_within_the_model_ends_the_request(model: Any) -> None:
    """With the words of what was raised; the next one runs."""

    async def test(engine: TransformersEngine) -> None:
        def fail(*_: Any) -> None:
            raise RuntimeError("out of memory, say")

        handle = model.register_forward_pre_hook(fail)
        await engine.submit(request())
        (output,) = (await until_ended(engine, "a"))["a"]
        handle.remove()
        assert (output.finish_reason, output.error) == ("error", "out of memory, say")
        assert (await generated(engine, temperature=0, max_tokens=1))[1] == "length"

    run(model, test)


def test_saved_model_is_opened_by_its_path(model: Any, tmp_path: Path) -> None:
    """The same ids come from it."""
    model.save_pretrained(tmp_path)
    engine = open_engine(f"transformers:{tmp_path}")
    assert isinstance(engine, TransformersEngine)

    async def main() -> None:
        assert await generated(engine, temperature=0, max_tokens=3) == (greedy(model, 3), "length", None)
        await engine.close()

    asyncio.run(main())


def test_path_without_a_model_is_refused(tmp_path: Path) -> None:
    """Nothing is fetched for a name."""
    for path, words in ((tmp_path, "expected"), (tmp_path / "none", "there is no such directory")):
        with pytest.raises(SourceError, match=words):
            open_engine(f"transformers:{path}")
