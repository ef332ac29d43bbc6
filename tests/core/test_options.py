"""Options of decoding: what is accepted, by the very value, and what the error says."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import detok
from detok.core.options import DecodeOptions, check_at_least, check_choice


def test_every_combination_is_accepted_and_survives_as_plain_data() -> None:
    """All 108 of them."""
    yes_no, maybe = (True, False), (None, True, False)
    every = [*product(yes_no, maybe, maybe, ("skip", "error", "replace"), ("exact", "eager"))]
    names = [*DecodeOptions().as_dict()]
    made = {DecodeOptions.of(dict(zip(names, choice, strict=True))) for choice in every}
    assert len(made) == len(every) == 108
    assert all(DecodeOptions(**options.as_dict()) == options for options in made)


@pytest.mark.parametrize("value", [1, 0, None, "True", 1.0, [], {}])
def test_value_that_is_equal_to_another_is_not_it(value: Any) -> None:
    """1 is no True here, so that options that are equal are written alike."""
    with pytest.raises(detok.OptionError, match=r"skip_special_tokens=.* is invalid; it is one of True, False"):
        DecodeOptions(skip_special_tokens=value)


def test_choice_of_texts_is_by_value() -> None:
    """A text that was made elsewhere is the same choice; one that is no text is none."""
    check_choice("output", "".join(["del", "ta"]), ("delta", "final"))
    for value in (b"delta", "Delta", "", None):
        with pytest.raises(detok.OptionError, match=r"output=.* it is one of 'delta', 'final'"):
            check_choice("output", value, ("delta", "final"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"skip_special_token": True}, "a stream has no such option; did you mean 'skip_special_tokens'"),
        ({"zzz": 1}, "there are skip_special_tokens, spaces_between_special_tokens"),
        ({"strategy": "window"}, r"open_stream\(tokenizer, strategy\)"),
    ],
)
def test_unknown_option_says_what_to_do(options: dict[str, Any], message: str) -> None:
    """A close name, all names, or where it went; whatever stands beside it."""
    for given in (options, {"skip_special_tokens": True, **options}):
        with pytest.raises(detok.OptionError, match=message):
            DecodeOptions.of(given)


def test_number_at_its_least_is_accepted() -> None:
    """One less is not, and no bool or float is a number here."""
    check_at_least("max_tokens", 1, 1)
    check_at_least("max_tokens", 1 << 70, 1)
    for value in (0, -1, True, 1.0, "1", None):
        with pytest.raises(detok.OptionError, match=r"max_tokens=.* it is an integer of at least 1"):
            check_at_least("max_tokens", value, 1)
