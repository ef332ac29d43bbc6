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
from pathlib import Path
from typing import Any

import httpx
import pytest

import detok

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


DYING = """
import sys
from detok.__main__ import main
from detok.engines import vllm_core, vllm_core_client
from tests.engines.test_vllm_core import FakeCore

class Dying(FakeCore):
    async def add(self, request):
        await super().add(request)
        self.give(RuntimeError("EngineCore encountered an issue."))

vllm_core_client.start_engine = lambda model, options: vllm_core.VllmCoreEngine(Dying())
sys.argv = ["detok", "serve", "--port", "0", "--engine", "vllm-core:tiny", "--model-name", "m", "--tokenizer", sys.argv[1]]
main()
"""


def test_engine_that_dies_ends_the_process_with_a_code_of_its_own() -> None:
    """Its requests end with an error first, so that whoever starts the process knows what to start again."""
    command = [sys.executable, "-c", DYING, str(detok.EMBEDDED)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            server = Served(process)
            body = {"prompt": [1], "stream": True}
            found = httpx.post(f"{server.url}/v1/completions", json=body, timeout=30)
            assert (found.status_code, found.json()["error"]["message"]) == (503, "the engine has died")
            assert process.stderr is not None
            rest = process.stderr.read()
            assert process.wait(30) == 3
            assert rest.splitlines()[-1] == "detok: m: the engine has died"
        finally:
            process.kill()


def test_model_has_names_a_template_and_variables_by_flags(tmp_path: Path) -> None:
    """As vLLM's users give them; the first name signs."""
    template = tmp_path / "chat.jinja"
    template.write_text("{{ messages[0].content }}{{ mark }}", encoding="utf-8")
    names = ("--served-model-name", "a", "--served-model-name", "b")
    flags = ("--chat-template", str(template), "--default-chat-template-kwargs", '{"mark": "!"}')
    with served("--engine", "echo", *names, *flags) as server:
        assert [one["id"] for one in httpx.get(f"{server.url}/v1/models").json()["data"]] == ["a", "b"]
        body = {"model": "b", "messages": [{"role": "user", "content": "Hi"}]}
        answer = httpx.post(f"{server.url}/v1/chat/completions", json=body).json()
        assert (answer["model"], answer["choices"][0]["message"]["content"]) == ("a", "Hi!")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--chat-template", "nowhere.jinja"), "no such file"),
        (("--default-chat-template-kwargs", "{"), "--default-chat-template-kwargs { is no JSON object"),
        (("--default-chat-template-kwargs", "[]"), "is no JSON object"),
        (("--default-chat-template-kwargs", '{"tools": []}'), "default_chat_template_kwargs.tools"),
    ],
)
def test_template_that_cannot_be_is_told_at_the_start(options: tuple[str, ...], words: str) -> None:
    """On one line."""
    ended = run("--engine", "echo", *options)
    assert ended.returncode == 2
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr
