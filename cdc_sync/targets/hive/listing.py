"""How a table that is found by its path is listed in a Hive metastore, for each format; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import types as T

from cdc_sync.targets.hive.columns import hive_columns, spark_parameters
from cdc_sync.targets.hive.metastore import PARQUET_FILES, Entry, Form

_RO = "hoodie.query.as.ro.table"
"""What tells Spark whether to read files without their logs. Source: Hudi's `ConfigUtils.IS_QUERY_AS_RO_TABLE`."""
_DELTA = Form(
    # A Delta table's log is for readers that know it, whatever stands here; this is what Spark itself writes.
    input="org.apache.hadoop.mapred.SequenceFileInputFormat",
    output="org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
    serde="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)
_HUDI_INPUT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
_HUDI_LOGS_INPUT = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A table as it is now.

    Attributes:
        location: its folder.
        struct: all columns that readers find, comments in their metadata.
        provider: how Spark calls the format.
        logs: some rows lie in logs beside the files.
        options: what Spark has to be told to read it right.
    """

    location: str
    struct: T.StructType
    provider: str
    logs: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


SUFFIXES = ("", "_ro", "_rt")
"""What is put behind the name of a table for its entries; of tables without logs there is the first only."""


def entries(listed: Listed, own: Mapping[str, str]) -> Mapping[str, Entry]:
    """Return the entries of a table by suffix.

    A table with logs has Hudi's two, `_ro` without what is in the logs and `_rt` with it, and no plain one: what a
    plain one means differs from reader to reader. Source: `HiveSyncTool`, `hoodie.datasource.hive_sync.table.strategy`.

    Args:
        own: parameters that say whose the entries are.
    """
    struct = _bare(listed.struct)
    parameters = {**spark_parameters(struct, listed.provider), **own}
    return {
        suffix: Entry(location=listed.location, columns=hive_columns(struct), parameters=parameters, form=form)
        for suffix, form in _forms(listed).items()
    }


def _bare(struct: T.StructType) -> T.StructType:
    """Leave out what a format notes beside its columns, but for comments."""
    kept = (
        (it, {key: value for key, value in (it.metadata or {}).items() if key == "comment"}) for it in struct.fields
    )
    return T.StructType([T.StructField(it.name, _bare_type(it.dataType), True, metadata) for it, metadata in kept])


def _bare_type(type_: T.DataType) -> T.DataType:
    match type_:
        case T.StructType():
            return _bare(type_)
        case T.ArrayType():
            return T.ArrayType(_bare_type(type_.elementType))
        case T.MapType():
            return T.MapType(_bare_type(type_.keyType), _bare_type(type_.valueType))
        case _:
            return type_


def _forms(listed: Listed) -> Mapping[str, Form]:
    if listed.provider == "delta":
        return {"": _DELTA}
    if not listed.logs:
        forms = {"": _hudi(_HUDI_INPUT, read_only=False)}
    else:
        forms = {"_ro": _hudi(_HUDI_INPUT, read_only=True), "_rt": _hudi(_HUDI_LOGS_INPUT, read_only=False)}
    return {suffix: replace(form, options={**form.options, **listed.options}) for suffix, form in forms.items()}


def _hudi(input_: str, *, read_only: bool) -> Form:
    return Form(
        input=input_,
        output=PARQUET_FILES.output,
        serde=PARQUET_FILES.serde,
        options={_RO: str(read_only).lower()},
    )
