"""Parts of ranges: halves until one record is left, and which places lie in them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cdc_sync.core.model.offsets import OffsetRange, Place, first_half, places_in, within_bytes
from cdc_sync.core.model.positions import KafkaPosition

RANGES = st.lists(st.integers(min_value=1, max_value=30), min_size=1, max_size=4).map(
    lambda sizes: tuple(
        OffsetRange(topic="t", partition=number, start=10, end=10 + size) for number, size in enumerate(sizes)
    )
)


def size(ranges: tuple[OffsetRange, ...]) -> int:
    return sum(item.size for item in ranges)


@given(RANGES)
def test_a_half_begins_where_the_whole_does_and_holds_half_of_it(ranges: tuple[OffsetRange, ...]) -> None:
    half = first_half(ranges)

    assert size(half) == size(ranges) // 2
    whole = {item.partition: item for item in ranges}
    for item in half:
        assert item.start == whole[item.partition].start
        assert item.end <= whole[item.partition].end


@given(RANGES)
def test_halving_ends_with_one_record_and_then_with_none(ranges: tuple[OffsetRange, ...]) -> None:
    steps = 0
    while half := first_half(ranges):
        ranges, steps = half, steps + 1
    assert size(ranges) == 1
    assert steps <= 7


def test_places_in_ranges_are_those_of_their_topic_and_partition() -> None:
    ranges = (OffsetRange(topic="t", partition=0, start=3, end=5), OffsetRange(topic="t", partition=1, start=0, end=9))
    records = [
        KafkaPosition(topic=topic, partition=partition, offset=offset)
        for topic, partition, offset in (("t", 0, 2), ("t", 0, 3), ("t", 0, 5), ("u", 0, 4), ("t", 1, 8), ("t", 2, 4))
    ]

    assert places_in(records, ranges) == {Place(partition=0, offset=3), Place(partition=1, offset=8)}


def test_ranges_hold_about_so_many_bytes_together() -> None:
    ranges = [OffsetRange(topic="t", partition=number, start=10, end=110) for number in range(4)]
    found = within_bytes(ranges, {0: 100.0, 1: 1.0, 2: 1e12}, 4_000)
    assert [item.end - item.start for item in found] == [10, 100, 1, 100], "of the last nothing is known"
    assert within_bytes([], {0: 1.0}, 4_000) == ()
