"""Recorded answers, in the shapes that vLLM gives them; the recordings beside this file were written for the test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import detok
from detok.core.request.logprobs import Logprob
from detok.engines.recordings import read_recording, read_recordings
from detok.engines.scripted import ScriptStep

HERE = Path(__file__).parent / "replayed"


def test_choices_of_a_stream_are_taken_apart() -> None:
    """By their index, in their steps; the event with the usage alone is none."""
    assert read_recording(HERE / "two-choices.sse") == [
        [ScriptStep((72,)), ScriptStep((105,), None, "stop")],
        [ScriptStep((66, 121)), ScriptStep((101,), None, "stop", 101)],
    ]


def test_logprobs_come_along() -> None:
    """With rank and alternatives."""
    (script,) = read_recording(HERE / "logprobs.sse")
    assert [step.logprobs for step in script] == [
        (Logprob(-1.5, 2, ((72, -1.5), (9, -0.5))),),
        (Logprob(-2.5, 2, ((105, -2.5), (9, -0.5))),),
    ]


def test_unstreamed_answer_is_one_step() -> None:
    """All ids at once."""
    assert read_recording(HERE / "unstreamed.json") == [[ScriptStep((72, 105), None, "length")]]


def test_error_is_a_script_too() -> None:
    """The body with the status behind it, and an error in the middle of a stream."""
    (script,) = read_recording(HERE / "refused.txt")
    assert script == [ScriptStep(finish_reason="error", error="Token id 999 is out of vocabulary", error_status=400)]


def test_stream_that_breaks_off_ends_with_an_error(tmp_path: Path) -> None:
    """By the engine's words, or ours where it has none; a choice that had ended stays as it is."""
    lines = (HERE / "two-choices.sse").read_text(encoding="utf-8").splitlines(keepends=True)
    file = tmp_path / "broken.sse"
    file.write_text("".join(lines[:6]) + f"data: {json.dumps({'error': {'message': 'out of memory'}})}\n\n", encoding="utf-8")
    first, second = read_recording(file)
    assert (first[-1].finish_reason, second[-1].error) == ("stop", "out of memory")
    file.write_text("".join(lines[:6]), encoding="utf-8")
    assert [script[-1].error for script in read_recording(file)] == [None, "the recording ends here"]


def test_directory_gives_all_its_files() -> None:
    """In the order of their names."""
    scripts = read_recordings(HERE)
    assert [[token_id for step in script for token_id in step.token_ids] for script in scripts] == [
        [72, 105],
        [66, 121, 101],
        [72, 105],
        [],
        [72, 105],
        [66, 121, 101],
        [72, 105],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "data: {",
        "3",
        '{"choices": 1}',
        '{"choices": [{"index": 0, "token_ids": ["a"], "finish_reason": null, "stop_reason": null}]}',
        '{"choices": [{"index": 0, "token_ids": [1], "finish_reason": null, "stop_reason": null, "logprobs": {"content": '
        '[{"logprob": -1}, {"logprob": -1}]}}]}',
        "[1, true]",
    ],
)
def test_what_is_no_recording_is_named(text: str, tmp_path: Path) -> None:
    """The file, what was found, and what would do."""
    file = tmp_path / "file.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(detok.SourceError, match=r"file\.json: .*; a recording is"):
        read_recording(file)


def test_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """And a directory without recordings."""
    with pytest.raises(detok.SourceError, match="cannot be read"):
        read_recordings(tmp_path / "nothing.sse")
    with pytest.raises(detok.SourceError, match="has no recordings"):
        read_recordings(tmp_path)
