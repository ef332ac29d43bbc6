"""`detok stream` gives text out as it becomes certain, whatever the ids come from and however it ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from detok.data import sample
from tests.cli.support import EMBEDDED, detok_process, ids_text, run

TEXT = "Zoë 🫶 한국\n"
SENTENCE = "Hi STOP it now"
TIMEOUT = 20


def read_some(process: subprocess.Popen[bytes], count: int) -> bytes:
    """Read until there are ``count`` bytes; a test fails if they do not come while the process waits for more input."""
    assert process.stdout is not None
    data = b""
    while len(data) < count:
        ready, _, _ = select.select([process.stdout], [], [], TIMEOUT)
        assert ready, f"nothing after {data!r}"
        chunk = os.read(process.stdout.fileno(), count - len(data))
        assert chunk, f"the end after {data!r}"
        data += chunk
    return data


def ending(
    finish_reason: str, stop_reason: str | int | None, *, kept: int, text_end: int, dropped: Sequence[int] = ()
) -> dict[str, object]:
    """What the last line of JSON says of the end."""
    reasons = {"finish_reason": finish_reason, "stop_reason": stop_reason}
    return {**reasons, "dropped_token_ids": [*dropped], "tokens_kept": kept, "text_end": text_end}


def json_lines(*arguments: str, stdin: str | None = None) -> list[dict[str, Any]]:
    """The lines of a stream as JSON."""
    return [json.loads(line) for line in run("stream", "--json", *arguments, stdin=stdin).stdout.splitlines()]


def test_stream_of_ids_is_their_text() -> None:
    """Nothing is added, at the end neither."""
    result = run("stream", "--ids", ids_text(TEXT))
    assert (result.stdout, result.exit_code) == (TEXT, 0)


@pytest.mark.parametrize("step", ["1", "2", "7", "1000"])
def test_stream_in_any_steps_is_the_same(step: str) -> None:
    """How many ids come at once does not matter."""
    assert run("stream", "--ids", ids_text(TEXT), "--step", step).stdout == TEXT


def test_stream_reads_a_file_and_a_pipe(tmp_path: Path) -> None:
    """In a file, in a pipe by name and in a pipe without a name are the same ids."""
    file = tmp_path / "ids.jsonl"
    ids = EMBEDDED.encode(TEXT)
    file.write_text(f"{ids[:3]}\n" + json.dumps({"token_ids": ids[3:]}))
    assert run("stream", "--file", str(file)).stdout == TEXT
    assert run("stream", "--file", "-", stdin=file.read_text()).stdout == TEXT
    assert run("stream", stdin=ids_text(TEXT)).stdout == TEXT


def test_stream_of_a_named_tokenizer() -> None:
    """A tokenizer is a path."""
    assert run("stream", EMBEDDED.source, "--ids", ids_text(TEXT)).stdout == TEXT


def test_stream_of_a_sample_is_the_sample() -> None:
    """A sample goes through the tokenizer and comes back."""
    assert run("stream", "--sample", "thai").stdout == sample("thai")


def test_stream_at_a_rate_waits_for_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of two ids takes the time of two; without a rate nothing waits, a sample that nobody looks at neither."""
    waits: list[float] = []
    monkeypatch.setattr("detok.cli.stream.sleep", waits.append)
    monkeypatch.setattr("detok.cli.options.is_piped", lambda: False)
    run("stream", "--ids", "39 39 39", "--step", "2", "--rate", "4")
    assert waits == [0.5, 0.25]
    assert run("stream").stdout == sample("mixed")
    assert len(waits) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="there is no /dev/null to read")
def test_stream_without_input_is_a_sample() -> None:
    """Where nothing is led in, something is there to see, at once if nobody looks on."""
    command = [sys.executable, "-m", "detok", "stream"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=TIMEOUT)
    assert done.stdout.decode() == sample("mixed")


