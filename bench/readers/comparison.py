"""What the source's table holds, and where a reader shows something else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.readers.values import Row, Value, encode, encode_map, same
from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.migration.namerules import DERIVED_PREFIX
from cdc_sync.testing import SourceTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A whole table, as somebody shows it: names of the columns in their order, and the rows in any."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def wanted(table: SourceTable) -> Shown:
    """Return the table as its statements made it."""
    columns = {column.field or "": column for column in table.columns}
    return Shown(
        columns=tuple(columns),
        rows=tuple({name: _encoded(columns[name], value) for name, value in row.items()} for row in table.rows),
    )


def _encoded(column: ConnectSchema, value: object) -> Value:
    if column.type == "map" and isinstance(value, Mapping):
        return encode_map(list(value.items()))
    if column.type in ("float", "double") and isinstance(value, int | float):
        return encode(float(value))
    if column.type == "struct" and isinstance(value, Mapping):
        return ["struct", {member.field: _encoded(member, value[member.field]) for member in column.members}]
    return encode(value)


def differences(table: SourceTable, shown: Shown) -> Iterator[str]:
    """Yield one sentence for each column, row and value that the reader shows otherwise."""
    ours, shown = wanted(table), _of_the_source(shown)
    if shown.columns != ours.columns:
        yield f"columns are {', '.join(shown.columns)} instead of {', '.join(ours.columns)}"
        return
    singles = {column.field for column in table.columns if column.type == "float"}
    theirs = _by_key(shown.rows)
    for key, row in _by_key(ours.rows).items():
        (mine,) = row
        found = theirs.pop(key, [])
        if len(found) != 1:
            yield f"row {key} is there {len(found)} times"
            continue
        for name in ours.columns:
            if not same(mine[name], found[0][name], single=name in singles):
                yield f"row {key}: {name} is {_text(found[0][name])} instead of {_text(mine[name])}"
    for key in theirs:
        yield f"row {key} is there, and not in the source"


def _of_the_source(shown: Shown) -> Shown:
    """Leave out what the job has beside the source's columns.

    That is what it keeps of one whose new type has no place for its old values, and what it partitions a table by.
    """
    kept = tuple(name for name in shown.columns if not re.search(rf"__retired_\d+$|^{DERIVED_PREFIX}", name))
    return Shown(columns=kept, rows=shown.rows)


def _by_key(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(_text(row["id"]), []).append(row)
    return found


def _text(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case ["list", list(items)]:
            return "[" + ", ".join(_text(item) for item in items) + "]"
        case ["map", list(items)]:
            return "{" + ", ".join(f"{_text(key)}: {_text(item)}" for key, item in items) + "}"
        case ["struct", dict(items)]:
            return "(" + ", ".join(f"{name}={_text(item)}" for name, item in items.items()) + ")"
        case ["text", text]:
            return repr(text)
        case [kind, text]:
            return f"{kind} {text}"
    raise ValueError(f"not a value: {value}")
