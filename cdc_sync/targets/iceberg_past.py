"""What Iceberg tables held after earlier commits: the snapshots that are not expired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from cdc_sync.progress import PROPERTY
from cdc_sync.quote import quoted
from cdc_sync.schema.internal import Column
from cdc_sync.spark.columns import value_column
from cdc_sync.spark.types import literal, to_spark
from cdc_sync.targets.base import Commit
from cdc_sync.targets.past import Beginning, Entry, Lineage


def lineage(table: Any) -> Lineage:
    """Follow the snapshots back from the current one; those that are expired cannot be read."""
    snapshot, parent = table.currentSnapshot(), None
    while snapshot is not None:
        marker = snapshot.summary().get(PROPERTY)
        yield Entry(reference=str(snapshot.snapshotId()), marker=None if marker is None else str(marker))
        parent = snapshot.parentId()
        snapshot = table.snapshot(parent) if parent is not None else None
    if parent is None:
        yield Beginning()


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
