"""`ReplayEngine`: gives recorded answers again, whatever it is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..ids import as_ids
from .base import EngineRequest
from .recordings import read_recordings
from .sampling import prompt_of
from .scripted import Script, ScriptedEngine, ScriptStep, one_by_one

__all__ = ["ReplayEngine"]


class ReplayEngine(ScriptedEngine):
    """
    Answers the first request with the first recording, the second with the second, and from the last on with the first again.

    Args:
        recordings: A file or directory of recordings (see `read_recordings`); or lists of ids; or scripts.
        settings: As `ScriptedEngine`. Without `step_tokens` the steps are the recorded ones, of a list one id each.

    Raises:
        SourceError: As `read_recordings`.
        OptionError, TokenTypeError: There are no recordings, or one is neither ids nor a script.

    >>> import asyncio
    >>> async def main():
    ...     engine = ReplayEngine([[5, 6, 7]], step_tokens=2)
    ...     await engine.submit(EngineRequest(request_id="a", prompt_ids=[1]))
    ...     async for (output,) in engine.outputs():
    ...         print(output.token_ids, output.finish_reason)
    ...         if output.finish_reason is not None:
    ...             await engine.close()
    >>> asyncio.run(main())
    [5, 6] None
    [7] stop
    """

    def __init__(self, recordings: str | Path | Iterable[Sequence[int] | Script], **settings: Any) -> None:
        super().__init__(**settings)
        scripts = read_recordings(recordings) if isinstance(recordings, (str, Path)) else [_script(one) for one in recordings]
        if not scripts:
            raise OptionError(option="recordings", value=recordings, accepted="there is at least one")
        self._scripts = cycle(scripts)

    def script(self, request: EngineRequest) -> Script:
        """The next recording."""
        prompt_of(request)
        return next(self._scripts)


def _script(recording: Any) -> Script:
    if len(recording) and all(isinstance(step, ScriptStep) for step in recording):
        if recording[-1].finish_reason is None:
            raise OptionError(option="recordings", value=recording, accepted="the last step of a script has a finish_reason")
        return list(recording)
    return one_by_one(as_ids(recording, where="recordings"))
