"""How an engine says that a request ended."""

from __future__ import annotations

import numpy as np
import pytest

import detok
from detok.core.request.ends import as_end


def test_what_an_engine_says_is_checked() -> None:
    """A reason of those that there are; a stop as a string or an id, which becomes a plain int."""
    assert as_end(None, None) == (None, None)
    assert as_end("length", None) == ("length", None)
    assert as_end("stop", "END") == ("stop", "END")
    found = as_end("stop", np.int64(7))
    assert (found, type(found[1])) == (("stop", 7), int)


@pytest.mark.parametrize(
    ("finish_reason", "stop_reason", "option"),
    [("ended", None, "finish_reason"), ("stop", 1.5, "stop_reason"), ("stop", True, "stop_reason")],
)
def test_what_is_neither_is_refused(finish_reason: str | None, stop_reason: object, option: str) -> None:
    """With the field that is wrong."""
    with pytest.raises(detok.OptionError, match=f"^{option}="):
        as_end(finish_reason, stop_reason)  # type: ignore[arg-type]  # as a caller without types would
