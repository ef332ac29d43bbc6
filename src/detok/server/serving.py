"""A server on a socket: uvicorn, told what is right for streams."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import logging
import socket
import sys
from typing import Any

import uvicorn

from ..errors import OptionError
from .app import Server
from .logs import JsonLines, logger

__all__ = ["Uvicorn", "dead_engine", "serve", "uvicorn_config"]

KEEP_ALIVE = 75
"""Seconds for which an idle connection stays open: longer than a load balancer's 60, so that it is never the one surprised."""


class Uvicorn(uvicorn.Server):
    """
    Ends the streams that are still open when their time is up, so that their readers are told.

    Left to itself uvicorn waits, and then breaks connections off.
    """

    def __init__(self, config: uvicorn.Config, server: Server) -> None:
        super().__init__(config)
        self._detok = server

    async def startup(self, sockets: Any = None) -> None:
        """Listen, and say where: in the log, and to whoever started it by hand."""
        await super().startup(sockets)
        if not self.started:
            return
        host, port, *_ = self.servers[0].sockets[0].getsockname()
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        logger.info("listening", extra={"fields": {"url": url, "models": [*self._detok.models]}})
        print(_greeting(url, self._detok), flush=True)

    async def on_tick(self, counter: int) -> bool:
        """End when an engine has died that nobody starts again but who starts this process."""
        return await super().on_tick(counter) or dead_engine(self._detok) is not None

    async def shutdown(self, sockets: Any = None) -> None:
        """Let streams go on for so long; then end them."""
        closing: list[asyncio.Task[None]] = []
        limit = self._detok.config.shutdown_seconds
        timer = asyncio.get_running_loop().call_later(limit, lambda: closing.append(asyncio.create_task(self._detok.close())))
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()
            await asyncio.gather(*closing)


def dead_engine(server: Server) -> str | None:
    """Return what is said of an engine that has died, or None."""
    for model in server.models.values():
        if died := getattr(model.frontend.engine, "died", None):
            return f"{model.name}: {died}"
    return None


def _greeting(url: str, server: Server) -> str:
    """What to try."""
    key = "-H 'Authorization: Bearer KEY' " if server.config.api_keys else ""
    body = json.dumps({"model": [*server.models][-1], "prompt": "Say something", "max_tokens": 200, "stream": True})
    lines = [
        f"detok serves {', '.join(server.models)} at {url} (Ctrl-C ends it). Try:",
        f"  curl -N {url}/v1/completions {key}-H 'Content-Type: application/json' -d '{body}'",
    ]
    return "\n".join([*lines, f"or open {url}/ in a browser."] if server.has_page else lines)


def uvicorn_config(server: Server) -> uvicorn.Config:
    """Return what uvicorn is told."""
    return uvicorn.Config(
        server,
        host=server.config.host,
        port=server.config.port,
        access_log=False,
        log_config=None,
        # Nothing here looks at a client's address.
        proxy_headers=False,
        server_header=False,
        ws="none",
        backlog=4096,
        timeout_keep_alive=KEEP_ALIVE,
        # When streams were told to end they still have to say so.
        timeout_graceful_shutdown=round(server.config.shutdown_seconds) + 5,
    )


def serve(server: Server) -> None:
    """Serve until the process is told to end."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("detok", "uvicorn.error"):
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).propagate = False
    logger.setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    # Vocabularies are many objects that stay: the garbage collector need not look through them again and again.
    gc.collect()
    gc.freeze()
    check_address(server.config.host, server.config.port)
    Uvicorn(uvicorn_config(server), server).run()


def check_address(host: str, port: int) -> None:
    """
    See whether an address can be listened at, before uvicorn says it in its own way.

    Raises:
        OptionError: It cannot, and why.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((host, port))
    except OSError as error:
        option, value = ("port", port) if error.errno in (errno.EADDRINUSE, errno.EACCES) else ("host", host)
        accepted = f"{error.strerror or error}; choose another with --{option}, or DETOK_{option.upper()}"
        raise OptionError(option=option, value=value, accepted=accepted) from None
