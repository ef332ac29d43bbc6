"""Faults that were found once by attacking the laws, each as the kind that it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import detok
from detok.core.decoding import automaton, rewriter
from detok.core.decoding.automaton import Node
from detok.core.decoding.text_rules import _WHITE_SPACE
from detok.core.options import DecodeOptions
from tests.support.handmade import (
    BPE,
    BYTE_LEVEL,
    CTC,
    FALLBACK,
    FUSE,
    METASPACE,
    WORDPIECE,
    byte_level_tokens,
    byte_tokens,
    make,
    replace,
    sequence,
    strip,
)


def reachable(start: Node) -> int:
    """How many nodes hang on one."""
    seen, queue = {id(start)}, [start]
    for node in queue:
        for _, after in node.moves.values():
            if id(after) not in seen:
                seen.add(id(after))
                queue.append(after)
    return len(queue)


def test_forgotten_nodes_do_not_hang_on_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start is no settled state where a Strip follows; its moves kept every generation of nodes alive."""
    monkeypatch.setattr(automaton, "MAX_NODES", 50)
    tokenizer = detok.load(make(sequence(FALLBACK, FUSE, strip(1, 0)), byte_tokens(bytes(range(128)))))
    for number in range(600):
        tokenizer.decode([(number * 7 + place * 13) % 128 for place in range(8)])
    assert reachable(tokenizer.automaton(DecodeOptions()).start) <= 51


def test_breaking_a_long_run_before_other_rules_is_linear() -> None:
    """40,000 tokens that come out at once are collected in a list, not in tuples that are copied each time."""
    tokenizer = detok.load(make(sequence(FALLBACK, METASPACE), ["u", "<0x41>", "<0xFF>"]))
    assert tokenizer.decode([1] * 40_000 + [2]) == "\ufffd" * 40_001


@pytest.mark.parametrize(
    ("decoder", "tokens", "ids", "text"),
    [
        (sequence(FALLBACK, METASPACE), ["u", *byte_tokens("あ".encode())], [1, 2, 3, 99], "あ\ufffd"),
        (sequence(BPE, METASPACE), ["u", "a</w>", "b"], [1, 99, 2], "a \ufffdb"),
        (CTC, ["u", "a"], [1, 99, 1], "a\ufffda"),
        (WORDPIECE, ["u", "a"], [1, 99, 1], "a \ufffd a"),
    ],
)
def test_replaced_unknown_id_is_a_token_like_any_other(decoder: Any, tokens: list[str], ids: list[int], text: str) -> None:
    """It goes through the rules over tokens in its place, and does not overtake what they hold."""
    assert detok.load(make(decoder, tokens)).decode(ids, unknown_ids="replace") == text


@pytest.mark.parametrize(
    ("decoder", "tokens", "added", "ids"),
    [
        (sequence(BPE, METASPACE), ["u", "<x>", "<y>", "b"], ["<x>", "<y>"], [3, 1, 2, 3]),
        (sequence(FALLBACK, METASPACE), ["<x>", "<0x41>", "<0x42>"], ["<x>", "<0x41>", "<0x42>"], [0, 1, 2, 0]),
        (sequence(replace("_", " "), FUSE), ["_a", "_b"], ["_a", "_b"], [0, 1]),
    ],
)
def test_added_token_beside_another_loses_only_the_space_in_front(
    decoder: Any, tokens: list[str], added: list[str], ids: list[int]
) -> None:
    """Where no rule puts a space, the option changes nothing at all."""
    tokenizer = detok.load(make(decoder, tokens, added=added))
    expected = tokenizer.library.decode(ids, skip_special_tokens=False)
    assert tokenizer.decode(ids, False, spaces_between_special_tokens=False) == expected


@pytest.mark.parametrize("pattern", ["[+-] ", "[z-]a", r"[.-]\s", "a-+"])
def test_regular_expression_with_a_hyphen_streams(pattern: str) -> None:
    """These raised when a stream was opened."""
    library = make(sequence(FUSE, replace(pattern, "X", regex=True)), ["u", "+", " ", "z", "a", "-", "."])
    ids = [1, 2, 3, 4, 5, 4, 6, 2, 5, 5, 2, 4, 5, 1]
    assert detok.load(library).decode(ids) == library.decode(ids)


@pytest.mark.parametrize("content", ["\U0010ffff", "\U0010ffff\U0010fffe", "\U0010fffea"])
def test_table_tells_its_stand_in_from_what_rules_write(content: str) -> None:
    """A rule may write any character, the last ones of Unicode too."""
    for pattern in ("", "a", "ba"):
        library = make(sequence(FUSE, replace(pattern, content)), ["u", "a", "b"])
        for ids in ([1], [2, 1], [1, 2, 1, 1], [2]):
            assert detok.load(library).decode(ids) == library.decode(ids)


