"""
Try `detok serve` in front of a vLLM that runs, and measure both.

Use: ``python -m scripts.real_vllm_check TOKENIZER URL PID``, with the directory of the tokenizer that vLLM serves, as in
http://127.0.0.1:8001 where it does (started with ``--enable-scale-out``, so that it has a text side of its own too), and the
id of its API server's process, on this machine, on Linux. It starts a `detok serve` of its own, prints what it found as JSON, and
fails with the first text that is not what `tokenizers` makes of the ids. A tiny model with random weights is the best one for it.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from tokenizers import Tokenizer

STREAMS, AT_ONCE = 200, 64
ROUNDS, TOKENS, ALONE = 5, 64, 20
LEFT_IN = 10.0
"""Seconds in which vLLM has to have stopped what nobody reads any more; all of it would take far longer."""

# Characters of two to four tokens each in most vocabularies; what is drawn of these tokens is seldom a whole character.
SPLIT = "🦜𒀭𒂗𒆤ꦗꦮက྾ꯍ"


@dataclass(kw_only=True)
class Choice:
    """What came of one choice."""

    text: str = ""
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    finish_reason: str | None = None
    stop_reason: str | int | None = None

    def add(self, piece: dict[str, Any]) -> None:
        """Take a chunk's."""
        self.text += piece["text"]
        self.ids += piece["token_ids"]
        if (logprobs := piece["logprobs"]) is not None:
            self.logprobs += logprobs["token_logprobs"]
            self.tokens += logprobs["tokens"]
        self.finish_reason, self.stop_reason = piece["finish_reason"], piece["stop_reason"]


