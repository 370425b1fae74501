"""The marker of a commit: exact, readable, and refused where it is damaged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_sync.core.model.positions import KafkaPosition
from cdc_sync.core.model.progress import Progress, parse_progress
from cdc_sync.errors import TargetError

MARKER = Progress(version=3, offsets={"t": {10: 7, 2: 0}}, topic_ids={"t": "id"}, high_water={"t": {10: 2**63}})
_topics = st.text(max_size=8)
_places = st.dictionaries(_topics, st.dictionaries(st.integers(0, 999), st.integers(0, 2**64), max_size=3), max_size=3)
markers = st.builds(
    Progress,
    version=st.integers(1, 10**6),
    offsets=_places,
    topic_ids=st.dictionaries(_topics, st.text(max_size=22), max_size=3),
    high_water=_places,
    whole=st.frozensets(_topics, max_size=3),
    redriven=st.dictionaries(_topics, st.dictionaries(st.integers(0, 99), st.just(((0, 2), (5, 6))), max_size=2)),
)


@given(markers)
def test_what_is_written_is_read(marker: Progress) -> None:
    assert parse_progress(marker.to_text()) == marker


def test_the_form_is_stable_and_on_one_line() -> None:
    text = (
        '{"format":1,"version":3,"offsets":{"t":{"2":0,"10":7}},"topic_ids":{"t":"id"},'
        '"high_water":{"t":{"10":9223372036854775808}}}'
    )
    assert MARKER.to_text() == text
    assert replace(MARKER, offsets={"t": {2: 0, 10: 7}}).to_text() == text


def test_it_says_where_to_go_on() -> None:
    assert MARKER.next_offset("t", 10) == 7
    assert MARKER.next_offset("t", 2) == 0
    assert MARKER.next_offset("t", 3) is None
    assert MARKER.next_offset("u", 10) is None


def test_a_partition_that_is_new_to_a_topic_is_read_from_its_first_record_on() -> None:
    marker = replace(MARKER, whole=frozenset({"t"}))
    assert marker.next_offset("t", 3) == 0
    assert marker.next_offset("t", 10) == 7
    assert marker.next_offset("u", 3) is None
    assert '"whole":["t"]' in marker.to_text()


def test_what_was_only_looked_through_is_named_and_bounded_as_before() -> None:
    known = replace(MARKER, high_water={"t": {10: 5, 2: 9}})

    marker = known.looked_through({("t", 10): 8, ("t", 2): 0, ("t", 3): 4})

    assert marker.offsets == {"t": {10: 8, 2: 0, 3: 4}}
    assert marker.high_water == {"t": {10: 5, 2: 9, 3: 9}}, "a new partition may hold any key"
    assert MARKER.looked_through({("t", 3): 4}).high_water == MARKER.high_water


def test_the_highest_lsn_is_that_of_the_partition() -> None:
    assert MARKER.highest_lsn("t", 10) == 2**63
    assert MARKER.highest_lsn("t", 2) is None


def test_a_new_partition_may_hold_any_key_so_all_partitions_bound_it() -> None:
    known = replace(MARKER, high_water={"t": {10: 5, 2: 9}})
    assert known.highest_lsn("t", 3) == 9
    assert known.highest_lsn("u", 0) == 9
    assert MARKER.highest_lsn("t", 3) is None
    assert Progress(version=1).highest_lsn("t", 0) == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"format":1}',
        '{"format":1,"version":1,"offsets":[],"topic_ids":{},"high_water":{}}',
        '{"format":1,"version":1,"offsets":{"t":{"x":1}},"topic_ids":{},"high_water":{}}',
    ],
)
def test_a_damaged_marker_is_refused(text: str) -> None:
    with pytest.raises(TargetError, match="Cannot read progress marker"):
        parse_progress(text)


def test_a_later_format_is_refused() -> None:
    with pytest.raises(TargetError, match="format 4 is later than this program"):
        parse_progress('{"format":4}')


def test_the_marker_of_a_shared_table_holds_one_for_each_source_table() -> None:
    marker = Progress(version=7, shares={"d.s.b": MARKER, "d.s.a": Progress(version=1)})

    assert parse_progress(marker.to_text()) == marker
    assert '"format":3' in marker.to_text(), "a program that takes all rows for its own must not go on"


def test_it_says_which_dead_letters_were_applied() -> None:
    places = [KafkaPosition(topic="t", partition=1, offset=offset) for offset in (3, 4, 9)]
    marker = MARKER.with_redriven(places[:1]).with_redriven(places[1:])
    assert marker.redriven == {"t": {1: ((3, 5), (9, 10))}}
    assert all(marker.has_redriven(place) for place in places)
    assert not marker.has_redriven(replace(places[0], offset=5))
    assert not marker.has_redriven(replace(places[0], partition=0))
    assert "redriven" not in MARKER.to_text()
