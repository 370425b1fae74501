"""Where a TRUNCATE lies in each partition, and what the target says behind it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.model.positions import NO_POSITION, KafkaPosition, SourcePosition
from cdc_sync.core.model.progress import Progress, Truncated, parse_progress
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.planning.truncation import Reach, Truncate, in_effect, place, progress_behind

TRUNCATE = Truncate(
    position=SourcePosition(kind="postgresql", parts=(90, 100)), kafka=KafkaPosition(topic="t", partition=1, offset=7)
)
READ_TO_IT = Reach(next_offset=4, first_behind=4, end=9, whole=True)


def placed(*others: Reach) -> dict[int, int]:
    found = place(TRUNCATE, {("t", 2 + number): reach for number, reach in enumerate(others)})
    assert isinstance(found, Truncated)
    return dict(found.offsets["t"])


def refused(truncate: Truncate, other: Reach) -> str:
    found = place(truncate, {("t", 2): other})
    assert isinstance(found, Refused)
    return found.reason


def test_in_its_own_partition_the_next_offset_is_behind_it() -> None:
    assert placed() == {1: 8}


def test_in_one_partition_nothing_depends_on_source_positions() -> None:
    found = place(replace(TRUNCATE, position=NO_POSITION), {})
    assert isinstance(found, Truncated)
    assert found.bound is None


def test_in_others_it_is_the_first_event_at_or_behind_its_position() -> None:
    behind = replace(READ_TO_IT, next_offset=2)
    assert placed(READ_TO_IT, behind) == {1: 8, 2: 4, 3: 4}


def test_a_partition_that_was_read_beyond_it_is_read_again() -> None:
    assert placed(replace(READ_TO_IT, next_offset=6)) == {1: 8, 2: 4}


def test_a_partition_without_an_event_behind_it_is_gone_on_at_its_end() -> None:
    assert placed(replace(READ_TO_IT, first_behind=None), replace(READ_TO_IT, next_offset=None)) == {1: 8, 2: 9, 3: 4}


def test_without_positions_the_order_of_partitions_is_not_known() -> None:
    assert "do not tell their place" in refused(replace(TRUNCATE, position=NO_POSITION), READ_TO_IT)


def test_rows_that_cannot_be_read_again_are_not_taken_away() -> None:
    assert "gone from the topic" in refused(TRUNCATE, replace(READ_TO_IT, next_offset=6, whole=False))
    assert placed(replace(READ_TO_IT, whole=False)) == {1: 8, 2: 4}, "nothing has to be read again"


def test_a_repeated_truncate_is_in_effect_where_positions_tell_what_lies_before_it() -> None:
    several = Truncated(position=TRUNCATE.position, offsets={"t": {1: 8, 2: 4}})
    one = Truncated(position=TRUNCATE.position, offsets={"t": {1: 8}})
    later = SourcePosition(kind="postgresql", parts=(100, 101))
    assert in_effect(TRUNCATE, several)
    assert not in_effect(replace(TRUNCATE, position=later), several)
    assert not in_effect(replace(TRUNCATE, position=replace(later, kind="binlog")), several)
    assert not in_effect(TRUNCATE, one), "its neighbours come again too"
    assert not in_effect(TRUNCATE, None)


def test_the_marker_behind_it_goes_back_and_forth_with_the_offsets() -> None:
    before = Progress(
        version=1, offsets={"t": {1: 7, 2: 6}, "u": {0: 5}}, topic_ids={"u": "U"}, high_water={"t": {1: 99, 2: 120}}
    )
    truncated = Truncated(position=TRUNCATE.position, offsets={"t": {1: 8, 2: 4, 3: 2}})
    behind = progress_behind(before, truncated, 2, {"t": "T"})
    assert behind.offsets == {"t": {1: 8, 2: 4, 3: 2}, "u": {0: 5}}
    assert (behind.version, behind.topic_ids) == (2, {"t": "T", "u": "U"})
    assert behind.high_water == {"t": {1: 99, 2: 120}}, "rows of partition 3 may have any position"
    assert parse_progress(behind.to_text()) == behind


def test_a_topic_that_is_made_anew_while_the_table_is_emptied_keeps_its_known_id() -> None:
    before = Progress(version=1, offsets={"t": {1: 7}}, topic_ids={"t": "known"})
    truncated = Truncated(position=TRUNCATE.position, offsets={"t": {1: 8}})
    # The next look at the topic finds that it is another one.
    assert progress_behind(before, truncated, 1, {"t": "another"}).topic_ids == {"t": "known"}


def test_a_table_without_rows_may_be_truncated() -> None:
    truncated = Truncated(position=TRUNCATE.position, offsets={"t": {1: 8}})
    behind = progress_behind(None, truncated, 3, {"t": "T"})
    assert behind == Progress(
        version=3, offsets={"t": {1: 8}}, topic_ids={"t": "T"}, high_water={"t": {1: 0}}, truncated=truncated
    )


@pytest.mark.parametrize(
    ("marker", "form"),
    [
        (Progress(version=1), 1),
        (progress_behind(None, Truncated(position=TRUNCATE.position, offsets={"t": {1: 8}}), 1, {}), 2),
    ],
)
def test_an_older_program_refuses_only_markers_that_tell_of_a_truncate(marker: Progress, form: int) -> None:
    assert marker.to_text().startswith(f'{{"format":{form},')
