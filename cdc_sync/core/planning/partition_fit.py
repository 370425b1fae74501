"""Whether a table has the columns that it is to be partitioned by."""

from __future__ import annotations

from cdc_sync.core.migration.modes import Mode, column_types
from cdc_sync.core.migration.wording import type_text
from cdc_sync.core.model.codes import Code
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.partitioning import Partitioning, field_text
from cdc_sync.core.schema.transforms import what_it_takes
from cdc_sync.core.schema.types import NESTED


def misfit(partitioning: Partitioning, schema: InternalSchema, mode: Mode) -> Refused | None:
    """Return why a table with this schema cannot be partitioned so, None if it can.

    Columns that only the target still has do not count: no new row has a value there.
    """
    types = column_types(schema.live, mode)
    for item in partitioning.fields:
        type_ = types.get(item.column)
        if type_ is None:
            return Refused(
                code=Code.PARTITIONS,
                reason=f"partition_by names {field_text(item)}, and the table has no column {item.column!r}",
                remedy="name a column that it has in partition_by, by its present name",
            )
        taken = None if isinstance(type_, NESTED) else what_it_takes(item, type_)
        if isinstance(type_, NESTED) or taken is not None:
            why = "no table is partitioned by lists, maps and structs" if taken is None else f"it takes {taken} only"
            return Refused(
                code=Code.PARTITIONS,
                reason=f"partition_by names {field_text(item)}, column {item.column!r} is {type_text(type_)}; {why}",
                remedy="name another column or transform in partition_by",
            )
    return None
