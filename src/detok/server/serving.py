"""A server on a socket: uvicorn, told what is right for streams."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from typing import Any

import uvicorn

from .app import Server
from .logs import JsonLines, logger

__all__ = ["Uvicorn", "serve", "uvicorn_config"]

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
        """Listen, and say where."""
        await super().startup(sockets)
        if self.started:
            ports = [socket.getsockname() for one in self.servers for socket in one.sockets]
            for host, port, *_ in ports:
                logger.info("listening", extra={"fields": {"url": f"http://{host}:{port}", "models": [*self._detok.models]}})

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
    Uvicorn(uvicorn_config(server), server).run()
