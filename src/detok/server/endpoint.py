"""An endpoint: a handler, and what happens around it for each request."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..errors import EngineError
from .connection import ClientGone, read_body, while_connected
from .errors import Refused, refusal_of
from .fields import near_misses, read_body_as
from .logs import log_request, logger
from .request_ids import HEADER, client_id, request_id
from .sse import EventStream
from .texts import json_bytes

if TYPE_CHECKING:
    from .app import Server

__all__ = ["Call", "Described", "Endpoint", "Handler", "json_response", "refusal"]

Body = TypeVar("Body", bound=msgspec.Struct)

JSON = "application/json"
WARNING = "x-detok-warning"
"""A header for who writes clients."""


@dataclass(slots=True)
class Call:
    """A request to an endpoint."""

    server: Server
    scope: Scope
    content: bytes
    log: dict[str, object] = field(default_factory=dict)
    """What its line in the log says beside what each says."""
    log_at_end: Callable[[], dict[str, int]] = dict
    """What else, once the answer is out."""
    warnings: list[str] = field(default_factory=list)
    """Of fields that are no error, and have no effect."""

    def body(self, kind: type[Body]) -> Body:
        """
        Read the body.

        Raises:
            msgspec.DecodeError: It is not what it has to be; the message names the field.
            Refused: It is nested so deeply that nobody can have meant it.
        """
        try:
            body = read_body_as(self.content, kind)
            self.warnings = near_misses(self.content, kind)
        except RecursionError:
            raise Refused(400, "the body is nested too deeply") from None
        if self.warnings:
            self.log["warnings"] = self.warnings
        return body

    @property
    def client_id(self) -> str | None:
        """What the client calls the request."""
        return client_id(self.scope)

    @property
    def id(self) -> str:
        """What it is called here: as the client says, or a name of ours."""
        return request_id(self.scope)

    @property
    def headers(self) -> dict[str, str]:
        """What every answer to it has."""
        warned = {WARNING: "; ".join(self.warnings)} if self.warnings else {}
        return {HEADER: self.id, **warned}


Handler = Callable[[Call], Awaitable[Response | EventStream]]


@dataclass(frozen=True, slots=True)
class Described:
    """An endpoint as it is listed."""

    method: str
    path: str
    handler: Handler
    """What answers. Its docstring says what for."""
    body: type[msgspec.Struct] | None = None
    generates: bool = False
    """Whether it counts among the requests that generate."""
    refusal_body: Callable[[Refused], dict[str, Any]] = Refused.as_dict
    """How its clients read an error."""


class Endpoint:
    """One endpoint, as an ASGI application, so that nothing stands between it and the server's `send`."""

    def __init__(self, server: Server, described: Described) -> None:
        self._server = server
        self._path = described.path
        self._handler = described.handler
        self._generates = described.generates
        self._refusal_body = described.refusal_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()
        call = Call(self._server, scope, b"")
        call.log["request_id"] = request_id(scope)
        status: int | None = None
        try:
            call.content = await self._content(scope, receive)
            status = await while_connected(receive, self._answer(call, receive, send))
        except ClientGone:
            self._server.gone.add()
            call.log["gone"] = True
        except Refused as error:
            status = error.status
            await refusal(error, call.headers, self._refusal_body)(scope, receive, send)
        if status is not None:
            self._server.count(self._path, status)
        log_request(scope["method"], self._path, status, time.perf_counter() - start, **call.log, **call.log_at_end())

    async def _content(self, scope: Scope, receive: Receive) -> bytes:
        if scope["method"] != "POST":
            return b""
        kind = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
        # A browser asks first before it sends JSON to another site: so none can have a reader's own server work for it.
        if kind.partition(b";")[0].strip().lower() != b"application/json":
            raise Refused(415, "the body must be JSON, sent as Content-Type: application/json")
        return await read_body(receive, self._server.config.limits.max_body_bytes)

    async def _answer(self, call: Call, receive: Receive, send: Send) -> int:
        server = self._server
        if self._generates:
            most = server.config.limits.max_requests
            if server.running >= most:
                message = f"{most:,} requests are being answered, and no more are allowed at once; try again later"
                raise Refused(429, message, code="rate_limit_exceeded", headers={"Retry-After": "1"})
            server.running += 1
        try:
            response = await self._handler(call)
            response.add_headers(call.headers) if isinstance(response, EventStream) else _add(response, call.headers)
            await response(call.scope, receive, send)
            if isinstance(response, EventStream) and response.error is not None:
                self._note(call, response.error)
            return response.status_code
        except ClientGone:
            raise
        except Exception as error:
            refused = self._note(call, error)
            await refusal(refused, call.headers, self._refusal_body)(call.scope, receive, send)
            return refused.status
        finally:
            server.running -= self._generates

    def _note(self, call: Call, error: BaseException) -> Refused:
        """Have the log say what went wrong, and return what the client is told."""
        refused = refusal_of(error)
        call.log["error"] = refused.as_dict()["error"] if self._server.config.log_prompts else refused.kind
        if isinstance(error, EngineError):
            call.log["engine"] = error.engine
        if refused.status == 500:
            logger.error("the server failed at %s", self._path, exc_info=error)
        return refused


def _add(response: Response, headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        response.headers.setdefault(name, value)


def refusal(error: Refused, headers: Mapping[str, str], body: Callable[[Refused], dict[str, Any]] = Refused.as_dict) -> Response:
    """Return the answer that says why there is none."""
    return Response(json_bytes(body(error)), error.status, {**headers, **error.headers}, JSON)


def json_response(value: Any) -> Response:
    """Return an answer."""
    return Response(json_bytes(value), media_type=JSON)
