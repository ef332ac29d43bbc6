"""`Generation`: one call of `model.generate`, as the hooks that transformers has for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..core.request.logprobs import Logprob
from .base import EngineOutput

__all__ = ["KNOWN", "Generation"]

# The names that vLLM and transformers share; what else there is, is left to the model's own generation_config.
_SAMPLING = ("min_p", "repetition_penalty", "temperature", "top_k", "top_p")

KNOWN = (*_SAMPLING, "ignore_eos", "logprobs", "max_tokens", "min_tokens", "seed", "stop_token_ids")
"""Of the sampling parameters."""


class Generation:
    """
    One request to a model. All of it but `aborted` belongs to the thread that runs it.

    Args:
        request_id: Of its outputs.
        sampling: By vLLM's names.
        ends: The ids that end a text.
        max_tokens: It ends after so many.
        give: Called with each output.
    """

    def __init__(
        self,
        request_id: str,
        sampling: Mapping[str, Any],
        *,
        ends: Iterable[int],
        max_tokens: int,
        give: Callable[[EngineOutput], object],
    ) -> None:
        self.aborted = False
        """Set by anyone, it stops at the next token."""
        self._request_id = request_id
        self._sampling = sampling
        self._stops = frozenset(sampling.get("stop_token_ids", ()))
        self._ends = frozenset(ends) | self._stops
        self._max_tokens = max_tokens
        self._give = give
        self._count = -1
        """The tokens that came; -1 before the prompt did."""
        self._ended = False
        self._scores: Any = None
        """The log probabilities of the next token, if they are asked for."""

    def run(self, model: Any, torch: Any, prompt: Sequence[int]) -> None:
        """Generate, and give an output for each token."""
        if self.aborted:
            return
        try:
            ids = torch.tensor([list(prompt)], device=model.device)
            if "seed" in self._sampling:
                torch.manual_seed(self._sampling["seed"])
            with torch.inference_mode():
                model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), streamer=self, **self._options(torch))
        except Exception as error:  # whatever a model raises: there is nobody else in this thread to hear it
            self._end("error", str(error) or type(error).__name__)
        # A limit of the model's own generation_config, its max_time say.
        self._end("abort", "the model stopped before an end or max_tokens")

    def put(self, value: Any) -> None:
        """Take what `generate` gives a streamer: the prompt first, then the ids of each step."""
        if self._count < 0:
            self._count = 0
            return
        for token_id in value.flatten().tolist():
            self._token(token_id)

    def end(self) -> None:
        """The end that `generate` tells a streamer; it says nothing about why."""

    def _options(self, torch: Any) -> dict[str, Any]:
        sampling = self._sampling
        options = {name: sampling[name] for name in _SAMPLING if name in sampling}
        if "top_k" in options:
            options["top_k"] = max(0, options["top_k"])  # -1 is vLLM's other word for all
        if "temperature" in options:
            options["do_sample"] = options["temperature"] > 0
            if not options["do_sample"]:
                del options["temperature"]
        if self._ends and "min_tokens" in sampling:
            options["min_new_tokens"] = sampling["min_tokens"]
        if "logprobs" in sampling:
            options["logits_processor"] = [self._look]
        return {
            **options,
            "max_new_tokens": self._max_tokens,
            # None would be the model's own again.
            "eos_token_id": sorted(self._ends),
            "pad_token_id": 0,
            "stopping_criteria": [lambda ids, scores, **_: torch.full((len(ids),), self.aborted, device=ids.device)],
        }

    def _look(self, ids: Any, scores: Any) -> Any:
        """Remember what the model says of the next token, before temperature and the like, as vLLM does."""
        self._scores = scores[0].float().log_softmax(-1)
        return scores

    def _token(self, token_id: int) -> None:
        self._count += 1
        stops = token_id in self._ends
        if self._ended or self.aborted:
            return
        self._ended = stops or self._count >= self._max_tokens
        self._give(
            EngineOutput(
                request_id=self._request_id,
                token_ids=[token_id],
                logprobs=None if self._scores is None else [self._logprob(token_id)],
                finish_reason="stop" if stops else "length" if self._ended else None,
                stop_reason=token_id if token_id in self._stops else None,
            )
        )

    def _logprob(self, token_id: int) -> Logprob:
        own = self._scores[token_id]
        top = self._scores.topk(self._sampling["logprobs"])
        pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
        return Logprob(own.item(), int((self._scores > own).sum()) + 1, tuple(pairs))

    def _end(self, reason: Any, words: str) -> None:
        if not self._ended:
            self._ended = True
            self._give(EngineOutput(request_id=self._request_id, finish_reason=reason, error=words))
