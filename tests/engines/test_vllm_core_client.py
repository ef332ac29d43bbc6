"""Starting vLLM's engine core: what vLLM is asked, and what is said if it cannot. Modules of vLLM's names stand in for it."""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest

from detok.engines.opening import open_engine
from detok.engines.vllm_core import Refusal, VllmCoreEngine
from detok.engines.vllm_core_client import TRIED, VllmCore
from detok.errors import EngineError, OptionError, SourceError
from tests.engines.support import request


class ValidationError(Exception):
    """As vLLM's, which is no ValueError."""

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter


class SamplingParams(msgspec.Struct, dict=True):
    """Some of vLLM's sampling parameters."""

    temperature: float = 1.0
    max_tokens: int | None = 16
    logit_bias: dict[int, float] | None = None
    structured_outputs: dict[str, Any] | None = None
    detokenize: bool = True


@dataclass
class EngineArgs:
    """Some of vLLM's engine arguments."""

    model: str
    max_model_len: int = 100
    enable_lora: bool = False
    disable_log_stats: bool = False

    def create_engine_config(self, usage: str) -> Any:
        """Return a configuration, of a model that there is."""
        if self.model == "missing":
            raise OSError("missing is not a local folder\nand more")
        assert usage == "api server"
        return SimpleNamespace(args=self, model_config=SimpleNamespace(max_model_len=self.max_model_len))


@dataclass
class Client:
    """vLLM's client of the core."""

    started: dict[str, Any]
    resources: Any = field(default_factory=lambda: SimpleNamespace(engine_dead=False))
    added: list[Any] = field(default_factory=list)
    loras: list[Any] = field(default_factory=list)

    async def get_supported_tasks_async(self) -> tuple[str, ...]:
        """What the model can."""
        return ("generate",)

    async def add_request_async(self, made: Any) -> None:
        """Take a request."""
        self.added.append(made)

    async def add_lora_async(self, lora: Any) -> bool:
        """Load an adapter, unless its files are broken."""
        if lora.lora_path == "/broken":
            raise RuntimeError("no such tensor")
        self.loras.append(lora.lora_name)
        return True


class Processor:
    """vLLM's validation."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def process_inputs(
        self, request_id: str, inputs: Any, params: SamplingParams, tasks: Any, arrival: float, **more: Any
    ) -> Any:
        """Validate."""
        if params.temperature < 0:
            raise ValidationError("temperature must be non-negative", "temperature")
        return SimpleNamespace(request_id=request_id, inputs=inputs, params=params, tasks=tasks, **more)

    async def process_inputs_async(self, *args: Any, **more: Any) -> Any:
        """Validate where it does not hold up others."""
        made = self.process_inputs(*args, **more)
        made.elsewhere = True
        return made


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Modules of vLLM's names."""
    top = ModuleType("vllm")
    modules: dict[str, dict[str, Any]] = {
        "vllm.exceptions": {"VLLMValidationError": ValidationError},
        "vllm.engine.arg_utils": {"AsyncEngineArgs": EngineArgs},
        "vllm.usage.usage_lib": {"UsageContext": SimpleNamespace(OPENAI_API_SERVER="api server")},
        "vllm.v1.engine.input_processor": {"InputProcessor": Processor},
        "vllm.v1.executor": {"Executor": SimpleNamespace(get_class=lambda config: "executor")},
        "vllm.v1.engine.core_client": {"EngineCoreClient": SimpleNamespace(make_async_mp_client=lambda **given: Client(given))},
        "vllm.sampling_params": {"SamplingParams": SamplingParams},
        "vllm.inputs.engine": {"tokens_input": lambda ids, cache_salt: {"ids": ids, "salt": cache_salt}},
        "vllm.lora.request": {"LoRARequest": SimpleNamespace},
    }
    top.__version__ = f"{TRIED[0]}+cpu"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", top)
    for name, content in modules.items():
        parts = name.split(".")
        for end in range(2, len(parts) + 1):
            parent = ".".join(parts[:end])
            monkeypatch.setitem(sys.modules, parent, sys.modules.get(parent) or ModuleType(parent))
        sys.modules[name].__dict__.update(content)
    return top


def made(core: VllmCore, **sampling: Any) -> Any:
    """Have a request made."""
    return asyncio.run(core.make("a-0", [1, 2], sampling))