def test_stream_as_json_is_a_line_a_step() -> None:
    """Each line has ids, text and what is held; the last one has the rest, and how it ended."""
    lines = [json.loads(line) for line in run("stream", "--ids", ids_text("ë"), "--json").stdout.splitlines()]
    first, second = EMBEDDED.encode("ë")
    assert lines == [
        {"ids": [first], "text": "", "held": {"bytes": "c3"}, "held_because": "incomplete character"},
        {"ids": [second], "text": "ë", "held": "", "held_because": ""},
        {"finish": True, "ids": [], "text": "", "held": "", "held_because": "", **ending("stop", None, kept=2, text_end=1)},
    ]


def test_stream_as_json_can_be_streamed_again() -> None:
    """The lines are ids too."""
    once = run("stream", "--ids", ids_text(TEXT), "--json").stdout
    assert run("stream", "--json", stdin=once).stdout.splitlines()[:-2] == once.splitlines()[:-1]


def test_stream_with_deltas_shows_what_is_held() -> None:
    """A line a step, for people, in which nothing of the text is raw."""
    lines = run("stream", "--ids", ids_text("ë\n")[:-4], "--ids", ids_text("\x1b[1m"), "--show-deltas").stdout.splitlines()
    assert "holds b'\\xc3', incomplete character" in lines[0]
    assert "'\\x1b'" in "".join(lines)
    assert lines[-1].split()[0] == "finish"


def test_stream_behind_a_prompt_gives_the_rest() -> None:
    """Of the prompt no text comes out, but for the character that it left incomplete."""
    first, second = EMBEDDED.encode("ë")
    assert run("stream", "--prompt-ids", f"39 {first}", "--ids", f"{second} 39").stdout == "ëH"


def test_stream_options_are_those_of_decode() -> None:
    """Specials, unknown ids: as the flags say."""
    special = min(EMBEDDED.special_ids)
    text = EMBEDDED.decode([special], skip_special_tokens=False)
    assert run("stream", "--ids", str(special)).stdout == ""
    assert run("stream", "--ids", str(special), "--keep-special-tokens").stdout == text
    assert run("stream", "--ids", "999999 -1", "--unknown-ids", "replace").stdout == "\ufffd\ufffd"


def test_stream_with_an_unknown_id_as_error_ends_there() -> None:
    """What came before is out, what was held too, and the error names the id."""
    result = run("stream", "--ids", f"{ids_text('Hi')} {EMBEDDED.encode('ë')[0]} 999999 39", "--unknown-ids", "error")
    assert (result.stdout, result.exit_code) == ("Hi\ufffd", 2)
    assert result.stderr.startswith("detok: the tokenizer has no id 999999")


def test_stream_of_what_is_no_id_gives_out_what_came_before() -> None:
    """The error names line and column; the stream is finished, as for every reason of ending."""
    result = run("stream", "--step", "4", stdin=f"{ids_text('Hi')}\n{EMBEDDED.encode('ë')[0]} x7\n39")
    assert (result.stdout, result.exit_code) == ("Hi\ufffd", 2)
    assert result.stderr.startswith("detok: standard input, line 2, column 5: 'x7' is no token id")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--ids", "1", "--file", "x"], "not from both"),
        (["--file", "no/such/file"], "cannot be read"),
        (["--sample", "klingon"], "it is one of arabic"),
        (["no/such/tokenizer", "--ids", "1"], "there is no such file or directory"),
        (["--ids", "1", "--prompt-ids", "2\n3 b"], "--prompt-ids, line 2, column 3"),
    ],
)
def test_stream_wrongly_used_is_one_line_and_code_2(arguments: list[str], problem: str) -> None:
    """No traceback, nothing on standard output."""
    result = run("stream", *arguments)
    assert (result.stdout, result.exit_code) == ("", 2)
    assert result.stderr.startswith("detok: ")
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1


