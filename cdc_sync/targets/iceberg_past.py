"""What Iceberg tables held after earlier commits: the snapshots that are not expired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from cdc_sync.progress import PROPERTY, parse_progress
from cdc_sync.quote import quoted
from cdc_sync.schema.internal import Column
from cdc_sync.spark.columns import value_column
from cdc_sync.spark.types import literal, to_spark
from cdc_sync.targets.base import Commit, same_offsets


def states(table: Any, limit: int) -> tuple[Commit, ...]:
    """Return the newest snapshot for each set of offsets, newest first.

    Snapshots without a marker are other people's; they hold what the marker before them says.
    """
    found: list[Commit] = []
    newest: str | None = None
    snapshot, parent = table.currentSnapshot(), None
    while snapshot is not None and len(found) < limit:
        newest = newest or str(snapshot.snapshotId())
        marker = snapshot.summary().get(PROPERTY)
        if marker is not None:
            progress = parse_progress(str(marker))
            if not found or not same_offsets(found[-1].progress, progress):
                found.append(Commit(progress=progress, reference=newest))
            newest = None
        parent = snapshot.parentId()
        snapshot = table.snapshot(parent) if parent is not None else None
    if parent is None and newest is None and len(found) < limit:
        found.append(Commit(progress=None, reference=""))
    return tuple(found)


def past_columns(table: Any, commit: Commit, columns: Sequence[Column]) -> list[SparkColumn]:
    """Return what to select of a snapshot: a column may have had another name or type, or not been there yet."""
    now = table.schema().asStruct()
    then = table.schemas().get(table.snapshot(int(commit.reference)).schemaId()).asStruct() if commit.progress else now
    selected = []
    for column in columns:
        field = then.field(now.field(column.name).fieldId())
        held = None if field is None else F.col(quoted(field.name())).cast(to_spark(column.type))
        value = literal(column.initial, column.type) if held is None else held
        selected.append(value.alias(value_column(column.id)))
    return selected
