"""New types for columns of an Iceberg table that has rows: schema, data, stamp and marker in one metadata commit.

Spark writes the converted rows to the table as an open Iceberg transaction has it, which readers do not see; the
transaction's commit is the change. A crash before leaves files that no metadata names. The snapshot before is kept by a
tag, and what `roll_back` needs beside it by a table property, both in the same commit.

Source: Iceberg's `StagedSparkTable` writes to `Transaction.table()` in the same way, for REPLACE TABLE AS SELECT.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_sync.migrate.migration import RewriteTable
from cdc_sync.progress import PROPERTY, Progress
from cdc_sync.targets.iceberg_partitions import left_columns, needed_by_specs, stamp_what_is_left
from cdc_sync.targets.iceberg_schema import alter
from cdc_sync.targets.stamps import PARTITION_PROPERTY

TAG = "cdc_sync_before_rewrite"
"""Keeps the newest snapshot before the last rewrite from being expired."""
_BEFORE_PROPERTY = "cdc_sync.before-rewrite"


def rewrite(
    spark: SparkSession,
    catalog: str,
    table: Any,
    rows: DataFrame,
    step: RewriteTable,
    *,
    stamp: tuple[str, str],
    progress: Progress,
) -> None:
    """Commit the changes of a step and `rows` as all the table has.

    Args:
        catalog: the Spark catalog that the table is in.
        table: Iceberg's, as it was when `rows` were read from it.
        rows: what `rows.converted_rows` returns.
        stamp: the property that says which version the columns are of.
        progress: what the rows contain.
    """
    jvm: Any = spark._jvm
    held = table.currentSnapshot().snapshotId()
    transaction = table.newTransaction()
    alter(jvm, transaction, step.steps)
    stamp_what_is_left(transaction, table)
    _keep(transaction, held)
    options = {
        f"snapshot-property.{PROPERTY}": progress.to_text(),
        # Whatever another writer commits meanwhile fails this, instead of being replaced.
        "isolation-level": "serializable",
        "validate-from-snapshot-id": str(held),
    }
    left = left_columns(transaction.table())
    _overwrite(
        spark, catalog, transaction.table(), rows.select("*", *(F.lit(None).alias(name) for name in left)), options
    )
    update = transaction.updateProperties()
    kept = {
        "version": step.version,
        "snapshot": held,
        "schema": table.schema().schemaId(),
        "spec": table.spec().specId(),
        "partition_by": table.properties().get(PARTITION_PROPERTY),
    }
    update.set(_BEFORE_PROPERTY, json.dumps(kept)).set(*stamp).commit()
    transaction.commitTransaction()


def _keep(transaction: Any, snapshot: int) -> None:
    snapshots = transaction.manageSnapshots()
    exists = transaction.table().refs().containsKey(TAG)
    (snapshots.replaceTag if exists else snapshots.createTag)(TAG, snapshot).commit()


def _overwrite(spark: SparkSession, catalog: str, table: Any, rows: DataFrame, options: dict[str, str]) -> None:
    """Replace all rows of a table that no catalog knows: the data frame's own writer takes names only.

    The catalog is there for its functions, by which rows are brought to their partitions.
    """
    jvm: Any = spark._jvm
    java_options = jvm.java.util.HashMap()
    for key, value in options.items():
        java_options.put(key, value)
    plugin = jvm.scala.Option.apply(spark._jsparkSession.sessionState().catalogManager().catalog(catalog))
    none = jvm.scala.Option.empty()
    target = jvm.org.apache.iceberg.spark.source.SparkTable(table, False)
    relation = jvm.org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation.create(target, plugin, none)
    plan = jvm.org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression.byName(
        relation,
        rows._jdf.queryExecution().analyzed(),
        jvm.org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral(),
        jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(java_options),
    )
    mode = jvm.org.apache.spark.sql.execution.CommandExecutionMode.ALL()
    spark._jsparkSession.sessionState().executePlan(plan, mode).assertCommandExecuted()


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
    properties = jvm.java.util.HashMap()
    properties.put(stamp_property, str(kept["version"]))
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