def test_stream_of_a_live_pipe_does_not_wait() -> None:
    """Text comes out while the pipe is open: an id is complete at its separator, a line of JSON at its end."""
    with detok_process("stream") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for data, text in [(b"39 31", b"H"), (b"8 ", b"el"), (b"\n[166, 113]\n[255]\n", "국".encode()), (b"737,", b"lo")]:
            process.stdin.write(data)
            process.stdin.flush()
            assert read_some(process, len(text)) == text
        process.stdin.write(b"39")
        process.stdin.close()
        assert process.stdout.read() == b"H"
    assert process.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="no signals as these")
def test_stream_that_is_interrupted_gives_out_what_it_holds() -> None:
    """Control-C ends a stream as anything else does, with the code that shells know."""
    shown = b"     166  ''   holds b'\\xea', incomplete character\n"
    with detok_process("stream", "--show-deltas") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"166 ")
        process.stdin.flush()
        assert read_some(process, len(shown)) == shown
        process.send_signal(signal.SIGINT)
        assert process.stdout.read().decode() == "  finish  '\ufffd'\n"
    assert process.returncode == 130


@pytest.mark.skipif(sys.platform == "win32", reason="no closed pipes as these")
def test_stream_into_a_closed_pipe_ends_quietly() -> None:
    """Whoever reads may have seen enough."""
    with detok_process("stream") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"39 ")
        process.stdin.flush()
        assert read_some(process, 1) == b"H"
        process.stdout.close()
        process.stdin.write(b"39 " * 10)
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="no closed pipes as these")
@pytest.mark.parametrize("arguments", [["decode", "--ids", "39"], ["trace"], ["check", "--lists", "1"], ["stream", "--json"]])
def test_any_command_into_a_closed_pipe_ends_quietly(arguments: list[str]) -> None:
    """Tables too."""
    with detok_process(*arguments) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_stream_on_a_terminal_ends_its_line() -> None:
    """The shell's prompt begins on a line of its own; ids from the command line need no delay."""
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "detok", "stream", "--ids", ids_text("Hi"), "--rate", "1000"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        process.wait(TIMEOUT)
    os.close(theirs)
    assert os.read(ours, 100) == b"Hi\r\n"
    os.close(ours)


def test_stream_by_a_strategy_gives_its_text() -> None:
    """Another way to the same text, held longer."""
    ids = ids_text("Zoë 🫶")
    for strategy in ("exact", "window", "window+printable", "decodestream"):
        assert run("stream", "--ids", ids, "--strategy", strategy).stdout == "Zoë 🫶"
    rows = [json.loads(line) for line in run("stream", "--ids", ids, "--strategy", "window", "--json").stdout.splitlines()]
    assert {row["held_because"] for row in rows} == {"", "the window ends in U+FFFD"}


def test_stream_by_a_strategy_that_there_is_not_exits_with_2() -> None:
    """Like any wrong option."""
    assert run("stream", "--ids", "1", "--strategy", "quick").exit_code == 2


@pytest.mark.parametrize("step", ["1", "3", "1000"])
def test_stream_ends_before_a_stop_in_any_steps(step: str) -> None:
    """Text behind a stop does not come out, whatever came with it; of several stops the first to complete wins."""
    arguments = ["stream", "--ids", ids_text(SENTENCE), "--step", step]
    assert run(*arguments, "--stop", "it", "--stop", "OP").stdout == "Hi ST"
    assert run(*arguments, "--stop", "it", "--stop", "OP", "--include-stop-str-in-output").stdout == "Hi STOP"
    assert run(*arguments, "--stop-regex", "[A-Z]{3}").stdout == "Hi "
    assert run(*arguments, "--max-tokens", "2").stdout == "Hi"


def test_stream_with_min_tokens_passes_an_early_stop() -> None:
    """The same stop ends the text when it comes again."""
    ids = ids_text("a.b.c")
    assert run("stream", "--ids", ids, "--stop", ".").stdout == "a"
    assert run("stream", "--ids", ids, "--stop", ".", "--min-tokens", "2").stdout == "a.b"


