"""What is away is waited for by the clock; of other failures a few in a row are enough."""

from __future__ import annotations

from cdc_sync.core.planning.deadline import Failures, Patience

NONE = Failures(attempts=3, seconds=30)


def test_what_is_away_is_waited_for_by_the_clock_however_often_it_fails() -> None:
    failures = NONE
    for now in range(100, 130):
        failures = failures.with_another(float(now))
        assert not failures.are_enough(float(now), is_away=True)

    assert failures.with_another(131.0).are_enough(131.0, is_away=True)


def test_other_failures_are_enough_after_so_many() -> None:
    second = NONE.with_another(1.0).with_another(1.1)
    assert not second.are_enough(1.1, is_away=False)
    assert second.with_another(1.2).are_enough(1.2, is_away=False)


def test_pauses_grow_to_a_bound() -> None:
    failures, pauses = NONE, []
    for now in range(6):
        failures = failures.with_another(float(now))
        pauses.append(failures.pause)

    assert pauses == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert NONE.pause == 0


def test_patience_begins_anew_with_another_thing() -> None:
    patience = Patience(0.0)
    assert patience.is_over("a")
    assert not Patience(60.0).is_over("a")
