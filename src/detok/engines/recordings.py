"""Recorded answers of engines: vLLM's ``/inference/v1/generate`` byte for byte, streamed or not, and plain lists of ids."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..core.request.logprobs import Logprob
from ..errors import SourceError
from ..ids import as_ids
from .events import EventStream
from .scripted import Script, ScriptStep, one_by_one

__all__ = ["read_recording", "read_recordings"]

ACCEPTED = "a recording is a stream of `data:` lines, one JSON answer, or a JSON list of token ids a line"


def read_recordings(path: str | Path) -> list[Script]:
    """
    Return the scripts of a file, or of all files of a directory in the order of their names.

    Raises:
        SourceError: A file is no recording, or there is none.
    """
    path = Path(path)
    if not path.is_dir():
        return read_recording(path)
    files = [file for file in sorted(path.iterdir()) if file.suffix in (".sse", ".json", ".jsonl", ".txt")]
    scripts = [script for file in files for script in read_recording(file)]
    if not scripts:
        raise SourceError(path, found="the directory has no recordings (.sse, .json, .jsonl, .txt)", accepted=ACCEPTED)
    return scripts


def read_recording(path: str | Path) -> list[Script]:
    """
    Return the scripts of one file: one for each choice of an answer, or for each list of ids.

    Raises:
        SourceError: It cannot be read, or is no recording.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        scripts = _scripts(text)
    except OSError as error:
        raise SourceError(path, found=f"cannot be read ({error.strerror})", accepted=ACCEPTED) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(path, found=f"is no recording ({type(error).__name__}: {error})", accepted=ACCEPTED) from error
    if not scripts:
        raise SourceError(path, found="has no token ids", accepted=ACCEPTED)
    return scripts


def _scripts(text: str) -> list[Script]:
    choices: dict[object, list[ScriptStep]] = {}
    for number, value in enumerate(_values(text)):
        if isinstance(value, list):
            choices[f"line {number}"] = one_by_one(as_ids(value, where=f"line {number + 1}"))
        elif "error" in value:
            code = value["error"].get("code")
            status = code if isinstance(code, int) and 400 <= code <= 599 else None
            failed = ScriptStep(finish_reason="error", error=str(value["error"]["message"]), error_status=status)
            for steps in [steps for steps in choices.values() if steps[-1].finish_reason is None] or [choices.setdefault(0, [])]:
                steps.append(failed)
        else:
            for choice in value["choices"]:
                choices.setdefault(choice["index"], []).append(_step(choice))
    # One that was cut off while it was recorded ends as what it is.
    cut_off = ScriptStep(finish_reason="error", error="the recording ends here")
    return [steps if steps[-1].finish_reason is not None else [*steps, cut_off] for steps in choices.values()]


def _values(text: str) -> Iterator[Any]:
    """The JSON values of a file; a status behind an error's body is left out."""
    if text.lstrip().startswith("data:"):
        for data in EventStream().feed(text.encode()):
            if data != b"[DONE]":
                yield json.loads(data)
        return
    decoder, place = json.JSONDecoder(), 0
    while text := text[place:].lstrip():
        value, place = decoder.raw_decode(text)
        if not isinstance(value, int):
            yield value


def _step(choice: Mapping[str, Any]) -> ScriptStep:
    ids = tuple(as_ids(choice["token_ids"] or ()))
    content = (choice.get("logprobs") or {}).get("content")
    logprobs = None if not content else tuple(_logprob(entry) for entry in content)
    if logprobs is not None and len(logprobs) != len(ids):
        raise ValueError(f"{len(logprobs)} logprobs for {len(ids)} token ids")
    return ScriptStep(ids, logprobs, choice["finish_reason"], choice["stop_reason"])


def _logprob(entry: Mapping[str, Any]) -> Logprob:
    top = tuple((other["token_id"], other["logprob"]) for other in entry.get("top_logprobs") or ())
    return Logprob(entry["logprob"], entry.get("rank"), top)