def test_stream_ends_before_ids_that_were_named_and_no_others() -> None:
    """Special or not; an end of sequence is an id like any other, unless it is named."""
    end = EMBEDDED.encode("<|im_end|>", add_special_tokens=False)
    ids = [*EMBEDDED.encode("Hi"), *end, *EMBEDDED.encode("ya")]
    given = " ".join(map(str, ids))
    assert run("stream", "--ids", given).stdout == "Hiya"
    assert run("stream", "--ids", given, "--stop-token-ids", f"0 {end[0]}").stdout == "Hi"
    last = json_lines("--ids", given, "--step", "9", "--stop-token-ids", str(end[0]))[-1]
    assert last.items() >= ending("stop", end[0], kept=3, text_end=2, dropped=ids[3:]).items()


def test_stream_as_json_says_what_stopped_it() -> None:
    """What came in, what is held and may become the stop; at the end the ids that belong to the text, and those behind it."""
    ids = EMBEDDED.encode(SENTENCE)
    assert list(map(EMBEDDED.token_text, ids[:6])) == ["H", "i", " S", "T", "O", "P"]
    *steps, last = json_lines("--ids", ids_text(SENTENCE), "--stop", "STOP")
    assert [line["text"] for line in steps] == ["H", "i", " ", "", "", ""]
    assert [line["held"] for line in steps] == ["", "", "S", "ST", "STO", ""]
    assert {line["held_because"] for line in steps[2:5]} == {"it may become a stop"}
    assert [line["ids"] for line in steps] == [[token_id] for token_id in ids[:6]]
    assert last.items() >= ending("stop", "STOP", kept=6, text_end=3).items()
    at_once = json_lines("--ids", str(ids), "--stop", "STOP")[-1]
    assert at_once.items() >= ending("stop", "STOP", kept=6, text_end=3, dropped=ids[6:]).items()


def test_stream_with_deltas_says_what_stopped_it() -> None:
    """On the last line, with the ids that were dropped."""
    ids = EMBEDDED.encode(SENTENCE)
    lines = run("stream", "--ids", str(ids), "--stop", "now", "--show-deltas").stdout.splitlines()
    assert lines[-1] == f"  finish  ''   stop at 'now': {len(ids)} tokens, 11 characters"
    lines = run("stream", "--ids", str(ids), "--max-tokens", "2", "--show-deltas").stdout.splitlines()
    behind = " ".join(map(str, ids[2:]))
    assert lines[-1] == f"  finish  ''   length: 2 tokens, 2 characters, {behind} behind it dropped"


def test_stream_with_a_stop_reads_no_more_of_a_live_pipe() -> None:
    """It ends at once, though the pipe is open."""
    with detok_process("stream", "--stop", "lo") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"39 318 737 ")
        process.stdin.flush()
        assert process.wait(TIMEOUT) == 0
        assert process.stdout.read() == b"Hel"


def test_stream_that_may_still_stop_gives_out_what_it_holds() -> None:
    """A candidate comes out at the end of the input, of whatever kind."""
    assert run("stream", "--ids", ids_text("The EN"), "--stop", "END").stdout == "The EN"
    result = run("stream", "--stop", "END", stdin=f"{ids_text('The EN')} x")
    assert (result.stdout, result.exit_code) == ("The EN", 2)


def test_stream_with_logprobs_tiles_the_text() -> None:
    """Each token's part of the text, its bytes and its offsets, and its logprob where the input has one."""
    ids = EMBEDDED.encode("Zoë", add_special_tokens=False)
    stdin = json.dumps({"token_ids": ids[:2], "logprobs": [-0.5, None]}) + "\n" + " ".join(map(str, ids[2:]))
    found = json_lines("--logprobs", stdin=stdin)
    tokens = [token for line in found for token in line["tokens"]]
    assert [token["id"] for token in tokens] == ids
    assert "".join(token["token"] for token in tokens) == "Zoë"
    assert [bytes(token["bytes"]) for token in tokens] == [EMBEDDED.token_bytes(token_id) for token_id in ids]
    assert [token["logprob"] for token in tokens] == [-0.5, None, None, None]
    assert [token["byte_offset"] for token in tokens] == [0, 1, 2, 2]
    shown = run("stream", "--logprobs", stdin=stdin).stdout
    assert "token 'Z', bytes 5a, at character 0, byte 0, logprob -0.5\n" in shown
    assert "token 'ë', bytes ab, at character 2, byte 2\n" in shown


