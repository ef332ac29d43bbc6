"""Which stages a decoder's rules become, and what is said of those that have to hold text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from detok.core.decoding import rewriter, rules
from detok.core.decoding.byte_runs import ByteRuns
from detok.core.decoding.compiler import Stages, compile_rules
from detok.core.decoding.joiners import LastPiece, OneAfterAnother
from detok.core.decoding.rewriter import Rewriter
from detok.core.decoding.rules import Rule
from detok.core.decoding.stages import EachToken, FirstToken, HeldRuns, LastToken, LeadingSpace, Repeats
from detok.core.decoding.text_rules import WhiteEnds, WholeText
from detok.core.options import ByteFallbackMode, DecodeOptions

UNDERSCORE = rules.Replace("▁", " ")
METASPACE = rules.Metaspace("▁", keep_first=False)


def compiled(*given: Rule, cleans_up: bool = False, byte_fallback: ByteFallbackMode = "exact") -> Stages:
    """The stages of rules."""
    return compile_rules(given, DecodeOptions(clean_up_tokenization_spaces=cleans_up, byte_fallback=byte_fallback))


def kinds(stages: Stages) -> tuple[list[type], type, list[type]]:
    """The classes of the front, the joiner and the tail."""
    joiner: Any = stages.joiner
    tail = joiner._tail._stages
    return [*map(type, stages.front)], type(stages.joiner), [*map(type, tail)]


LLAMA = (UNDERSCORE, rules.ByteFallback(), rules.Fuse(), rules.Strip(" ", 1, 0))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((), ([], OneAfterAnother, [])),
        (LLAMA, ([EachToken], ByteRuns, [Rewriter])),
        ((rules.ByteLevel(),), ([], OneAfterAnother, [])),
        ((rules.RawBytes(),), ([], OneAfterAnother, [])),
        ((rules.RawBytes(drops_first_space=True),), ([FirstToken], OneAfterAnother, [])),
        ((rules.RawBytes(specials_split=True),), ([], OneAfterAnother, [])),
        ((rules.SentencePiece(add_dummy_prefix=True, remove_extra_whitespaces=False),), ([LeadingSpace], OneAfterAnother, [])),
        ((rules.BPEDecoder("</w>"),), ([], LastPiece, [])),
        ((rules.BPEDecoder("</w>"), METASPACE), ([LastToken, FirstToken], OneAfterAnother, [])),
        ((rules.ByteFallback(), METASPACE), ([HeldRuns, FirstToken], OneAfterAnother, [])),
        ((rules.CTC("<pad>", "|", cleanup=True),), ([Repeats], OneAfterAnother, [])),
        # Neighbours that give one token for one are one stage.
        ((UNDERSCORE, UNDERSCORE, METASPACE, UNDERSCORE), ([FirstToken], OneAfterAnother, [])),
        # Rules that do nothing to a joined text are none; neighbours are one table.
        ((rules.Fuse(), rules.Replace("a", "a"), rules.Strip(" ", 0, 0)), ([], OneAfterAnother, [])),
        ((rules.Fuse(), UNDERSCORE, rules.Strip(" ", 1, 0)), ([], OneAfterAnother, [Rewriter])),
        ((rules.Fuse(), UNDERSCORE, rules.StripEnds(), UNDERSCORE), ([], OneAfterAnother, [Rewriter, WhiteEnds, Rewriter])),
        ((rules.Fuse(), METASPACE), ([], OneAfterAnother, [WholeText])),
    ],
)
def test_rules_become_stages(given: Sequence[Rule], wanted: tuple[list[type], type, list[type]]) -> None:
    """Front, joiner and tail."""
    assert kinds(compiled(*given)) == wanted


def test_eager_byte_fallback_joins_bytes_at_once() -> None:
    """The option chooses another joiner, or another behaviour of the stage before other rules."""
    assert kinds(compiled(*LLAMA, byte_fallback="eager")) == ([EachToken], OneAfterAnother, [Rewriter])
    held = compiled(rules.ByteFallback(), METASPACE, byte_fallback="eager")
    assert held.byte_tokens
    assert kinds(held)[0] == [HeldRuns, FirstToken]


def test_clean_up_is_the_last_rule() -> None:
    """It goes into the table of the rules before it."""
    assert kinds(compiled(rules.Fuse(), UNDERSCORE, cleans_up=True)) == ([], OneAfterAnother, [Rewriter])
    assert kinds(compiled(METASPACE, cleans_up=True)) == ([FirstToken], OneAfterAnother, [Rewriter])


@pytest.mark.parametrize(
    ("given", "note"),
    [
        ((rules.BPEDecoder("</w>"), METASPACE), "one token is held"),
        ((rules.ByteFallback(), METASPACE), "byte runs are held whole"),
        ((rules.Fuse(), METASPACE), "all text is held to the end: Metaspace may look at the whole of it"),
        ((rules.Fuse(), rules.StripEnds()), "white space is held until something follows it"),
    ],
)
def test_what_holds_text_is_noted(given: Sequence[Rule], note: str) -> None:
    """In words for people; ordinary decoders have none."""
    (found,) = compiled(*given).notes
    assert found.startswith(note)
    assert compiled(*LLAMA).notes == []


def test_too_large_a_table_is_noted_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limit there is a table; one character more, and the text is held to the end, with the same result."""
    monkeypatch.setattr(rewriter, "MAX_MOVES", 30)
    small, large = (compiled(rules.Fuse(), rules.Replace(pattern, "x"), rules.Strip(" ", 0, 1)) for pattern in ("ab", "abcdef"))
    assert (kinds(small)[2], small.notes) == ([Rewriter], [])
    assert kinds(large)[2] == [WholeText]
    assert large.notes == ["all text is held to the end: its rules together would need too large a table"]
    out, state = large.joiner.feed(large.joiner.start, "abcdefabcdef ")
    assert (out, large.joiner.finish(state)) == ("", "xx")


@pytest.mark.parametrize("rule", [rules.RawBytes(), rules.SentencePiece(add_dummy_prefix=True, remove_extra_whitespaces=True)])
def test_pieces_are_never_a_rule_over_joined_text(rule: Rule) -> None:
    """A format of its own stands alone in a decoder."""
    with pytest.raises(AssertionError, match="joined text has no pieces"):
        compiled(rules.Fuse(), rule)
