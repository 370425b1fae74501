"""The readers refuse a table whose files are not what its log says, and find the source's names again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.lakes.files import rows_of
from tests.lakes.table import Misread, held, source_name
from tests.lakes.words import of_arrow, of_avro, of_spark


@pytest.mark.parametrize("name", ["id", "a b", "größe", "1st", "x;y", "it's", "😀", "_x", "Odd.Table é"])
def test_a_name_is_found_again(name: str) -> None:
    assert held(name).isascii()
    assert held(name).isidentifier()
    assert source_name(held(name)) == name


def file_of(folder: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), folder / "one.parquet")
    return folder / "one.parquet"


def test_a_file_is_older_than_columns_behind_its_own(tmp_path: Path) -> None:
    file = file_of(tmp_path, id=pa.array([1], pa.int32()), _own=["x"], a=["y"])
    columns = {"id": "long", "a": "string", "b": "double"}
    assert rows_of(file, columns, own=["_own"], widened={"int": "long"}) == [{"id": 1, "a": "y", "b": None}]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"id": "long"}, "has the columns id, a, the table id"),
        ({"a": "string", "id": "int"}, "has the columns id, a, the table a, id"),
        ({"id": "double", "a": "string"}, "has id as int, the table as double"),
        ({"id": "int", "a": "binary"}, "has a as string, the table as binary"),
    ],
)
def test_a_file_that_is_not_the_table_s_is_refused(columns: dict[str, str], said: str, tmp_path: Path) -> None:
    file = file_of(tmp_path, id=pa.array([1], pa.int32()), a=["y"])
    with pytest.raises(Misread, match=said):
        rows_of(file, columns, widened={"int": "long"})


def test_each_format_s_words_are_iceberg_s() -> None:
    wanted = "struct<a: int, b: timestamptz, c: timestamp, d: list<decimal(9, 2)>, e: map<string, long>, f: binary>"
    decimal = {"type": "fixed", "name": "f", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}
    avro = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "a", "type": ["null", "int"]},
            {"name": "b", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
            {"name": "c", "type": [{"type": "long", "logicalType": "local-timestamp-micros"}, "null"]},
            {"name": "d", "type": {"type": "array", "items": ["null", decimal]}},
            {"name": "e", "type": {"type": "map", "values": ["null", "long"]}},
            {"name": "f", "type": "bytes"},
        ],
    }
    spark = {
        "type": "struct",
        "fields": [
            {"name": "a", "type": "integer"},
            {"name": "b", "type": "timestamp"},
            {"name": "c", "type": "timestamp_ntz"},
            {"name": "d", "type": {"type": "array", "elementType": "decimal(9,2)"}},
            {"name": "e", "type": {"type": "map", "keyType": "string", "valueType": "long"}},
            {"name": "f", "type": "binary"},
        ],
    }
    arrow = pa.struct(
        {
            "a": pa.int32(),
            "b": pa.timestamp("us", "UTC"),
            "c": pa.timestamp("us"),
            "d": pa.list_(pa.decimal128(9, 2)),
            "e": pa.map_(pa.string(), pa.int64()),
            "f": pa.binary(),
        }
    )
    assert [of_avro(["null", avro]), of_spark(spark), of_arrow(arrow)] == [wanted] * 3
