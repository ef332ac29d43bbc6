"""A failing input becomes as small as it can be, and still fails."""

from __future__ import annotations

from collections.abc import Sequence

from detok.inspection.shrink import Steps, shrink, shrink_sequence


def test_shrink_keeps_only_what_fails() -> None:
    """Ids that have nothing to do with the failure go, wherever they stand, and so do the borders between steps."""
    steps: Steps = ((1, 2), (), (3,), (4, 5, 6), (7,), (8,))
    assert shrink(steps, lambda found: {3, 7} <= {i for ids in found for i in ids}) == ((3, 7),)


def test_shrink_keeps_a_border_that_fails() -> None:
    """A split that is part of the failure stays."""
    steps: Steps = tuple((token_id,) for token_id in range(10))
    assert shrink(steps, lambda found: any(4 in one for one in found) and len(found) >= 2) == ((4,), ())


def test_shrink_keeps_the_first_step_apart() -> None:
    """A prompt is never joined with what follows it."""
    assert shrink(((1,), (2,), (3,)), lambda found: True, keep_first=True) == ((), ())


def test_shrink_of_the_smallest_is_itself() -> None:
    """There is nothing to take from an input without ids."""
    assert shrink(((),), lambda found: True) == ((),)


def test_shrink_sequence_goes_on_until_nothing_can_go() -> None:
    """Taking one item out may let another go that had to stay before."""

    def fails(items: Sequence[int]) -> bool:
        return 5 in items and (3 in items or 4 not in items)

    assert list(shrink_sequence(range(8), fails)) == [5]
