"""What a table can be partitioned by."""

from __future__ import annotations

import pytest

from cdc_sync.core.planning.partition_fit import misfit
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
    ListType,
)

_TYPES: dict[str, DataType] = {
    "boolean": BOOLEAN,
    "int8": INT8,
    "int16": INT16,
    "int32": INT32,
    "int64": INT64,
    "float": FLOAT32,
    "double": FLOAT64,
    "decimal": DecimalType(precision=9, scale=2),
    "string": STRING,
    "binary": BINARY,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "instant": TIMESTAMP_TZ,
    "list": ListType(element_id=100, element=STRING),
}
_INTEGERS = {"int8", "int16", "int32", "int64"}
# Source: Iceberg specification, "Partition Transforms".
_TAKEN = {
    "{}": _TYPES.keys() - {"list"},
    "bucket(4, {})": _TYPES.keys() - {"list", "boolean", "float", "double"},
    "truncate(4, {})": _INTEGERS | {"decimal", "string", "binary"},
    "year({})": {"date", "timestamp", "instant"},
    "month({})": {"date", "timestamp", "instant"},
    "day({})": {"date", "timestamp", "instant"},
    "hour({})": {"timestamp", "instant"},
}
_SCHEMA = InternalSchema(
    columns=(
        *(Column(id=number, name=name, type=type_) for number, (name, type_) in enumerate(_TYPES.items(), 1)),
        Column(id=50, name="gone", type=STRING, retired=True),
    ),
    primary_key=(),
    last_column_id=100,
)


@pytest.mark.parametrize("name", _TYPES)
@pytest.mark.parametrize("transform", _TAKEN)
def test_a_transform_fits_the_types_that_iceberg_says(transform: str, name: str) -> None:
    partitioning = Partitioning.parse([transform.format(name)])

    assert (misfit(partitioning, _SCHEMA, "upsert") is None) == (name in _TAKEN[transform])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("region", "partition_by names region, and the table has no column 'region'"),
        ("Date", "partition_by names Date, and the table has no column 'Date'"),
        ("gone", "partition_by names gone, and the table has no column 'gone'"),
        ("_cdc_ts", "partition_by names _cdc_ts, and the table has no column '_cdc_ts'"),
        ("date, hour(date)", "partition_by names hour(date), column 'date' is DATE; it takes timestamps only"),
        ("list", "partition_by names list, column 'list' is ARRAY<STRING>; no table is partitioned by lists"),
    ],
)
def test_what_does_not_fit_is_said_with_a_remedy(text: str, reason: str) -> None:
    found = misfit(Partitioning.parse([text]), _SCHEMA, "upsert")

    assert found is not None
    assert found.reason.startswith(reason)
    assert "in partition_by" in found.remedy


def test_a_changelog_can_be_partitioned_by_its_own_columns() -> None:
    assert misfit(Partitioning.parse(["day(_cdc_ts), _cdc_op"]), _SCHEMA, "append") is None
    assert misfit(Partitioning.parse(["_cdc_unchanged"]), _SCHEMA, "append") is not None


def test_no_partitions_fit_every_table() -> None:
    assert misfit(Partitioning(), _SCHEMA, "upsert") is None
