"""
Events with a name, which is the type of what they say.

Tested in tests/server/test_dialects.py.
"""

from __future__ import annotations

from typing import Any

from ..texts import json_bytes

__all__ = ["named_event"]


def named_event(value: dict[str, Any]) -> bytes:
    """
    Return an event.

    >>> named_event({"type": "ping"})
    b'event: ping\\ndata: {"type":"ping"}\\n\\n'
    """
    return b"event: " + str(value["type"]).encode() + b"\ndata: " + json_bytes(value) + b"\n\n"
