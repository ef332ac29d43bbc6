"""Places: which tokens are usual, what is remembered of them, and how much."""

from __future__ import annotations

import pytest

import detok
from detok.core.decoding.automaton import StreamMachine
from detok.core.decoding.rules import RawBytes
from detok.core.options import DecodeOptions
from detok.core.request.places import NOWHERE, Places
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
    idle = places.at(MACHINE.home, SEARCH.start.candidate, ENDS)
    assert idle.is_idle
    found = places.learn(idle, THE, SEARCH)
    assert found is not None
    assert (found[0].text, found[0].token_ids, found[2], found[3:]) == ("The", [THE], idle, ("The", 3))
    found = places.learn(idle, E, SEARCH)
    assert found is not None
    assert (found[0].text, found[3:]) == (" ", (" E", 1))
    after = found[2]
    assert after.candidate is not None
    assert (after.candidate.text, after is idle) == ("E", False)
    found = places.learn(after, LOWER, SEARCH)
    assert found is not None
    assert (found[0].text, found[2]) == ("End", idle)
    assert places.learn(after, UPPER, SEARCH) is None
    assert (set(idle.moves), set(after.moves)) == ({THE, E}, {LOWER})
    assert idle.moves[THE][1] is idle.moves


def test_ids_that_end_and_unknown_ids_are_not_usual() -> None:
    """Nor is anything at no place at all."""
    places = Places()
    idle = places.at(MACHINE.home, None, ENDS)
    assert [places.learn(idle, token_id, None) for token_id in (EOS, HOLE, -1, 1 << 70)] == [None] * 4
    assert places.learn(places.at(MACHINE.home, None, frozenset()), EOS, None) is not None
    assert places.learn(NOWHERE, THE, None) is None
    assert NOWHERE.moves == {}
    assert not NOWHERE.is_idle


def test_part_of_a_character_leads_to_another_place_and_back() -> None:
    """Its text is nothing, which no search looks at."""
    places = Places()
    for search in (None, SEARCH):
        idle = places.at(MACHINE.home, None if search is None else search.start.candidate, ENDS)
        first = places.learn(idle, FIRST, search)
        assert first is not None
        assert (first[0].text, first[2].is_idle, first[2].candidate) == ("", False, idle.candidate)
        rest = places.learn(first[2], REST, search)
        assert rest is not None
        assert (rest[0].text, rest[2]) == ("🦜", idle)


def test_node_that_remembers_nothing_is_no_place() -> None:
    """A machine without a memory, and a move that leads to such a node."""
    places = Places()
    forgetful = StreamMachine(MACHINE.pipeline, lambda: "fingerprint")
    assert places.at(forgetful.after_prompt([THE]), None, ENDS) is NOWHERE
    assert len(places) == 0


def test_requests_share_a_place_if_their_options_agree() -> None:
    """In the text, the stop strings and the ids that end them."""
    places = Places()
    # Made here, since `stop_strings` keeps an automaton for a while only.
    place = places.at(MACHINE.home, StopSearch(("END",), (), 0.1, holds=True).start.candidate, ENDS)
    again = StopSearch(("END",), (), 5.0, holds=True)
    assert places.at(MACHINE.home, again.start.candidate, frozenset([EOS])) is place
    other = StopSearch(("END",), (), 0.1, holds=False)
    assert places.at(MACHINE.home, other.start.candidate, ENDS) is not place
    assert places.at(MACHINE.home, SEARCH.start.candidate, frozenset()) is not place


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_memory_begins_again_at_its_limit(limit: int) -> None:
    """Places and moves are counted together; who stands on a place keeps it, and its moves are learned again."""
    places = Places(limit)
    place = places.at(MACHINE.home, SEARCH.start.candidate, ENDS)
    for token_id in [THE, E, LOWER, FIRST, REST, THE] * 5:
        found = place.moves.get(token_id) or places.learn(place, token_id, SEARCH)
        assert found is not None
        place = found[2]
        assert len(places) <= limit
