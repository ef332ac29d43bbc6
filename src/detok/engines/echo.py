"""`EchoEngine`: gives the prompt back, for everything that can be tried without a model."""

from __future__ import annotations

from ..core.ids import as_ids
from .base import EngineRequest
from .scripted import Script, ScriptedEngine, ScriptStep

__all__ = ["EchoEngine"]


class EchoEngine(ScriptedEngine):
    """
    Answers each prompt with its ids, one a step if nothing else is said, and then ends with "stop".

    Of the sampling options it knows `max_tokens`.
    """

    def script(self, request: EngineRequest) -> Script:
        """The ids of the prompt."""
        ids = as_ids(request.prompt_ids, where="prompt_ids")
        if not ids:
            return [ScriptStep(finish_reason="stop")]
        return [*(ScriptStep((token_id,)) for token_id in ids[:-1]), ScriptStep((ids[-1],), None, "stop")]
