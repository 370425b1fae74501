"""What a target table holds: the source's rows as they are now, or every event as a row of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from cdc_sync.core.schema.internal import Column
from cdc_sync.core.schema.types import INT32, INT64, STRING, TIMESTAMP_TZ, DataType, ListType

Mode: TypeAlias = Literal["upsert", "append"]
"""`upsert`: the table is a copy of the source's. `append`: it is a changelog, which only grows."""

# Only ever append: in Hudi tables whose columns have ids, those of these columns are their places here.
METADATA: tuple[tuple[str, DataType], ...] = (
    ("_cdc_op", STRING),
    ("_cdc_topic", STRING),
    ("_cdc_partition", INT32),
    ("_cdc_offset", INT64),
    ("_cdc_position", STRING),
    ("_cdc_ts", TIMESTAMP_TZ),
    ("_cdc_unchanged", ListType(element_id=0, element=STRING)),
)
"""The columns that stand behind the source's in a changelog, which the tracked schema knows nothing of.

`_cdc_op` is Debezium's letter; topic, partition and offset name the record, and no two rows share them;
`_cdc_position` is the place in the source's log as `events.SourcePosition` writes it; `_cdc_ts` is `source.ts_ms`,
the time of the commit or statement; `_cdc_unchanged` names the columns whose value the event leaves out because it
did not change (NULL in the row), and is NULL where there is none.
"""


def metadata_names(mode: Mode) -> tuple[str, ...]:
    """Return the names of the columns that stand behind the source's."""
    return tuple(name for name, _ in METADATA) if mode == "append" else ()


def column_types(columns: Iterable[Column], mode: Mode) -> dict[str, DataType]:
    """Return the types of a table's columns by name, those behind the source's among them."""
    types = {column.name: column.type for column in columns}
    return types | dict(METADATA) if mode == "append" else types


def taken_name(name: str, mode: Mode) -> str | None:
    """Return the metadata column that a source column of this name would collide with, None if there is none.

    Engines do not tell names apart by case, so a name that differs only in case collides.
    """
    if mode == "upsert":
        return None
    return next((taken for taken, _ in METADATA if taken.casefold() == name.casefold()), None)


def mode_remedy(has: Mode, wanted: Mode) -> tuple[str, str] | None:
    """Return why a table of one mode cannot go on in another and what to do, None if the modes are the same."""
    if has == wanted:
        return None
    kinds = {"upsert": "the source's rows", "append": "a changelog"}
    return (
        f"the target holds {kinds[has]} (mode: {has}), and the configuration asks for {kinds[wanted]} (mode: {wanted})",
        f"set mode: {has} again, or give the table another target and snapshot it again",
    )
