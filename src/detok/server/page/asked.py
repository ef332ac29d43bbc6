"""What the page asks for, and its limits."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ...core.options import ByteFallbackMode
from ...errors import OptionError
from ...inspection.strategies import Strategy

__all__ = ["LIMITS", "MAX_BODY", "MAX_TOKENS", "TraceAsked", "asked"]

# A trace is looked at by a person: this is some pages of text, and about a tenth of a second of work.
MAX_TOKENS = 2048
MAX_TEXT = 8192
MAX_STOPS = 16
MAX_STOP = 256
# Characters of text, escaped, or ids, each with a comma, and room for the rest.
MAX_BODY = 128 * 1024

LIMITS = {"tokens": MAX_TOKENS, "text": MAX_TEXT, "stops": MAX_STOPS, "stop": MAX_STOP}
"""What the page tells its reader before the server has to refuse."""

Stop = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_STOP)]


class TraceAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of ``POST /page/trace``. The names are those of `detok.inspection.trace` and ``tokenizer.request``."""

    tokenizer: str | None = None
    """None: the first one."""

    text: Annotated[str, msgspec.Meta(max_length=MAX_TEXT)] | None = None
    ids: Annotated[list[int], msgspec.Meta(max_length=MAX_TOKENS)] | None = None
    """A text or ids, not both."""

    add_special_tokens: bool = True
    """Of a text."""

    stop: Annotated[list[Stop], msgspec.Meta(max_length=MAX_STOPS)] = []  # msgspec copies an empty list
    include_stop_str_in_output: bool = False
    skip_special_tokens: bool = True
    byte_fallback: ByteFallbackMode = "exact"
    strategy: Strategy | Literal["alone"] = "alone"
    """What stands beside it: each id decoded alone, or another way to stream."""


def asked(body: bytes) -> TraceAsked:
    """
    Read a body.

    Raises:
        msgspec.DecodeError: It is no JSON, or not of this shape; the message names the field.
        OptionError: It has both a text and ids, or neither.
    """
    trace = msgspec.json.decode(body, type=TraceAsked)
    if (trace.text is None) == (trace.ids is None):
        value = trace.ids and trace.ids[:8]
        raise OptionError(option="ids", value=value, accepted="what is traced is a text or ids: give one of the two")
    return trace
