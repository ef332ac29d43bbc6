"""
The id of a request: the client's own, from `X-Request-Id`, or one of ours. It is on every answer and in the log.

Tested in tests/server/test_api_fields.py.
"""

from __future__ import annotations

import re
from uuid import uuid4

from starlette.types import Scope

__all__ = ["HEADER", "client_id", "request_id"]

HEADER = "x-request-id"
KEY = "detok.request_id"

# What can stand in a header and in a log: no client writes lines of its own there.
_POSSIBLE = re.compile(r"[!-~]{1,128}")


def client_id(scope: Scope) -> str | None:
    """Return the id that the client gave, if it is one: up to 128 visible characters of ASCII."""
    given = next((value.decode("latin-1") for name, value in scope["headers"] if name == HEADER.encode()), "")
    return given if _POSSIBLE.fullmatch(given) else None


def request_id(scope: Scope) -> str:
    """Return the id of a request, the same each time."""
    found: str | None = scope.get(KEY)
    if found is None:
        found = scope[KEY] = client_id(scope) or uuid4().hex
    return found
