"""`detok stream` gives text out as it becomes certain, whatever the ids come from and however it ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from detok.data import sample
from tests.cli.support import EMBEDDED, detok_process, ids_text, run

TEXT = "Zoë 🫶 한국\n"
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
    """Each line has ids, text and what is held; the last one has the rest."""
    lines = [json.loads(line) for line in run("stream", "--ids", ids_text("ë"), "--json").stdout.splitlines()]
    first, second = EMBEDDED.encode("ë")
    assert lines == [
        {"ids": [first], "text": "", "held": {"bytes": "c3"}, "held_because": "incomplete character"},
        {"ids": [second], "text": "ë", "held": "", "held_because": ""},
        {"finish": True, "ids": [], "text": "", "held": "", "held_because": ""},
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
