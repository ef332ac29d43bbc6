"""A model as the server knows it: a name, a tokenizer, an engine, and what both are set to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.options import ByteFallbackMode
from ..data import sample, sample_names
from ..engines.base import Engine
from ..engines.opening import open_engine
from ..errors import EncodeUnsupported, OptionError
from ..frontend.detokenizer import OutOfProcess
from ..frontend.metrics import FrontendMetrics, Registry
from ..frontend.processor import OutputProcessor
from ..prompts.lengths import Frame, LengthLimits, Truncation
from ..prompts.microbatch import AsyncEncoder
from ..tokenizers import Tokenizer, load
from ..turns.formats import TurnFormat
from .config import ModelConfig
from .limits import Limits
from .turns import model_format

__all__ = ["Model", "open_model"]

# Rows that are decoded and written before others have their turn on the event loop: about half a millisecond.
CHUNK_SIZE = 32

REPLAY = "replay"
"""Without a file: the samples that come with the package."""


@dataclass(slots=True, kw_only=True)
class Model:
    """One of the models that a server has."""

    name: str
    tokenizer: Tokenizer
    frontend: OutputProcessor
    limits: LengthLimits
    """Of a prompt, in this model's tokens."""
    max_model_len: int | None = None
    """Tokens of prompt and output together; None if nobody said."""
    channels: TurnFormat | None = None
    byte_fallback: ByteFallbackMode = "eager"
    encoder: AsyncEncoder | None = None
    """None: it takes ids only."""
    created: int = field(default_factory=lambda: int(time.time()))

    _known_ids: frozenset[int] | None = None

    @property
    def known_ids(self) -> frozenset[int]:
        """All ids that the tokenizer has; they are gathered when this is first asked for."""
        if self._known_ids is None:
            self._known_ids = frozenset(self.tokenizer.ids)
        return self._known_ids

    async def encode(self, prompt: str, *, add_special_tokens: bool = True, truncate: int | None = None) -> list[int]:
        """
        Return the ids of a prompt that is no chat.

        Raises:
            EncodeUnsupported: The tokenizer has no encoder.
            PromptTooLong, EncoderBusy, OptionError: As `AsyncEncoder.encode`.
        """
        if self.encoder is None:
            raise EncodeUnsupported(f"the model {self.name!r}", instead="give the prompt as token ids")
        return await self.encoder.encode(prompt, add_special_tokens=add_special_tokens, truncate_prompt_tokens=truncate)

    async def encode_chat(
        self, messages: Sequence[Mapping[str, Any]], truncate: int | None = None, /, **options: Any
    ) -> list[int]:
        """Return the ids of a chat, as `Tokenizer.encode_chat` does, in a thread: a template may take long."""
        ids = await asyncio.to_thread(self.tokenizer.encode_chat, messages, **options)
        return self.kept(ids, truncate)

    def kept(self, ids: list[int], truncate: int | None) -> list[int]:
        """
        Return what is left of a prompt around which the encoder put nothing: its end.

        Raises:
            OptionError: Less than one is to be left.
            PromptTooLong: What is left is longer than the model takes.
        """
        if truncate is not None:
            ids = Truncation(truncate, "left").cut(ids, Frame())
        self.limits.check_ids(ids)
        return ids

    async def close(self) -> None:
        """End all requests, close the engine and the encoder."""
        await self.frontend.close()
        if self.encoder is not None:
            await self.encoder.aclose()


def open_model(name: str, config: ModelConfig, limits: Limits, registry: Registry) -> Model:
    """
    Load a tokenizer, open an engine and put the two together.

    Raises:
        DetokError: One of them cannot be.
    """
    tokenizer = load(config.source, encoder=config.encoder)
    engine = _engine(config, tokenizer)
    max_model_len = config.max_model_len or getattr(engine, "max_model_len", None)
    most = limits.max_prompt_tokens or max_model_len
    lengths = LengthLimits(max_characters=limits.max_prompt_characters, max_tokens=most)
    return Model(
        name=name,
        tokenizer=tokenizer,
        frontend=OutputProcessor(
            tokenizer,
            engine,
            chunk_size=CHUNK_SIZE,
            metrics=FrontendMetrics(registry, model=name),
            detokenizer=None if config.worker is None else OutOfProcess(config.worker, tokenizer),
        ),
        limits=lengths,
        max_model_len=max_model_len,
        channels=model_format(name, config, tokenizer),
        byte_fallback=config.byte_fallback,
        encoder=_encoder(tokenizer, lengths),
    )


def _engine(config: ModelConfig, tokenizer: Tokenizer) -> Engine:
    if config.engine == REPLAY:
        from ..engines.replay import ReplayEngine

        try:
            # The one in many languages first: it is what somebody sees who tries this.
            names = sorted(sample_names(), key=lambda name: name != "mixed")
            texts = [tokenizer.encode(sample(name), add_special_tokens=False) for name in names]
        except EncodeUnsupported:
            accepted = "this tokenizer encodes nothing, so it is written replay:FILE"
            raise OptionError(option="engine", value=config.engine, accepted=accepted) from None
        return ReplayEngine(texts, **config.engine_options)
    return open_engine(config.engine, **config.engine_options)


def _encoder(tokenizer: Tokenizer, lengths: LengthLimits) -> AsyncEncoder | None:
    try:
        return tokenizer.async_encoder(max_characters=lengths.max_characters, max_tokens=lengths.max_tokens)
    except EncodeUnsupported:
        return None
