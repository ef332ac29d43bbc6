"""Clean-up is a list of replacements, each over the result of the one before."""

from __future__ import annotations

from itertools import product

import pytest
from tokenizers.decoders import WordPiece

from detok.core.decoding.cleanup import TRANSFORMERS_CLEANUP, WORDPIECE_CLEANUP, clean_up


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Hello , world !", "Hello, world!"),
        ("is n't it ?", "isn't it?"),
        ("I 'm , you 're", "I'm, you're"),
        ("a ' b", "a'b"),
        # The second replacement sees what the first one left.
        ("a  .", "a ."),
        ("", ""),
    ],
)
def test_replacements_are_made_in_order(text: str, cleaned: str) -> None:
    """As both libraries have them."""
    assert clean_up(text, TRANSFORMERS_CLEANUP) == clean_up(text, WORDPIECE_CLEANUP) == cleaned


def test_one_replacement_is_of_wordpiece_alone() -> None:
    """ " do not" is among the replacements of tokenizers, not of transformers."""
    assert clean_up("I do not", WORDPIECE_CLEANUP) == "I don't"
    assert clean_up("I do not", TRANSFORMERS_CLEANUP) == "I do not"


def test_it_is_what_the_library_does() -> None:
    """All texts of up to five of the characters that count, beside the WordPiece decoder of tokenizers."""
    judge = WordPiece(prefix="##", cleanup=True)
    for length in range(1, 6):
        for pieces in product((" ", ".", "'", "n't", "s", "do not"), repeat=length):
            text = "".join(pieces)
            # The decoder puts a space in front of all tokens but the first, and cleans each alone.
            assert clean_up(text, WORDPIECE_CLEANUP) == judge.decode([text])
