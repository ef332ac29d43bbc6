"""The benchmarks report what was measured, in turns and off the garbage collector's clock. No test here looks at a clock."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer

import detok
from bench.harness import Row, Section, Spread, again, alternate, apart, main, seconds
from bench.peers import OTHERS, DecodeStreamLists, DecodeStreams, Extends, Peer, Requests, Steps, load_other
from detok.data import sample


def test_alternate_gives_each_its_turn_in_every_round() -> None:
    """A B A B, each prepared just before, with the garbage collector off and on again afterwards."""
    turns: list[str] = []

    def prepare(name: str) -> Callable[[], Callable[[], None]]:
        def prepared() -> Callable[[], None]:
            turns.append(f"prepare {name}")
            return lambda: turns.append(f"run {name}, gc {gc.isenabled()}")

        return prepared

    taken = alternate({"A": prepare("A"), "B": prepare("B")}, rounds=2)
    assert turns == ["prepare A", "run A, gc False", "prepare B", "run B, gc False"] * 2
    assert gc.isenabled()
    assert {name: len(found) for name, found in taken.items()} == {"A": 2, "B": 2}


def test_alternate_turns_the_collector_on_again_after_an_error() -> None:
    """A contestant that fails ends the measurement, and nothing else."""
    with pytest.raises(ZeroDivisionError):
        alternate({"A": again(divmod, 1, 0)}, rounds=1)
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("value", "written"),
    [(2.81e-8, "28.1 ns"), (4e-10, "0.40 ns"), (0.0004567, "457 µs"), (0.00999, "9.99 ms"), (1.5, "1.50 s"), (0.0, "0.00 ns")],
)
def test_seconds_writes_three_digits_that_count(value: float, written: str) -> None:
    """Times are read by people."""
    assert seconds(value) == written


def test_apart_calls_in_another_process() -> None:
    """The heap of one measurement is not that of the next."""
    assert apart(divmod, 7, 2) == (3, 1)


@pytest.mark.parametrize("has_rich", [True, False])
def test_main_prints_and_writes_every_section(
    has_rich: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With rich and without, the table and its notes are there whole; the JSON has the machine, the rounds and the numbers."""
    if not has_rich:
        monkeypatch.setitem(sys.modules, "rich.console", None)

    def measure(rounds: int) -> Iterator[Section]:
        record = {"spread": Spread.of([3.0, 1.0, 2.0]).record()}
        yield Section("A title", ("", "much"), [Row(["a row", "2.0"], record)], [f"in {rounds} rounds"])

    assert main([measure], "…", ["--rounds", "9", "--json", str(tmp_path / "found.json")]) == 0
    printed = capsys.readouterr().out
    assert all(part in printed for part in ("A title", "much", "a row", "2.0", "in 9 rounds"))
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert found["rounds"] == 9
    assert {"machine", "python", "packages", "date"} < set(found)
    assert found["sections"][0]["rows"] == [{"spread": {"median": 2.0, "low": 1.0, "high": 3.0}}]


def _peers() -> dict[str, Callable[[Tokenizer, detok.Tokenizer], Peer]]:
    return {
        "step": lambda library, tokenizer: Steps(tokenizer),
        "eager": lambda library, tokenizer: Steps(tokenizer, "eager"),
        "extend": lambda library, tokenizer: Extends(tokenizer, 7),
        "request": lambda library, tokenizer: Requests(tokenizer, detok.RequestOptions(stop="no such")),
        "logprobs": lambda library, tokenizer: Requests(tokenizer, with_logprobs=True),
        "DecodeStream": lambda library, tokenizer: DecodeStreams(library),
        "DecodeStream, lists": lambda library, tokenizer: DecodeStreamLists(library, 7),
    }


@pytest.mark.parametrize("name", _peers())
def test_peers_give_the_one_shot_text(name: str) -> None:
    """What is timed is the right answer, for ids that end with a whole character."""
    library = Tokenizer.from_file(str(detok.EMBEDDED / "tokenizer.json"))
    ids = library.encode(sample("mixed"), add_special_tokens=False).ids
    peer = _peers()[name](library, detok.load(library))
    peer.feeding(ids)()
    assert peer.text(ids) == library.decode(ids)


@pytest.mark.parametrize("name", OTHERS)
def test_load_other_says_what_hinders(name: str, tmp_path: Path) -> None:
    """A library that is not there, or does not load a file, is a note and no end of the measurement."""
    broken = tmp_path / "tokenizer.json"
    broken.write_text("{}", encoding="utf-8")
    hindrance = load_other(name, str(broken))
    assert isinstance(hindrance, str)
    assert hindrance.startswith(("cannot load it", "is not installed"))
