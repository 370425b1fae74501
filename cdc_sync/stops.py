"""Records that a table must not pass: why, and what would let it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cdc_sync.spark.compile import AMBIGUOUS_NULL, KEY_IS_FALLBACK, PAUSING, PLACEHOLDER_FOUND, TRUNCATE
from cdc_sync.spark.observe import Trouble
from cdc_sync.spark.source import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Why a table does not go on, what would let it, and the record it stands before, if it is one."""

    reason: str
    remedy: str
    at: str | None = None


def cut_at_stops(
    ranges: tuple[OffsetRange, ...], troubles: Sequence[Trouble]
) -> tuple[tuple[OffsetRange, ...], Pause | None]:
    """Cut ranges before the first record of each partition that must not be passed; say why, if there is one."""
    stops = [trouble for trouble in troubles if trouble.problem in PAUSING]
    cuts: dict[int, int] = {}
    for trouble in stops:
        cuts[trouble.partition] = min(trouble.first_offset, cuts.get(trouble.partition, trouble.first_offset))
    cut = tuple(replace(item, end=min(item.end, cuts.get(item.partition, item.end))) for item in ranges)
    left = tuple(item for item in cut if item.size)
    if not stops:
        return left, None
    first = min(stops, key=lambda trouble: (trouble.partition, trouble.first_offset))
    reason, remedy = _REASONS[first.problem]
    at = f"{ranges[0].topic}[{first.partition}]@{first.first_offset}"
    return left, Pause(reason=reason, remedy=remedy, at=at)


_REASONS = {
    TRUNCATE: (
        "the source table was truncated, which is not carried out yet",
        "empty the target by hand and snapshot the table again, or skip `t` with skipped.operations in the connector",
    ),
    PLACEHOLDER_FOUND: (
        "an event leaves an unchanged large value out (placeholder), and keeping the target's value is not "
        "carried out yet",
        "set REPLICA IDENTITY FULL for the source table, then snapshot it again",
    ),
    KEY_IS_FALLBACK: (
        "a delete names the key 0 or '', which the connector makes up under REPLICA IDENTITY USING INDEX",
        "set REPLICA IDENTITY DEFAULT or FULL for the source table, then snapshot it again",
    ),
    AMBIGUOUS_NULL: (
        "a value equals its nullable column's default, and this connector sends NULL as the default",
        "set value.converter.replace.null.with.default=false in the connector, or policy.ambiguous_null: warn",
    ),
}


def missing_row(ranges: Sequence[OffsetRange]) -> Pause:
    """Say why a table stops before ranges that update a row it never had."""
    first = ranges[0]
    return Pause(
        reason="an update names a row that the target never had, so the topic does not hold the table's beginning "
        "(the table was renamed, or the topic's first records were deleted)",
        remedy="snapshot the table again, or set policy.missing_rows: insert",
        at=f"{first.topic}[{first.partition}]@{first.start}",
    )
