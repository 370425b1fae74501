"""How a new Iceberg table is made: its columns, its partitions, its place and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql.types import StructField, StructType

from cdc_sync.core.migration.migration import CreateTable
from cdc_sync.core.migration.modes import METADATA, Mode
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.partitioning import UNPARTITIONED
from cdc_sync.spark.types import to_spark
from cdc_sync.targets.common.java import java_map
from cdc_sync.targets.iceberg.partitions import new_schema_and_spec, properties_of

_TABLE_PROPERTIES = {
    # v2 position deletes are what every listed reader takes; v3 deletion vectors are not.
    "format-version": "2",
    "write.merge.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
    # Only back-fills update, and they touch every row: rewriting files beats a delete file for each.
    "write.update.mode": "copy-on-write",
    # One delete file for each task instead of one for each data file it touches.
    "write.delete.granularity": "partition",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}


def make_namespace(catalog: Any, namespace: Any) -> None:
    """Make a namespace if there is none; one at a time.

    A Hive metastore that is asked twice refuses one of the two, and then deletes the folder, if that one made it, with
    the tables that are in it by then. Source: Hive 2.3 `HMSHandler.create_database_core`.

    Raises:
        Py4JJavaError: as the catalogue does.
    """
    if catalog.namespaceExists(namespace):
        return
    try:
        catalog.createNamespace(namespace)
    except Py4JJavaError:
        if not catalog.namespaceExists(namespace):  # else another program was first
            raise


def create_table(
    jvm: Any, catalog: Any, identifier: Any, step: CreateTable, version: int, *, properties: Mapping[str, str]
) -> None:
    """Make a table that is not there.

    Args:
        jvm: the gateway's view of the JVM.
        catalog: the Java catalog.
        identifier: the table's, in Java.
        step: what it is to hold.
        version: of its schema.
        properties: win over those of every table.

    Raises:
        Py4JJavaError: as Iceberg does.
    """
    together = java_map(jvm, _TABLE_PROPERTIES | properties_of(step.partitioning) | dict(properties))
    struct = _java_struct(jvm, step.schema, step.mode)
    schema, spec = new_schema_and_spec(jvm, struct, step.partitioning or UNPARTITIONED)
    catalog.createTable(identifier, schema, spec, _location(catalog, identifier, version), together)


def _location(catalog: Any, identifier: Any, version: int) -> str | None:
    """Return where a new table lies: as the catalogue says, but never where an archived one of its name does.

    Whoever removes orphan files from a folder of two tables takes each for the other's orphans.
    """
    if version < 3:
        return None  # the first life takes a version, and so does its end: nothing has the name a second time
    begin = f"{identifier.name()}__dropped_"
    archived = [item for item in catalog.listTables(identifier.namespace()) if item.name().startswith(begin)]
    numbered = [item for item in archived if item.name().removeprefix(begin).isdecimal()]
    if not numbered:
        return None
    newest = max(numbered, key=lambda item: int(item.name().removeprefix(begin)))
    return f"{catalog.loadTable(newest).location()}__{version}"


def _java_struct(jvm: Any, schema: InternalSchema, mode: Mode) -> Any:
    metadata = METADATA if mode == "append" else ()
    struct = StructType(
        [
            StructField(
                column.name,
                to_spark(column.type),
                True,
                {"comment": column.comment} if column.comment else None,
            )
            for column in schema.columns
        ]
        + [StructField(label, to_spark(type_), True) for label, type_ in metadata]
    )
    return jvm.org.apache.spark.sql.types.DataType.fromJson(struct.json())
