"""A server for tests: in this process over ASGI, or on a socket for real clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn

import detok
from detok.engines.base import Engine
from detok.engines.echo import EchoEngine
from detok.frontend.metrics import FrontendMetrics, Registry
from detok.frontend.processor import OutputProcessor
from detok.prompts.lengths import LengthLimits
from detok.server.app import Server
from detok.server.config import ServerConfig
from detok.server.models import Model

TOKENIZER = detok.load(detok.EMBEDDED)


def ids_of(text: str) -> list[int]:
    """The ids of a text."""
    return TOKENIZER.encode(text, add_special_tokens=False)


def model(engine: Engine | None = None, name: str = "test", registry: Registry | None = None, **settings: Any) -> Model:
    """A model, of the embedded tokenizer if nothing else is said."""
    metrics = FrontendMetrics(registry, model=name)
    limits = LengthLimits(max_tokens=settings.get("max_model_len"))
    tokenizer = settings.pop("tokenizer", TOKENIZER)
    return Model(
        name=name,
        tokenizer=tokenizer,
        frontend=OutputProcessor(tokenizer, EchoEngine() if engine is None else engine, metrics=metrics),
        limits=limits,
        encoder=tokenizer.async_encoder(max_tokens=limits.max_tokens),
        **settings,
    )


def server_of(*models: Model, **config: Any) -> Server:
    """A server with these models."""
    return Server({one.name: one for one in models}, ServerConfig(**config))


@dataclass
class Answer:
    """What a server sent."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    bodies: list[bytes] = field(default_factory=list)
    ended: bool = False

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(b"".join(self.bodies))

    @property
    def error(self) -> dict[str, Any]:
        """The error in the body."""
        error: dict[str, Any] = self.json["error"]
        assert error.keys() == {"message", "type", "param", "code"}
        return error

    @property
    def events(self) -> list[Any]:
        """The JSON of each event; [DONE] has to be the last."""
        events = [one for one in b"".join(self.bodies).decode().split("\n\n") if one.startswith("data: ")]
        assert events.pop() == "data: [DONE]"
        return [json.loads(one.removeprefix("data: ")) for one in events]

    def text(self, index: int = 0) -> str:
        """The text of a choice of a stream."""
        choices = [choice for event in self.events for choice in event.get("choices", ()) if choice["index"] == index]
        return "".join(choice["text"] if "text" in choice else choice["delta"].get("content", "") for choice in choices)


class Client:
    """One request over ASGI, in pieces that a test controls."""

    def __init__(self, server: Server, path: str, body: Any = None, *, method: str = "POST", headers: Any = None) -> None:
        self.answer = Answer()
        self.content = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {"content-type": "application/json", **(headers or {})}
        self.scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "query_string": b"",
            "root_path": "",
        }
        self.gone = asyncio.Event()
        self.may_write = asyncio.Event()
        self.may_write.set()
        self.wrote = asyncio.Event()
        self._messages: list[dict[str, Any]] = [{"type": "http.request", "body": self.content, "more_body": False}]
        self._server = server

    def in_pieces(self, *messages: dict[str, Any]) -> Client:
        """Send these messages in place of the body."""
        self._messages = [*messages]
        return self

    async def receive(self) -> dict[str, Any]:
        if self._messages:
            return self._messages.pop(0)
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.may_write.wait()
        assert not self.answer.ended
        if message["type"] == "http.response.start":
            assert self.answer.status is None
            self.answer.status = message["status"]
            self.answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            assert self.answer.status is not None
            self.answer.bodies.append(message.get("body", b""))
            self.answer.ended = not message.get("more_body", False)
        self.wrote.set()

    async def run(self) -> Answer:
        """Do the request."""
        await self._server(self.scope, self.receive, self.send)
        return self.answer


async def ask(server: Server, path: str, body: Any = None, *, method: str = "POST", headers: Any = None) -> Answer:
    """Do a request."""
    return await Client(server, path, body, method=method, headers=headers).run()


@contextlib.asynccontextmanager
async def running(*models: Model, **config: Any) -> AsyncIterator[Server]:
    """A server whose models are closed at the end; what hangs fails."""
    server = server_of(*models, **config)
    async with asyncio.timeout(30):
        try:
            yield server
        finally:
            await server.close()


@contextlib.contextmanager
def on_socket(make: Any) -> Iterator[str]:
    """
    Serve on a free port from a thread, for clients that know nothing of event loops. Gives the URL.

    Args:
        make: Makes the server, on its own event loop.
    """
    started, done = threading.Event(), threading.Event()
    found: dict[str, Any] = {}

    class Listening(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            found["port"] = self.servers[0].sockets[0].getsockname()[1]
            started.set()

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    async def main() -> None:
        config = uvicorn.Config(make(), port=0, log_config=None, ws="none", timeout_graceful_shutdown=5)
        found["server"] = Listening(config)
        await found["server"].serve()
        done.set()

    # A server that does not start holds up no other test: nobody could tell it to end.
    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert started.wait(120)
    try:
        yield f"http://127.0.0.1:{found['port']}"
    finally:
        found["server"].should_exit = True
        thread.join(20)
        assert done.is_set()
