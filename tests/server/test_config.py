"""What a server is set to."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from detok.data import EMBEDDED, sample
from detok.errors import OptionError, SourceError
from detok.server.app import open_server
from detok.server.config import ServerConfig, read_config
from tests.server.support import ask

FILE = """
host = "0.0.0.0"
api_keys = ["a"]
[limits]
max_requests = 7
[models.first]
engine = "echo"
max_model_len = 100
[models.second]
engine = "replay"
engine_options = { rate = 1000, step_tokens = 3 }
channels = "qwen"
byte_fallback = "exact"
"""


def written(tmp_path: Path, text: str) -> Path:
    """A file."""
    path = tmp_path / "models.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_default_listens_to_this_machine_alone() -> None:
    """And has the engines that need no model."""
    config = read_config()
    assert (config.host, config.port, config.cors_origins, [*config.models]) == ("127.0.0.1", 8000, [], ["echo", "replay"])


def test_flags_come_before_the_file(tmp_path: Path) -> None:
    """Field by field."""
    config = read_config(written(tmp_path, FILE), {"host": "::1", "port": 5})
    assert (config.host, config.port, config.api_keys, config.limits.max_requests) == ("::1", 5, ["a"], 7)
    assert config.models["second"].byte_fallback == "exact"


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ({"engine": "vllm:http://x"}, "vllm"),
        ({"tokenizer": "Qwen/Qwen3-0.6B"}, "Qwen/Qwen3-0.6B"),
        ({"tokenizer": str(EMBEDDED)}, EMBEDDED.name),
        ({"tokenizer": "Qwen/Qwen3-0.6B", "name": "q"}, "q"),
    ],
)
def test_one_model_is_described_by_flags(model: dict[str, Any], name: str) -> None:
    """It is called what clients would guess."""
    assert [*read_config(None, {"model": model}).models] == [name]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hosts = 1", "hosts"),
        ("port = 'a'", r"\$.port"),
        ("port = 70000", r"\$.port"),
        ("[models]", "at least one"),
        ("api_keys = ['']", "api_keys"),
        ("[models.a]\nengin = 'echo'", "engin"),
        ("[models.a]\nchannels = 'x'", "channels='x'"),
        ("[limits]\nmax_requests = 0", "max_requests"),
    ],
)
def test_bad_field_is_named(tmp_path: Path, text: str, words: str) -> None:
    """Before anything is opened."""
    with pytest.raises(OptionError, match=words):
        read_config(written(tmp_path, text))


def test_file_that_is_none_is_named(tmp_path: Path) -> None:
    """So is one that is no TOML."""
    with pytest.raises(SourceError, match="cannot be read"):
        read_config(tmp_path / "none.toml")
    with pytest.raises(SourceError, match="is no TOML"):
        read_config(written(tmp_path, "a ="))


def test_flags_of_a_model_do_not_go_with_a_file_that_has_some(tmp_path: Path) -> None:
    """Nobody could say which is meant."""
    with pytest.raises(OptionError, match="the models are in the file"):
        read_config(written(tmp_path, FILE), {"model": {"engine": "echo"}})


def test_server_is_opened_with_all_its_models() -> None:
    """Each has its tokenizer, engine and metrics; "replay" says the samples."""

    async def main() -> None:
        server = open_server(ServerConfig())
        try:
            answer = await ask(server, "/v1/completions", {"model": "replay", "prompt": "?", "max_tokens": 3})
            assert sample("mixed").startswith(answer.json["choices"][0]["text"])
            text = b"".join((await ask(server, "/metrics", method="GET")).bodies).decode()
            assert text.count("# HELP detok_rows_total") == 1
            assert 'detok_rows_total{model="echo"} 0' in text
        finally:
            await server.close()

    asyncio.run(main())
