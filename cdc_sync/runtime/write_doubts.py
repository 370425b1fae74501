"""What a write leaves in doubt, values and deletes of rows that are not there; written down before the rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from structlog import get_logger

from cdc_sync.core.model.doubts import Doubt, Kind, doubts_with
from cdc_sync.core.model.offsets import Place
from cdc_sync.runtime.bounds import seen_before
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.unchanged_values import Keeping
from cdc_sync.runtime.write_plan import WritePlan, decoding
from cdc_sync.spark.compile import doubtful
from cdc_sync.spark.observe import (
    first_delete_without_row,
)
from cdc_sync.spark.unchanged import OVERFLOWN, UNREAD, UNSENT, doubted


def doubts_of(
    context: Context, plan: WritePlan, events: DataFrame, keeping: Keeping | None, *, exists: bool
) -> tuple[Doubt, ...]:
    """Find which values are in doubt behind a write; a NULL is not where rows are what their events say."""
    ids = doubtful(plan.converters, plan.head.schema, decoding(context, plan)) if plan.notes_doubts else ()
    found = doubted(events, ids)
    unread = found.get(UNREAD, frozenset())
    kept = keeping.kept_in_doubt(events, found.get(UNSENT, ()), exists=exists) if keeping else frozenset()
    overflown = found.get(OVERFLOWN, frozenset())
    kinds: tuple[tuple[Kind, frozenset[int]], ...] = (("unsent", kept), ("unread", unread), ("overflown", overflown))
    number, ends = plan.head.number, ends_of(plan)
    return tuple(Doubt(kind=kind, id=id_, version=number, ends=ends) for kind, ids in kinds for id_ in sorted(ids))


def note(context: Context, plan: WritePlan, doubts: Sequence[Doubt]) -> None:
    """Write doubts down, before the rows are written that they are about."""
    if doubts:
        context.state.save_doubts(plan.table, doubts_with(context.state.doubts(plan.table), doubts))
        get_logger().warning("values in doubt", table=str(plan.table), columns=sorted({item.id for item in doubts}))


def ends_of(plan: WritePlan) -> Mapping[str, Mapping[int, int]]:
    """Return by topic and partition up to where a plan reads."""
    ends: dict[str, dict[int, int]] = {}
    for item in plan.ranges:
        ends.setdefault(item.topic, {})[item.partition] = item.end
    return ends


def deletes_without_row(context: Context, plan: WritePlan, events: DataFrame, *, exists: bool) -> list[Place]:
    """Return the first delete of each partition that names a key which no row has, and which may be made up."""
    if not plan.looks_for_deleted:
        return []
    schema = plan.head.schema
    held = context.target.read(plan.route.target, schema, schema.primary_key)
    seen = seen_before(plan.progress, plan.ranges) or {}
    first = first_delete_without_row(events, schema, held if exists else held.limit(0), seen)
    return sorted(Place(partition=partition, offset=offset) for partition, offset in first.items())
