"""
Try `detok serve --engine vllm-core:MODEL` with a real vLLM, and measure it beside vLLM's own fronts.

Use, with a Python that has vLLM, on Linux: ``python -m scripts.real_vllm_core_check MODEL [RUST]``, with a directory that has
config.json and tokenizer.json (the weights are random: a tiny model is the best one), and the path of vLLM's `vllm-rs`, if it is
to be measured, too. It starts all servers itself and prints what it found as JSON. It fails with the first text that is not what
`tokenizers` makes of the ids, if the core still works for clients that left, and if its death does not end everything.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, aclosing, contextmanager
from pathlib import Path
from typing import Any

import httpx
from tokenizers import Tokenizer

from .real_vllm_check import correct, events, measure

READY_S = 400.0
ENGINE = {"load_format": "dummy", "dtype": "float32", "max_model_len": 4096, "enforce_eager": True}
EXIT_ENGINE_DIED = 3


def free_port() -> int:
    """Return a port that is free."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def served(command: list[str], url: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server that is ready, in a process group of its own."""
    process = subprocess.Popen(
        command,
        env={**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "WARNING", **environment},
        start_new_session=True,
    )
    try:
        began = time.monotonic()
        while True:
            try:
                if httpx.get(f"{url}/health", trust_env=False).status_code == 200:
                    break
            except httpx.HTTPError:
                pass
            if process.poll() is not None or time.monotonic() - began > READY_S:
                raise RuntimeError(f"{command} is not ready")
            time.sleep(0.5)
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def children(pid: int) -> dict[int, str]:
    """Return the processes below one, with their names."""
    found = {}
    for one in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, one.read_text().split()):
            found[child] = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            found.update(children(child))
    return found


def below(pid: int, name: str) -> int:
    """Return the one process below another whose command line has a name in it."""
    (found,) = [child for child, command in children(pid).items() if re.search(name, command)]
    return found


def detok_serve(model: str, port: int) -> list[str]:
    """The command of detok's front."""
    options = [f"--engine-option={name}={json.dumps(value)}" for name, value in ENGINE.items()]
    command = [sys.executable, "-m", "detok", "serve", "--engine", f"vllm-core:{model}", "--model-name", "tiny", "--no-page"]
    return [*command, "--port", str(port), *options]


def vllm_serve(model: str, port: int) -> list[str]:
    """The command of vLLM's fronts."""
    flags = [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}") for name, value in ENGINE.items()]
    command = [str(Path(sys.executable).parent / "vllm"), "serve", model, "--served-model-name", "tiny", "--host", "127.0.0.1"]
    return [*command, "--port", str(port), *flags]


async def killed(client: httpx.AsyncClient, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Kill the core amid streams: each ends with an error, and the server with its code."""
    errors = 0

    async def one() -> None:
        nonlocal errors
        body = {"prompt": [1, 2, 3], "max_tokens": 3000, "stream": True, "ignore_eos": True, "return_token_ids": True}
        async with aclosing(events(client, "/v1/completions", body)) as stream:
            async for event in stream:
                errors += "error" in event

    streams = [asyncio.create_task(one()) for _ in range(16)]
    await asyncio.sleep(3)
    began = time.monotonic()
    os.kill(below(process.pid, "EngineCore"), signal.SIGKILL)
    await asyncio.wait_for(asyncio.gather(*streams), 30)
    ended = time.monotonic() - began
    code = await asyncio.to_thread(process.wait, 60)
    assert errors == len(streams), f"{errors} of {len(streams)} streams ended with an error"
    assert code == EXIT_ENGINE_DIED, f"the server ended with {code}"
    return {"streams that ended with an error": errors, "after seconds": round(ended, 2), "exit code": code}


async def main(model: str, rust: str | None) -> None:
    """Run all of it."""
    tokenizer = Tokenizer.from_file(str(Path(model, "tokenizer.json")))
    ports = {name: free_port() for name in ("detok serve", "vllm serve", "vllm-rs")}
    urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
    none = httpx.Limits(max_connections=None, max_keepalive_connections=0)

    def client(name: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=urls[name], timeout=600, limits=none, trust_env=False)

    with ExitStack() as stack:
        own = stack.enter_context(served(detok_serve(model, ports["detok serve"]), urls["detok serve"]))
        async with client("detok serve") as detok:
            # Its metrics have vLLM's names, too.
            print(json.dumps(await correct(tokenizer, detok, detok), indent=1), flush=True)
            fronts = {"detok serve": own.pid}
            python = stack.enter_context(served(vllm_serve(model, ports["vllm serve"]), urls["vllm serve"]))
            fronts["vllm serve"] = python.pid
            if rust is not None:
                variables = {"VLLM_USE_RUST_FRONTEND": "1", "VLLM_RUST_FRONTEND_PATH": rust}
                launcher = stack.enter_context(served(vllm_serve(model, ports["vllm-rs"]), urls["vllm-rs"], **variables))
                fronts["vllm-rs"] = below(launcher.pid, "vllm-rs")
            body = {"model": "tiny", "prompt": tokenizer.encode("Once upon a time").ids, "stream": True}
            body |= {"max_tokens": 64, "ignore_eos": True, "temperature": 1.0}
            ways = {name: (client(name), "/v1/completions", body) for name in fronts}
            found = await measure(ways, fronts)
            shown = {
                name: {"µs a token": one["µs a token"][name], "ms to the first": one["ms to the first"]}
                for name, one in found.items()
            }
            print(json.dumps(shown, indent=1, ensure_ascii=False), flush=True)
            ratios = {name: round(shown["detok serve"]["µs a token"][0] / one["µs a token"][0], 2) for name, one in shown.items()}
            print(json.dumps({"detok's cost of a token, times that of": ratios}), flush=True)
            for one, _, _ in ways.values():
                await one.aclose()
            print(json.dumps(await killed(detok, own), indent=1), flush=True)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else None))
