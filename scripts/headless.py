"""An application on a port of its own, and the system's browser to look at it: for tests and for pictures."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

__all__ = ["FLAGS", "chromium", "served"]

# Playwright's own browser is a download that many machines refuse; that of the system does as well.
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run")
"""No sandbox: CI is often root in a container, where there can be none, and the pages are ours. The rest keeps it from asking
hosts of its own."""

# A server that does not start in so many seconds never will.
PATIENCE = 20.0


def chromium() -> str | None:
    """Return the path of a Chromium: that in ``DETOK_CHROMIUM``, or one of those on the PATH; None if there is none."""
    return os.environ.get("DETOK_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def served(application: Any) -> Iterator[str]:
    """
    Serve an ASGI application from a thread; give its address, as ``http://127.0.0.1:PORT``.

    Raises:
        RuntimeError: It does not start.
    """
    config = uvicorn.Config(application, host="127.0.0.1", port=0, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + PATIENCE
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise RuntimeError("the server did not start; its log says why")
        time.sleep(0.01)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
