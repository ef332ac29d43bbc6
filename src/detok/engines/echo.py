"""`EchoEngine`: gives the prompt back, for everything that can be tried without a model."""

from __future__ import annotations

from .base import EngineRequest
from .sampling import prompt_of, sampling_of
from .scripted import Script, ScriptedEngine, one_by_one

__all__ = ["EchoEngine"]


class EchoEngine(ScriptedEngine):
    """
    Answers each prompt with its ids, one a step if nothing else is said, and then ends with "stop".

    Of the sampling options it knows `max_tokens`.
    """

    def script(self, request: EngineRequest) -> Script:
        """The ids of the prompt, or as many as can be told from more than are asked for."""
        most = sampling_of(request).get("max_tokens")
        ids = prompt_of(request)
        return one_by_one(ids if most is None else ids[: most + 1])