@pytest.mark.usefixtures("vllm")
def test_core_is_started_with_engine_arguments(caplog: pytest.LogCaptureFixture) -> None:
    """By vLLM's names; statistics are on unless they are turned off; nothing is warned of."""
    engine = open_engine("vllm-core:tiny", max_model_len=77)
    assert isinstance(engine, VllmCoreEngine)
    assert (engine.name, engine.max_model_len) == ("vllm-core (tiny)", 77)
    for off in (False, True):
        started = VllmCore("tiny", {"disable_log_stats": off})._client.started
        assert (started["executor_class"], started["log_stats"]) == ("executor", not off)
    assert caplog.records == []


def test_another_version_is_warned_of_once(vllm: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    """Saying which were tried."""
    vllm.__version__ = "0.40.1"  # type: ignore[attr-defined]
    with caplog.at_level(logging.WARNING, logger="detok.engines"):
        VllmCore("tiny", {})
    assert [record.getMessage() for record in caplog.records] == [
        "vllm-core was tried with vLLM 0.32.0, and this is 0.40.1: outputs may fail"
    ]


@pytest.mark.usefixtures("vllm")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_model_length": 5}, r"max_model_length=5 .* maybe max_model_len;"),
        ({"zzz": 1}, r"zzz=1 .* no engine argument of this name;"),
        ({"model": "other"}, "model='other'"),
        ({"lora_modules": ["sql"]}, "lora_modules="),
        ({"lora_modules": {"sql": 3}}, "lora_modules="),
    ],
)
def test_engine_argument_that_there_is_not_is_refused(options: dict[str, Any], words: str) -> None:
    """Before vLLM starts anything."""
    with pytest.raises(OptionError, match=words):
        VllmCore("tiny", options)


@pytest.mark.usefixtures("vllm")
def test_model_that_cannot_be_run_is_said_in_vllms_words() -> None:
    """As all sources are."""
    with pytest.raises(SourceError, match="missing: vLLM cannot start: missing is not a local folder"):
        open_engine("vllm-core:missing")


@pytest.mark.usefixtures("vllm")
def test_sampling_becomes_vllms_parameters() -> None:
    """It makes no text; keys of JSON are ids; what stands beside them is given beside them; what it does not know it ignores."""
    one = made(
        VllmCore("tiny", {}), temperature=0.5, logit_bias={"7": 1.0}, priority=2, cache_salt="s", odd=1, data_parallel_rank=1
    )
    assert one.params == SamplingParams(temperature=0.5, logit_bias={7: 1.0}, detokenize=False)
    assert one.inputs == {"ids": [1, 2], "salt": "s"}
    assert (one.request_id, one.tasks, one.priority, one.data_parallel_rank, one.lora_request) == (
        "a-0",
        ("generate",),
        2,
        1,
        None,
    )
    assert not hasattr(one, "elsewhere")


@pytest.mark.usefixtures("vllm")
def test_grammars_are_looked_at_elsewhere() -> None:
    """They may take long."""
    assert made(VllmCore("tiny", {}), structured_outputs={"choice": ["yes"]}).elsewhere


@pytest.mark.usefixtures("vllm")
@pytest.mark.parametrize(
    ("sampling", "words", "param"),
    [
        ({"temperature": -1}, "temperature must be non-negative", "temperature"),
        ({"temperature": "hot"}, r"Expected `float`, got `str` - at `\$.temperature`", None),
        ({"priority": "high"}, "Expected `int`, got `str`", None),
    ],
)
def test_what_vllm_refuses_is_a_refusal(sampling: dict[str, Any], words: str, param: str | None) -> None:
    """Its own errors, and those of types."""
    with pytest.raises(Refusal, match=words) as caught:
        made(VllmCore("tiny", {}), **sampling)
    assert (caught.value.param, caught.value.status) == (param, 400)


@pytest.mark.usefixtures("vllm")
def test_adapters_are_loaded_when_they_are_first_asked_for() -> None:
    """Once; each has a number of its own; one that there is not is 404."""

    async def main() -> None:
        core = VllmCore("tiny", {"lora_modules": {"sql": "/sql", "bad": "/broken"}})
        assert core._config.args.enable_lora
        for _ in range(2):
            one = await core.make("a-0", [1], {"lora": "sql"})
        assert (one.lora_request.lora_name, one.lora_request.lora_int_id, core._client.loras) == ("sql", 1, ["sql"])
        with pytest.raises(Refusal, match="there is no LoRA adapter 'x'; there are 'sql', 'bad'") as caught:
            await core.make("a-0", [1], {"lora": "x"})
        assert caught.value.status == 404
        engine = VllmCoreEngine(core)
        with pytest.raises(EngineError, match="'bad' cannot be loaded") as failed:
            await engine.submit(request(lora="bad"))
        assert failed.value.status == 500
        await engine.submit(request(lora="sql"))
        assert [one.lora_request.lora_int_id for one in core._client.added] == [1]

    asyncio.run(main())
