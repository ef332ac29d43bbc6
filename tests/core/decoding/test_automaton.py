"""What an automaton remembers, where, and how much of it; the answers are always the pipeline's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import detok
from detok.core.decoding import automaton
from detok.core.decoding.automaton import NO_MOVES, Automaton, StreamMachine
from detok.core.decoding.pipeline import Pipeline
from detok.core.decoding.rules import ByteFallback, Fuse, RawBytes, Rule
from detok.core.options import DecodeOptions
from detok.core.vocabulary import Piece
from tests.support.pieces import Pieces, SizedPieces

# Ids 0 and 1 are kept out of lists; the byte tokens of an emoji begin at 3.
BYTES = SizedPieces(b"", b"", b"The", b"\xf0\x9f\x98", b"\x84", *[b"a"] * 5)
RUNS = Pieces("", "", "x", "<0x41>")


def automaton_of(pieces: Pieces = BYTES, rules: Sequence[Rule] = (RawBytes(),)) -> Automaton:
    """An automaton with nothing remembered."""
    return Automaton(pipeline_of(pieces, rules), lambda: "fingerprint", [], [])


def pipeline_of(pieces: Pieces = BYTES, rules: Sequence[Rule] = (RawBytes(),)) -> Pipeline:
    return Pipeline(rules, pieces, DecodeOptions(clean_up_tokenization_spaces=False))


def test_moves_of_the_idle_node_are_in_a_list_and_others_at_their_node() -> None:
    """The three rows of the module's table, and none of them asks a second time."""
    machine = automaton_of()
    text, open_node = machine.advance(machine.home, 3)
    assert (text, open_node.is_idle) == ("", False)
    for _ in range(2):
        assert machine.advance(machine.home, 2) == ("The", machine.home)
        assert machine.advance(machine.home, 3) == ("", open_node)
        assert machine.advance(open_node, 4) == ("😄", machine.home)
        assert machine.questions == 2
    assert machine.home.texts[2] == "The"
    assert machine.home.texts[3] is None
    assert machine.home.moves == {3: ("", open_node)}
    assert open_node.moves == {4: ("😄", machine.home)}
    assert set(open_node.texts) == {None}


def test_first_two_ids_are_not_listed() -> None:
    """False and True are equal to them, and have to reach the type check."""
    machine = automaton_of()
    for token_id in (0, 1):
        assert machine.advance(machine.home, token_id) == ("", machine.home)
        assert machine.home.texts[token_id : token_id + 1] in ([None], [])
        assert token_id in machine.home.moves


def test_id_at_the_limit_of_lists_is_a_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last id below the limit is in the list, the one at it is not, and the list does not grow for it."""
    monkeypatch.setattr(automaton, "MAX_LISTED_ID", 6)
    machine = automaton_of()
    assert machine.advance(machine.home, 5) == machine.advance(machine.home, 6) == ("a", machine.home)
    assert machine.home.texts[5] == "a"
    assert 6 in machine.home.moves
    assert 5 not in machine.home.moves


def test_unknown_id_is_not_remembered() -> None:
    """Any integer may come, so that the memory would be filled by nothing."""
    machine = automaton_of()
    for token_id in (99, -1, 1 << 70):
        assert machine.advance(machine.home, token_id) == ("", machine.home)
        assert token_id not in machine.home.moves
    assert len(machine.home.texts) < 99


def test_warm_list_asks_no_more() -> None:
    """All that leads from the idle node back to it is there; what does not is left to the streams."""
    machine = automaton_of(SizedPieces(*BYTES.pieces, None, Piece("<s>", special=True, data=b"<s>")))
    machine.warm()
    assert machine.home.texts == [None, None, "The", None, None, *["a"] * 5, None, None]
    for token_id in (2, 5, 9):
        machine.advance(machine.home, token_id)
    assert machine.questions == 0
    machine.advance(machine.home, 3)
    assert machine.questions == 1


@pytest.mark.parametrize(
    "machine", [automaton_of(), StreamMachine(pipeline_of(), lambda: "fingerprint")], ids=["automaton", "plain"]
)
def test_nothing_leads_on_from_the_end(machine: StreamMachine) -> None:
    """No id, known or not."""
    for token_id in (0, 2, 3, 99, -1):
        with pytest.raises(detok.StreamFinished):
            machine.advance(machine.finished, token_id)


def test_state_over_the_limit_is_not_remembered() -> None:
    """An open byte run is kept as long as it is short: where it holds one character too many its node remembers nothing."""
    machine = automaton_of(RUNS, (ByteFallback(), Fuse()))
    node, lengths = machine.start, []
    while node.moves is not NO_MOVES:
        lengths.append(automaton._weight(node.state))
        _, node = machine.advance(node, 3)
    assert max(lengths) <= automaton.MAX_REMEMBERED < automaton._weight(node.state)
    # It is only slower: the run comes out all the same, and ends where nothing is held.
    text, after = machine.advance(node, 2)
    assert (text, after) == ("A" * (len(lengths)) + "x", machine.home)
    assert node.moves is NO_MOVES
    assert NO_MOVES == {}


def test_number_of_nodes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limit the memory begins again, with the two nodes that are entered again and again."""
    monkeypatch.setattr(automaton, "MAX_NODES", 4)
    machine = automaton_of(RUNS, (ByteFallback(), Fuse()))
    node = machine.start
    for _ in range(20):
        _, node = machine.advance(node, 3)
        assert len(machine._nodes) <= 4
        assert {machine.home, machine.start} <= {*machine._nodes.values()}
    assert machine.advance(node, 2) == ("A" * 20 + "x", machine.home)


def test_number_of_moves_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The move after the last one that fits begins the memory again."""
    monkeypatch.setattr(automaton, "MAX_MOVES", 2)
    machine = automaton_of()
    _, node = machine.advance(machine.home, 3)
    machine.advance(node, 4)
    assert (len(machine.home.moves), len(node.moves)) == (1, 1)
    machine.advance(machine.home, 0)
    assert (list(machine.home.moves), node.moves) == ([0], {})


def test_prompts_that_end_alike_lead_to_one_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the last id resets it is remembered, up to a limit; where it does not, each prompt is read."""
    monkeypatch.setattr(automaton, "MAX_PROMPT_ENDS", 2)
    machine = automaton_of()
    assert machine.after_prompt([]) is machine.start
    assert machine.after_prompt(iter([2])) is machine.after_prompt([5, 2]) is machine.after_prompt([2, 5, 2])
    assert machine._after_last_id == {2: machine.home}
    assert machine.after_prompt([2, 3]).state == machine.after_prompt([5, 3]).state
    assert machine.after_prompt([2, 4]).is_idle
    assert 4 not in machine._after_last_id
    for token_id in (5, 6, 7, 8):
        assert machine.after_prompt([token_id, token_id]).is_idle
        assert len(machine._seen) <= 2
    asked = machine._after_last_id.copy()
    assert machine.after_prompt([8, 8]) is asked[8]


def test_machine_without_a_memory_gives_the_same() -> None:
    """A `StreamMachine` asks each time, and its nodes remember nothing."""
    forgetful, remembering = StreamMachine(pipeline_of(), lambda: "fingerprint"), automaton_of()
    assert not forgetful.exact
    assert remembering.exact
    one, two = forgetful.after_prompt([2]), remembering.after_prompt([2])
    for token_id in (2, 3, 4, 3, 2, 99):
        (text, one), (other, two) = forgetful.advance(one, token_id), remembering.advance(two, token_id)
        assert text == other
        assert one.state == two.state
        assert one.moves is NO_MOVES
        assert not one.is_idle
