"""What of a request every engine reads the same way."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..errors import OptionError
from ..ids import as_ids
from .base import EngineRequest

__all__ = ["check_understood", "prompt_of", "sampling_of"]

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


# What is no loss where an engine does not know it: an order among requests, and what detok does over the ids of every engine
# (it ends at stop ids, and goes on to a least number of tokens as long as the engine does).
_HARMLESS = frozenset({"logprobs", "max_tokens", "min_tokens", "priority", "seed", "stop_token_ids"})

# Values that say what would be without them. So does whatever is empty, 0 or False.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "length_penalty": (1,),
    "modalities": (["text"],),
    "repetition_penalty": (1,),
    "top_k": (-1,),
    "top_p": (1,),
}


def check_understood(sampling: Mapping[str, Any], known: Collection[str], *, engine: str) -> None:
    """
    Refuse what an engine would pass over though it changes what comes out.

    Args:
        sampling: As `sampling_of` returns it.
        known: What the engine is told of it.
        engine: Its name.

    Raises:
        OptionError: Naming the first that it does not understand.
    """
    for name, value in sampling.items():
        if name not in known and name not in _HARMLESS and value and value not in _NEUTRAL.get(name, ()):
            accepted = f"the engine behind this server, {engine}, has nothing like it: leave it out"
            raise OptionError(option=name, value=value, accepted=accepted)
