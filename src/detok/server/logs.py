"""What a server logs: a JSON line for each request, without what its users write."""

from __future__ import annotations

import json
import logging
import time

__all__ = ["JsonLines", "log_request", "logger"]

logger = logging.getLogger("detok.server")


def log_request(method: str, path: str, status: int | None, seconds: float, **more: object) -> None:
    """Log one request that has ended; a status of None is a client that went away before the answer began."""
    fields = {"method": method, "path": path, "status": status, "seconds": round(seconds, 6), **more}
    logger.info("request", extra={"fields": fields})


class JsonLines(logging.Formatter):
    """
    Each record as a line of JSON.

    >>> record = logging.LogRecord("detok.server", logging.INFO, "", 0, "request", None, None)
    >>> record.created, record.fields = 0.0, {"status": 200}
    >>> JsonLines().format(record)
    '{"time": "1970-01-01T00:00:00Z", "level": "info", "message": "request", "status": 200}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        line = {"time": when, "level": record.levelname.lower(), "message": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
