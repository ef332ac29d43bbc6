"""`detok cost` shows what was measured, and what follows from it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from detok.cli import cost
from detok.frontend.cost import Costs
from detok.tokenizers import Tokenizer
from tests.cli.support import run

COSTS = Costs(decode=1e-6, serve={1: 5e-6, 4: 2.5e-6}, message=0.25e-6)


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The batches that were asked for; measured is `COSTS`."""
    batches: list[int] = []

    def measure(tokenizer: Tokenizer, *, batch: int) -> Costs:
        batches.append(batch)
        return COSTS

    monkeypatch.setattr(cost, "measure", measure)
    return batches


def test_cost_shows_each_setting_against_the_step(measured: list[int]) -> None:
    """Microseconds a row, milliseconds a step, the share of the engine's step, and B*."""
    result = run("cost", "--batch", "256", "--step-ms", "4.5")
    assert measured == [256]
    line = next(line for line in result.stdout.splitlines() if "in process" in line)
    assert [cell.strip() for cell in line.split("│")[2:-1]] == ["5.00", "1.28", "28%", "900"]
    line = next(line for line in result.stdout.splitlines() if "stream_interval=4" in line)
    assert [cell.strip() for cell in line.split("│")[2:-1]] == ["2.50", "0.64", "14%", "1,800"]


def test_cost_as_json_has_every_number() -> None:
    """For machines, in seconds."""
    found = json.loads(run("cost", "--json", "--batch", "100", "--step-ms", "1").stdout)
    assert (found["batch"], found["step_seconds"], found["decode_seconds_a_row"]) == (100, 1e-3, 1e-6)
    first = found["settings"][0]
    assert first["name"] == "in process"
    assert first["seconds_a_step"] == pytest.approx(5e-4)
    assert first["share_of_step"] == pytest.approx(0.5)
    assert first["largest_batch"] == 200


def test_cost_draws_a_plot(tmp_path: Path) -> None:
    """A picture of the costs over batches."""
    pytest.importorskip("matplotlib", reason="drawing needs matplotlib")
    run("cost", "--plot", str(tmp_path / "cost.png"))
    assert (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")


def test_cost_without_matplotlib_says_so_before_it_measures(
    measured: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naming the extra."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("cost", "--plot", str(tmp_path / "cost.png"))
    assert (result.exit_code, measured) == (2, [])
    assert "detok[bench]" in result.stderr


@pytest.mark.parametrize("arguments", [["--batch", "0"], ["--step-ms", "0"], ["--batch", "many"]])
def test_cost_of_what_cannot_be_names_the_option(arguments: list[str]) -> None:
    """Exit code 2."""
    result = run("cost", *arguments)
    assert result.exit_code == 2
    assert arguments[0] in result.stderr
