"""Reads one table with an engine that is a Python package, and prints what it shows as JSON.

    python -m bench.readers.embedded ENGINE FORMAT PLACE

PLACE is the newest metadata file of an Iceberg table, and the folder of any other. It runs in an environment of the
engines' own (requirements.txt), a process for each reading: one engine's crash, or library, is no other one's.
"""

from __future__ import annotations

import glob
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from typing import Any

from bench.readers.values import Value, encode, encode_map


def _pyiceberg(form: str, place: str) -> Any:
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(place).scan().to_arrow()


def _duckdb(form: str, place: str) -> Any:
    import duckdb

    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.sql("SET TimeZone = 'UTC'")
    for name in {"iceberg": ("avro", "httpfs", "iceberg"), "delta": ("httpfs", "delta")}.get(form, ()):
        folder = os.path.dirname(importlib.import_module(f"duckdb_extension_{name}").__file__ or "")
        (path,) = glob.glob(f"{folder}/extensions/*/{name}.duckdb_extension")
        connection.sql(f"LOAD '{path}'")
    call = {"iceberg": "iceberg_scan('{}')", "delta": "delta_scan('{}')"}
    if form == "parquet":
        found = connection.sql(f"SELECT * FROM read_parquet({_files(place)}, union_by_name = true)")
    else:
        found = connection.sql(f"SELECT * FROM {call[form].format(place.removeprefix('file://'))}")
    return found.arrow().read_all()


def _hudi(form: str, place: str) -> Any:
    import pyarrow as pa
    from hudi import HudiTableBuilder

    rows = pa.Table.from_batches(HudiTableBuilder.from_base_uri(place).build().read())
    return rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")])


def _deltalake(form: str, place: str) -> Any:
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    return pa.table(QueryBuilder().register("t", DeltaTable(place)).execute("SELECT * FROM t").read_all())


def _polars(form: str, place: str) -> Any:
    import polars

    match form:
        case "iceberg":
            return polars.scan_iceberg(place).collect().to_arrow()
        case "delta":
            return polars.read_delta(place).to_arrow()
    return polars.concat(map(polars.read_parquet, _files(place)), how="diagonal").to_arrow()


def _daft(form: str, place: str) -> Any:
    import daft

    match form:
        case "iceberg":
            from pyiceberg.table import StaticTable

            return daft.read_iceberg(StaticTable.from_metadata(place)).to_arrow()
        case "delta":
            return daft.read_deltalake(place).to_arrow()
        case "hudi":
            rows = daft.read_hudi(place).to_arrow()
            return rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")])
    return _joined(daft.read_parquet(pattern).to_arrow() for pattern in _files(place))


def _chdb(form: str, place: str) -> Any:
    import io

    import chdb
    import pyarrow.parquet as pq

    folder = "/" + place.removeprefix("file:").lstrip("/")
    os.chdir("/")  # ClickHouse reads what lies below the working folder
    call = {
        "iceberg": f"icebergLocal('{folder.partition('/metadata/')[0]}/')",
        "delta": f"deltaLakeLocal('{folder}/')",
        "hudi": f"hudi('{folder}/')",
    }
    # Parquet, because ClickHouse's Arrow has no decimals of 38 digits of its own.
    settings = "session_timezone = 'UTC', output_format_parquet_string_as_string = 0"

    def shown(source: str) -> Any:
        found = chdb.query(f"SELECT * FROM {source} SETTINGS {settings}", "Parquet")
        rows = pq.read_table(io.BytesIO(found.bytes()))
        # What it takes out of folders' names has a type of each folder's own.
        return rows.select([name for name in rows.column_names if not name.startswith("cdc_sync_by_")])

    if form == "parquet":
        return _joined(shown(f"file('{pattern.removeprefix('file:')}')") for pattern in _files(place))
    return shown(call[form])


def _text_where_it_is(value: Any) -> Any:
    """Return texts for bytes that are some, in every part: ClickHouse's one type is for both."""
    match value:
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return value
        case list() | tuple():
            return type(value)(map(_text_where_it_is, value))
        case dict():
            return {name: _text_where_it_is(item) for name, item in value.items()}
    return value


def _pyarrow(form: str, place: str) -> Any:
    import pyarrow.parquet as pq

    files = (file for pattern in _files(place) for file in glob.glob(pattern.removeprefix("file:")))
    return _joined(map(pq.read_table, files))


def _joined(tables: Iterable[Any]) -> Any:
    """Return tables as one; a file of a partition that nothing touched since lacks a column that was added last."""
    import pyarrow as pa

    return pa.concat_tables(tables, promote_options="default")


def _files(place: str) -> list[str]:
    """Return patterns of the data files of a Parquet table, or of its partitions."""
    return [f"{folder}/*.parquet" for folder in place.split(",")]


ENGINES: dict[str, tuple[str, Callable[[str, str], Any], tuple[str, ...]]] = {
    "pyiceberg": ("pyiceberg", _pyiceberg, ("iceberg",)),
    "duckdb": ("duckdb", _duckdb, ("iceberg", "delta", "parquet")),
    "delta-rs": ("deltalake", _deltalake, ("delta",)),
    "hudi-rs": ("hudi", _hudi, ("hudi",)),
    "polars": ("polars", _polars, ("iceberg", "delta", "parquet")),
    "daft": ("daft", _daft, ("iceberg", "delta", "hudi", "parquet")),
    "clickhouse": ("chdb", _chdb, ("iceberg", "delta", "parquet")),
    "arrow": ("pyarrow", _pyarrow, ("parquet",)),
}
"""By name: the package, how it reads, and which formats it knows."""


def _rows(table: Any, *, bytes_are_texts: bool) -> Iterator[dict[str, Value]]:
    import pyarrow as pa

    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        is_map = pa.types.is_map(column.type)
        values = _plain(column)
        if bytes_are_texts:
            values = [_text_where_it_is(value) for value in values]
        columns[name] = [None if value is None else encode_map(value) if is_map else encode(value) for value in values]
    for number in range(table.num_rows):
        yield {name: values[number] for name, values in columns.items()}


def _plain(column: Any) -> list[Any]:
    """Return a column's values; points in time are brought to microseconds, which Python holds."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) and column.type.unit != "us":
        column = column.cast(pa.timestamp("us", column.type.tz))
    return list(column.to_pylist())


def main() -> int:
    name, form, place = sys.argv[1:]
    package, read, _ = ENGINES[name]
    table = read(form, place)
    print(
        json.dumps(
            {
                "version": version(package),
                "columns": table.column_names,
                "rows": list(_rows(table, bytes_are_texts=name == "clickhouse")),
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
