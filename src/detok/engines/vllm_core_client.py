"""Starting vLLM's engine core, and speaking with it through vLLM's own client and validation. vLLM is imported only here."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import msgspec

from ..errors import OptionError, SourceError
from ..tokenizers.reading import library
from .vllm_core import Refusal, VllmCoreEngine

__all__ = ["TRIED", "VllmCore", "start_engine"]

TRIED = ("0.32.0",)
"""The versions of vLLM with which this was tried. The engine core has no public interface, so another may differ."""

# Of a request's sampling, what stands beside vLLM's sampling parameters.
_BESIDE = {"cache_salt": str, "priority": int, "data_parallel_rank": int, "lora": str}

logger = logging.getLogger("detok.engines")


def start_engine(model: str, options: Mapping[str, Any]) -> VllmCoreEngine:
    """
    Start the engine core with a model; this takes as long as loading the model.

    Args:
        model: As vLLM takes it: a name on the hub, or a directory.
        options: vLLM's engine arguments by name, `max_model_len=4096`, and `lora_modules`: the paths of adapters by their names.

    Raises:
        MissingExtra: vLLM is not installed.
        OptionError: vLLM has no such engine argument, or does not take its value.
        SourceError: vLLM cannot run the model, or the engine core did not start. vLLM's own output says more.
    """
    return VllmCoreEngine(VllmCore(model, options))


class VllmCore:
    """vLLM's engine core in processes of its own, as `Core` describes it. Arguments and errors as `start_engine`."""

    def __init__(self, model: str, options: Mapping[str, Any]) -> None:
        vllm = library("vllm", extra="vllm", purpose="the engine vllm-core")
        version = vllm.__version__.partition("+")[0]
        if version not in TRIED:
            logger.warning("vllm-core was tried with vLLM %s, and this is %s: outputs may fail", ", ".join(TRIED), version)
        own = dict(options)
        self.model = model
        self._loras = _Loras(own.pop("lora_modules", {}))
        if self._loras.paths:
            own.setdefault("enable_lora", True)
        args = import_module("vllm.engine.arg_utils").AsyncEngineArgs
        _check_names(own, {one.name for one in fields(args)} - {"model"})
        usage = import_module("vllm.usage.usage_lib").UsageContext
        try:
            self._config = args(model=model, **own).create_engine_config(usage.OPENAI_API_SERVER)
            self._processor = import_module("vllm.v1.engine.input_processor").InputProcessor(self._config)
            executor = import_module("vllm.v1.executor").Executor
            self._client = import_module("vllm.v1.engine.core_client").EngineCoreClient.make_async_mp_client(
                vllm_config=self._config,
                executor_class=executor.get_class(self._config),
                log_stats=not own.get("disable_log_stats", False),
            )
        except Exception as error:
            words = str(error).strip() or type(error).__name__
            accepted = "vLLM has to be able to run this model with these engine options; its own output says more"
            raise SourceError(model, found=f"vLLM cannot start: {words}", accepted=accepted) from error
        # What fits into the memory may be less than what was asked for.
        self.max_model_len: int = self._config.model_config.max_model_len
        self._refusals = (import_module("vllm.exceptions").VLLMValidationError, ValueError, TypeError, NotImplementedError)
        self._params = import_module("vllm.sampling_params").SamplingParams
        self._tokens_input = import_module("vllm.inputs.engine").tokens_input
        self._lora_request = import_module("vllm.lora.request").LoRARequest
        self._tasks: Any = None

    @property
    def dead(self) -> bool:
        """See `Core.dead`."""
        return bool(self._client.resources.engine_dead)

    async def make(self, request_id: str, prompt: list[int], sampling: dict[str, Any]) -> Any:
        """See `Core.make`."""
        if self._tasks is None:
            self._tasks = await self._client.get_supported_tasks_async()
        try:
            beside: dict[str, Any] = {
                name: msgspec.convert(sampling.pop(name), kind) for name, kind in _BESIDE.items() if name in sampling
            }
            # Detok makes the text, and finds stops in it.
            params = msgspec.convert({**sampling, "detokenize": False}, self._params, str_keys=True)
            lora = None if (name := beside.pop("lora", None)) is None else await self._adapter(name)
            # Grammars are compiled, which may take long.
            process = self._processor.process_inputs_async if params.structured_outputs else self._processor.process_inputs
            inputs = self._tokens_input(prompt, cache_salt=beside.pop("cache_salt", None))
            made = process(request_id, inputs, params, self._tasks, time.time(), lora_request=lora, **beside)
            return await made if params.structured_outputs else made
        except Refusal:
            raise
        except self._refusals as error:
            raise Refusal(str(error), param=getattr(error, "parameter", None)) from error

    async def add(self, request: Any) -> None:
        """See `Core.add`."""
        await self._client.add_request_async(request)

    async def step(self) -> Any:
        """See `Core.step`."""
        return await self._client.get_output_async()

    async def abort(self, request_ids: list[str]) -> None:
        """See `Core.abort`."""
        await self._client.abort_requests_async(request_ids)

    def shutdown(self) -> None:
        """See `Core.shutdown`."""
        self._client.shutdown()
        self._processor.renderer.shutdown()

    async def _adapter(self, name: str) -> Any:
        """Return a LoRA adapter, which the core has loaded."""
        path, number = self._loras.found(name)
        request = self._lora_request(lora_name=name, lora_int_id=number, lora_path=path)
        if name not in self._loras.loaded:
            try:
                await self._client.add_lora_async(request)
            except Exception as error:
                logger.exception("the LoRA adapter %s cannot be loaded from %s", name, path)
                raise Refusal(f"the LoRA adapter {name!r} cannot be loaded", param="model", status=500) from error
            self._loras.loaded.add(name)
        return request


class _Loras:
    """The adapters that may be asked for by name."""

    def __init__(self, modules: Any) -> None:
        if not isinstance(modules, Mapping) or not all(isinstance(path, str) for path in modules.values()):
            accepted = 'it is a table of paths by name, {"sql": "/adapters/sql"}'
            raise OptionError(option="lora_modules", value=modules, accepted=accepted)
        self.paths = dict(modules)
        self.loaded: set[str] = set()

    def found(self, name: str) -> tuple[str, int]:
        if name not in self.paths:
            there_are = ", ".join(map(repr, self.paths)) or "none"
            raise Refusal(f"there is no LoRA adapter {name!r}; there are {there_are}", param="model", status=404)
        return self.paths[name], [*self.paths].index(name) + 1


def _check_names(options: Mapping[str, Any], known: set[str]) -> None:
    for name, value in options.items():
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f", maybe {near[0]}" if near else ""
            accepted = f"vLLM has no engine argument of this name{hint}; they are written with underscores, as max_model_len"
            raise OptionError(option=name, value=value, accepted=accepted)
