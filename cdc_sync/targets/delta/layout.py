"""What a Delta table's metadata says of its columns and partitions, and what becomes of it; pure.

The partition columns are derived ones (`migration.derived`), behind all others. Delta takes neither a partition column
away nor a new one in while files are there that are divided otherwise; mapped by name, one can get another name. So
what is computed from a renamed column follows it in the same commit, and what was computed from one that goes stays,
under a name that tells nothing, until the next time that all rows are written: no new row has a value there.

Two properties say how the table is partitioned: the operator's text that it was brought to, as an Iceberg table has it,
and the partitioning itself in the present names of the columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cdc_sync.core.migration.capabilities import DELTA
from cdc_sync.core.migration.derived import Derived, Steps, derived_columns, derived_name, followed, text_left
from cdc_sync.core.migration.modes import Mode
from cdc_sync.core.migration.namerules import DERIVED_PREFIX
from cdc_sync.core.schema.changes import DropColumn, RenameColumn
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.partitioning import UNPARTITIONED, PartitionField, Partitioning
from cdc_sync.errors import TargetError
from cdc_sync.targets.common.properties import PARTITION_PROPERTY
from cdc_sync.targets.delta.fields import COLUMN_ID, Field, delta_type, new_field
from cdc_sync.targets.delta.schema import altered, new_fields

PRESENT_PROPERTY = "cdc_sync.partitioning"
"""How the table is partitioned, in the present names of its columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a table's metadata says.

    Attributes:
        fields: all columns.
        divided_by: names of the partition columns.
        properties: the table's.
    """

    fields: Sequence[Field]
    divided_by: tuple[str, ...] = ()
    properties: Mapping[str, str]

    @property
    def partitioning(self) -> Partitioning:
        """How the table is partitioned, in the present names of its columns."""
        text = self.properties.get(PRESENT_PROPERTY)
        return Partitioning.parse([text]) if text else UNPARTITIONED

    @property
    def own(self) -> list[Field]:
        """The columns that are not derived."""
        return [field for field in self.fields if not field["name"].startswith(DERIVED_PREFIX)]

    def derived(self, schema: InternalSchema, mode: Mode) -> tuple[Derived, ...]:
        """Return the columns that new rows are divided by; `schema` is in the target's names."""
        return derived_columns(self.partitioning, schema, mode, DELTA.columns)

    def left(self, derived: Sequence[Derived]) -> dict[str, str]:
        """Return the partition columns that nothing is computed for any more, and their types in SQL."""
        known = {column.name for column in derived}
        return {
            field["name"]: field["type"]
            for field in self.fields
            if field["name"].startswith(DERIVED_PREFIX) and field["name"] not in known
        }

    def less(self, keys: Sequence[str]) -> Layout:
        """Return the layout without some properties."""
        return replace(self, properties={key: value for key, value in self.properties.items() if key not in keys})

    def stamped(self, properties: Mapping[str, str]) -> Layout:
        """Return the layout with properties set."""
        return replace(self, properties={**self.properties, **properties})


def new_layout(
    schema: InternalSchema, mode: Mode, partitioning: Partitioning | None, properties: Mapping[str, str]
) -> Layout:
    """Return the layout of a table that is to be made; None is one of whose partitions nothing is said.

    Args:
        schema: in the target's names.
        partitioning: in the source's.
    """
    layout = Layout(fields=new_fields(schema, mode), properties=properties)
    return layout if partitioning is None else divided(layout, partitioning, schema, mode)


def divided(layout: Layout, partitioning: Partitioning, schema: InternalSchema, mode: Mode) -> Layout:
    """Return the layout of a table that is partitioned in another way, for which all rows are to be written.

    Args:
        partitioning: in the target's names.
    """
    derived = derived_columns(partitioning, schema, mode, DELTA.columns)
    fields = [*layout.own, *(new_field(column.name, column.type, None) for column in derived)]
    present = str(Partitioning(fields=tuple(column.field for column in derived)))
    laid = replace(layout, fields=fields, divided_by=tuple(column.name for column in derived))
    return laid.stamped({PRESENT_PROPERTY: present})


def rewritten(layout: Layout, steps: Steps, schema: InternalSchema, mode: Mode) -> Layout:
    """Return the layout after changes with which all rows are written; what is left of the partitioning stays."""
    if PRESENT_PROPERTY not in layout.properties:
        divided_by = _called_now(layout.divided_by, steps)
        return replace(layout, fields=altered(layout.fields, steps), divided_by=divided_by)
    before = layout.partitioning
    laid = replace(layout, fields=altered(layout.own, steps))
    return _less(divided(laid, followed(before, steps), schema, mode), before)


def relabelled(layout: Layout, steps: Steps, schema: InternalSchema, mode: Mode) -> Layout:
    """Return the layout after changes in place: no file is touched, so every partition column stays."""
    before = layout.partitioning
    laid = replace(layout, fields=altered(layout.fields, steps), divided_by=_called_now(layout.divided_by, steps))
    if not before.fields:
        return laid
    kept: list[PartitionField] = []
    for item in before.fields:
        old = derived_name(item, DELTA.columns)
        after = followed(Partitioning(fields=(item,)), steps)
        found = derived_columns(after, schema, mode, DELTA.columns)
        if found and _is_held_as(found[0], laid, old):
            kept.append(found[0].field)
            laid = _named(laid, old, _on_its_way(found[0].name))
        else:
            laid = _named(laid, old, _left_name(laid, old))
    for item in kept:
        name = derived_name(item, DELTA.columns)
        laid = _named(laid, _on_its_way(name), name)
    return _less(laid.stamped({PRESENT_PROPERTY: str(Partitioning(fields=tuple(kept)))}), before)


def _called_now(names: tuple[str, ...], steps: Steps) -> tuple[str, ...]:
    """Return the partition columns of a table that others made, which are columns of its own.

    Raises:
        TargetError: if one goes.
    """
    for _, change in steps:
        match change:
            case RenameColumn(old=old, new=new):
                names = tuple(new if name == old else name for name in names)
            case DropColumn(column=column) if column.name in names:
                raise TargetError(f"Cannot drop column {column.name}: the table is partitioned by it")
            case _:
                pass
    return names


def _less(layout: Layout, before: Partitioning) -> Layout:
    """Say that a table is partitioned by less than the operator's text, if columns took a part of it away."""
    text = text_left(layout.properties.get(PARTITION_PROPERTY), before, layout.partitioning)
    return layout if text is None else layout.stamped({PARTITION_PROPERTY: text})


def _is_held_as(derived: Derived, layout: Layout, name: str) -> bool:
    (field,) = (field for field in layout.fields if field["name"] == name)
    return bool(field["type"] == json.loads(delta_type(derived.type).json()))


def _named(layout: Layout, old: str, new: str) -> Layout:
    fields = [{**field, "name": new} if field["name"] == old else field for field in layout.fields]
    names = tuple(new if name == old else name for name in layout.divided_by)
    return replace(layout, fields=fields, divided_by=names)


def _on_its_way(name: str) -> str:
    """Return a name that no column has, for two columns may swap theirs."""
    return f"{name}\n"


def _left_name(layout: Layout, name: str) -> str:
    (field,) = (field for field in layout.fields if field["name"] == name)
    return f"{DERIVED_PREFIX}dropped_{field['metadata'][COLUMN_ID]}"
