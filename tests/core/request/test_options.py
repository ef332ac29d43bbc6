"""Options of a request: every field at its limits, and what the error says."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import detok
from detok.core.options import DecodeOptions
from detok.core.request.options import MAX_STOP_LENGTH, RequestOptions
from detok.turns.formats import TURN_FORMATS

Title = type("Title", (str,), {})


@pytest.mark.parametrize("option", ["stop", "stop_regex"])
@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("ab", ("ab",)),
        (["a", "b"], ("a", "b")),
        (lambda: iter(["a"]), ("a",)),
        ((), ()),
        (Title("ab"), ("ab",)),
        ([Title("a")], ("a",)),
    ],
    ids=["text", "list", "iterator", "nothing", "subclass", "list of a subclass"],
)
def test_texts_become_a_tuple_of_plain_texts(option: str, value: Any, texts: tuple[str, ...]) -> None:
    """From one text or any iterable."""
    found = getattr(RequestOptions.of({option: value() if callable(value) else value}), option)
    assert found == texts
    assert {type(one) for one in found} <= {str}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop": b"a"}, "stop=b'a' is invalid; it is a string or a list of strings"),
        ({"stop": {"a": 1}}, "it is a string or a list of strings"),
        ({"stop": 5}, "it is a string or a list of strings"),
        ({"stop": ["a", 5]}, r"stop\[1\]=5 is invalid; it is a string"),
        ({"stop": ["a", ""]}, r"stop\[1\]='' is invalid; an empty stop"),
        ({"stop_regex": ""}, r"stop_regex\[0\]=''"),
        ({"stop": "x" * (MAX_STOP_LENGTH + 1)}, "longer than 4,096 characters"),
        ({"stop": "a\udfff"}, "lone surrogate"),
        ({"stop_regex_timeout": 0}, "stop_regex_timeout=0 is invalid"),
        ({"stop_regex_timeout": float("inf")}, "stop_regex_timeout=inf"),
        ({"stop_regex_timeout": float("nan")}, "stop_regex_timeout=nan"),
        ({"stop_regex_timeout": True}, "stop_regex_timeout=True"),
        ({"stop_regex_timeout": "1"}, "stop_regex_timeout='1'"),
        ({"min_tokens": -1}, "min_tokens=-1 is invalid; it is an integer of at least 0"),
        ({"max_tokens": 0}, "max_tokens=0 is invalid; it is an integer of at least 1"),
        ({"stream_interval": 0}, "stream_interval=0 is invalid; it is an integer of at least 1"),
        ({"min_tokens": 3, "max_tokens": 2}, "min_tokens=3 is invalid; max_tokens is 2"),
        ({"output": "all"}, "output='all'"),
        ({"after_stop": "drop"}, "after_stop='drop'"),
        ({"after_finish": "raise"}, "after_finish='raise'"),
        ({"segments": 1}, "segments=1 is invalid; it is one of True, False"),
        ({"detokenize": False, "stop": "a"}, r"stop=\('a',\) is invalid; with detokenize=False"),
        ({"detokenize": False, "stop_regex": "a"}, "with detokenize=False"),
        ({"detokenize": False, "segments": True}, "segments=True is invalid; with detokenize=False"),
        ({"detokenize": False, "channels": "qwen"}, "with detokenize=False"),
        ({"skip_special_tokens": 1}, "skip_special_tokens=1"),
        ({"stops": "a"}, "a request has no such option; did you mean 'stop'"),
    ],
)
def test_impossible_value_is_named(options: dict[str, Any], message: str) -> None:
    """The option, the value, and what is accepted."""
    with pytest.raises(detok.OptionError, match=message):
        RequestOptions.of(options)
    with pytest.raises(detok.OptionError, match=message):
        RequestOptions(**options)


def test_values_at_their_limits_are_accepted() -> None:
    """One more would not be."""
    options = RequestOptions(stop="x" * MAX_STOP_LENGTH, stop_regex_timeout=1e-9, min_tokens=2, max_tokens=2, stream_interval=1)
    assert options.stop_regex_timeout == 1e-9
    assert RequestOptions(stop_regex_timeout=1).stop_regex_timeout == 1.0
    assert RequestOptions(min_tokens=1 << 70).min_tokens == 1 << 70


def test_ids_are_integers_of_any_kind() -> None:
    """numpy's become Python's; what is none names its place."""
    options = RequestOptions(stop_token_ids=np.array([1, 2]), eos_token_ids=iter([3]))
    assert (options.stop_token_ids, options.eos_token_ids) == ((1, 2), (3,))
    assert RequestOptions(eos_token_ids=()).eos_token_ids == ()
    for name in ("stop_token_ids", "eos_token_ids"):
        with pytest.raises(detok.TokenTypeError, match=rf"{name}\[1\] is the float"):
            RequestOptions.of({name: [1, 2.0]})
        with pytest.raises(detok.TokenTypeError, match=rf"{name} is the int 5; a list .* is expected; give a list: \[5\]$"):
            RequestOptions.of({name: 5})


def test_options_survive_as_plain_data_and_are_keys() -> None:
    """Equal ones have one hash, a turn format included."""
    table = TURN_FORMATS[next(iter(TURN_FORMATS))]
    for options in (RequestOptions(), RequestOptions(stop=["a"], stop_token_ids=[1], channels=table, output="final")):
        twin = RequestOptions(**options.as_dict())
        assert (twin, hash(twin)) == (options, hash(options))
    assert RequestOptions(stop="a") != RequestOptions(stop="b")


def test_decoding_options_are_a_part() -> None:
    """Those that concern the text alone, with their values."""
    options = RequestOptions(skip_special_tokens=False, byte_fallback="eager", stop="a")
    assert options.decoding == DecodeOptions(skip_special_tokens=False, byte_fallback="eager")
    assert {field.name for field in fields(DecodeOptions)} < {field.name for field in fields(RequestOptions)}