async def events(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
    """Give the events of a stream."""
    async with client.stream("POST", path, json=body) as response:
        if response.status_code != 200:
            raise RuntimeError(f"{response.status_code}: {await response.aread()!r}")
        rest = b""
        async for data in response.aiter_bytes():
            *whole, rest = (rest + data).split(b"\n\n")
            for event in whole:
                if event.startswith(b"data: {"):
                    yield json.loads(event.removeprefix(b"data: "))
        if event != b"data: [DONE]":
            raise RuntimeError(f"the stream ended with {event!r}")


def request(tokenizer: Tokenizer, number: int) -> tuple[dict[str, Any], int | None]:
    """Return a body, and after how many events its client leaves."""
    draw = random.Random(number)
    size = tokenizer.get_vocab_size()
    allowed = tokenizer.encode(SPLIT, add_special_tokens=False).ids + [draw.randrange(size) for _ in range(12)]
    body: dict[str, Any] = {
        "prompt": [draw.randrange(size) for _ in range(draw.randint(1, 20))],
        "stream": True,
        "return_token_ids": True,
        "temperature": 1.0,
        "allowed_token_ids": sorted({*allowed}),
        "max_tokens": draw.randint(1, 128),
        "n": 2 if number % 4 == 0 else 1,
    }
    if number % 3 == 0:
        body["logprobs"] = 3
    if number % 5 == 4:
        # So long that it surely runs when its client leaves, before the first event or behind some.
        return {**body, "max_tokens": 3000, "ignore_eos": True}, draw.choice([0, 1, 5, 30])
    if number % 2 == 0:
        body["stop"] = sorted({stop for _ in range(6) if (stop := _stop(tokenizer, allowed, draw))} | {draw.choice(SPLIT)})
    return body, None


def _stop(tokenizer: Tokenizer, allowed: list[int], draw: random.Random) -> str:
    """Return some characters that a few of the tokens may make: within one, or from one into the next."""
    whole = tokenizer.decode(draw.choices(allowed, k=4)).strip("\ufffd")
    begin = draw.randrange(len(whole) + 1)
    return whole[begin : begin + draw.randint(2, 4)].partition("\ufffd")[0]


def check(tokenizer: Tokenizer, body: dict[str, Any], choice: Choice, *, left: bool) -> None:
    """
    Compare a choice with the one-shot decode of its ids.

    Raises:
        AssertionError: It is another text, or not all of what was asked for.
    """
    whole = tokenizer.decode(choice.ids, skip_special_tokens=True)
    stops = body.get("stop", [])
    shown = json.dumps({"body": body, "choice": vars(choice), "whole": whole})
    assert not any(stop in choice.text for stop in stops), shown
    if left:
        assert whole.startswith(choice.text), shown
        return
    if isinstance(choice.stop_reason, str):
        assert choice.finish_reason == "stop", shown
        assert choice.stop_reason in stops, shown
        assert whole.startswith(choice.text + choice.stop_reason), shown
        before = tokenizer.decode(choice.ids[:-1], skip_special_tokens=True)
        assert not any(stop in before for stop in stops), shown
    else:
        assert choice.text == whole, shown
        assert choice.finish_reason == "stop" or len(choice.ids) == body["max_tokens"], shown
        assert not any(stop in whole for stop in stops), shown
    if "logprobs" in body:
        assert len(choice.logprobs) == len(choice.ids), shown
        assert "".join(choice.tokens) == choice.text, shown
        assert all(-9999 <= logprob <= 0 for logprob in choice.logprobs), shown


async def correct(tokenizer: Tokenizer, detok: httpx.AsyncClient, vllm: httpx.AsyncClient) -> dict[str, Any]:
    """Read all streams; return counts of what was in them."""
    counts: Counter[str] = Counter()
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        body, leaves = request(tokenizer, number)
        choices = [Choice() for _ in range(body["n"])]
        async with room:
            try:
                async with (
                    asyncio.timeout(0.02 if leaves == 0 else None),
                    aclosing(events(detok, "/v1/completions", body)) as stream,
                ):
                    place = 0
                    async for event in stream:
                        place += 1
                        for piece in event["choices"]:
                            choices[piece["index"]].add(piece)
                        if place == leaves:
                            break
            except TimeoutError:
                assert leaves == 0
        for choice in choices:
            check(tokenizer, body, choice, left=leaves is not None)
            counts["tokens"] += len(choice.ids)
            counts["tokens that end within a character"] += sum("\ufffd" in tokenizer.decode([one]) for one in choice.ids)
            counts["stops found"] += isinstance(choice.stop_reason, str)
        counts.update({"streams": 1, "choices": len(choices), "with stops": "stop" in body, "with logprobs": "logprobs" in body})
        counts.update(
            {"with n = 2": body["n"] == 2, "clients that left": leaves is not None, "left before an event": leaves == 0}
        )

    async with asyncio.TaskGroup() as group:
        for number in range(STREAMS):
            group.create_task(one(number))
    began = time.monotonic()
    while running := await metric(vllm, "vllm:num_requests_running") + await metric(vllm, "vllm:num_requests_waiting"):
        if time.monotonic() - began > LEFT_IN:
            raise AssertionError(f"vLLM still runs {running:g} requests that nobody reads")
        await asyncio.sleep(0.05)
    quiet = {"seconds until vLLM was idle": round(time.monotonic() - began, 2)}
    totals = {name: await metric(detok, f"detok_{name}_total") for name in ("clients_gone", "aborts", "failed_aborts", "errors")}
    return {**counts, **quiet, **totals}


async def metric(client: httpx.AsyncClient, name: str) -> float:
    """Return a metric, summed over its labels."""
    found = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", (await client.get("/metrics")).text, re.MULTILINE)
    return sum(map(float, found))


def processor(pid: int) -> float:
    """Return the seconds that the threads of a process ran."""
    return sum(int(one.read_text().split()[0]) for one in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


async def measure(ways: dict[str, tuple[httpx.AsyncClient, str, dict[str, Any]]], pids: dict[str, int]) -> dict[str, Any]:
    """Of each way: the time of each process on a token of many streams, and to the first token of one that is alone."""
    spent: dict[str, dict[str, list[float]]] = {way: {name: [] for name in pids} for way in ways}
    first: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(ROUNDS + 1):
        for way, (client, path, body) in ways.items():
            before = {name: processor(pid) for name, pid in pids.items()}
            await asyncio.gather(*(_drain(client, path, body) for _ in range(AT_ONCE)))
            # The first time fills what the others find.
            if turn:
                for name, pid in pids.items():
                    spent[way][name].append((processor(pid) - before[name]) / (AT_ONCE * TOKENS) * 1e6)
    for _ in range(ALONE):
        for way, (client, path, body) in ways.items():
            began = time.perf_counter()
            async with aclosing(events(client, path, body)) as stream:
                await anext(stream)
                first[way].append((time.perf_counter() - began) * 1e3)
            await asyncio.sleep(0.1)
    return {
        way: {
            "µs a token": {name: [round(of(each), 1) for of in (median, min, max)] for name, each in spent[way].items()},
            "ms to the first": [round(of(first[way]), 1) for of in (median, min, max)],
        }
        for way in ways
    }


async def _drain(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> None:
    async with client.stream("POST", path, json=body) as response:
        async for _ in response.aiter_raw():
            pass


async def main(directory: str, url: str, pid: int) -> None:
    """Run all of it against a `detok serve` of its own."""
    tokenizer = Tokenizer.from_file(str(Path(directory, "tokenizer.json")))
    command = ["serve", "--tokenizer", directory, "--engine", f"vllm:{url}", "--model-name", "detok", "--port", "0", "--no-page"]
    served = subprocess.Popen(
        [sys.executable, "-m", "detok", *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        own = await asyncio.to_thread(_address, served)
        none = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        async with (
            httpx.AsyncClient(base_url=own, timeout=600, limits=none, trust_env=False) as detok,
            httpx.AsyncClient(base_url=url, timeout=600, limits=none, trust_env=False) as vllm,
        ):
            print(json.dumps(await correct(tokenizer, detok, vllm), indent=1), flush=True)
            ids = tokenizer.encode("Once upon a time").ids
            sampling = {"max_tokens": TOKENS, "ignore_eos": True, "temperature": 1.0}
            text = {"prompt": ids, "stream": True, **sampling}
            tokens = {"token_ids": ids, "stream": True, "sampling_params": sampling}
            silent = {**tokens, "sampling_params": {**sampling, "detokenize": False}}
            ways = {
                "vLLM's own /v1/completions": (vllm, "/v1/completions", text),
                "detok serve before vLLM": (detok, "/v1/completions", text),
                "vLLM's /inference/v1/generate, detokenize=False": (vllm, "/inference/v1/generate", silent),
                "vLLM's /inference/v1/generate": (vllm, "/inference/v1/generate", tokens),
            }
            print(json.dumps(await measure(ways, {"detok": served.pid, "vLLM": pid}), indent=1, ensure_ascii=False))
    finally:
        served.terminate()
        served.wait()


def _address(served: subprocess.Popen[str]) -> str:
    """Return where the server listens: its first line says so."""
    assert served.stdout is not None
    found = re.search(r"http://127\.0\.0\.1:\d+", served.stdout.readline())
    if found is None:
        raise RuntimeError("detok serve did not start")
    return found[0]


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
