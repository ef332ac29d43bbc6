"""Rules over text as one table: the same text as the rules one after another, at every split, and as early as can be."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detok.core.decoding import rewriter
from detok.core.decoding.cleanup import TRANSFORMERS_CLEANUP, WORDPIECE_CLEANUP, clean_up
from detok.core.decoding.rewriter import Rewriter, TooManyStates
from detok.core.decoding.text_rules import CharRule, StripText, Substitute
from detok.core.decoding.texts import common_prefix


def run(rules: Sequence[CharRule], text: str) -> str:
    """One rule after another over the whole text, a character at a time: slow and obvious."""
    for rule in rules:
        state, out = rule.start, ""
        for character in text:
            part, state = rule.feed(state, character)
            out += part
        text = out + rule.finish(state)
    return text


def rewrite(table: Rewriter, pieces: Sequence[str]) -> str:
    """All pieces through a table."""
    row, out = table.start, ""
    for piece in pieces:
        part, row = table.feed(row, piece)
        out += part
    return out + table.finish(row)


patterns = st.text("ab", min_size=1, max_size=4)


@given(patterns, st.text("abX", max_size=3), st.text("abc", max_size=12))
def test_substitute_is_str_replace(pattern: str, content: str, text: str) -> None:
    """The automaton of Knuth, Morris and Pratt replaces what str.replace replaces."""
    assert run([Substitute(pattern, content)], text) == text.replace(pattern, content)


@given(st.integers(0, 3), st.integers(0, 3), st.text("ab", max_size=8))
def test_strip_removes_up_to_a_number_at_both_ends(left: int, right: int, text: str) -> None:
    """Leading ones first; what is then left may lose trailing ones."""
    rest = text[min(left, len(text) - len(text.lstrip("a"))) :]
    rest = rest[: len(rest) - min(right, len(rest) - len(rest.rstrip("a")))]
    assert run([StripText("a", left, right)], text) == rest


pairs = st.tuples(st.text("ab", min_size=1, max_size=3), st.text("abc", max_size=3))


@given(st.lists(pairs, min_size=1, max_size=3), st.text("abcd", max_size=10), st.lists(st.integers(0, 10), max_size=3))
def test_table_is_its_rules_at_every_split(rules: list[tuple[str, str]], text: str, cuts: list[int]) -> None:
    """Composing, hastening and merging change when text comes out, never what."""
    chain = [Substitute(*pair) for pair in rules]
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    pieces = [text[start:end] for start, end in pairwise(places)]
    table = Rewriter(chain)
    assert rewrite(table, pieces) == rewrite(table, list(text)) == rewrite(table, [text]) == run(chain, text)


@given(st.lists(pairs, min_size=1, max_size=2), st.text("abc", max_size=3))
def test_table_gives_everything_out_as_early_as_can_be(rules: list[tuple[str, str]], text: str) -> None:
    """After each text exactly the common beginning of all its continuations is out, tried for all of up to four characters."""
    table = Rewriter([Substitute(*pair) for pair in rules])
    out, _ = table.feed(table.start, text)
    futures = ("".join(more) for length in range(5) for more in product("abc", repeat=length))
    certain = common_prefix([rewrite(table, [text, more]) for more in futures])
    assert out == certain


@pytest.mark.parametrize("pairs", [TRANSFORMERS_CLEANUP, WORDPIECE_CLEANUP], ids=["transformers", "wordpiece"])
@given(st.text(" .,'ntdomsve x", max_size=16))
def test_clean_up_is_its_replacements(pairs: tuple[tuple[str, str], ...], text: str) -> None:
    """The clean-up of a whole text, streamed character by character."""
    assert rewrite(_table(pairs), list(text)) == clean_up(text, pairs)


def _table(pairs: tuple[tuple[str, str], ...]) -> Rewriter:
    if pairs not in _TABLES:
        _TABLES[pairs] = Rewriter([Substitute(*pair) for pair in pairs])
    return _TABLES[pairs]


_TABLES: dict[tuple[tuple[str, str], ...], Rewriter] = {}


def test_clean_up_table_is_small() -> None:
    """Ten replacements in a row, merged: a few rows, not the thousands that their states multiply to."""
    assert len(_table(TRANSFORMERS_CLEANUP).ends) < 20
    assert len(_table(WORDPIECE_CLEANUP).ends) < 30


def test_incomplete_character_tells_what_it_cannot_be() -> None:
    """After a space, the first byte of a kana makes the space certain; the first byte of a replaced character does not."""
    table = _table(TRANSFORMERS_CLEANUP)
    _, row = table.feed(table.start, "a ")
    assert table.expect(row, b"\xe3") == " "
    spaces = Rewriter([Substitute(" あ", "あ")])
    _, row = spaces.feed(spaces.start, "a ")
    assert (spaces.expect(row, b"\xe3"), spaces.expect(row, b"\xe4")) == ("", " ")


def test_too_large_a_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit the caller is told, and holds the text instead."""
    monkeypatch.setattr(rewriter, "MAX_MOVES", 30)
    Rewriter([Substitute("abcde", "")])
    with pytest.raises(TooManyStates):
        Rewriter([Substitute("abcdef", "")])


@pytest.mark.parametrize("limit", ["MAX_MOVES", "MAX_WORK", "MAX_TEXT"])
def test_table_is_refused_one_over_each_limit(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its moves, what making it early takes, and the text that its moves have: from some number on there is a table."""

    def builds(most: int) -> bool:
        monkeypatch.setattr(rewriter, limit, most)
        try:
            Rewriter([Substitute("abab", "ba")])
        except TooManyStates:
            return False
        return True

    least = next(most for most in range(200) if builds(most))
    assert least > 1
    assert [builds(most) for most in (0, least - 1, least, least + 1)] == [False, False, True, True]


def test_table_that_takes_too_long_to_merge_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is larger than it need be, and gives the same."""
    rule = Substitute("aab", "b")
    small, text = Rewriter([rule]), "aaabab aab"
    monkeypatch.setattr(rewriter, "_hasten", lambda rows, ends: (rows, list(ends)))
    monkeypatch.setattr(rewriter, "MAX_WORK", 0)
    large = Rewriter([rule])
    assert rewrite(large, list(text)) == rewrite(small, list(text)) == run([rule], text)


def test_table_without_an_alphabet_passes_everything() -> None:
    """Rules that look at no character leave each as it is."""

    class Nothing:
        alphabet = writes = frozenset[str]()
        start = 0

        def feed(self, state: object, character: str) -> tuple[str, int]:
            return character, 0

        def finish(self, state: object) -> str:
            return ""

    table = Rewriter([Nothing()])
    assert table.feed(table.start, "a\nb") == ("a\nb", table.idle)
    assert table.resets("a")
