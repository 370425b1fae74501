"""`docs/type-changes.md`: what becomes of a column whose type changed, for every pair of types, printed by the code.

Written anew by `python -m scripts.pages.type_changes > docs/type-changes.md`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from typing_extensions import assert_never

from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.typechange import InPlace, Rewrite, SideColumn, Stop, decide_type_change
from cdc_sync.core.schema.casts import Cast
from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
    ListType,
    StructType,
)

TYPES: tuple[tuple[str, DataType], ...] = (
    ("boolean", BOOLEAN),
    ("int8", INT8),
    ("int32", INT32),
    ("int64", INT64),
    ("float", FLOAT32),
    ("double", FLOAT64),
    ("decimal(10,2)", DecimalType(precision=10, scale=2)),
    ("decimal(12,2)", DecimalType(precision=12, scale=2)),
    ("decimal(10,4)", DecimalType(precision=10, scale=4)),
    ("text", STRING),
    ("bytes", BINARY),
    ("date", DATE),
    ("timestamp", TIMESTAMP),
    ("timestamp with zone", TIMESTAMP_TZ),
    ("array", ListType(element_id=0, element=INT32)),
    ("struct", StructType(fields=())),
)
"""int16 is as int8, a map as an array; the two shorter decimals stand for more digits, and for another scale."""

_HEAD = """\
# Type changes

What becomes of a column of an Iceberg table whose type changed at the source. This page is written from the tables that
the program acts by (`casts.py` and `typechange.py` in `cdc_sync/core`), and a test compares them; another runs
every pair on Iceberg, with edge values, and compares each value with what Python says.

- `=` nothing to do. `in place`: Iceberg widens the column, no row is touched.
- A number: existing rows are *rewritten* by the checked cast of that number below, with `policy.incompatible_types:
  rewrite`, the default. Columns, rows, version and progress change in one commit. With `side_column` the old
  column is kept with its data under the name `<name>__retired_<id>`, and a new one takes name and type; existing rows
  read NULL in it. With `pause` the table waits.
- `side`: no value of the one type is one of the other, so `rewrite` does as `side_column` does.
- `w`: every value stays the same, and yet Iceberg cannot widen to the type, so the rows are rewritten.

A value is converted only where every database that has the cast gives the same result. A stored value that has no place
in the new type is not dropped in silence: the row has NULL there, `status` counts such values by column, the first
thousand of each are written down with their rows' keys (`unconverted/` among the pipeline's files), and the whole state
before the rewrite is kept in the table (the tag `cdc_sync_before_rewrite`) until the next one. `cdc-sync rollback`
brings it back. Events of the old type that come late take the same cast; one whose value has no place is set aside.

## Inside structs, lists and maps

A member of a struct is known by its name and has an id for as long as it lives, at any depth: in a struct, in a list's
elements, in a map's values, as in `lines.element.address.street`.

- A member that comes reads NULL in existing rows. One that goes takes its values with it; events from before that come
  late have theirs left out. In another order, values follow the name. None of that is another type: it is done in place
  or rewritten ([formats.md](formats.md)), whatever `incompatible_types` says.
- Nothing in events tells a member with a new name from another one. It is a new one, and the old one goes with its
  data; the history and a warning say so, and `unproven_rename: pause` asks first.
- A member, element or value of another type is what a column of that type would be: widened, or each value by the cast
  of the table below, and where one has no place, it alone is NULL. It counts for its column, and is written down with
  all of the column's value. If one of them has no cast, the whole column goes by `side`.
- The keys of a map are converted only if every key has a place and no two become one; else it is `side`.
- `policy`: `add_column`, `drop_column` and `change_type` are said of members too ([modes.md](modes.md)).

## A type that changes inside one type of the lake

`varchar(10)` and `varchar(3)` are one type here, as are `timestamp(6)` and `timestamp(3)`, `char` and `text`, `json`
and `jsonb`. The source may have cut off, rounded or padded values, and sends no event of it. The column is marked
`needs resync`, unless every value of the old type is one of the new; `history` says either. What tells of it:

- the source's statements (`evidence`), with both types, and `USING` where there is one;
- the type that events carry with `column.propagate.source.type`;
- the name, length, scale or labels in an event's schema: `io.debezium.time.MicroTimestamp` becomes `Timestamp`.

Where there is none of these, nothing tells: set up one of them, or compare with `cdc-sync verify`.

## A setting of the connector that was switched

`decimal.handling.mode`, `binary.handling.mode`, `interval.handling.mode`, `hstore.handling.mode`,
`bigint.unsigned.handling.mode` and `time.precision.mode` choose how values are written. Switched while the job runs, a
column's type or spelling changes like a type at the source. `history` and the mark name the setting; where no evidence
says that the source's type is the same, they name both. Values of before are converted by the casts below, and marked
where the connector would write them otherwise now (bytes as base64, an interval as text). `cdc-sync resync` has them
sent again.

## Columns by which rows are found

A column by which rows are found (of the key; every column of a table without one) is rewritten only if every value has
a place and no two become one; else the table pauses. A target of more than `policy.rewrite_limit` bytes pauses first.
"""


def render() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *_matrix(), "", *_rules()]) + "\n"


def _matrix() -> Iterator[str]:
    names = [name for name, _ in TYPES]
    yield "| from \\ to | " + " | ".join(names) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for name, old in TYPES:
        yield f"| **{name}** | " + " | ".join(_cell(old, new) for _, new in TYPES) + " |"


def _cell(old: DataType, new: DataType) -> str:
    if old == new:
        return "="
    decided = decide_type_change(ICEBERG, "rewrite", old, new)
    match decided:
        case InPlace():
            return "in place"
        case Rewrite(cast=cast):
            return "w" if cast is None else str(list(Cast).index(cast) + 1)
        case SideColumn():
            return "side"
        case Stop():
            return "pause"
        case _:
            assert_never(decided)


def _rules() -> Iterator[str]:
    yield "| | cast | what becomes of a value |"
    yield "|---|---|---|"
    for number, cast in enumerate(Cast, 1):
        yield f"| {number} | {cast.value} | {cast.rule} |"


if __name__ == "__main__":
    sys.stdout.write(render())
