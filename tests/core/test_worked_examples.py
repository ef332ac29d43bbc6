"""The tables of examples in the docstrings of core say what the code does. (Those that are doctests run as such.)"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

import detok
from detok.core.decoder import Decoder
from detok.core.decoding.automaton import Automaton
from detok.core.decoding.byte_runs import ByteRuns
from detok.core.decoding.rewriter import Rewriter
from detok.core.decoding.rules import ByteFallback, Fuse, RawBytes, Replace, Rule, Strip
from detok.core.decoding.text_rules import Substitute
from detok.core.options import DecodeOptions
from detok.core.request.places import TOKEN
from detok.core.request.stop_search import StopSearch
from detok.core.utf8 import decode_lossy
from detok.core.vocabulary import Piece
from tests.support.vocabularies import real_tokenizer

BAD = "\ufffd"


class Pieces:
    """A vocabulary whose ids count its pieces, from 2 on: ids 0 and 1 are a case of their own in `Automaton`."""

    def __init__(self, pieces: Iterable[str | bytes]) -> None:
        self._pieces = [Piece(piece) if isinstance(piece, str) else Piece("", data=piece) for piece in pieces]

    def piece(self, token_id: int) -> Piece | None:
        return self._pieces[token_id - 2] if 2 <= token_id < len(self._pieces) + 2 else None

    def ids(self) -> Iterable[int]:
        return range(2, len(self._pieces) + 2)

    def added_ids(self) -> Iterable[int]:
        return ()


def decoder(rules: Sequence[Rule], pieces: Iterable[str | bytes], *, cleans_up: bool = False) -> tuple[Decoder, list[int]]:
    """A decoder of these pieces, and their ids in order."""
    vocabulary = Pieces(pieces)
    return Decoder(vocabulary, rules, cleans_up=cleans_up), list(vocabulary.ids())


@pytest.mark.parametrize(
    ("data", "characters", "pending"),
    [
        ("F0 9F 98", "", "F0 9F 98"),
        ("F0 41", BAD + "A", ""),
        ("E3 81 FF", BAD * 2, ""),
        ("ED A0", BAD * 2, ""),
    ],
)
def test_utf8(data: str, characters: str, pending: str) -> None:
    """`utf8`: incomplete bytes wait, invalid ones do not."""
    assert decode_lossy(b"", bytes.fromhex(data)) == (characters, bytes.fromhex(pending))


def test_byte_runs() -> None:
    """`byte_runs` and `branches`: a run is decided at its end, or when it is invalid; U+FFFD that is spelled out at once."""
    made, ids = decoder(
        [ByteFallback(), Fuse()], ["<0xE3>", "<0x81>", "<0x82>", "x", "<0xFF>", "<0x41>", "<0xEF>", "<0xBF>", "<0xBD>"]
    )
    e3, x81, x82, x, ff, x41, ef, bf, bd = ids
    stream = made.stream()
    assert [stream.step(e3), stream.extend([x81, x82]), stream.step(x)] == ["", "", "あx"]
    stream = made.stream()
    assert [stream.extend([e3, x81]), stream.step(ff), stream.step(x41)] == ["", BAD * 3, BAD]
    stream = made.stream()
    assert [stream.step(ef), stream.extend([bf, bd]), stream.step(x41), stream.finish()] == ["", BAD, "", "A"]


def test_tail() -> None:
    """`tail`: a space that is held for clean-up comes out once the next character cannot be a full stop."""
    made, (space, e3, rest) = decoder([RawBytes()], [b" ", b"\xe3", b"\x81\x82"], cleans_up=True)
    stream = made.stream()
    assert [stream.step(space), stream.held] == ["", " "]
    assert [stream.step(e3), stream.held] == [" ", b"\xe3"]
    assert [stream.step(rest), stream.held] == ["あ", ""]


def test_rewriter() -> None:
    """`rewriter`: what each state gives for each character."""
    table = Rewriter([Substitute(" .", "."), Substitute(" ?", "?")])
    idle = table.idle
    out, space = table.feed(idle, " ")
    assert (out, table.finish(space)) == ("", " ")
    assert table.feed(space, " ") == (" ", space)
    assert table.feed(space, ".") == (".", idle)
    assert table.feed(space, "x") == (" x", idle)


def test_compiler() -> None:
    """`compiler`: where the rules of Llama 2's decoder go."""
    rules: list[Rule] = [Replace("▁", " "), ByteFallback(), Fuse(), Strip(" ", start=1, stop=0)]
    made, ids = decoder(rules, ["▁a"])
    pipeline = made.automaton(DecodeOptions()).rules
    assert [type(stage).__name__ for stage in pipeline._front] == ["EachToken"]
    assert isinstance(pipeline._joiner, ByteRuns)
    assert [type(stage).__name__ for stage in pipeline._joiner._tail._stages] == ["Rewriter"]
    assert made.decode([*ids, *ids]) == "a a"


