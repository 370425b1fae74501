"""New types for columns of an Iceberg table that has rows: schema, data, stamp and marker in one metadata commit.

The snapshot before is kept by a tag, and what `roll_back` needs beside it by a table property, both in that commit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_sync.core.migration.migration import RewriteTable
from cdc_sync.core.model.progress import Progress
from cdc_sync.targets.common.java import java_map
from cdc_sync.targets.common.properties import PARTITION_PROPERTY
from cdc_sync.targets.iceberg.change import Change
from cdc_sync.targets.iceberg.partitions import left_columns, needed_by_specs, partitioning_of, stamp_what_is_left
from cdc_sync.targets.iceberg.schema import alter

TAG = "cdc_sync_before_rewrite"
"""Keeps the newest snapshot before the last rewrite from being expired."""
_BEFORE_PROPERTY = "cdc_sync.before-rewrite"


def rewrite(
    jvm: Any, change: Change, rows: DataFrame, step: RewriteTable, *, stamped: Mapping[str, str], progress: Progress
) -> None:
    """Have the changes of a step and `rows` as all the table has; committed with the change.

    Args:
        jvm: the gateway's view of the JVM.
        change: begun before `rows` were read from the table.
        rows: what `rows.converted_rows` returns.
        stamped: the properties that say which version the columns are of.
        progress: what the rows contain.
    """
    table, transaction = change.table, change.transaction
    if table.currentSnapshot() is None:  # nobody has written to it yet, and there has to be something to keep
        change.mark(progress)
    kept = {
        "version": step.version,
        "snapshot": table.currentSnapshot().snapshotId(),
        "schema": table.schema().schemaId(),
        "spec": table.spec().specId(),
        "partition_by": table.properties().get(PARTITION_PROPERTY),
    }
    partitioning = partitioning_of(table)
    alter(jvm, transaction, step.steps)
    stamp_what_is_left(transaction, partitioning)
    _keep(transaction, kept["snapshot"])
    left = left_columns(table)
    change.overwrite(rows.select("*", *(F.lit(None).alias(name) for name in left)), progress)
    update = transaction.updateProperties().set(_BEFORE_PROPERTY, json.dumps(kept))
    for key, value in stamped.items():
        update.set(key, value)
    update.commit()


def _keep(transaction: Any, snapshot: int) -> None:
    snapshots = transaction.manageSnapshots()
    exists = transaction.table().refs().containsKey(TAG)
    (snapshots.replaceTag if exists else snapshots.createTag)(TAG, snapshot).commit()


def kept_version(table: Any) -> int | None:
    """Return the version that `roll_back` leads to, None if nothing is kept."""
    kept = _kept(table)
    return None if kept is None else int(kept["version"])


def _kept(table: Any) -> dict[str, Any] | None:
    text = table.properties().get(_BEFORE_PROPERTY)
    if text is None:
        return None
    kept: dict[str, Any] = json.loads(text)
    return kept if table.snapshot(kept["snapshot"]) is not None else None


def roll_back(jvm: Any, table: Any, stamp_property: str) -> bool:
    """Bring back rows and columns of before the last rewrite, in one commit; return whether they are kept.

    Column ids are Iceberg's of then, too: the schema of then is still part of the table's metadata.
    """
    operations = table.operations()
    base = operations.refresh()
    kept = _kept(table)
    if kept is None:
        return False
    properties = java_map(jvm, {stamp_property: str(kept["version"])})
    gone = jvm.java.util.HashSet()
    gone.add(_BEFORE_PROPERTY)
    builder = jvm.org.apache.iceberg.TableMetadata.buildFrom(base)
    schema = needed_by_specs(jvm, table, table.schemas().get(kept["schema"]))
    builder = builder.setCurrentSchema(schema, base.lastColumnId())
    builder = builder.setBranchSnapshot(kept["snapshot"], "main").removeRef(TAG)
    if "spec" in kept:  # a rewrite of before there were partitions did not write it down
        builder = builder.setDefaultPartitionSpec(kept["spec"])
        if kept["partition_by"] is None:
            gone.add(PARTITION_PROPERTY)
        else:
            properties.put(PARTITION_PROPERTY, kept["partition_by"])
    operations.commit(base, builder.setProperties(properties).removeProperties(gone).build())
    return True
