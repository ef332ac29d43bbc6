"""`detok check` prints a certificate, and its exit code is what a script needs."""

from __future__ import annotations

import json
import shlex

import pytest

import detok
from detok.inspection import Certificate, Difference
from detok.inspection.shared_ids import SharedId
from tests.cli.support import EMBEDDED, run


def test_check_prints_the_certificate() -> None:
    """What was tried, by which judge, with which seed, and the result; nothing on standard error where nobody looks on."""
    result = run("check", "--lists", "20", "--seed", "7")
    assert result.exit_code == 0
    assert result.stderr == ""
    for part in ("20 id lists", "seed 7", "✓ 0 differences", EMBEDDED.fingerprint, "tokenizers 0."):
        assert part in result.stdout


def test_check_as_json_is_the_certificate() -> None:
    """All of it, and only it."""
    found = json.loads(run("check", EMBEDDED.source, "--lists", "20", "--json").stdout)
    assert found["ok"] is True
    assert (found["lists"], found["seed"], found["differences"]) == (20, 0, [])


def test_check_of_given_ids_is_of_one_list() -> None:
    """Ids from the command line, a negative one among them, or from a file."""
    found = json.loads(run("check", "--ids", "-1 39 318", "--json").stdout)
    assert found["lists"] == 1
    assert json.loads(run("check", "--file", "-", "--json", stdin="-1 39 318").stdout)["comparisons"] == found["comparisons"]


def test_check_with_a_difference_shows_it_and_exits_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest input is shown, with the command that shows it again."""
    monkeypatch.setattr(detok.TextStream, "finish", lambda self: "")
    result = run("check", EMBEDDED.source, "--lists", "30")
    assert result.exit_code == 1
    assert "✗" in result.stdout
    shown = {key: value for key, _, value in (line.strip().partition("  ") for line in result.stdout.splitlines())}
    assert len(shown["ids"].split()) == 1
    assert shown["expected"].strip() == repr("\ufffd")
    assert shown["got"].strip() == "''"
    program, *again = shlex.split(shown["again"])
    assert program == "detok"
    assert run(*again).exit_code == 1
    assert run("check", "--lists", "30", "--json").exit_code == 1


def test_check_shows_shared_ids_and_library_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are told, the first few by name."""
    certificate = Certificate(
        source="made\x1b up",
        tokenizer="plain concatenation",
        fingerprint="00",
        library="none",
        seed=3,
        lists=1,
        splits=2,
        comparisons=3,
        library_failures=4,
        differing=1,
        differences=(Difference((1,), (1,), False, "prompt", "a\n", "b"),),
        shared_ids=tuple(SharedId(number, f"a{number}", "b") for number in range(5)),
        seconds=1.0,
    )
    monkeypatch.setattr("detok.cli.check.check", lambda *args, **options: certificate)
    result = run("check")
    assert result.exit_code == 1
    assert "0 is both 'a0' and 'b'" in result.stdout
    assert "a4" not in result.stdout
    assert "on 4 lists" in result.stdout
    assert "special tokens kept" in result.stdout
    assert "\x1b" not in result.stdout


def test_check_wrongly_used_exits_with_2() -> None:
    """A number of lists that cannot be, a tokenizer that is not there, ids that are none."""
    assert run("check", "--lists", "0").exit_code == 2
    assert run("check", "no/such/tokenizer").exit_code == 2
    assert run("check", "--ids", "x").exit_code == 2


def test_check_of_a_strategy_shows_how_often_it_is_wrong() -> None:
    """The certificate names the strategy, and so does the command that shows a difference again; the exit code is 1."""
    result = run("check", "--strategy", "window+printable", "--lists", "100")
    assert result.exit_code == 1
    shown = {key: value.strip() for key, _, value in (line.strip(" │").partition("  ") for line in result.stdout.splitlines())}
    assert shown["strategy"] == "window+printable"
    assert "differences in" in shown["result"]
    assert "% of all comparisons" in shown["result"]
    _, *again = shlex.split(shown["again"])
    assert "--strategy" in again
    assert run(*again).exit_code == 1
    found = json.loads(run("check", "--strategy", "window", "--lists", "20", "--json").stdout)
    assert (found["ok"], found["strategy"], found["differing_lists"]) == (True, "window", 0)


def test_check_of_a_strategy_that_there_is_not_exits_with_2() -> None:
    """Like any wrong option."""
    assert run("check", "--strategy", "quick").exit_code == 2