def test_automaton() -> None:
    """`automaton`: where the moves of "The 😄" are remembered."""
    qwen = real_tokenizer("qwen3")
    assert qwen.encode("The 😄", add_special_tokens=False) == [785, 26525, 226]
    machine = qwen.machine(DecodeOptions())
    assert isinstance(machine, Automaton)
    assert machine.advance(machine.home, 785) == ("The", machine.home)
    text, node = machine.advance(machine.home, 26525)
    assert (text, machine.pipeline.held(node.state)[0]) == (" ", b"\xf0\x9f\x98")
    assert machine.advance(node, 226) == ("😄", machine.home)
    assert machine.home.texts[785] == "The"
    assert (26525 in machine.home.moves, 226 in node.moves) == (True, True)


@pytest.mark.parametrize(("prompt_ids", "forwards"), [([785, 3974], [785, 3974]), ([785, 26525, 226], [785, 26525, 226])])
def test_prompt(prompt_ids: list[int], forwards: list[int]) -> None:
    """`Pipeline.after_prompt`: which ids at the end of a long prompt are read forwards."""
    qwen = real_tokenizer("qwen3")
    pipeline = qwen.automaton(DecodeOptions()).pipeline
    read: list[int] = []

    class Spied(type(pipeline)):  # type: ignore[misc]  # the class of this very pipeline
        def feed(self, state: object, token_id: int) -> object:
            read.append(token_id)
            return super().feed(state, token_id)

    spied = Spied(qwen.rules, qwen.vocabulary, pipeline.options)
    spied.after_prompt([785, 785, 785, *prompt_ids])
    assert read == forwards


def test_spans() -> None:
    """`spans`: the bytes of a character belong to the token that completes it, once the run has ended valid."""
    made, ids = decoder([ByteFallback(), Fuse()], ["a", "<0xE3>", "<0x81>", "<0x82>", "x", "<0xFF>"])
    *tokens, ff = ids
    request = made.request()
    given = [request.feed([token_id], logprobs=[0.0]).logprobs for token_id in tokens]
    assert [len(entries or ()) for entries in given] == [1, 0, 0, 0, 4]
    assert [entry.token for entries in given for entry in entries or ()] == ["a", "", "", "あ", "x"]
    assert [made.decode(tokens[: count + 1]) for count in range(5)] == ["a", "a" + BAD, "a" + BAD * 2, "aあ", "aあx"]
    output = made.request().feed([*tokens[:4], ff], logprobs=[0.0] * 5, finish_reason="length")
    assert [entry.token for entry in output.logprobs or ()] == ["a", BAD, "", "", BAD * 3]


def test_followers() -> None:
    """`followers`: logprobs wait until the character is complete."""
    made, ids = decoder([RawBytes()], [b"\xe3", b"\x81", b"\x82"])
    request = made.request()
    outputs = [request.feed([token_id], logprobs=[0.0]) for token_id in ids]
    assert [[entry.token for entry in output.logprobs or ()] for output in outputs] == [[], [], ["", "", "あ"]]


def test_logprobs() -> None:
    """`logprobs`: the strings, bytes and offsets of "Zoë"."""
    tokenizer = detok.load(detok.EMBEDDED)
    ids = tokenizer.encode("Zoë", add_special_tokens=False)
    entries = tokenizer.request().feed(ids, logprobs=[0.0] * 4).logprobs or []
    assert [(entry.token_id, entry.token, entry.bytes.hex(), entry.text_offset) for entry in entries] == [
        (57, "Z", "5a", 0),
        (78, "o", "6f", 1),
        (127, "", "c3", 2),
        (104, "ë", "ab", 2),
    ]


def test_places_and_requests() -> None:
    """`places` and `request`: what each token does with the stop "END", and which take the long way."""
    made, (the, space_e, lower, upper) = decoder([RawBytes()], [b"The", b" E", b"nd", b"ND"])
    request = made.request(stop=["END"])
    assert [request.feed([token_id]).text for token_id in (the, space_e, lower)] == ["The", " ", "End"]
    request = made.request(stop=["END"])
    texts, spent = [], []
    for token_id in (the, space_e):
        texts.append(request.feed([token_id]).text)
        spent.append(divmod(request._budget - request._left, TOKEN))
    assert (texts, spent) == (["The", " "], [(1, 3), (2, 4)])
    last = request.feed([upper])
    assert (last.text, last.finish_reason, last.stop_reason, request._budget - request._left) == ("", "stop", "END", 0)


@pytest.mark.parametrize(
    ("stops", "patterns", "tokens", "comes_out", "held"),
    [
        (("ENDS", "NDA"), (), ["x", "EN", "D"], ["x", "", ""], ["", "EN", "END"]),
        ((), ("a+b",), ["xa", "a"], ["x", ""], ["a", "aa"]),
    ],
)
def test_stops(
    stops: tuple[str, ...], patterns: tuple[str, ...], tokens: list[str], comes_out: list[str], held: list[str]
) -> None:
    """`text_search` and `stop_regex`: what is held for a stop, and what comes out."""
    search = StopSearch(stops, patterns, 1.0, holds=True)
    state, got, kept = search.start, [], []
    for token in tokens:
        out, state, match = search.scan(state, token)
        assert match is None
        got.append(out)
        kept.append(state.held)
    assert (got, kept) == (comes_out, held)
    for last, out, reason in [("!", "END!", None), ("A", "E", "NDA")] if stops else [("c", "aac", None), ("b", "", "a+b")]:
        text, _, found = search.scan(state, last)
        assert (text, found and found.reason) == (out, reason)
