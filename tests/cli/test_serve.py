"""`detok serve` as a process: what it prints, what curl gets from it, and how it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

BODY = {"model": "replay", "prompt": "?", "max_tokens": 100_000, "stream": True}


class Served:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.log: list[dict[str, Any]] = []
        self.url = self.until("listening")["url"]

    def until(self, message: str) -> dict[str, Any]:
        """Read the log until this message comes."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(json.loads(line))
            if self.log[-1]["message"] == message:
                return self.log[-1]
        raise AssertionError(self.log)


@contextmanager
def served(*options: str, **environment: str) -> Iterator[Served]:
    """Start a server on a free port."""
    command = [sys.executable, "-m", "detok", "serve", "--port", "0", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    try:
        yield Served(process)
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def run(*options: str) -> subprocess.CompletedProcess[str]:
    """Start one that ends by itself."""
    return subprocess.run([sys.executable, "-m", "detok", "serve", *options], capture_output=True, text=True, timeout=60)


def test_curl_reads_a_stream() -> None:
    """Or what stands in for it where there is none."""
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("there is no curl here; the other tests use other clients")
    with served(DETOK_API_KEY="k") as server:
        body = json.dumps({"prompt": "Hi 🦜", "stream": True})
        headers = ["-H", "Content-Type: application/json", "-H", "Authorization: Bearer k"]
        found = subprocess.run(
            [curl, "-sN", f"{server.url}/v1/completions", *headers, "-d", body], capture_output=True, check=True, timeout=30
        )
        *events, done, end = found.stdout.decode().split("\n\n")
        assert (done, end) == ("data: [DONE]", "")
        assert "".join(json.loads(one.removeprefix("data: "))["choices"][0]["text"] for one in events) == "Hi 🦜"
        refused = subprocess.run([curl, "-s", f"{server.url}/v1/models"], capture_output=True, check=True, timeout=30)
        assert json.loads(refused.stdout)["error"]["code"] == "invalid_api_key"


def test_empty_key_of_the_environment_is_none() -> None:
    """A compose file passes an unset variable on as an empty one; it must not become a key."""
    with served(DETOK_API_KEY="") as server:
        assert httpx.get(f"{server.url}/v1/models").status_code == 200


def test_stream_finishes_when_the_server_is_told_to_end() -> None:
    """It is let to its end, and no other is begun."""
    with served("--engine", "replay", "--engine-option", "rate=2000") as server, httpx.Client(timeout=30) as client:
        with client.stream("POST", f"{server.url}/v1/completions", json={**BODY, "max_tokens": 400}) as answer:
            lines = answer.iter_lines()
            next(lines)
            server.process.send_signal(signal.SIGTERM)
            rest = list(lines)
        assert rest[-2:] == ["data: [DONE]", ""]
        assert not any('"error"' in line for line in rest)
        server.process.wait(20)
        with pytest.raises(httpx.ConnectError):
            client.get(f"{server.url}/health")


def test_stream_that_takes_too_long_is_ended_and_told() -> None:
    """With an error, not with a connection that breaks."""
    options = ("--engine", "replay", "--engine-option", "rate=1", "--shutdown-seconds", "0.1")
    with served(*options) as server, httpx.Client(timeout=30) as client:
        with client.stream("POST", f"{server.url}/v1/completions", json=BODY) as answer:
            lines = answer.iter_lines()
            next(lines)
            server.process.send_signal(signal.SIGTERM)
            rest = list(lines)
        assert rest[-2:] == ["data: [DONE]", ""]
        assert "aborted" in json.loads(rest[-4].removeprefix("data: "))["error"]["message"]
        server.process.wait(20)


def test_client_that_breaks_off_is_counted() -> None:
    """And its request ends."""
    with served("--engine", "replay", "--engine-option", "rate=100") as server:
        host, port = server.url.removeprefix("http://").split(":")
        body = json.dumps(BODY).encode()
        with socket.create_connection((host, int(port))) as client:
            head = ["POST /v1/completions HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}"]
            client.sendall("\r\n".join([*head, "", ""]).encode() + body)
            assert client.recv(10) == b"HTTP/1.1 2"
        assert server.until("request")["gone"] is True
        text = httpx.get(f"{server.url}/metrics").text
        assert 'detok_aborts_total{model="replay"} 1\n' in text
        assert 'detok_open_requests{model="replay"} 0\n' in text
        assert "detok_clients_gone_total 1\n" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--engine", "x"], "engine='x' is invalid"),
        (["--tokenizer", "/nowhere"], "/nowhere"),
        (["--config", "/nowhere.toml"], "cannot be read"),
        (["--engine-option", "rate"], "NAME=VALUE"),
        (["--engine-option", "rates=5"], "rates=5 is invalid"),
        (["--channels", "x"], "channels='x' is invalid"),
    ],
)
def test_what_cannot_be_served_is_told(options: list[str], words: str) -> None:
    """In one line, with code 2, before anything listens."""
    found = run(*options)
    assert found.returncode == 2
    assert words in found.stderr
    assert len(found.stderr.splitlines()) == 1
