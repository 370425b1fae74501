"""Rows of Parquet files, whose columns are found by name, and what may change while they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.parquet as pq

from tests.lakes.table import Misread
from tests.lakes.words import of_arrow

_TRIES = 20

T = TypeVar("T")


def rows_of(
    file: Path, columns: Mapping[str, str], *, own: Iterable[str] = (), widened: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Read a file as one of a table; of a column that it is older than its rows have NULL.

    Args:
        columns: the table's, name -> type in Iceberg's words, in order.
        own: the format's own columns, which are left out.
        widened: type in a file -> type of the table, where readers are known to bring one to the other.

    Raises:
        Misread: if the file has other columns, or types, or another order.
    """
    data = pq.ParquetFile(file).read()
    kept = data.select([name for name in data.column_names if name not in own])
    found = {field.name: of_arrow(field.type) for field in kept.schema}
    if [name for name in columns if name in found] != [*found]:
        raise Misread(f"{file} has the columns {', '.join(found)}, the table {', '.join(columns)}")
    for name, type_ in found.items():
        if type_ != columns[name] and widened.get(type_) != columns[name]:
            raise Misread(f"{file} has {name} as {type_}, the table as {columns[name]}")
    older = dict.fromkeys(name for name in columns if name not in found)
    return [{**row, **older} for row in kept.to_pylist()]


def undisturbed(read: Callable[[], T]) -> T:
    """Read anew if files went meanwhile: the job cleans up behind its commits."""
    for _ in range(_TRIES):
        try:
            return read()
        except FileNotFoundError:
            continue
    return read()


def newest(places: Iterable[Path]) -> int | None:
    """Return when any of some folders changed last, in nanoseconds."""
    times = []
    for place in places:
        try:
            times.append(place.stat().st_mtime_ns)
        except FileNotFoundError:
            continue
    return max(times, default=None)
