"""Columns as Hudi holds them: an Avro record, every part of which may be NULL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as T

from cdc_sync.core.migration.capabilities import SchemaEvolution
from cdc_sync.core.migration.modes import METADATA, Mode
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.types import DataType
from cdc_sync.spark.types import to_spark, wide_integer, with_leaves

RECORD, NAMESPACE = "record", "cdc_sync"
KEY, COMMIT_TIME, FILE_NAME = "_hoodie_record_key", "_hoodie_commit_time", "_hoodie_file_name"
PARTITION_PATH = "_hoodie_partition_path"
META = (COMMIT_TIME, "_hoodie_commit_seqno", KEY, PARTITION_PATH, FILE_NAME)
"""Hudi's own columns of every table, in order. Source: `HoodieRecord.HOODIE_META_COLUMNS`."""
DELETED = "_hoodie_is_deleted"
"""The flag of a row to be deleted, which never reaches the table. Source: `HoodieRecord.HOODIE_IS_DELETED_FIELD`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldColumns:
    """The columns of a table, Hudi's own left out, as a commit carries them.

    Attributes:
        avro: names and types, as an Avro schema.
        internal: the same with ids (`internal_schema`), Hudi's own too; None in the regime schema-on-write.
    """

    avro: str
    internal: str | None = None

    @property
    def evolution(self) -> SchemaEvolution:
        """How files that are older than these columns are read."""
        return "on_write" if self.internal is None else "on_read"


def held_type(type_: DataType) -> T.DataType:
    """Return the Spark type that a column reads back as: Avro has no 8 and 16 bit integers."""
    return with_leaves(to_spark(type_), wide_integer, optional=True)


def table_struct(schema: InternalSchema, mode: Mode, behind: Iterable[tuple[str, DataType]] = ()) -> T.StructType:
    """Return the columns of a table.

    Args:
        schema: has the names it holds.
        behind: names and types of those it is partitioned by.
    """
    metadata = METADATA if mode == "append" else ()
    return T.StructType(
        [
            T.StructField(
                column.name, held_type(column.type), True, {"comment": column.comment} if column.comment else None
            )
            for column in schema.columns
        ]
        + [T.StructField(label, held_type(type_), True) for label, type_ in (*metadata, *behind)]
    )


def avro_schema(jvm: Any, struct: T.StructType) -> str:
    """Return the columns as the Avro schema that a commit carries."""
    java = jvm.org.apache.spark.sql.types.DataType.fromJson(struct.json())
    convert = jvm.org.apache.hudi.HoodieSchemaConversionUtils.convertStructTypeToHoodieSchema
    return str(convert(java, RECORD, NAMESPACE).toString())


def struct_of(jvm: Any, schema: str) -> T.StructType:
    """Return the columns of an Avro schema."""
    parsed = jvm.org.apache.hudi.common.schema.HoodieSchema.parse(schema)
    java = jvm.org.apache.hudi.HoodieSchemaConversionUtils.convertHoodieSchemaToStructType(parsed)
    return T.StructType.fromJson(json.loads(java.json()))


def prepared_schema(schema: str) -> str:
    """Return the schema of rows that say where they belong: Hudi's own columns and the flag before the table's."""
    record = json.loads(schema)
    own: Sequence[tuple[str, str]] = (*((name, "string") for name in META), (DELETED, "boolean"))
    fields = [{"name": name, "type": ["null", type_], "default": None} for name, type_ in own]
    return json.dumps({**record, "fields": [*fields, *record["fields"]]})