def test_delimiter_of_nothing_is_a_space_in_an_empty_text() -> None:
    """CTC after Fuse, with an empty delimiter, as the library has it."""
    library = make(sequence(FUSE, {**CTC, "word_delimiter_token": ""}), ["u", "a"])
    for ids in ([], [1], [1, 1]):
        assert detok.load(library).decode(ids) == library.decode(ids)


DEEP_PROMPTS = {
    "two rules over tokens": (sequence(replace("▁", " "), replace("x", "y"), FUSE), ["u", "a", "b"], [1, 2]),
    "a rule before WordPiece": (sequence(replace("▁", " "), WORDPIECE), ["u", "a", "##b"], [1, 2]),
    "Replace and Strip over joined text": (sequence(FUSE, replace("  ", " "), strip(0, 1)), ["u", "a", " b"], [1, 2]),
    "continuation bytes": (BYTE_LEVEL, byte_level_tokens(b"u", b"\x80", b"\x81"), [1, 2]),
}


@pytest.mark.parametrize("kind", DEEP_PROMPTS)
def test_priming_reads_a_few_ids_of_any_ordinary_decoder(kind: str) -> None:
    """Several rules in a row settle like one, and four continuation bytes settle whatever comes before."""
    decoder, tokens, ids = DEEP_PROMPTS[kind]
    tokenizer = detok.load(make(decoder, tokens))
    before = tokenizer.automaton(DecodeOptions()).questions
    tokenizer.stream(prompt_ids=ids * 5_000)
    assert tokenizer.automaton(DecodeOptions()).questions - before <= 8


def test_eager_byte_prompt_settles_after_four_bytes() -> None:
    """In the eager mode no byte further back than four matters."""
    tokenizer = detok.load(make(sequence(FALLBACK, FUSE), byte_tokens("あ".encode())))
    stream = tokenizer.stream(prompt_ids=[0, 1, 2] * 5_000 + [0, 1], byte_fallback="eager")
    assert tokenizer.automaton(DecodeOptions(byte_fallback="eager")).questions <= 12
    assert stream.step(2) == "あ"


@pytest.mark.parametrize(
    "decoder",
    [
        sequence(FUSE, replace("a" * 800, "x")),
        sequence(FUSE, replace("".join(map(chr, range(0x100, 0x300))), "x")),
        sequence(FUSE, strip(0, 20_000)),
        sequence(FUSE, CTC, WORDPIECE),
    ],
    ids=["repeats", "distinct", "strip", "three clean-ups"],
)
def test_large_tables_are_bounded_in_work(decoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many states rules would have together, building stops; the text is right, if need be held to the end."""
    rounds: list[int] = []
    feed = rewriter._feed

    def counted(rules: Any, states: Any, text: str) -> Any:
        rounds.append(1)
        return feed(rules, states, text)

    monkeypatch.setattr(rewriter, "_feed", counted)
    library = make(decoder, ["u", "a", " ", "."])
    tokenizer = detok.load(library)
    ids = [1, 2, 3, 1, 1] * 200 + [1]
    assert tokenizer.decode(ids) == library.decode(ids)
    assert len(rounds) <= 25 * rewriter.MAX_MOVES


def test_white_space_of_several_bytes_is_all_there_is() -> None:
    """The list is Python's own."""
    assert set(_WHITE_SPACE) == {chr(code) for code in range(0x80, 0x110000) if chr(code).isspace()}


def test_odd_containers_are_refused_with_their_own_error() -> None:
    """An array without dimensions, a snapshot with odd keys, an id of which nobody knows whether it is one."""

    class Tensor:
        def __ge__(self, other: object) -> bool:
            raise RuntimeError("the truth value is ambiguous")

        def __index__(self) -> int:
            raise RuntimeError("only one element can be an index")

    tokenizer = detok.load(make(None, ["a"]))
    with pytest.raises(detok.TokenTypeError):
        tokenizer.stream(np.array(1))
    with pytest.raises(detok.TokenTypeError):
        tokenizer.stream().extend(np.array(1))
    with pytest.raises(detok.TokenTypeError):
        tokenizer.stream().step(Tensor())
    with pytest.raises(detok.SnapshotError):
        tokenizer.restore({"detok": 1, "tokenizer": tokenizer.fingerprint, 5: 1})
