"""What of a request every engine reads the same way."""

from __future__ import annotations

from typing import Any

from ..errors import OptionError
from ..ids import as_ids
from .base import EngineRequest

__all__ = ["prompt_of", "sampling_of"]

# Of vLLM's sampling parameters, those that say how ids become text. That is detok's own work, and an engine without a tokenizer
# refuses them.
_TEXT_SIDE = frozenset(
    {
        "detokenize",
        "include_stop_str_in_output",
        "n",
        "output_kind",
        "skip_special_tokens",
        "spaces_between_special_tokens",
        "stop",
    }
)


def prompt_of(request: EngineRequest) -> list[int]:
    """
    Return the prompt of a request.

    Raises:
        TokenTypeError: One of its ids is no integer.
    """
    return as_ids(request.prompt_ids, where="prompt_ids")


def sampling_of(request: EngineRequest) -> dict[str, Any]:
    """
    Return the sampling parameters that are an engine's matter, by vLLM's names.

    >>> sampling = {"max_tokens": 5, "seed": None, "stop": ["END"], "n": 1}
    >>> sampling_of(EngineRequest(request_id="a", prompt_ids=[1], sampling=sampling))
    {'max_tokens': 5}

    Raises:
        OptionError: More than one choice is asked for.
    """
    n = request.sampling.get("n")
    if n not in (None, 1):
        accepted = "an engine gives one choice to a request; submit a request for each, under ids of their own"
        raise OptionError(option="n", value=n, accepted=accepted)
    return {name: value for name, value in request.sampling.items() if value is not None and name not in _TEXT_SIDE}
