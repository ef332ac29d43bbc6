"""Engines by their names on a command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from detok.engines.http import HttpEngine
from detok.engines.opening import open_engine
from detok.errors import MissingExtra, OptionError
from tests.engines.support import recorded


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llamacpp"])
def test_name_of_an_engine_behind_http_opens_it(kind: str) -> None:
    """The URL is what follows the first colon."""
    engine = open_engine(f"{kind}:http://host:81/x", api_key="k", silence_timeout=3.0)
    assert isinstance(engine, HttpEngine)
    assert engine.name == f"{kind} at http://host:81/x/"


def test_options_go_where_they_belong() -> None:
    """To the dialect or to the connection."""
    assert isinstance(open_engine("vllm:http://host", model="m", connect_timeout=1.0), HttpEngine)
    assert isinstance(open_engine("llamacpp:http://host", tokens_per_call=1), HttpEngine)
    for name, option in (("sglang:http://host", "model"), ("vllm:http://host", "tokens_per_call"), ("vllm:http://host", "x")):
        with pytest.raises(OptionError, match=f"{option}=1"):
            open_engine(name, **{option: 1})


@pytest.mark.parametrize(
    "name", ["", "vllm", "vllm:", "trtllm:http://host", "http://host", "sglang:host", "llamacpp:", "echo:x", "replay"]
)
def test_name_that_is_none_is_refused(name: str) -> None:
    """Saying what there is."""
    with pytest.raises(OptionError, match=r"engine=|url="):
        open_engine(name)


@pytest.mark.parametrize("missing", ["aiohttp", "msgspec"])
def test_missing_library_names_the_extra(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything else fails."""
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match=r"detok\[engines\]"):
        open_engine("vllm:http://host")


def test_missing_torch_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra of its own."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"detok\[torch\]"):
        open_engine(f"transformers:{tmp_path}")


def test_embedded_engines_are_opened_with_their_options(tmp_path: Path) -> None:
    """Those that they share, too; an unknown one is refused."""
    pytest.importorskip("detok.engines.echo", reason="the embedded engines are not here")
    assert type(open_engine("echo", rate=5.0)).__name__ == "EchoEngine"
    (tmp_path / "a.sse").write_bytes(recorded("vllm.sse"))
    assert type(open_engine(f"replay:{tmp_path}", max_batch=2)).__name__ == "ReplayEngine"
    with pytest.raises(OptionError, match="url='x'"):
        open_engine("echo", url="x")
