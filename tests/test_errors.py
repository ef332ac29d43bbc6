"""Errors say what to do, and cross to another process as they are."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import detok
from detok import errors

EXAMPLES = [
    detok.OptionError(option="stop", value=1, accepted="it is one of 2, 3"),
    detok.TokenTypeError(1.0, where="token_ids", position=3),
    detok.TokenTypeError(5, where="token_ids", wants_list=True),
    detok.UnknownTokenId(3),
    detok.UnknownTokenId(3, position=1),
    detok.SourceError("a.json", found="is empty", accepted="a file with content was expected"),
    detok.UnknownDecoder("a.json", decoder="Quantum", known=["Fuse", "Strip"]),
    detok.MissingExtra("tokenizers", extra="hf", purpose="a tokenizer.json"),
    detok.EncodeUnsupported("this", instead="use that"),
    detok.EncoderBusy(waiting=7, limit=7),
    detok.EncoderClosed(),
    detok.PromptTooLong(length=9, limit=8, unit="tokens"),
    detok.SnapshotError("damaged"),
    detok.EngineError("its outputs ended"),
    detok.EngineError("no such model", engine="vllm at http://127.0.0.1:8000"),
    detok.EngineError("empty", engine="vllm", status=400, type="BadRequestError", code=400, param="token_ids"),
    detok.StreamFinished(),
    detok.RequestFinished("stop"),
    detok.StopRegexTimeout("a+", timeout=0.1),
    detok.MessageError("messages[0].role", found="is unknown", accepted="roles are user, system"),
    detok.DoubleBos(1, text="<s>"),
    detok.ChatTemplateError("default", line=3, problem="roles must alternate"),
    detok.ChatTemplateError("default", line=None, problem="it is too long"),
    detok.DuplicateRequest("a"),
    detok.UnknownRequest("a"),
    detok.RequestFailed("ValueError", problem="damaged"),
    detok.RequestExpired(idle=60.0),
    detok.WireError("malformed", field="$[2]", problem="it is no integer"),
    detok.WorkerError("ipc:///run/detok", problem="it has another tokenizer"),
    detok.WorkerUnavailable("ipc:///run/detok", seconds=30.0),
]


def test_one_id_where_a_list_is_wanted_is_told_as_a_list() -> None:
    """And a list where one id is wanted; what is no id gets no such hint."""
    expected = "a list of token ids is expected"
    for value, shown in ((5, "int 5"), (np.int64(5), "int64 np.int64(5)"), (np.array(5), "ndarray array(5)")):
        said = str(detok.TokenTypeError(value, where="token_ids", wants_list=True))
        assert said == f"token_ids is the {shown}; {expected}; give a list: [5]"
    for other in (True, "5", None, 5.0, np.array([1, 2])):
        assert str(detok.TokenTypeError(other, where="token_ids", wants_list=True)).endswith(f"; {expected}")
    assert str(detok.TokenTypeError([5], where="token_id")).endswith("(int or numpy integer); extend() takes a list of them")


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_error_is_the_same_in_another_process(error: detok.DetokError) -> None:
    """Pickled and back: type, fields and words."""
    twin = pickle.loads(pickle.dumps(error))
    assert type(twin) is type(error)
    assert (str(twin), vars(twin)) == (str(error), vars(error))


def test_every_error_has_an_example_and_is_public() -> None:
    """Nothing that is raised on purpose is hidden."""
    concrete = {name for name in errors.__all__ if name not in ("DetokError", "UsageError")}
    assert {type(error).__name__ for error in EXAMPLES} == concrete
    assert set(errors.__all__) <= set(detok.__all__)
