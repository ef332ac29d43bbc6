"""`detok trace` is a picture that can be read without colour, and JSON that can be read without eyes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers

from tests.cli.support import EMBEDDED, ids_text, run
from tests.support.handmade import METASPACE, make

TEXT = "Zoë 🫶"


def test_trace_marks_faults_without_colour() -> None:
    """Each broken token has its mark and its name, and below the table stand both texts and the count."""
    result = run("trace", "--text", TEXT)
    assert result.exit_code == 0
    assert result.stdout.count("✗ broken character") == 5
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert f"right  {TEXT}" in lines
    assert "naive  Zo\ufffd\ufffd \ufffd\ufffd\ufffd" in lines
    assert "✗ 5 of 7 tokens wrong: 5 × broken character" in lines


def test_trace_of_plain_text_finds_no_faults() -> None:
    """And says that this is luck."""
    assert "✓ no faults" in run("trace", "--text", "Hello").stdout


def test_trace_without_arguments_shows_the_problem() -> None:
    """The sample is short, and broken in each of its words."""
    result = run("trace")
    assert result.stdout.count("✗") > 8
    assert len(result.stdout.splitlines()) < 30


def test_trace_of_ids_and_of_their_text_is_the_same() -> None:
    """Ids are what is traced, wherever they come from."""
    assert run("trace", "--ids", ids_text(TEXT)).stdout == run("trace", "--text", TEXT).stdout
    assert run("trace", "--file", "-", stdin=ids_text(TEXT)).stdout == run("trace", "--text", TEXT).stdout


def test_trace_escapes_what_would_move_the_cursor() -> None:
    """Control characters, direction marks and lone marks are safe to look at; unknown ids and finish have a row too."""
    shown = run("trace", "--text", "\x1b[2J\x9b\u202e\n\t").stdout
    assert not {"\x1b", "\x9b", "\u202e", "\t"} & {*shown}
    assert "\\x1b" in shown
    rows = run("trace", "--ids", "999999 127").stdout
    assert "no such id" in rows
    assert "finish" in rows


def test_trace_shows_lost_spaces(tmp_path: Path) -> None:
    """A space is visible where it is, and missed where it is not; the tokenizer is named."""
    path = tmp_path / "spaced.json"
    library: tokenizers.Tokenizer = make(METASPACE, ("▁Hi", "▁there", "▁" * 30))
    library.save(str(path))
    shown = run("trace", str(path), "--ids", "0 1 2").stdout
    assert "␣there" in shown
    assert "there  ✗ lost space" in shown
    assert "3 tokens of spaced.json" in shown
    assert f"{'▁' * 13}…" in shown


def test_trace_as_json_has_rows_and_summary() -> None:
    """Bytes are hexadecimal; only JSON is on standard output."""
    found = json.loads(run("trace", "--text", "ë", "--json").stdout)
    assert (found["right"], found["naive"], found["faults"]) == ("ë", "\ufffd\ufffd", 2)
    first, _, last = found["rows"]
    assert first["id"] == EMBEDDED.encode("ë")[0]
    assert (first["bytes"], first["held"], first["fault"]) == ("c3", {"bytes": "c3"}, "broken character")
    assert (last["id"], last["text"]) == (None, "")


def test_trace_as_svg_is_the_picture(tmp_path: Path) -> None:
    """The file is an SVG with all of the texts."""
    path = tmp_path / "trace.svg"
    result = run("trace", "--text", TEXT, "--svg", str(path), "--json")
    assert json.loads(result.stdout)["faults"] == 5
    svg = path.read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert "broken" in svg
    assert "한" not in svg
    assert "🫶" in svg


def test_trace_wrongly_used_is_one_line_and_code_2(tmp_path: Path) -> None:
    """No traceback for what cannot be."""
    both = run("trace", "--ids", "1", "--text", "x")
    assert (both.exit_code, both.stderr) == (2, "detok: give ids or --text, not both\n")
    nowhere = run("trace", "--svg", str(tmp_path / "no" / "such.svg"))
    assert nowhere.exit_code == 2
    assert nowhere.stderr.startswith("detok: ")
    assert "no/such.svg" in nowhere.stderr.replace("\\", "/")


def test_trace_behind_a_prompt_takes_the_options_of_decoding() -> None:
    """As `stream` does."""
    special = min(EMBEDDED.special_ids)
    found = json.loads(run("trace", "--ids", str(special), "--prompt-ids", "39", "--keep-special-tokens", "--json").stdout)
    assert found["right"] == EMBEDDED.decode([special], skip_special_tokens=False)


def test_trace_beside_a_strategy_marks_where_it_is_late_or_wrong(tmp_path: Path) -> None:
    """It stands where otherwise the naive decode does, and its whole text below the right one."""
    library: tokenizers.Tokenizer = make({"type": "ByteFallback"}, ("<0xC3>", "<0xA9>", "<0xFF>", "x", "\ufffd"))
    library.save(str(path := tmp_path / "bytes.json"))
    late = run("trace", str(path), "--strategy", "window", "--ids", "3 4 3").stdout
    assert "… late" in late
    assert "decode([id])" not in late
    assert "right   x\ufffdx" in late
    assert "window  x\ufffdx" in late
    assert "✓ the same text, late after 1 of 3 tokens" in late
    wrong = run("trace", str(path), "--strategy", "window", "--ids", "0 1 2 3").stdout
    assert "é  ✗ wrong" in wrong
    assert "✗ not the same text; late after 0 of 4 tokens" in wrong


def test_trace_beside_a_strategy_as_json_has_its_text() -> None:
    """Beside all that is there without it."""
    found = json.loads(run("trace", "--text", TEXT, "--strategy", "decodestream", "--json").stdout)
    assert (found["strategy"], found["compared"], found["naive"] == TEXT) == ("decodestream", TEXT, False)
    assert found["late"] == sum(row["deviation"] == "late" for row in found["rows"])
    assert "".join(row["compared"] for row in found["rows"]) == TEXT
    assert "compared" not in json.loads(run("trace", "--text", TEXT, "--json").stdout)


def test_trace_beside_a_strategy_as_svg_is_the_picture(tmp_path: Path) -> None:
    """The column of the strategy is in it."""
    path = tmp_path / "trace.svg"
    run("trace", "--text", TEXT, "--strategy", "window", "--svg", str(path))
    assert "window" in path.read_text(encoding="utf-8")


def test_trace_with_a_stop_shows_what_is_held_for_it() -> None:
    """The candidate, the row that completes the stop, and below where that is; nothing behind it has a row."""
    shown = run("trace", "--text", "Hi STOP it", "--stop", "OP").stdout
    assert "O, it may become a stop" in shown
    assert "stop 'OP'" in shown
    assert "right  Hi ST\n" in shown.replace(" \n", "\n")
    assert "■ stop 'OP': token 6 completes it, the text has 5 characters" in shown
    assert "␣it" not in shown
    assert "no stop came" in run("trace", "--text", "Hi", "--stop", "OP").stdout


def test_trace_with_a_stop_token_names_it() -> None:
    """By its id."""
    shown = run("trace", "--ids", "39 318 737", "--stop-token-ids", "318").stdout
    assert "■ stop 318: token 2 completes it, the text has 1 characters" in shown


def test_trace_with_a_stop_on_a_narrow_terminal_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word for the reason, so that no row wraps."""
    monkeypatch.setattr("detok.cli.trace.PICTURE_WIDTH", 80)
    shown = run("trace", "--text", "Hi STëP", "--stop", "TëX").stdout
    assert "T, stop?" in shown
    assert "54 c3, stop?" in shown
    assert "it may become" not in shown


def test_trace_with_a_stop_as_json_says_how_it_ended() -> None:
    """Beside all that is there without it."""
    found = json.loads(run("trace", "--text", "Hi STOP it", "--stop", "OP", "--json").stdout)
    end = ("finish_reason", "stop_reason", "tokens_kept", "text_end", "dropped_token_ids")
    assert [found[field] for field in end] == ["stop", "OP", 6, 5, []]
    assert [row["held"] for row in found["rows"]] == ["", "", "", "", "O", "", ""]
    assert found["right"] == "Hi ST"
    assert "stop_reason" not in json.loads(run("trace", "--text", "Hi", "--json").stdout)


def test_trace_with_a_stop_and_a_strategy_is_refused() -> None:
    """They cannot be compared."""
    result = run("trace", "--stop", "OP", "--strategy", "window")
    assert (result.stdout, result.exit_code) == ("", 2)
    assert "leave it or the stops out" in result.stderr
