"""What goes to standard output: exact text as bytes, JSON a line, and text made safe to look at."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..core.request.output import RequestOutput

__all__ = ["JOINERS", "one_line", "plain_ending", "plain_held", "visible", "write", "write_json"]


JOINERS = "\u200c\u200d"
"""They make one letter or emoji of several, and are safe; `visible` may keep them in running text."""


def write(text: str) -> None:
    """Write text at once, as UTF-8 whatever the locale says, and without any change of line ends."""
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def write_json(value: Any) -> None:
    """Write one JSON value on a line of its own. A lone surrogate, which UTF-8 cannot spell, is escaped, and all else with it."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value)
    write(text + "\n")


def plain_ending(end: RequestOutput) -> dict[str, Any]:
    """How a request ended, for JSON."""
    names = ("finish_reason", "stop_reason", "tokens_kept", "dropped_token_ids", "text_end")
    return {**{name: getattr(end, name) for name in names}, "dropped_token_ids": list(end.dropped_token_ids)}


def plain_held(held: str | bytes) -> Any:
    """What a stream holds, for JSON: bytes become ``{"bytes": hex}``, as in a snapshot."""
    return {"bytes": held.hex()} if isinstance(held, bytes) else held


def visible(text: str, *, space: str = " ", keep: str = "") -> str:
    """
    Return text in which nothing can move the cursor, change the colour or turn the direction of what follows.

    Whatever Python does not call printable is escaped; a mark that stands first gets a circle to stand on.

    Args:
        space: What to show for a space.
        keep: Characters that are left as they are.
    """
    shown = "".join(space if c == " " else c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)
    return f"◌{shown}" if unicodedata.category(shown[:1] or " ").startswith("M") else shown


def one_line(text: str) -> str:
    """Return a message as one line that is safe to look at."""
    return visible(" ".join(text.split()))
