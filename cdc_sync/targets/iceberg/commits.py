"""What Iceberg tables held after earlier commits: the snapshots that are not expired."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from cdc_sync.core.model.progress import PROPERTY
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import Column
from cdc_sync.spark.columns import value_column
from cdc_sync.spark.types import literal
from cdc_sync.targets.common.commits import Beginning, Entry, Lineage
from cdc_sync.targets.common.past_members import Part, as_now, iceberg_part
from cdc_sync.targets.protocol import Commit


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


def past_columns(jvm: Any, table: Any, commit: Commit, columns: Sequence[Column]) -> list[SparkColumn]:
    """Return what to select of a snapshot: a column may have had another name or type, or not been there yet."""
    schema = table.schema()
    then = table.schemas().get(table.snapshot(int(commit.reference)).schemaId()) if commit.progress else schema
    now, past = _by_name(jvm, schema), {part.mark: part for part in _by_name(jvm, then).values()}
    selected = []
    for column in columns:
        present = now[column.name]
        part = past.get(present.mark)
        if part is None:
            value = literal(column.initial, column.type)
        else:
            value = as_now(F.col(quoted(part.name)), part, present, column.type)
        selected.append(value.alias(value_column(column.id)))
    return selected


def field_ids(jvm: Any, schema: Any) -> dict[str, int]:
    """Return the ids of a schema's columns by name."""
    return {field["name"]: field["id"] for field in fields_of(jvm, schema)}


def _by_name(jvm: Any, schema: Any) -> dict[str, Part]:
    return {part.name: part for part in map(iceberg_part, fields_of(jvm, schema))}


def fields_of(jvm: Any, schema: Any) -> list[Any]:
    """Return a schema's columns as its JSON has them: one call, where asking each for its parts takes dozens."""
    return list(json.loads(jvm.org.apache.iceberg.SchemaParser.toJson(schema))["fields"])


def row_count(summary: Any) -> int:
    """Return how many rows there are: a changed or deleted one stays in its file, and a position delete says so."""
    records, deleted = (int(summary.get(f"total-{name}") or 0) for name in ("records", "position-deletes"))
    return max(records - deleted, 0)
