"""`open_engine`: an engine by its name on a command line, as in "vllm:http://127.0.0.1:8000"."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Any

from ..errors import OptionError
from ..tokenizers.reading import library
from .base import Engine

__all__ = ["model_of", "open_engine", "open_prompt_engine"]


def open_engine(name: str, **options: Any) -> Engine:
    """
    Return the engine behind a name.

    | name | engine | options |
    | --- | --- | --- |
    | `echo` | embedded, says what it was asked | those of `EchoEngine` |
    | `replay:FILE` | embedded, what was recorded | those of `ReplayEngine` |
    | `vllm:URL` | vLLM | `model`, `cached_tokens`, and those of `HttpEngine` |
    | `sglang:URL` | SGLang | those of `HttpEngine` |
    | `llamacpp:URL` | llama.cpp | `tokens_per_call`, and those of `HttpEngine` |
    | `vllm-core:MODEL` | vLLM's engine core, started with this process; takes as long | vLLM's engine arguments, `lora_modules` |
    | `transformers:PATH` | in this process; takes as long as loading the model | those of `TransformersEngine.load` |

    Args:
        name: As in the table.
        options: As in the table; an unknown one is refused.

    Raises:
        OptionError: There is no such engine, or an option is not possible.
        SourceError: The file or model cannot be read.
        MissingExtra: A library is missing.
    """
    kind, _, where = name.partition(":")
    opener = _OPENERS.get(kind)
    if opener is None:
        raise OptionError(option="engine", value=name, accepted=f"it is one of {', '.join(_FORMS)}")
    if bool(where) is not (kind != "echo"):
        form = next(form for form in _FORMS if form.partition(":")[0] == kind)
        raise OptionError(option="engine", value=name, accepted=f"it is written {form}")
    return opener(where, options)


def model_of(name: str) -> str | None:
    """
    Return the model that an engine's name has in it, whose tokenizer is the engine's unless another is given.

    >>> model_of("vllm-core:Qwen/Qwen3-0.6B"), model_of("vllm:http://127.0.0.1:8000")
    ('Qwen/Qwen3-0.6B', None)
    """
    kind, _, where = name.partition(":")
    return where if kind == "vllm-core" and where else None


def open_prompt_engine(name: str, **options: Any) -> Engine | None:
    """
    Return what tells the logprobs of prompts for the engine of a name: asked for a prompt, it gives its ids with their logprobs.

    None if that engine has none. Arguments and errors as `open_engine`.
    """
    kind, _, where = name.partition(":")
    return _over_http("vllm", "VllmPrompt", "model", "cached_tokens")(where, options) if kind == "vllm" else None


def _echo(_: str, options: dict[str, Any]) -> Engine:
    return _made(_named("echo", "EchoEngine"), options)


def _replay(file: str, options: dict[str, Any]) -> Engine:
    return _made(_named("replay", "ReplayEngine"), options, file)


def _transformers(path: str, options: dict[str, Any]) -> Engine:
    return _made(_named("transformers", "TransformersEngine").load, options, path)


def _vllm_core(model: str, options: dict[str, Any]) -> Engine:
    library("msgspec", extra="engines", purpose="the engine vllm-core")
    made: Engine = _named("vllm_core_client", "start_engine")(model, options)
    return made


def _over_http(module: str, dialect: str, *own: str) -> Callable[[str, dict[str, Any]], Engine]:
    """An opener of a dialect, whose ``own`` options are told apart from those of the connection."""

    def opener(url: str, options: dict[str, Any]) -> Engine:
        for needed in ("aiohttp", "msgspec"):
            library(needed, extra="engines", purpose=f"the engine {module}")
        spoken = _named(module, dialect)(**{name: options[name] for name in own if name in options})
        rest = {name: value for name, value in options.items() if name not in own}
        return _made(_named("http", "HttpEngine"), rest, spoken, url)

    return opener


def _named(module: str, name: str) -> Any:
    return getattr(import_module(f".{module}", __package__), name)


def _made(make: Callable[..., Engine], options: dict[str, Any], *positional: Any) -> Engine:
    # A class that hands options on to the one above it has those, too.
    makers = getattr(make, "__mro__", (make, object))[:-1]
    known = {name for maker in makers for name, one in signature(maker).parameters.items() if one.kind is one.KEYWORD_ONLY}
    for name, value in options.items():
        if name not in known:
            raise OptionError(option=name, value=value, accepted=f"the options of this engine are {', '.join(sorted(known))}")
    return make(*positional, **options)


_OPENERS: dict[str, Callable[[str, dict[str, Any]], Engine]] = {
    "echo": _echo,
    "replay": _replay,
    "vllm": _over_http("vllm", "Vllm", "model", "cached_tokens"),
    "sglang": _over_http("sglang", "Sglang"),
    "llamacpp": _over_http("llamacpp", "LlamaCpp", "tokens_per_call"),
    "vllm-core": _vllm_core,
    "transformers": _transformers,
}
_FORMS = ("echo", "replay:FILE", "vllm:URL", "sglang:URL", "llamacpp:URL", "vllm-core:MODEL", "transformers:PATH")