def test_stream_with_logprobs_can_be_streamed_again() -> None:
    """An entry may come later than its id; so the lines do not read as logprobs of their ids."""
    once = run("stream", "--ids", ids_text(TEXT), "--logprobs", "--json").stdout
    assert run("stream", "--logprobs", "--json", stdin=once).stdout.splitlines()[:-2] == once.splitlines()[:-1]


def test_stream_with_wrong_logprobs_names_their_place() -> None:
    """What came before is out."""
    result = run("stream", "--logprobs", stdin='39\n{"token_ids": [39], "logprobs": []}')
    assert result.exit_code == 2
    assert "'H'" in result.stdout
    assert result.stderr == "detok: standard input, line 2, column 33: logprobs cannot be []: there are 0 for 1 token ids\n"


def test_stream_with_segments_shows_special_tokens() -> None:
    """Between the text, though the text does not have them."""
    ids = " ".join(map(str, EMBEDDED.encode("<|im_start|>Hi", add_special_tokens=False)))
    start = EMBEDDED.encode("<|im_start|>", add_special_tokens=False)[0]
    segments = [segment for line in json_lines("--segments", "--ids", ids) for segment in line["segments"]]
    assert segments == [{"special": "<|im_start|>", "id": start, "text": ""}, {"text": "H"}, {"text": "i"}]
    shown = run("stream", "--segments", "--ids", ids).stdout
    assert f"special '<|im_start|>', id {start}\n" in shown
    assert "text 'H'\n" in shown


def test_stream_with_channels_shows_text_by_channel() -> None:
    """Delimiters are in none of them; segments are shown only if they were asked for, too."""
    ids = " ".join(map(str, EMBEDDED.encode("<think>Hm</think>Hi", add_special_tokens=False)))
    found = json_lines("--channels", "think", "--ids", ids)
    parts: dict[str, str] = {}
    for delta in (delta for line in found for delta in line["channels"]):
        parts[delta["channel"]] = parts.get(delta["channel"], "") + delta["text"]
    assert parts == {"reasoning": "Hm", "content": "Hi"}
    assert not any("segments" in line for line in found)
    shown = run("stream", "--channels", "think", "--ids", ids, "--step", "9").stdout
    assert "reasoning 'Hm'\n" in shown
    assert "content 'Hi'\n" in shown


def test_stream_by_a_strategy_stops_too() -> None:
    """A stop is searched in the text, wherever that comes from."""
    for strategy in ("exact", "window", "window+printable", "decodestream"):
        assert run("stream", "--ids", ids_text(SENTENCE), "--strategy", strategy, "--stop", "OP").stdout == "Hi ST"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--stop", ""], "an empty stop"),
        (["--stop-regex", "("], "it is no pattern"),
        (["--stop-token-ids", "x"], "--stop-token-ids, line 1, column 1: 'x' is no token id"),
        (["--max-tokens", "0"], "max_tokens=0 is invalid"),
        (["--min-tokens", "2", "--max-tokens", "1"], "min_tokens=2 is invalid"),
        (["--channels", "tv"], "channels='tv' is invalid; it is one of 'think'"),
    ],
)
def test_stream_with_a_request_that_cannot_be_says_so(arguments: list[str], problem: str) -> None:
    """Before anything comes out."""
    result = run("stream", "--ids", "39", *arguments)
    assert (result.stdout, result.exit_code) == ("", 2)
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1
