"""The routes of the page: its files, what it starts from, and the trace that it draws."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...errors import DetokError, MissingExtra, OptionError
from ...inspection.strategies import COMPARED
from ...tokenizers import Tokenizer

try:
    import msgspec
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route
except ImportError as error:
    raise MissingExtra((error.name or "starlette").partition(".")[0], extra="serve", purpose="the server") from error

from .asked import LIMITS, MAX_BODY, asked
from .examples import examples
from .steps import steps

__all__ = ["HEADERS", "page_routes"]

STATIC = Path(__file__).with_name("static")
MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

HEADERS = {
    # Nothing is allowed but the page's own files and this server; no frame, no form that leaves, no inline code.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""What every answer of the page says to the browser."""


def page_routes(tokenizers: Mapping[str, Tokenizer], *, models: bool = True, metrics: bool = True) -> list[Route]:
    """
    Return the routes of the page: ``/`` and all below ``/page``.

    Every link in it is relative, so that it may be mounted anywhere.

    Args:
        tokenizers: By the names that the page offers; the first one is its default. Asked at each request, so it may change.
        models: Whether the server has ``/v1/models`` and what belongs to it beside it. If not, the page does not ask for them.
        metrics: The same for ``/metrics``.
    """
    files = [path for path in sorted(STATIC.iterdir()) if path.suffix in MEDIA_TYPES]
    routes = [_file("/" if path.name == "index.html" else f"/page/{path.name}", path) for path in files]
    return [
        *routes,
        Route("/page/setup", partial(_setup, tokenizers, {"models": models, "metrics": metrics}), methods=["GET"]),
        Route("/page/trace", partial(_trace, tokenizers), methods=["POST"]),
    ]


def _file(url: str, path: Path) -> Route:
    """A file, read once; the browser keeps it and asks each time whether it is still the same."""
    content = path.read_bytes()
    etag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = {**HEADERS, "ETag": etag, "Cache-Control": "no-cache"}

    async def endpoint(request: Request) -> Response:
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=MEDIA_TYPES[path.suffix], headers=headers)

    return Route(url, endpoint, methods=["GET"], name=path.name)


async def _setup(tokenizers: Mapping[str, Tokenizer], has: Mapping[str, bool], _request: Request) -> Response:
    """What the page is to offer."""
    offered = [
        {"name": name, "description": tokenizer.description, "vocab_size": tokenizer.vocab_size}
        for name, tokenizer in tokenizers.items()
    ]
    return _json({"tokenizers": offered, "examples": examples(), "strategies": COMPARED, "limits": LIMITS, **has})


async def _trace(tokenizers: Mapping[str, Tokenizer], request: Request) -> Response:
    """
    Trace a text or ids.

    A browser asks before it sends JSON to another site, and nobody here says yes: so no other site can have a reader's server
    work for it.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return _refusal(415, "the body must be application/json", None)
    body = await _body(request)
    if body is None:
        return _refusal(413, f"the body is longer than {MAX_BODY:,} bytes", None)
    try:
        wanted = asked(body)
        name = next(iter(tokenizers), "") if wanted.tokenizer is None else wanted.tokenizer
        tokenizer = tokenizers.get(name)
        if tokenizer is None:
            return _refusal(404, f"there is no tokenizer {name!r}; there are {', '.join(map(repr, tokenizers))}", "tokenizer")
        # Some milliseconds for a sentence, more for pages: long enough to do it beside the streams of others.
        return _json({"tokenizer": name, **await run_in_threadpool(steps, tokenizer, wanted)})
    except msgspec.DecodeError as error:
        return _refusal(400, str(error), None)
    except OptionError as error:
        return _refusal(400, str(error), error.option)
    except DetokError as error:
        return _refusal(400, str(error), None)


async def _body(request: Request) -> bytes | None:
    """Return the body; None, as soon as it is known, if it is too long."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_BODY:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _refusal(status: int, message: str, param: str | None) -> Response:
    """An error in the shape that OpenAI's have."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": status}
    return _json({"error": error}, status)


def _json(value: Any, status: int = 200) -> Response:
    """An answer. It is ASCII, so that whatever a tokenizer calls text, lone surrogates too, can be sent."""
    headers = {**HEADERS, "Cache-Control": "no-store"}
    return Response(json.dumps(value, separators=(",", ":")), status, headers, "application/json")
