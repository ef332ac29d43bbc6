"""Places: which tokens are usual, what is remembered of them, and how much."""

from __future__ import annotations

import pytest

import detok
from detok.core.decoding.automaton import StreamMachine
from detok.core.decoding.rules import RawBytes
from detok.core.options import DecodeOptions
from detok.core.request.output import NOT_DUE
from detok.core.request.places import MAX_MOVES, MAX_TEXT, NOWHERE, TOKEN, Places
from detok.core.request.stop_search import StopSearch
from tests.support.pieces import Pieces

THE, E, LOWER, UPPER, FIRST, REST, EOS, HOLE = range(8)
DECODER = detok.Decoder(Pieces(b"The", b" E", b"nd", b"ND", b"\xf0\x9f", b"\xa6\x9c", b"<s>", None), [RawBytes()])
MACHINE = DECODER.automaton(DecodeOptions())
SEARCH = StopSearch(("END",), (), 0.1, holds=True)
ENDS = frozenset({EOS})


def test_worked_example() -> None:
    """The rows of the module's table; the id that completes the stop is no usual one."""
    places = Places()
    idle = places.at(MACHINE.home, SEARCH.start.candidate, ENDS, gives_at_once=True)
    assert idle.is_idle
    found = places.learn(idle, THE, SEARCH)
    assert found is not None
    assert found == (found[4], idle, TOKEN + 3, False, found[4], "The")
    assert (found[0].text, found[0].token_ids) == ("The", [THE])
    found = places.learn(idle, E, SEARCH)
    assert found is not None
    assert (found[0].text, found[2], found[5]) == (" ", TOKEN + 1, " E")
    after = found[1]
    assert after.candidate is not None
    assert (after.candidate.text, after is idle) == ("E", False)
    found = places.learn(after, LOWER, SEARCH)
    assert found is not None
    assert (found[0].text, found[1]) == ("End", idle)
    assert places.learn(after, UPPER, SEARCH) is None
    assert (set(idle.moves), set(after.moves)) == ({THE, E}, {LOWER})
    assert idle.moves[THE][1] is idle


def test_ids_that_end_and_unknown_ids_are_not_usual() -> None:
    """Nor is anything at no place at all."""
    places = Places()
    idle = places.at(MACHINE.home, None, ENDS, gives_at_once=True)
    assert [places.learn(idle, token_id, None) for token_id in (EOS, HOLE, -1, 1 << 70)] == [None] * 4
    assert places.learn(places.at(MACHINE.home, None, frozenset(), gives_at_once=True), EOS, None) is not None
    assert places.learn(NOWHERE, THE, None) is None
    assert NOWHERE.moves == {}
    assert not NOWHERE.is_idle


def test_part_of_a_character_leads_to_another_place_and_back() -> None:
    """Its text is nothing, which no search looks at."""
    places = Places()
    for search in (None, SEARCH):
        idle = places.at(MACHINE.home, None if search is None else search.start.candidate, ENDS, gives_at_once=True)
        first = places.learn(idle, FIRST, search)
        assert first is not None
        assert (first[0].text, first[1].is_idle, first[1].candidate) == ("", False, idle.candidate)
        # Only a search for stops asks which token a character belongs to.
        assert first[3] == (search is not None)
        rest = places.learn(first[1], REST, search)
        assert rest is not None
        assert (rest[0].text, rest[1], rest[3]) == ("🦜", idle, first[3])


def test_node_that_remembers_nothing_is_no_place() -> None:
    """A machine without a memory, and a move that leads to such a node."""
    places = Places()
    forgetful = StreamMachine(MACHINE.pipeline, lambda: "fingerprint")
    assert places.at(forgetful.after_prompt([THE]), None, ENDS, gives_at_once=True) is NOWHERE
    assert len(places) == 0


def test_requests_share_a_place_if_their_options_agree() -> None:
    """In the text, the stop strings, the ids that end them, and whether each step has an output."""
    places = Places()
    # Made here, since `stop_strings` keeps an automaton for a while only.
    place = places.at(MACHINE.home, StopSearch(("END",), (), 0.1, holds=True).start.candidate, ENDS, gives_at_once=True)
    again = StopSearch(("END",), (), 5.0, holds=True)
    assert places.at(MACHINE.home, again.start.candidate, frozenset([EOS]), gives_at_once=True) is place
    other = StopSearch(("END",), (), 0.1, holds=False)
    assert places.at(MACHINE.home, other.start.candidate, ENDS, gives_at_once=True) is not place
    assert places.at(MACHINE.home, SEARCH.start.candidate, frozenset(), gives_at_once=True) is not place


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_memory_begins_again_at_its_limit(limit: int) -> None:
    """Places and moves are counted together; who stands on a place keeps it, and its moves are learned again."""
    places = Places(limit)
    place = places.at(MACHINE.home, SEARCH.start.candidate, ENDS, gives_at_once=True)
    for token_id in [THE, E, LOWER, FIRST, REST, THE] * 5:
        found = place.moves.get(token_id) or places.learn(place, token_id, SEARCH)
        assert found is not None
        place = found[1]
        assert len(places) <= limit


def test_requests_that_gather_outputs_have_places_of_their_own() -> None:
    """Each move is noted, and gives an empty output."""
    places = Places()
    idle = places.at(MACHINE.home, None, ENDS, gives_at_once=False)
    assert idle is not places.at(MACHINE.home, None, ENDS, gives_at_once=True)
    found = places.learn(idle, THE, None)
    assert found is not None
    assert (found[0], found[1], found[2], found[3], found[4].text) == (NOT_DUE, idle, TOKEN + 3, True, "The")


@pytest.mark.parametrize(("length", "is_usual"), [(MAX_TEXT, True), (MAX_TEXT + 1, False)])
def test_token_with_a_long_text_is_not_usual(length: int, is_usual: bool) -> None:
    """Its characters would count as a token: those of all moves in a row have to be less than one."""
    assert MAX_MOVES * MAX_TEXT < TOKEN
    long = detok.Decoder(Pieces(b"a" * length), [RawBytes()])
    places = Places()
    home = long.automaton(DecodeOptions()).home
    found = places.learn(places.at(home, None, ENDS, gives_at_once=True), 0, None)
    assert (found is not None) == is_usual
    request = long.request(max_tokens=3 * MAX_MOVES)
    outputs = [request.feed([0]) for _ in range(3 * MAX_MOVES)]
    assert (outputs[-1].finish_reason, outputs[-1].text_end) == ("length", 3 * MAX_MOVES * length)
    assert (outputs[-1].tokens_kept, request.num_tokens) == (3 * MAX_MOVES, 3 * MAX_MOVES)
