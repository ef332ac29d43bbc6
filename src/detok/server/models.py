"""A model as the server knows it: a name, a tokenizer, an engine, and what both are set to."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.options import ByteFallbackMode, DecodeOptions
from ..core.request.options import RequestOptions
from ..core.request.output import RequestOutput
from ..data import sample, sample_names
from ..engines.base import Engine
from ..engines.opening import open_engine, open_prompt_engine
from ..errors import EncodeUnsupported, OptionError, SourceError
from ..frontend.detokenizer import OutOfProcess
from ..frontend.metrics import FrontendMetrics, Registry
from ..frontend.pending import Pending
from ..frontend.processor import OutputProcessor
from ..prompts.lengths import Frame, LengthLimits, Truncation, TruncationSide
from ..prompts.microbatch import AsyncEncoder
from ..prompts.templates import compiled
from ..tokenizers import Tokenizer, load
from ..turns.formats import TurnFormat
from .config import ModelConfig
from .errors import failure_of
from .limits import Limits
from .turns import model_format
from .variables import check_variables

__all__ = ["Model", "open_model"]

# Rows that are decoded and written before others have their turn on the event loop: about half a millisecond.
CHUNK_SIZE = 32

PADDING = 512
"""The number of a model's rows is a multiple of 64, 128, 256 or 512, as it suits the hardware it was trained on."""

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
    chat_template: str | None = None
    """Of every chat that brings none: a name or a template; None for the tokenizer's usual one."""
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Variables of the template, for chats that do not set them."""
    other_names: Sequence[str] = ()
    """Under which it can be asked for, too."""
    encoder: AsyncEncoder | None = None
    """None: it takes ids only."""
    prompts: OutputProcessor | None = None
    """Gives prompts back with their logprobs. None: the engine does not tell them."""
    created: int = field(default_factory=lambda: int(time.time()))

    vocab_size: int | None = None
    """Of the model, which may have more rows than its tokenizer has ids, and may sample one; None if nobody said."""

    _known_ids: frozenset[int] | None = None

    @property
    def id_limit(self) -> int:
        """The first number that is no id of the model: where nobody said how many it has, as far as models are padded."""
        return self.vocab_size or -(-self.tokenizer.vocab_size // PADDING) * PADDING

    @property
    def known_ids(self) -> frozenset[int]:
        """All ids that the tokenizer has; they are gathered when this is first asked for."""
        if self._known_ids is None:
            self._known_ids = frozenset(self.tokenizer.ids)
        return self._known_ids

    def kept_tokens(self, truncate: int | None) -> int | None:
        """Return how many tokens of a prompt are kept; -1 is as many as the model takes, if that is known."""
        return self.max_model_len if truncate == -1 and self.max_model_len is not None else truncate

    async def encode(
        self,
        prompt: str,
        *,
        add_special_tokens: bool = True,
        truncate: int | None = None,
        side: TruncationSide | None = None,
    ) -> list[int]:
        """
        Return the ids of a prompt that is no chat.

        Raises:
            EncodeUnsupported: The tokenizer has no encoder.
            PromptTooLong, EncoderBusy, OptionError: As `AsyncEncoder.encode`.
        """
        if self.encoder is None:
            raise EncodeUnsupported(f"the model {self.name!r}", instead="give the prompt as token ids")
        return await self.encoder.encode(
            prompt,
            add_special_tokens=add_special_tokens,
            truncate_prompt_tokens=self.kept_tokens(truncate),
            truncation_side=side or "left",
        )

    async def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        truncate: int | None = None,
        side: TruncationSide | None = None,
        /,
        **options: Any,
    ) -> list[int]:
        """Return the ids of a chat, as `Tokenizer.encode_chat` does, in a thread: a template may take long."""
        ids = await asyncio.to_thread(self.tokenizer.encode_chat, messages, **options)
        return self.kept(ids, truncate, side)

    def kept(self, ids: list[int], truncate: int | None, side: TruncationSide | None = None) -> list[int]:
        """
        Return what is left of a prompt around which the encoder put nothing: its end, unless its right side is cut off.

        Raises:
            OptionError: Less than one is to be left.
            PromptTooLong: What is left is longer than the model takes.
        """
        truncate = self.kept_tokens(truncate)
        if truncate is not None:
            ids = Truncation(truncate, side or "left").cut(ids, Frame())
        self.limits.check_ids(ids)
        return ids

    @property
    def has_model(self) -> bool:
        """Whether there is a model at the other end, to which sampling parameters mean something."""
        return getattr(self.frontend.engine, "has_model", True)

    async def told_prompt(
        self, prompt: Sequence[int], count: int, decoding: DecodeOptions, request_id: str
    ) -> RequestOutput | None:
        """
        Return a prompt as if it were an output, with what the model says of each token and so many alternatives.

        None if the engine does not tell that.

        Raises:
            EngineError: It failed, or refused the prompt.
        """
        if self.prompts is None:
            return None
        options = RequestOptions(ignore_eos=True, output="final", max_tokens=len(prompt), **decoding.as_dict())
        pending = Pending()
        sampling = {"prompt_logprobs": count}
        name = await self.prompts.submit(
            prompt, pending, options=options, sampling=sampling, request_id=request_id, fill_logprobs=True
        )
        try:
            output = await pending.get()
        finally:
            self.prompts.drop(name)
        if (failure := failure_of(output)) is not None:
            raise failure
        return output

    async def close(self) -> None:
        """End all requests, close the engine and the encoder."""
        await self.frontend.close()
        if self.prompts is not None:
            await self.prompts.close()
        if self.encoder is not None:
            await self.encoder.aclose()


def open_model(name: str, config: ModelConfig, limits: Limits, registry: Registry) -> Model:
    """
    Load a tokenizer, open an engine and put the two together.

    Raises:
        DetokError: One of them cannot be.
    """
    tokenizer = load(config.source, encoder=config.encoder)
    # Before it listens: both would hold up the event loop.
    tokenizer.warm()
    _ = tokenizer.fingerprint
    chat_template = _chat_template(config.chat_template, tokenizer)
    check_variables("default_chat_template_kwargs", config.default_chat_template_kwargs)
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
        chat_template=chat_template,
        chat_template_kwargs=config.default_chat_template_kwargs,
        other_names=config.served_model_names,
        encoder=_encoder(tokenizer, lengths),
        prompts=_prompt_engine(config, tokenizer),
        vocab_size=_vocab_size(config),
    )


def _vocab_size(config: ModelConfig) -> int | None:
    """What the model's own configuration says, if it stands beside its tokenizer."""
    path = Path(config.source, "config.json") if isinstance(config.source, str) else None
    try:
        values = json.loads(path.read_bytes()) if path is not None else {}
    except (OSError, ValueError):
        return None
    sizes = [one.get("vocab_size") for one in (values, values.get("text_config") or {}) if isinstance(one, dict)]
    return next((size for size in sizes if type(size) is int and size > 0), None)


def _prompt_engine(config: ModelConfig, tokenizer: Tokenizer) -> OutputProcessor | None:
    engine = open_prompt_engine(config.engine, **config.engine_options)
    return None if engine is None else OutputProcessor(tokenizer, engine, chunk_size=CHUNK_SIZE)


def _chat_template(given: str | None, tokenizer: Tokenizer) -> str | None:
    """
    Return the template that a model is set to, looked at before anybody asks for a chat.

    Raises:
        OptionError: There is no such file, and no template of that name.
        SourceError, ChatTemplateError: The file cannot be read, or has no template.
    """
    if given is None or given in tokenizer.chat_templates:
        return given
    if "{" not in given:
        path = Path(given)
        if not path.is_file():
            names = ", ".join(map(repr, sorted(tokenizer.chat_templates))) or "it has none"
            accepted = f"there is no such file; else it is the name of one of the tokenizer's templates: {names}"
            raise OptionError(option="chat_template", value=given, accepted=accepted)
        try:
            given = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(path, found=f"cannot be read ({error})", accepted="a chat template was expected") from error
    return compiled(given, "given").source


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
