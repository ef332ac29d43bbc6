"""What a server is set to: a TOML file, and what flags and environment say in its place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ..core.options import ByteFallbackMode
from ..data import EMBEDDED
from ..engines.opening import model_of
from ..errors import OptionError, SourceError
from ..tokenizers.encoders import EncoderName
from ..turns.formats import TurnFormat, parser_format, turn_format
from .limits import Limits

__all__ = ["ModelConfig", "ServerConfig", "read_config"]

Seconds = Annotated[float, msgspec.Meta(gt=0)]


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model: ``[models.NAME]`` in the file."""

    tokenizer: str | None = None
    """As `detok.load` takes it. None: that of the model which the engine's name has in it, else the one that comes with detok."""

    encoder: EncoderName = "auto"
    """As `detok.load` takes it. "tokenizers" takes less memory than the faster one."""

    engine: str = "echo"
    """As `open_engine` takes it; and "replay", which says the samples that come with detok."""

    engine_options: dict[str, Any] = {}  # msgspec copies an empty one
    worker: str | list[str] | None = None
    """The address of a `detok worker` with the same tokenizer, or of several: text is made there. None: in this process."""

    channels: str | dict[str, Any] | None = None
    """The turn format, by which reasoning and tool calls become fields of their own in chats: a name, "auto", or a table."""

    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    """vLLM's names of parsers, in the place of ``channels``."""

    chat_template: str | None = None
    """The path of a file with a Jinja template, or the name of one of the tokenizer's. None: the usual one."""

    default_chat_template_kwargs: dict[str, Any] = {}
    """Variables of the template for every chat; a request's own go before."""

    served_model_names: list[Annotated[str, msgspec.Meta(min_length=1)]] = []
    """More names under which clients may ask for it."""

    byte_fallback: ByteFallbackMode = "eager"
    max_model_len: Annotated[int, msgspec.Meta(ge=1)] | None = None

    @property
    def source(self) -> Any:
        """What to load."""
        if self.tokenizer is not None:
            return self.tokenizer
        return model_of(self.engine) or EMBEDDED

    @property
    def turn_format(self) -> TurnFormat | None:
        """
        The turn format; None if there is none, or if it is to be found.

        Raises:
            OptionError: There is no such format or parser, or both are given.
        """
        parsers = parser_format(self.tool_call_parser, self.reasoning_parser)
        if parsers is not None and self.channels is not None:
            accepted = "tool_call_parser and reasoning_parser say it already; give either them or channels"
            raise OptionError(option="channels", value=self.channels, accepted=accepted)
        return parsers if parsers is not None or self.channels == "auto" else turn_format(self.channels)


DEFAULT_MODELS = {"echo": ModelConfig(engine="echo"), "replay": ModelConfig(engine="replay", engine_options={"rate": 50})}


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server."""

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8000
    """0: one that is free."""

    api_keys: list[Annotated[str, msgspec.Meta(min_length=1)]] = []
    """One of them has to be in each request; none: everybody may ask."""

    cors_origins: list[str] = []
    models: dict[str, ModelConfig] = msgspec.field(default_factory=DEFAULT_MODELS.copy)
    """The first one answers requests that name none."""

    limits: Limits = Limits()
    heartbeat_seconds: Annotated[float, msgspec.Meta(ge=0)] = 15.0
    """After so long a silence a stream gets a comment; 0: never."""

    shutdown_seconds: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    """So long streams may go on when the server is told to end."""

    page: bool = True
    log_prompts: bool = False
    trust_request_chat_template: bool = False
    """Whether a request may bring a template of its own. They run in a sandbox with limits, but are code all the same."""


def read_config(path: Path | None = None, changes: Mapping[str, Any] | None = None) -> ServerConfig:
    """
    Return the configuration.

    Args:
        path: Of a TOML file.
        changes: Fields that are set in place of the file's. Of them, `model` describes the one model there is, under its own key
            `name`; it does not go with a file that has models.

    Raises:
        SourceError: The file cannot be read, or is no TOML.
        OptionError: A field is unknown or of a wrong type.
    """
    fields = {} if path is None else _read(path)
    changes = dict(changes or {})
    _set_model(fields, changes.pop("model", {}))
    fields |= changes
    try:
        config = msgspec.convert(fields, ServerConfig)
    except msgspec.ValidationError as error:
        where = "the configuration" if path is None else str(path)
        raise OptionError(option=where, value=fields, accepted=str(error)) from None
    if not config.models:
        raise OptionError(option="models", value={}, accepted="there is at least one")
    for model in config.models.values():
        _ = model.turn_format
    _check_names(config.models)
    return config


def _check_names(models: Mapping[str, ModelConfig]) -> None:
    """Refuse a name that several models have."""
    taken = set(models)
    for model in models.values():
        for name in model.served_model_names:
            if name in taken:
                raise OptionError(option="served_model_names", value=name, accepted="each name is there once, of one model")
            taken.add(name)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(path, found=f"cannot be read ({error.strerror})", accepted="give a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SourceError(path, found=f"is no TOML: {error}", accepted="docs/server.md shows one") from error


def _set_model(fields: dict[str, Any], model: Mapping[str, Any]) -> None:
    own = {key: value for key, value in model.items() if key != "name"}
    names = list(own.get("served_model_names", ()))
    if names and not model.get("name"):
        # As with vLLM, whose users give all names by one flag: the first is what answers are signed with.
        model = {**model, "name": names.pop(0)}
        own = {**own, "served_model_names": names}
    models = fields.get("models")
    if isinstance(models, dict):
        if model:
            message = "the models are in the file; give no flag that describes one"
            raise OptionError(option=next(iter(model)), value=next(iter(model.values())), accepted=message)
    elif model:
        fields["models"] = {model.get("name") or _name(own): own}


def _name(model: Mapping[str, Any]) -> str:
    """What a model is called if nobody said: a hub name is one already, of a path it is the last part."""
    tokenizer = model.get("tokenizer") or model_of(str(model.get("engine")))
    if tokenizer is None:
        return str(model.get("engine", "echo")).partition(":")[0]
    return Path(tokenizer).resolve().name if Path(tokenizer).exists() else str(tokenizer)
