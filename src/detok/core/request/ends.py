"""How a request ends: the reasons, as vLLM names them, and the check of those that an engine gives."""

from __future__ import annotations

from typing import Literal, SupportsIndex, get_args

from ...errors import OptionError, TokenTypeError
from ...ids import as_id
from ..options import as_plain, check_choice

FinishReason = Literal["stop", "length", "abort", "error"]
StopReason = str | int | None
"""The stop string, pattern or token id that ended a request; None for the end of sequence, and for other ends."""


def as_end(finish_reason: str | None, stop_reason: str | SupportsIndex | None) -> tuple[str | None, str | int | None]:
    """Check the end that an engine gives, and return it with the stop as a string or a plain int. Raises `OptionError`."""
    if finish_reason is None:
        return None, None  # without an end there is no stop either
    check_choice("finish_reason", finish_reason, (None, *get_args(FinishReason)))
    finish_reason = as_plain(finish_reason)
    if stop_reason is None or isinstance(stop_reason, str):
        return finish_reason, as_plain(stop_reason)
    try:
        return finish_reason, as_id(stop_reason)
    except TokenTypeError:
        accepted = "it is a string, a token id or None"
        raise OptionError(option="stop_reason", value=stop_reason, accepted=accepted) from None
