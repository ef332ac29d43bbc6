"""The server as an ASGI application: its models, its routes, and what holds for each request to them."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from contextlib import AsyncExitStack
from importlib import import_module
from typing import Any

from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from ..frontend.metrics import Registry
from .config import ServerConfig
from .endpoint import refusal
from .endpoints import routes
from .errors import Refused, refusal_of
from .logs import logger
from .models import Model, open_model
from .request_ids import HEADER, request_id

__all__ = ["Server", "open_server"]

PAGE = "detok.server.page"


class Server:
    """
    The application. It owns its models: they are closed when it shuts down.

    Args:
        models: By their names; the first one answers requests that name none.
        config: What else it is set to. Its own `models` are not looked at.
        registry: Where its metrics are, and those of its models.
    """

    def __init__(self, models: Mapping[str, Model], config: ServerConfig | None = None, registry: Registry | None = None) -> None:
        self.models = dict(models)
        self._by_name = {name: model for one, model in self.models.items() for name in (one, *model.other_names)}
        self.config = ServerConfig() if config is None else config
        self.registry = Registry() if registry is None else registry
        self.running = 0
        """Requests that generate now."""
        self.gone = self.registry.counter("detok_clients_gone_total", "Clients that went away before the end of their answer.")
        self.registry.gauge("detok_generating_requests", "HTTP requests that generate now.", lambda: self.running)
        self._answers: dict[tuple[str, int], Any] = {}
        self._keys = [key.encode() for key in self.config.api_keys]
        self._open_paths = {"/health"}
        self.has_page = False
        self._router = Router([*routes(self), *self._page()])
        self._app: ASGIApp = self._checked
        if self.config.cors_origins:
            self._app = CORSMiddleware(
                self._checked,
                allow_origins=self.config.cors_origins,
                allow_methods=["GET", "POST"],
                allow_headers=["*"],
                expose_headers=[HEADER],
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            # Routes raise what they refuse when they see that there is an application.
            scope["app"] = self
            await self._app(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    def model(self, name: str | None) -> Model:
        """
        Return the model of a name, or the first one.

        Raises:
            Refused: There is none of that name.
        """
        if not name:
            return next(iter(self.models.values()))
        if name not in self._by_name:
            there_are = ", ".join(map(repr, self._by_name))
            raise Refused(404, f"there is no model {name!r}; there are {there_are}", param="model", code="model_not_found")
        return self._by_name[name]

    async def close(self) -> None:
        """End all requests and close all models."""
        async with AsyncExitStack() as stack:
            for model in self.models.values():
                stack.push_async_callback(model.close)

    def count(self, path: str, status: int) -> None:
        """Count an answer."""
        key = path, status
        if key not in self._answers:
            self._answers[key] = self.registry.counter(
                "detok_http_requests_total", "Answers, by endpoint and status.", path=path, status=str(status)
            )
        self._answers[key].add()

    def _page(self) -> list[BaseRoute]:
        if not self.config.page:
            return []
        try:
            # A part that is there or not, and that needs nothing of this module.
            page = import_module(PAGE)
        except ModuleNotFoundError as error:
            if error.name != PAGE:
                raise
            return []
        self.has_page = True
        found: list[BaseRoute] = list(page.page_routes({name: model.tokenizer for name, model in self.models.items()}))
        # The page itself is shown to everybody, and asks for the key; what it asks for needs it.
        self._open_paths |= {route.path for route in found if isinstance(route, Route) and _is_file(route.path)}
        return found

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _checked(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the key, find the route, and answer what no route answers."""
        try:
            self._check_key(scope)
            await self._router(scope, receive, send)
        except Exception as error:
            refused = refusal_of(error)
            if refused.status >= 500:
                logger.error("the server failed", exc_info=error)
            self.count("other", refused.status)
            await refusal(refused, {HEADER: request_id(scope)})(scope, receive, send)

    def _check_key(self, scope: Scope) -> None:
        if not self._keys or scope["path"] in self._open_paths or scope["method"] == "OPTIONS":
            return
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        # Anthropic's clients have a header of their own.
        other = next((value for name, value in scope["headers"] if name == b"x-api-key"), b"")
        given = given or (b"Bearer " + other if other else b"")
        scheme, _, key = given.partition(b" ")
        # All of them are compared, each in a time that does not tell how much of it was right.
        fits = [hmac.compare_digest(key.strip(), one) for one in self._keys]
        if scheme.lower() != b"bearer" or not any(fits):
            message = "no API key was given" if not given else "the API key is wrong"
            headers = {"WWW-Authenticate": "Bearer"}
            raise Refused(401, f"{message}; it is sent as: Authorization: Bearer KEY", code="invalid_api_key", headers=headers)


def open_server(config: ServerConfig) -> Server:
    """
    Open all models of a configuration, and put a server before them.

    Raises:
        DetokError: A tokenizer or an engine cannot be.
    """
    registry = Registry()
    models = {name: open_model(name, model, config.limits, registry) for name, model in config.models.items()}
    return Server(models, config, registry)


def _is_file(path: str) -> bool:
    return path == "/" or "." in path.rpartition("/")[2]
