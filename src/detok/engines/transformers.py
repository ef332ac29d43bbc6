"""transformers: a model in this process, one request after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..errors import DuplicateRequest, EngineError, SourceError
from ..tokenizers.reading import library
from .base import EngineOutput, EngineRequest
from .generation import KNOWN, Generation
from .outbox import Outbox
from .sampling import check_understood, prompt_of, sampling_of

__all__ = ["DEFAULT_MAX_TOKENS", "TransformersEngine"]

# For a model that does not say how long its context is: one that never stops would hold up all others.
DEFAULT_MAX_TOKENS = 1024


class TransformersEngine:
    """
    A causal language model of transformers. It belongs to one event loop, and the model runs in one thread of its own.

    Requests run one at a time: a seed sets torch's one random generator, and a second thread would gain little.

    Args:
        model: A model with `generate`, in evaluation mode.
    """

    def __init__(self, model: Any) -> None:
        self.name = f"transformers ({type(model).__name__})"
        self._model = model
        self._torch = library("torch", extra="torch", purpose="the engine transformers")
        self._outbox = Outbox()
        self._running: dict[str, Generation] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="detok-transformers")
        self._closed = False

    @classmethod
    def load(cls, path: str, *, device: str = "cpu", dtype: str = "auto") -> TransformersEngine:
        """
        Load a model from a directory; nothing is fetched, and no code in it is run.

        Args:
            path: As `save_pretrained` writes it.
            device: As torch names it.
            dtype: As torch names it; "auto" for that of the file.

        Raises:
            SourceError: There is no such model.
            MissingExtra: transformers or torch is missing.
        """
        library("torch", extra="torch", purpose="the engine transformers")
        transformers = library("transformers", extra="torch", purpose="the engine transformers")
        accepted = "a directory with a causal language model of transformers was expected"
        if not Path(path).is_dir():
            raise SourceError(path, found="there is no such directory", accepted=accepted)
        try:
            model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=dtype, local_files_only=True)
        except (OSError, ValueError) as error:
            raise SourceError(path, found=str(error).partition("\n")[0], accepted=accepted) from error
        return cls(model.to(device).eval())

    async def submit(self, request: EngineRequest) -> None:
        """Put a request into the queue. See `Engine.submit`."""
        if self._closed:
            raise EngineError("the engine is closed", engine=self.name)
        if request.request_id in self._running:
            raise DuplicateRequest(request.request_id)
        prompt, sampling = prompt_of(request), sampling_of(request)
        check_understood(sampling, KNOWN, engine="transformers")
        loop = asyncio.get_running_loop()
        generation = Generation(
            request.request_id,
            sampling,
            ends=() if sampling.get("ignore_eos") else self._ends(),
            max_tokens=self._max_tokens(prompt, sampling.get("max_tokens")),
            give=lambda output: loop.call_soon_threadsafe(self._give, generation, output),
        )
        self._running[request.request_id] = generation
        self._thread.submit(generation.run, self._model, self._torch, prompt)

    def outputs(self) -> AsyncIterator[list[EngineOutput]]:
        """Give batches. See `Engine.outputs`."""
        return self._outbox.batches()

    async def abort(self, request_ids: Sequence[str]) -> None:
        """Stop requests: one that runs before its next token, others before they begin. See `Engine.abort`."""
        for request_id in request_ids:
            if (generation := self._running.pop(request_id, None)) is not None:
                generation.aborted = True
        self._outbox.forget(frozenset(request_ids))

    async def close(self) -> None:
        """Abort all requests and wait until the thread is done. See `Engine.close`."""
        self._closed = True
        await self.abort([*self._running])
        await asyncio.to_thread(self._thread.shutdown)
        self._outbox.close()

    def _give(self, generation: Generation, output: EngineOutput) -> None:
        if self._running.get(output.request_id) is not generation:
            return  # aborted meanwhile
        if output.finish_reason is not None:
            del self._running[output.request_id]
        self._outbox.add(output)

    def _ends(self) -> list[int]:
        ends = self._model.generation_config.eos_token_id
        return [] if ends is None else [ends] if isinstance(ends, int) else list(ends)

    def _max_tokens(self, prompt: list[int], asked: int | None) -> int:
        """Return how many tokens there can be; refuse what would be an index out of range inside the model."""
        size = self._model.get_input_embeddings().num_embeddings
        unknown = next((token_id for token_id in prompt if not 0 <= token_id < size), None)
        context = getattr(self._model.config, "max_position_embeddings", None)
        left = DEFAULT_MAX_TOKENS if context is None else context - len(prompt)
        if not prompt:
            raise self._refusal("the prompt has no ids", "prompt_ids")
        if unknown is not None:
            raise self._refusal(f"token id {unknown} is out of vocabulary, which has {size}", "prompt_ids")
        if asked is not None and asked < 1:
            raise self._refusal(f"max_tokens is {asked}, and it is 1 or more", "max_tokens")
        if context is not None and left < (asked or 1):
            message = f"{len(prompt)} ids and {asked or 1} tokens to come are more than the model's context of {context}"
            raise self._refusal(message, "max_tokens")
        return asked or left

    def _refusal(self, message: str, param: str) -> EngineError:
        return EngineError(message, engine=self.name, status=400, type="BadRequestError", param=param)
