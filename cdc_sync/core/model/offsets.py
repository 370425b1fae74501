"""Ranges of offsets, and places in partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from cdc_sync.core.model.positions import KafkaPosition

Ends: TypeAlias = Mapping[tuple[str, int], int]
"""(topic, partition) -> offset after the last one to consume."""
Runs: TypeAlias = tuple[tuple[int, int], ...]
"""Runs of offsets, `start` (inclusive) to `end` (exclusive), ascending and apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """Offsets `start` (inclusive) to `end` (exclusive) of one partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets the range spans; compaction and transactions may leave fewer records."""
        return max(0, self.end - self.start)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """A record of the topic, or a segment."""

    partition: int
    offset: int


def runs_of(offsets: Iterable[int]) -> Runs:
    """Return offsets as runs."""
    found: list[list[int]] = []
    for offset in sorted(offsets):
        if found and offset <= found[-1][1]:
            found[-1][1] = max(found[-1][1], offset + 1)
        else:
            found.append([offset, offset + 1])
    return tuple((start, end) for start, end in found)


def offsets_in(runs: Runs) -> set[int]:
    """Return the offsets that runs hold."""
    return {offset for start, end in runs for offset in range(start, end)}


def narrowed(
    ranges: Iterable[OffsetRange],
    *,
    starts: Mapping[tuple[str, int], int] | None = None,
    ends: Mapping[tuple[str, int], int] | None = None,
) -> tuple[OffsetRange, ...]:
    """Return what of the ranges lies at or behind the starts and before the ends; ranges of no size are left out.

    Args:
        ranges: of any topics.
        starts, ends: (topic, partition) -> offset; what is not named stays.
    """
    found = (
        replace(
            item,
            start=max(item.start, (starts or {}).get((item.topic, item.partition), item.start)),
            end=min(item.end, (ends or {}).get((item.topic, item.partition), item.end)),
        )
        for item in ranges
    )
    return tuple(item for item in found if item.size)


def within_bytes(
    ranges: Sequence[OffsetRange], record_bytes: Mapping[int, float], most: int
) -> tuple[OffsetRange, ...]:
    """Return the beginnings of ranges of one topic that hold about so many bytes together, one record each at least.

    Args:
        ranges: not empty each.
        record_bytes: by partition, how large a record is; ranges of partitions that are not named stay whole.
        most: bytes; each range has an equal share.
    """
    share = most / max(1, len(ranges))
    ends = {
        (item.topic, item.partition): item.start + max(1, int(share / max(1.0, record_bytes[item.partition])))
        for item in ranges
        if item.partition in record_bytes
    }
    return narrowed(ranges, ends=ends)


def first_half(ranges: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Return the first half of ranges, as many offsets as are in the other or one less; nothing of a single one."""
    left, ends = sum(item.size for item in ranges) // 2, {}
    for item in ranges:
        ends[item.topic, item.partition] = min(item.end, item.start + left)
        left -= ends[item.topic, item.partition] - item.start
    return narrowed(ranges, ends=ends)


def places_in(records: Iterable[KafkaPosition], ranges: Sequence[OffsetRange]) -> frozenset[Place]:
    """Return the places of records that lie in ranges of their topic."""
    return frozenset(
        Place(partition=record.partition, offset=record.offset)
        for record in records
        for item in ranges
        if (record.topic, record.partition) == (item.topic, item.partition) and item.start <= record.offset < item.end
    )
