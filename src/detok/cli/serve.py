"""`detok serve`: the HTTP server."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import UsageError
from ..tokenizers.reading import library
from .options import ByteFallbackChoice

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """\b
Examples:
  detok serve                                           echo and replay, to try it
  detok serve --tokenizer llama3/ --engine vllm:http://127.0.0.1:8001
  detok serve --engine vllm-core:Qwen/Qwen3-0.6B        vLLM's engine core, with no other front
  detok serve --worker ipc:///tmp/detok                 text is made by a detok worker
  detok serve --config models.toml --port 9000          several models
"""

_MODEL = "The model, if there is no file that has them"
EXIT_ENGINE_DIED = 3
NEEDED = ("msgspec", "starlette", "uvicorn")


def command(
    config: Annotated[
        Path | None, typer.Option(envvar="DETOK_CONFIG", metavar="FILE", help="A TOML file (docs/server.md).", show_default=False)
    ] = None,
    host: Annotated[
        str | None, typer.Option(envvar="DETOK_HOST", help="Where to listen.  [default: 127.0.0.1]", show_default=False)
    ] = None,
    port: Annotated[
        int | None, typer.Option(envvar="DETOK_PORT", help="0: one that is free.  [default: 8000]", show_default=False)
    ] = None,
    api_key: Annotated[
        list[str] | None,
        typer.Option(envvar="DETOK_API_KEY", metavar="KEY", help="Ask for a key; several are all good.", show_default=False),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(envvar="DETOK_CORS_ORIGIN", metavar="ORIGIN", help="Let pages of this origin ask.", show_default=False),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            envvar="DETOK_TOKENIZER",
            help="A file, a directory, or a hub name; without it, detok's own.",
            show_default=False,
            rich_help_panel=_MODEL,
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            envvar="DETOK_ENGINE",
            help="echo, replay, replay:FILE, vllm:URL, sglang:URL, llamacpp:URL, vllm-core:MODEL or transformers:PATH.",
            show_default=False,
            rich_help_panel=_MODEL,
        ),
    ] = None,
    engine_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="For the engine, as rate=30.", show_default=False, rich_help_panel=_MODEL),
    ] = None,
    model_name: Annotated[
        str | None,
        typer.Option(envvar="DETOK_MODEL_NAME", help="What clients call it.", show_default=False, rich_help_panel=_MODEL),
    ] = None,
    served_model_name: Annotated[
        list[str] | None,
        typer.Option(
            envvar="DETOK_SERVED_MODEL_NAME",
            metavar="NAME",
            help="Another name for it, as often as you like. Without --model-name the first signs the answers.",
            show_default=False,
            rich_help_panel=_MODEL,
        ),
    ] = None,
    chat_template: Annotated[
        str | None,
        typer.Option(
            envvar="DETOK_CHAT_TEMPLATE",
            metavar="FILE|NAME",
            help="A file with a Jinja template, or one of the tokenizer's own.",
            show_default="the usual one",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    default_chat_template_kwargs: Annotated[
        str | None,
        typer.Option(
            envvar="DETOK_DEFAULT_CHAT_TEMPLATE_KWARGS",
            metavar="JSON",
            help="Variables of the template for every chat, as '{\"enable_thinking\": false}'.",
            show_default=False,
            rich_help_panel=_MODEL,
        ),
    ] = None,
    worker: Annotated[
        list[str] | None,
        typer.Option(
            envvar="DETOK_WORKER",
            metavar="ENDPOINT",
            help="Make the text in this `detok worker` (needs detok[worker]); several share the work.",
            show_default=False,
            rich_help_panel=_MODEL,
        ),
    ] = None,
    channels: Annotated[
        str | None,
        typer.Option(
            envvar="DETOK_CHANNELS",
            metavar="auto|NAME",
            help="How the model writes reasoning and tool calls; `detok channels` lists the names.",
            show_default=False,
            rich_help_panel=_MODEL,
        ),
    ] = None,
    tool_call_parser: Annotated[
        str | None,
        typer.Option(
            envvar="DETOK_TOOL_CALL_PARSER",
            metavar="NAME",
            help="Instead of --channels: how it writes tool calls, by vLLM's name.",
            show_default=False,
            rich_help_panel=_MODEL,
        ),
    ] = None,
    reasoning_parser: Annotated[
        str | None,
        typer.Option(
            envvar="DETOK_REASONING_PARSER",
            metavar="NAME",
            help="Instead of --channels: how it writes reasoning, by vLLM's name.",
            show_default=False,
            rich_help_panel=_MODEL,
        ),
    ] = None,
    byte_fallback: Annotated[
        ByteFallbackChoice | None,
        typer.Option(envvar="DETOK_BYTE_FALLBACK", help="[default: eager]", show_default=False, rich_help_panel=_MODEL),
    ] = None,
    max_model_len: Annotated[
        int | None,
        typer.Option(
            envvar="DETOK_MAX_MODEL_LEN",
            min=1,
            help="Tokens of prompt and output together.",
            show_default=False,
            rich_help_panel=_MODEL,
        ),
    ] = None,
    shutdown_seconds: Annotated[
        float | None, typer.Option(min=0, help="So long streams may finish at the end.  [default: 30]", show_default=False)
    ] = None,
    no_page: Annotated[bool, typer.Option("--no-page", help="Without the page at /.")] = False,
    log_prompts: Annotated[bool, typer.Option("--log-prompts", help="Write prompts to the log.")] = False,
) -> None:
    """
    Serve OpenAI's API in front of an engine that speaks ids.

    Without options it serves two engines that need no model, on this machine's own address. Flags come before the environment
    (DETOK_PORT and so on), and that before the file. A flag that describes the model makes it the only one.
    """
    for name in NEEDED:
        library(name, extra="serve", purpose="the server")
    server_config, app, serving = (import_module(f"detok.server.{name}") for name in ("config", "app", "serving"))
    model = {
        "name": model_name,
        "tokenizer": tokenizer,
        "engine": engine,
        "engine_options": _options(engine_option),
        "worker": worker,
        "channels": channels,
        "served_model_names": served_model_name,
        "chat_template": chat_template,
        "default_chat_template_kwargs": _object("--default-chat-template-kwargs", default_chat_template_kwargs),
        "tool_call_parser": tool_call_parser,
        "reasoning_parser": reasoning_parser,
        "byte_fallback": None if byte_fallback is None else byte_fallback.value,
        "max_model_len": max_model_len,
    }
    changes = {
        "host": host,
        "port": port,
        # A compose file that passes an unset variable on passes an empty one.
        "api_keys": [key for key in api_key or () if key],
        "cors_origins": cors_origin,
        "shutdown_seconds": shutdown_seconds,
        "page": False if no_page else None,
        "log_prompts": log_prompts or None,
        "model": _given(model),
    }
    server = app.open_server(server_config.read_config(config, _given(changes)))
    serving.serve(server)
    if died := serving.dead_engine(server):
        typer.echo(f"detok: {died}", err=True)
        raise typer.Exit(EXIT_ENGINE_DIED)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, [], {})}


def _object(flag: str, value: str | None) -> dict[str, Any]:
    """Read a JSON object."""
    import msgspec

    try:
        return {} if not value else msgspec.json.decode(value, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise UsageError(f"{flag} {value} is no JSON object ({error}); write it as '{{\"enable_thinking\": false}}'") from None


def _options(values: list[str] | None) -> dict[str, Any]:
    """Read NAME=VALUE: the value is JSON if it can be, else a text."""
    import msgspec

    options: dict[str, Any] = {}
    for one in values or ():
        name, equals, value = one.partition("=")
        if not equals:
            raise UsageError(f"--engine-option {one} is written NAME=VALUE")
        try:
            options[name] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            options[name] = value
    return options
